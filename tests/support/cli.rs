//! Runs the command as a user does: another process, in a folder of its own.

use std::{
    ffi::OsString,
    path::Path,
    process::{Command, Output, Stdio},
};

#[cfg(unix)]
use std::os::unix::process::CommandExt;

use serde_json::Value;
use tempfile::TempDir;

/// What a run of the command said, and how it ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    fn new(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Returns standard output as one JSON document of a run that went well.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        self.succeeded();
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("no JSON document ({error}): {}", self.stdout))
    }

    /// Returns standard output as JSON lines of a run that went well.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.succeeded();
        let line = |line: &str| serde_json::from_str(line).expect("a JSON line");
        self.stdout.lines().map(line).collect()
    }

    /// Asserts exit code 0.
    #[track_caller]
    pub(crate) fn succeeded(&self) -> &Self {
        assert_eq!(self.code, 0, "{}{}", self.stdout, self.stderr);
        self
    }

    /// Shows exit code and standard error of a run that failed, and asserts that it said nothing else.
    #[track_caller]
    pub(crate) fn failure(&self) -> String {
        assert_eq!(self.stdout, "", "a failed run prints no result");
        assert_ne!(self.code, 0, "{}", self.stderr);
        format!("exit code {}\n{}", self.code, self.stderr)
    }
}

/// Prepares a run in a folder, without settings of the machine's environment.
pub(crate) fn command_line(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lakebed-for-tests"));
    #[cfg(unix)]
    command.arg0("lakebed");
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env_remove("NO_COLOR");
    let of_clouds = |name: &OsString| {
        let name = name.to_string_lossy();
        ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|start| name.starts_with(start))
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| of_clouds(name)) {
        command.env_remove(name);
    }
    command
}

/// Runs the command in a folder.
#[track_caller]
pub(crate) fn lakebed(folder: &Path, arguments: &[&str]) -> Run {
    lakebed_with(&mut command_line(folder, arguments))
}

/// Runs a prepared command.
#[track_caller]
pub(crate) fn lakebed_with(command: &mut Command) -> Run {
    Run::new(command.output().expect("the command starts"))
}

/// Runs statements in a lake's folder, with JSON output.
#[track_caller]
pub(crate) fn sql(lake: &TempDir, statements: &[&str]) -> Run {
    let mut arguments = vec!["--lake", ".", "--json", "sql"];
    arguments.extend(statements);
    lakebed(lake.path(), &arguments)
}

/// Every value of every row as text, sorted.
#[track_caller]
pub(crate) fn rows(lake: &TempDir, table: &str) -> Vec<String> {
    let run = sql(lake, &[&format!("SELECT * FROM `{table}`")]);
    let mut rows: Vec<String> = run.succeeded().stdout.lines().map(ToOwned::to_owned).collect();
    rows.sort_unstable();
    rows
}
