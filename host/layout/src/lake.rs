//! What layout needs of a lake, and nothing of how it is stored.

use std::fmt;

use async_trait::async_trait;
use lakebed_model::TableName;

use crate::{TableSnapshot, action::Action};

/// A commit that another writer made.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// Its version.
    pub version: u64,
    /// Its actions.
    pub actions: Vec<Action>,
}

/// What became of an attempt to write one version of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// The version is ours.
    Committed,
    /// Somebody else wrote the version first; nothing of ours is in the log.
    Exists,
}

/// A lake that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LakeFault {
    /// No such table.
    #[error("find table `{table}`: {known}")]
    UnknownTable {
        /// The name asked for.
        table: String,
        /// What the lake has instead.
        known: String,
    },
    /// Storage refused, is full, is read-only or cannot be reached.
    #[error("{action} table `{table}` at {location}")]
    Storage {
        /// `read` or `write`, with what.
        action: String,
        /// The table.
        table: String,
        /// Its URL.
        location: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Storage did not answer whether it wrote a version, which may still appear.
    #[error(
        "write version {version} of table `{table}` at {location}: storage did not say whether it was written; files prepared for it were left"
    )]
    Unsettled {
        /// The version.
        version: u64,
        /// The table.
        table: String,
        /// Its URL.
        location: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The log can be reached but makes no table.
    #[error("read table `{table}` at {location}: its log is damaged")]
    Damaged {
        /// The table.
        table: String,
        /// Its URL.
        location: String,
        /// The cause, which names the file where it can.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The table's protocol asks for more than this engine can do.
    #[error("read table `{table}` at {location}: it uses table features this engine cannot read")]
    Unsupported {
        /// The table.
        table: String,
        /// Its URL.
        location: String,
        /// The cause, which names the features.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The storage would let two writers write one version.
    #[error(
        "write to table `{table}` at {location}: its storage cannot put an object only if it is absent: {reason}"
    )]
    UnsafeCommit {
        /// The table.
        table: String,
        /// Its URL.
        location: String,
        /// How that is known.
        reason: String,
    },
    /// The log holds something that is no Delta action.
    #[error("read version {version} of table `{table}`")]
    Malformed {
        /// The table.
        table: String,
        /// The version.
        version: u64,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
}

impl LakeFault {
    /// Tells whether the fault is the table's own: other tables, and another try, are not affected.
    #[must_use]
    pub const fn is_of_table(&self) -> bool {
        !matches!(self, Self::Storage { .. } | Self::Unsettled { .. } | Self::UnsafeCommit { .. })
    }
}

/// Tables under optimistic concurrency control.
///
/// Implementers must make [`Lake::put_if_absent`] atomic: of two writers of one version exactly one
/// is told [`PutOutcome::Committed`], and a reader never sees half a commit. They must not retry a
/// commit at another version: that decision needs [`crate::conflict`].
#[async_trait]
pub trait Lake: Send + Sync + fmt::Debug {
    /// Reads the newest version of a table.
    async fn snapshot(&self, table: &TableName) -> Result<TableSnapshot, LakeFault>;

    /// Reads the commits after `version`, oldest first.
    async fn commits_since(
        &self,
        table: &TableName,
        version: u64,
    ) -> Result<Vec<Commit>, LakeFault>;

    /// Writes one version of the log unless it exists. After a fault other than
    /// [`LakeFault::Unsettled`] what the log has not by then it will not get.
    async fn put_if_absent(
        &self,
        table: &TableName,
        version: u64,
        actions: &[Action],
    ) -> Result<PutOutcome, LakeFault>;

    /// Deletes files that no commit names, as far as it can: what stays is an orphan for VACUUM.
    async fn discard(&self, table: &TableName, paths: &[String]);

    /// Waits before attempt number `attempt` (from 1), longer each time.
    async fn pause(&self, attempt: u32);

    /// Reads a clock that only goes forward, in milliseconds since some point, for reports.
    fn monotonic_ms(&self) -> u64;

    /// Makes a unique id: a UUID in a real lake, a counted one in tests.
    fn unique_id(&self) -> String;
}
