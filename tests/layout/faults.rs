//! Storage that fails: the table stays as it was, and nothing is left behind.

use std::path::Path;

use async_trait::async_trait;
use lakebed_lake::DeltaLake;
use lakebed_layout::{
    Commit, Executor, ExecutorError, Lake, LakeFault, PutOutcome, RewriteOutput, RewriteTask,
    TableSnapshot, action::Action, alter_clustering, optimize,
};
use lakebed_model::{Instant, TableName};

use crate::support::{Numbers, files_of, options, read_commits, runtime};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The log cannot be written.
    Put,
    /// The log was written, but the answer says that it was not.
    PutAnswerLost,
    /// What others committed cannot be read.
    CommitsSince,
    /// The rewrite ends without files.
    Rewrite,
    /// The rewrite loses a row.
    LostRow,
}

/// A real lake with one fault.
#[derive(Debug)]
struct Faulty {
    lake: DeltaLake,
    fault: Fault,
}

fn no_space(action: &str) -> LakeFault {
    LakeFault::Storage {
        action: action.to_owned(),
        table: "t".to_owned(),
        location: "file:///lake/t/".to_owned(),
        source: std::io::Error::from(std::io::ErrorKind::StorageFull).into(),
    }
}

#[async_trait]
impl Lake for Faulty {
    async fn snapshot(&self, table: &TableName) -> Result<TableSnapshot, LakeFault> {
        self.lake.snapshot(table).await
    }

    async fn commits_since(
        &self,
        table: &TableName,
        version: u64,
    ) -> Result<Vec<Commit>, LakeFault> {
        if self.fault == Fault::CommitsSince {
            return Err(no_space("read the log of"));
        }
        self.lake.commits_since(table, version).await
    }

    async fn put_if_absent(
        &self,
        table: &TableName,
        version: u64,
        actions: &[Action],
    ) -> Result<PutOutcome, LakeFault> {
        match self.fault {
            Fault::Put => Err(no_space("write the log of")),
            Fault::PutAnswerLost => {
                self.lake.put_if_absent(table, version, actions).await?;
                Err(no_space("write the log of"))
            }
            _ => self.lake.put_if_absent(table, version, actions).await,
        }
    }

    async fn discard(&self, table: &TableName, paths: &[String]) {
        self.lake.discard(table, paths).await;
    }

    async fn pause(&self, _attempt: u32) {}

    fn monotonic_ms(&self) -> u64 {
        0
    }

    fn unique_id(&self) -> String {
        self.lake.unique_id()
    }
}

#[async_trait]
impl Executor for Faulty {
    async fn rewrite(&self, task: &RewriteTask) -> Result<RewriteOutput, ExecutorError> {
        if self.fault == Fault::Rewrite {
            let source = std::io::Error::from(std::io::ErrorKind::StorageFull).into();
            return Err(ExecutorError { files: task.inputs.len(), bytes: 0, source });
        }
        let mut output = self.lake.rewrite(task).await?;
        if self.fault == Fault::LostRow {
            output.rows_out -= 1;
        }
        Ok(output)
    }
}

/// A table with keys and eight files that wait to be clustered, at version 1.
fn waiting(folder: &Path) -> Numbers {
    let numbers = Numbers::create(folder, 8, 100);
    let keys = ["v".to_owned(), "w".to_owned()];
    let now = Instant::from_epoch_ms(1);
    runtime(alter_clustering(&numbers.lake, &numbers.table, &keys, now)).expect("keys");
    numbers
}

/// Optimizes over a fault; shows the error's text and causes after checking that nothing changed.
#[track_caller]
fn failing(fault: Fault) -> String {
    let folder = tempfile::tempdir().unwrap();
    let numbers = waiting(folder.path());
    let table = folder.path().join("t");
    let before = (files_of(&table), files_of(&table.join("_delta_log")));
    let faulty = Faulty { lake: numbers.second_writer(), fault };
    let settings = options(false, 1 << 20);
    let error =
        runtime(optimize(&faulty, &faulty, &numbers.table, &settings)).expect_err("a fault");
    let after = (files_of(&table), files_of(&table.join("_delta_log")));
    assert_eq!(after, before, "no file more, no file less");
    assert_eq!(read_commits(&table).len(), 2, "no commit");
    assert_eq!(numbers.keys(), (0..800).collect::<Vec<i64>>());
    let mut text = error.to_string();
    let mut next = std::error::Error::source(&error);
    while let Some(cause) = next {
        text.push_str(&format!("\n{cause}"));
        next = cause.source();
    }
    text
}

