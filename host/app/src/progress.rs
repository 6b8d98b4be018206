//! Progress on standard error: bars on a terminal, nothing elsewhere.

use std::io::IsTerminal;

use std::{sync::Arc, time::Duration};

use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use lakebed_lake::Meter;

/// How often the bar of a rewrite is drawn anew.
const TICK: Duration = Duration::from_millis(200);
/// Steps of a rewrite's bar.
const STEPS: u64 = 1_000;

/// Shows how far a long step is.
#[derive(Debug, Clone)]
pub struct Progress {
    visible: bool,
    bars: MultiProgress,
}

impl Progress {
    /// Shows bars when standard error is a terminal and `quiet` was not asked for.
    #[must_use]
    pub fn new(verbosity: Verbosity) -> Self {
        let visible = verbosity == Verbosity::Shown && std::io::stderr().is_terminal();
        Self { visible, ..Self::hidden() }
    }

    /// Shows nothing.
    #[must_use]
    pub fn hidden() -> Self {
        Self { visible: false, bars: MultiProgress::new() }
    }

    /// Starts a bar of `steps` steps.
    #[must_use]
    pub fn bar(&self, label: &str, steps: usize) -> ProgressBar {
        let target =
            if self.visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(u64::try_from(steps).ok(), target);
        let style = ProgressStyle::with_template("{prefix:<34} {bar:30} {pos}/{len} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(label.to_owned());
        if self.visible { self.bars.add(bar) } else { bar }
    }

    /// Shows how far the rewrites of a lake are, in rows per second and time left, until it is
    /// dropped.
    #[must_use]
    pub fn rewrites(&self, meter: &Arc<Meter>) -> Rewrites {
        if !self.visible {
            return Rewrites(None);
        }
        let (meter, bars) = (Arc::clone(meter), self.bars.clone());
        Rewrites(Some(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(TICK);
            let mut bar: Option<ProgressBar> = None;
            loop {
                ticks.tick().await;
                if !meter.is_running() {
                    if let Some(bar) = bar.take() {
                        bar.finish_and_clear();
                    }
                    continue;
                }
                let bar = bar.get_or_insert_with(|| bars.add(rows_bar()));
                bar.set_position(steps(meter.share()));
                let rows = meter.rows_written().max(meter.rows_read() / 2);
                bar.set_message(rate(rows, bar));
            }
        })))
    }
}

/// A bar that follows a lake's rewrites.
#[derive(Debug)]
pub struct Rewrites(Option<tokio::task::JoinHandle<()>>);

impl Drop for Rewrites {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

fn rows_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{prefix:<34} {bar:30} {percent}% {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix("rewriting rows");
    bar
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share between 0 and 1 of some steps"
)]
fn steps(share: f64) -> u64 {
    (share * STEPS as f64) as u64
}

/// Says how many rows pass per second, and how long the rest takes at the pace so far.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a rate for people to see"
)]
fn rate(rows: u64, bar: &ProgressBar) -> String {
    let seconds = bar.elapsed().as_secs_f64().max(0.001);
    let done = bar.position().max(1) as f64 / STEPS as f64;
    let left = (seconds * (1.0 - done) / done) as u64;
    format!("{} rows/s, {left} s left", HumanCount((rows as f64 / seconds) as u64))
}

/// Whether people want to see progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// Yes.
    Shown,
    /// No.
    Quiet,
}
