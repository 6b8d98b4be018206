//! How far a rewrite is, and whether it should go on.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use datafusion::error::{DataFusionError, Result};

/// Counts the rows of rewrites as they pass; whoever asked for them may look, or call a halt.
#[derive(Debug, Default)]
pub struct Meter {
    planned: AtomicU64,
    read: AtomicU64,
    written: AtomicU64,
    running: AtomicUsize,
    interrupted: AtomicBool,
}

/// A job that writes files; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Running(Arc<Meter>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Somebody asked for a halt: what had been written is deleted, nothing was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

impl Meter {
    /// Asks rewrites to stop where they are.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    /// Tells whether somebody asked for a halt.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Tells whether files are being written, which would be left behind by a program that ends now.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    /// Returns the share of the work that is done, reading and writing alike, from 0 to 1.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share for people to see")]
    pub fn share(&self) -> f64 {
        let planned = self.planned.load(Ordering::Relaxed).max(1);
        let done = self.read.load(Ordering::Relaxed) + self.written.load(Ordering::Relaxed);
        (done as f64 / (2 * planned) as f64).min(1.0)
    }

    /// Returns how many rows have been written.
    #[must_use]
    pub fn rows_written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Returns how many rows have been read.
    #[must_use]
    pub fn rows_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Begins a job of so many rows, where that is known.
    pub(crate) fn begin(self: &Arc<Self>, rows: Option<u64>) -> Running {
        self.planned.fetch_add(rows.unwrap_or(0), Ordering::Relaxed);
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(Arc::clone(self))
    }

    pub(crate) fn read(&self, rows: usize) {
        self.read.fetch_add(rows as u64, Ordering::Relaxed);
    }

    pub(crate) fn write(&self, rows: usize) {
        self.written.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Fails when somebody asked for a halt.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_interrupted() {
            return Err(DataFusionError::External(Box::new(Interrupted)));
        }
        Ok(())
    }
}
