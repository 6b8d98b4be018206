//! Ctrl-C: a job that writes deletes what it wrote and commits nothing; anything else just ends.

use std::{io::Write, process, sync::Arc};

use lakebed_lake::Meter;

use crate::error::Remedy;

/// Waits for Ctrl-C as long as the program runs; the second one ends it in any case.
pub(super) async fn watch(meter: Arc<Meter>) {
    if tokio::signal::ctrl_c().await.is_err() {
        return;
    }
    if meter.is_running() {
        meter.interrupt();
        let note = "interrupted: deleting what was written (Ctrl-C again to stop at once)";
        let _ = writeln!(std::io::stderr(), "{note}");
        if tokio::signal::ctrl_c().await.is_err() {
            return;
        }
    }
    process::exit(Remedy::Again.exit_code().into());
}
