//! A table as it was, version by version: a second folder that shows the same files and only as much
//! of the log as was written by then, with the checkpoints that were due.

use std::{
    fs,
    path::{Path, PathBuf},
};

use lakebed_lake::DeltaLake;
use lakebed_layout::action::Action;
use lakebed_model::TableName;
use tempfile::TempDir;

use super::{empty_lake, table::keys_of};

/// The folder beside a table, on the same file system.
#[derive(Debug)]
pub(crate) struct Shadow {
    source: PathBuf,
    folder: TempDir,
    lake: DeltaLake,
    /// The first version that is not shown yet.
    next: u64,
}

/// What a version holds.
#[derive(Debug, PartialEq)]
pub(crate) struct ShownVersion {
    pub(crate) version: u64,
    pub(crate) actions: Vec<Action>,
    /// The keys of all rows, sorted.
    pub(crate) keys: Vec<i64>,
}

impl Shadow {
    /// Starts before the first version.
    pub(crate) fn of(source: &Path) -> Self {
        let parent = source.parent().expect("a table lies in a folder");
        let folder = tempfile::Builder::new().prefix("shadow-").tempdir_in(parent);
        let folder = folder.expect("a folder");
        fs::create_dir_all(folder.path().join("_delta_log")).expect("a folder");
        let mut lake = empty_lake();
        lake.add_table("t", &folder.path().to_string_lossy()).expect("a path");
        Self { source: source.to_owned(), folder, lake, next: 0 }
    }

    /// Shows and reads one version more; `None` after the newest.
    #[track_caller]
    pub(crate) fn next_version(&mut self) -> Option<ShownVersion> {
        let version = self.next;
        let name = format!("_delta_log/{version:020}.json");
        let text = fs::read_to_string(self.source.join(&name)).ok()?;
        let actions = Action::parse_commit(&text).expect("a Delta commit");
        for action in &actions {
            if let Action::Add(add) = action {
                let target = self.folder.path().join(&add.path);
                if !target.exists() {
                    fs::hard_link(self.source.join(&add.path), target)
                        .unwrap_or_else(|error| panic!("{} of {version}: {error}", add.path));
                }
            }
        }
        fs::hard_link(self.source.join(&name), self.folder.path().join(&name)).expect("a link");
        let checkpoint = format!("_delta_log/{version:020}.checkpoint.parquet");
        if self.source.join(&checkpoint).exists() {
            let target = self.folder.path().join(&checkpoint);
            fs::hard_link(self.source.join(&checkpoint), target).expect("a link");
        }
        self.next += 1;
        let keys = keys_of(&self.lake, "k", &TableName::new("t"));
        Some(ShownVersion { version, actions, keys })
    }
}
