//! The planner's searches against the best plan, which is found by trying every one.

mod graphs;

use lakebed_plan::search::{Exact, Greedy, Search, Seeded, Solution};

use self::graphs::Graph;
use super::{
    Experiment, ExperimentReport, ExperimentSettings, Goal, Running,
    plot::{Plot, Series, Shape},
    replay::{now, ratio},
    report::markdown_table,
};
use crate::{error::Error, pipeline::blocking};

/// How near the searches come to the best plan.
#[derive(Debug, Clone, Copy)]
pub struct PlannerQuality;

impl Experiment for PlannerQuality {
    fn name(&self) -> &'static str {
        "planner"
    }

    fn about(&self) -> &'static str {
        "value of plans against the best there is, on graphs of the paper's sizes and a large one"
    }

    fn run(&self, settings: ExperimentSettings) -> Running<'_> {
        Box::pin(blocking("planning", move || measure(settings)))
    }
}

/// Relative difference below which two values are the same but for rounding.
const ROUNDING: f64 = 1e-9;

/// The searches compared, with the endings of their figures' names.
const SEARCHES: [(&dyn Search, [&str; 3]); 3] = [
    (&Exact::STANDARD, ["mean_ratio", "min_ratio", "optimal_share"]),
    (&Seeded, ["mean_ratio_seeded", "min_ratio_seeded", "optimal_share_seeded"]),
    (&Greedy, ["mean_ratio_greedy", "min_ratio_greedy", "optimal_share_greedy"]),
];

fn measure(settings: ExperimentSettings) -> Result<ExperimentReport, Error> {
    let mut report = ExperimentReport {
        goals: vec![
            Goal::AtLeast("mean_ratio", 0.999),
            Goal::AtLeast("min_ratio", 0.99),
            Goal::AtLeast("min_ratio_seeded", 0.99),
            Goal::AtMost("large_ms", 1_000.0),
        ],
        ..ExperimentReport::default()
    };
    let nine = Graph::nine(settings.seed);
    let (random, again) = Graph::random(if settings.quick { 100 } else { 1_000 }, settings.seed);
    let mut ratios: Vec<Vec<f64>> = Vec::new();
    for (search, names) in SEARCHES {
        let found = nine.iter().chain(&random).map(|graph| ratio_to_best(graph, search));
        let found = found.collect::<Result<Vec<f64>, Error>>()?;
        let count = ratio(found.len() as u64, 1);
        let optimal = found.iter().filter(|ratio| **ratio >= 1.0 - ROUNDING).count();
        report.measured(names[0], found.iter().sum::<f64>() / count);
        report.measured(names[1], found.iter().copied().fold(f64::INFINITY, f64::min));
        report.measured(names[2], ratio(optimal as u64, found.len() as u64));
        ratios.push(found);
    }
    report.measured("graphs", ratio((nine.len() + random.len()) as u64, 1));
    show_small(&mut report, &nine, &ratios);
    report.notes.push(format!(
        "the paper publishes neither its graphs nor their weights: these have its sizes and its \
         model, and are made from the seed; {again} drawn graphs without any plan worth having were \
         drawn again, because a ratio to 0 says nothing"
    ));
    large(&mut report, settings)?;
    Ok(report)
}

/// Searches a graph and divides its value by the best plan's; fails when the search's claims are wrong.
fn ratio_to_best(graph: &Graph, search: &dyn Search) -> Result<f64, Error> {
    let problem = graph.problem().map_err(lakebed_plan::PlanError::from)?;
    let best = graph.optimum();
    let Solution { npv, upper_bound, proven, .. } = search.search(&problem);
    let above = |a: f64, b: f64| a > b + ROUNDING * b.abs();
    if above(npv, best) || above(best, upper_bound) || (proven && above(best, npv)) {
        return Err(Error::Mismatch {
            what: format!(
                "search `{}` on graph {}: value {npv}, bound {upper_bound}, proven {proven}, \
                 where trying every plan finds {best}",
                search.name(),
                graph.name
            ),
        });
    }
    Ok(npv / best)
}

fn show_small(report: &mut ExperimentReport, nine: &[Graph], ratios: &[Vec<f64>]) {
    let names: Vec<&str> = SEARCHES.iter().map(|(search, _)| search.name()).collect();
    let rows: Vec<Vec<String>> = nine
        .iter()
        .enumerate()
        .map(|(index, graph)| {
            let own = ratios.iter().map(|found| format!("{:.3}", found[index]));
            std::iter::once(graph.name.clone()).chain(own).collect()
        })
        .collect();
    let mut header = vec!["value / best"];
    header.extend(&names);
    report.sections.push(markdown_table(&header, &rows));
    let series = names
        .iter()
        .zip(ratios)
        .map(|(name, found)| Series::new(*name, found[..nine.len()].to_vec()))
        .collect();
    report.plots.push(Plot {
        name: "nine".to_owned(),
        title: "Value of the plan, as a share of the best plan's".to_owned(),
        x_label: "graph of the paper's sizes".to_owned(),
        y_label: "value / best".to_owned(),
        shape: Shape::Bars(nine.iter().map(|graph| graph.name.clone()).collect(), series),
        goal: Some((0.99, "goal of every graph: 0.99".to_owned())),
    });
    let sorted = |found: &Vec<f64>| {
        let mut found = found.clone();
        found.sort_unstable_by(f64::total_cmp);
        let all = found.len() as u64;
        let share = |index: usize| 100.0 * ratio(index as u64 + 1, all);
        found.into_iter().enumerate().map(|(index, value)| (share(index), value)).collect()
    };
    let series = names.iter().zip(ratios).map(|(name, found)| Series::new(*name, sorted(found)));
    report.plots.push(Plot {
        name: "all".to_owned(),
        title: "All graphs, the worst plan first".to_owned(),
        x_label: "graphs, %".to_owned(),
        y_label: "value / best".to_owned(),
        shape: Shape::Lines(series.collect()),
        goal: None,
    });
}

/// A graph that nobody can try every plan of: how long it takes, and how good the plan is said to be.
fn large(report: &mut ExperimentReport, settings: ExperimentSettings) -> Result<(), Error> {
    let (tables, edges) = if settings.quick { (200, 2_000) } else { (1_000, 10_000) };
    let graph = Graph::large(tables, edges, settings.seed);
    let problem = graph.problem().map_err(lakebed_plan::PlanError::from)?;
    let started = now();
    let found = Exact::STANDARD.search(&problem);
    report.measured("large_ms", started.elapsed().as_secs_f64() * 1e3);
    report.measured("large_gap", (found.upper_bound - found.npv) / found.upper_bound.max(1.0));
    let greedy = Greedy.search(&problem);
    report.measured("large_vs_greedy", found.npv / greedy.npv.max(1.0));
    report.measured("large_tables", ratio(tables as u64, 1));
    report.measured("large_edges", ratio(edges as u64, 1));
    Ok(())
}