#[test]
fn full_disk_at_the_commit_leaves_the_table_and_no_file() {
    insta::assert_snapshot!(failing(Fault::Put), @r"
    write the log of table `t` at file:///lake/t/
    no storage space
    ");
}

#[test]
fn full_disk_at_the_rewrite_leaves_the_table_and_no_file() {
    insta::assert_snapshot!(failing(Fault::Rewrite), @r"
    rewrite files of table `t`
    run rewrite of 8 files (0 bytes)
    no storage space
    ");
}

#[test]
fn unreadable_log_before_the_commit_leaves_the_table_and_no_file() {
    insta::assert_snapshot!(failing(Fault::CommitsSince), @r"
    read the log of table `t` at file:///lake/t/
    no storage space
    ");
}

#[test]
fn rewrite_that_loses_a_row_is_not_committed() {
    insta::assert_snapshot!(
        failing(Fault::LostRow),
        @"rewrite table `t`: 800 rows went in and 799 came out; nothing was committed"
    );
}

#[test]
fn commit_whose_answer_was_lost_is_found_and_its_files_stay() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = waiting(folder.path());
    let faulty = Faulty { lake: numbers.second_writer(), fault: Fault::PutAnswerLost };
    let settings = options(false, 1 << 20);
    let run = optimize(&faulty, &faulty, &numbers.table, &settings);
    let report = runtime(run).expect("the commit is in the log");
    assert_eq!((report.version, report.bins.len()), (2, 1));
    assert_eq!(numbers.keys(), (0..800).collect::<Vec<i64>>());
}

#[cfg(unix)]
mod unix {
    use std::{
        fs,
        os::unix::fs::PermissionsExt,
        path::Path,
        process::{Command, Stdio},
    };

    use super::waiting;
    use crate::support::{
        Numbers, command_line, files_of, lakebed, lakebed_with, read_commits, stable,
    };

    /// A file system without room for the new files: the kernel refuses every write beyond a size.
    #[test]
    fn disk_that_is_full_ends_as_transient_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        // 40 000 rows, so that the one new file is larger than the limit of 8 KiB.
        Numbers::create(folder.path(), 4, 10_000);
        let table = folder.path().join("t");
        let before = files_of(&table);
        let run = command_line(folder.path(), &[]);
        let mut limited = Command::new("sh");
        // A write beyond the limit sends a signal; ignored, it is an error of that write.
        limited.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""]);
        limited.arg(run.get_program()).args(["--lake", ".", "sql", "OPTIMIZE t"]);
        limited.current_dir(folder.path()).stdin(Stdio::null());
        let run = lakebed_with(&mut limited);
        let text = stable(&run.failure(), folder.path());
        assert!(text.starts_with("exit code 4\n"), "{text}");
        // A warning may stand before it.
        assert!(text.contains("\nerror: failed to rewrite files of table `t`\n"), "{text}");
        assert!(text.contains("File too large") && !text.contains("panicked"), "{text}");
        assert!(text.contains("\nhelp: check that the storage can be reached, has room"), "{text}");
        assert_eq!(files_of(&table), before, "no orphan");
        assert_eq!(read_commits(&table).len(), 1);
        lakebed(folder.path(), &["--lake", ".", "sql", "OPTIMIZE t"]).succeeded();
    }

    #[test]
    fn table_that_may_not_be_written_ends_as_transient_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let numbers = waiting(folder.path());
        let table = folder.path().join("t");
        let before = files_of(&table);
        let set = |mode| {
            for path in [table.join("_delta_log"), table.clone()] {
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            }
        };
        set(0o555);
        let bound = binds(&table);
        let run = lakebed(folder.path(), &["--lake", ".", "sql", "OPTIMIZE t"]);
        set(0o755);
        if !bound {
            // The superuser writes anyway; the fault at the commit above covers the same path.
            assert_eq!(run.code, 0, "{}", run.stderr);
            return;
        }
        assert_eq!(run.code, 4, "{}", run.stderr);
        assert_eq!((files_of(&table), read_commits(&table).len()), (before, 2));
        assert_eq!(numbers.keys(), (0..800).collect::<Vec<i64>>());
    }

    /// Tells whether permissions bind this user.
    fn binds(folder: &Path) -> bool {
        let probe = folder.join("probe");
        let bound = fs::write(&probe, "").is_err();
        let _ = fs::remove_file(probe);
        bound
    }
}
