//! Folders with tables.

use std::{
    fs,
    future::Future,
    path::{Path, PathBuf},
    sync::{LazyLock, OnceLock},
    time::Duration,
};

use lakebed::{config::Config, experiment::tpch, pipeline::Pipeline, progress::Progress};
use lakebed_lake::{DeltaLake, LakeOptions};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::project;

/// Scale factor of [`small_lake`]: 60 175 lines, 15 000 orders, in the file counts of scale factor 1.
const SCALE_FACTOR: f64 = 0.01;
const PREFIX: &str = "small-lake-";

/// Runs a future as the command does: several threads with stacks that are large enough for guests.
#[track_caller]
pub(crate) fn runtime<F: Future>(future: F) -> F::Output {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        let mut builder = Builder::new_multi_thread();
        builder.enable_all().thread_stack_size(8 << 20).build().expect("threads")
    });
    RUNTIME.block_on(Box::pin(future))
}

/// Makes a lake without tables.
pub(crate) fn empty_lake() -> DeltaLake {
    DeltaLake::new(LakeOptions::default()).expect("the engine starts on a test machine")
}

/// Returns the folder of a lake with the eight TPC-H tables, which no test may change.
///
/// It is written once per process; a static is never dropped, so the next process takes it away.
pub(crate) fn small_lake() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
        remove_older(parent);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent);
        let folder = folder.expect("a folder for the lake").keep();
        let mut pipeline = runtime(Pipeline::new(Config::default(), Progress::hidden()))
            .expect("the default configuration");
        let now = pipeline.now;
        let progress = pipeline.progress.clone();
        let written = tpch::write_tables(&mut pipeline.lake, &folder, SCALE_FACTOR, now, &progress);
        runtime(written).expect("the tables are written");
        folder
    })
}

/// Removes lakes that no running process can be using.
fn remove_older(parent: &Path) {
    const LONGEST_RUN: Duration = Duration::from_secs(3_600);
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_lake = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        if is_lake && age.is_some_and(|age| age > LONGEST_RUN) {
            // Another process may be doing the same.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns a copy of [`small_lake`] to change.
pub(crate) fn small_lake_copy() -> TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    copy_folder(small_lake(), copy.path());
    // What other tests ran on it is not this one's history.
    let records = copy.path().join("_lakebed");
    if records.exists() {
        fs::remove_dir_all(records).expect("the records");
    }
    copy
}

/// Returns a lake with a copy of one of the tables that Spark wrote.
pub(crate) fn clustered_table(name: &str) -> TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    let source = project("tests/data/clustered-tables").join(name);
    copy_folder(&source, &copy.path().join(name));
    copy
}

/// Copies a folder with all that is in it.
fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder to copy") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copied file");
        }
    }
}
