//! What an experiment found.

use std::{collections::BTreeMap, fmt::Write as _};

use lakebed_model::Bytes;

use super::plot::Plot;
use crate::config::usable_memory;

/// Figures with the goals they are held against.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExperimentReport {
    /// What was measured, by name.
    pub figures: BTreeMap<&'static str, f64>,
    /// What was hoped for.
    pub goals: Vec<Goal>,
    /// What was not measured, what fell short, and why.
    pub notes: Vec<String>,
    /// Further Markdown, such as a table of the single runs.
    pub sections: Vec<String>,
    /// Pictures of the figures.
    pub plots: Vec<Plot>,
}

/// What a figure should reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// So much or more.
    AtLeast(&'static str, f64),
    /// So much or less.
    AtMost(&'static str, f64),
}

impl Goal {
    /// Returns the name of the figure.
    #[must_use]
    pub const fn figure(self) -> &'static str {
        match self {
            Self::AtLeast(figure, _) | Self::AtMost(figure, _) => figure,
        }
    }
}

/// Where an experiment ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Cores that may be used.
    pub cores: usize,
    /// Memory in all.
    pub memory: Bytes,
}

impl Machine {
    /// Looks at this machine.
    #[must_use]
    pub fn here() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        Self { cores, memory: Bytes(usable_memory()) }
    }
}

impl ExperimentReport {
    /// Adds a figure.
    pub fn measured(&mut self, figure: &'static str, value: f64) {
        self.figures.insert(figure, value);
    }

    /// Tells whether a goal was met; `None` when its figure was not measured.
    #[must_use]
    pub fn is_met(&self, goal: Goal) -> Option<bool> {
        let value = *self.figures.get(goal.figure())?;
        Some(match goal {
            Goal::AtLeast(_, least) => value >= least,
            Goal::AtMost(_, most) => value <= most,
        })
    }

    /// Renders the figures as a Markdown table, with goals and notes.
    #[must_use]
    pub fn markdown(&self, name: &str, machine: Machine) -> String {
        let mut text = format!(
            "# {name}\n\n{} cores, {}.\n\n| figure | value | goal | met |\n| --- | ---: | ---: | --- |\n",
            machine.cores, machine.memory
        );
        for (figure, value) in &self.figures {
            let goal = self.goals.iter().find(|goal| goal.figure() == *figure);
            let (wanted, met) = match goal {
                Some(goal) => {
                    (wanted(*goal), if self.is_met(*goal) == Some(true) { "yes" } else { "no" })
                }
                None => (String::new(), ""),
            };
            let _ = writeln!(text, "| `{figure}` | {} | {wanted} | {met} |", shown(*value));
        }
        for note in &self.notes {
            let _ = write!(text, "\n- {note}");
        }
        if !self.notes.is_empty() {
            text.push('\n');
        }
        for section in &self.sections {
            let _ = write!(text, "\n{}\n", section.trim_end());
        }
        for plot in &self.plots {
            let _ = write!(text, "\n![{}]({})\n", plot.title, plot_file(name, plot));
        }
        text
    }
}

/// Names the file of a plot of an experiment.
#[must_use]
pub fn plot_file(experiment: &str, plot: &Plot) -> String {
    format!("{experiment}-{}.svg", plot.name)
}

/// Renders rows as a Markdown table; the first column is text, the others are numbers.
#[must_use]
pub fn markdown_table(header: &[&str], rows: &[Vec<String>]) -> String {
    let numbers = "| ---: ".repeat(header.len().saturating_sub(1));
    let mut text = format!("| {} |\n| --- {numbers}|\n", header.join(" | "));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

/// Renders a goal.
#[must_use]
pub fn wanted(goal: Goal) -> String {
    match goal {
        Goal::AtLeast(_, least) => format!("≥ {}", shown(least)),
        Goal::AtMost(_, most) => format!("≤ {}", shown(most)),
    }
}

/// Renders a figure: whole where it is large, with three decimals where it is small.
#[must_use]
pub fn shown(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, ExperimentReport, Goal, Machine, markdown_table};

    #[test]
    fn a_report_is_a_table_with_goals_and_notes() {
        let mut report = ExperimentReport::default();
        report.measured("speed", 151.4);
        report.measured("share", 0.25);
        report.goals = vec![
            Goal::AtLeast("speed", 150.0),
            Goal::AtMost("share", 0.2),
            Goal::AtMost("unmeasured", 1.0),
        ];
        report.notes.push("no peers here".to_owned());
        report.sections.push(markdown_table(&["run", "share"], &[vec!["1".into(), "0.25".into()]]));
        let met: Vec<Option<bool>> = report.goals.iter().map(|goal| report.is_met(*goal)).collect();
        assert_eq!(met, [Some(true), Some(false), None]);
        let text = report.markdown("speed", Machine { cores: 2, memory: Bytes(1 << 30) });
        assert_eq!(
            text,
            "# speed\n\n2 cores, 1.0 GiB.\n\n| figure | value | goal | met |\n\
             | --- | ---: | ---: | --- |\n| `share` | 0.250 | ≤ 0.200 | no |\n\
             | `speed` | 151 | ≥ 150 | yes |\n\n- no peers here\n\n\
             | run | share |\n| --- | ---: |\n| 1 | 0.25 |\n"
        );
    }
}
