//! Progress on standard error: bars on a terminal, nothing elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows how far a long step is.
#[derive(Debug, Clone)]
pub struct Progress {
    visible: bool,
}

impl Progress {
    /// Shows bars when standard error is a terminal and `quiet` was not asked for.
    #[must_use]
    pub fn new(verbosity: Verbosity) -> Self {
        Self { visible: verbosity == Verbosity::Shown && std::io::stderr().is_terminal() }
    }

    /// Shows nothing.
    #[must_use]
    pub const fn hidden() -> Self {
        Self { visible: false }
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
        bar
    }
}

/// Whether people want to see progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// Yes.
    Shown,
    /// No.
    Quiet,
}
