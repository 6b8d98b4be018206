//! One error for the whole program, and what to do about it.

use std::{error::Error as StdError, path::PathBuf};

use arrow::error::ArrowError;
use lakebed_collect::CollectError;
use lakebed_graph::GraphError;
use lakebed_lake::{
    Interrupted, LakeError, StoreProblem, is_of_storage, is_out_of_memory, is_violation,
    store_problem,
};
use lakebed_layout::{LakeFault, LayoutError};
use lakebed_model::Bytes;
use lakebed_plan::PlanError;
use lakebed_sandbox::{RefusalKind, SandboxError};

use crate::config::ConfigError;

/// Anything that ends a command. Displays as a fragment that fits after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The query history.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// The join graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A layout operation.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The lake.
    #[error(transparent)]
    Lake(#[from] LakeError),
    /// What a predicate of the user's asks could not be counted.
    #[error("run predicate `{predicate}` on table `{table}`")]
    Predicate {
        /// The predicate.
        predicate: String,
        /// The table.
        table: String,
        /// The cause.
        #[source]
        source: Box<LakeError>,
    },
    /// A plugin.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Arguments that do not go together.
    #[error("{what}")]
    Usage {
        /// What is wrong.
        what: String,
        /// What to do.
        help: String,
    },
    /// A file of the user's could not be read or written.
    #[error("{action} `{}`", path.display())]
    File {
        /// `read`, `write`, …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A file of the user's holds something else than expected.
    #[error("read `{}`: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong, with position.
        reason: String,
    },
    /// The table was laid out otherwise since the plan was made.
    #[error("apply the plan to table `{table}`: it is {found}, the plan was made for {expected}")]
    Outdated {
        /// The table.
        table: String,
        /// The layout that the plan starts from.
        expected: String,
        /// The layout there is.
        found: String,
    },
    /// The tables grew beyond what the plan may rewrite.
    #[error("apply the plan: its tables are {needed} by now, its {budget} is {limit}")]
    OverBudget {
        /// What would be rewritten.
        needed: Bytes,
        /// `rewrite budget` or `storage budget`.
        budget: &'static str,
        /// What the plan allows.
        limit: Bytes,
    },
    /// The configuration says to leave the table alone.
    #[error("apply the plan to table `{table}`: it is protected")]
    Protected {
        /// The table.
        table: String,
    },
    /// Output could not be written.
    #[error("write output")]
    Output(#[from] std::io::Error),
    /// A task of ours died.
    #[error("finish {stage}")]
    Died {
        /// Which stage.
        stage: &'static str,
        /// How.
        #[source]
        source: tokio::task::JoinError,
    },
    /// Two ways to one answer disagreed.
    #[error("verify {what}")]
    Mismatch {
        /// What was compared, with the numbers.
        what: String,
    },
}

impl From<LakeFault> for Error {
    fn from(fault: LakeFault) -> Self {
        Self::Lake(fault.into())
    }
}

/// What Arrow refuses here are values on their way to the user.
impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        Self::Output(std::io::Error::other(error))
    }
}

/// Who can mend it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Run it again.
    Retry,
    /// Plan again: the table moved.
    Replan,
    /// Change the input, the usage or the configuration.
    FixInput,
    /// A limit, budget, guard or protection said no.
    Allow,
    /// Somebody pressed Ctrl-C.
    Again,
    /// Tell us.
    Report,
}

impl Remedy {
    /// Returns the exit code of the contract: 1 our fault, 2 input, 3 refused, 4 transient.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Report => 1,
            Self::FixInput => 2,
            Self::Allow => 3,
            Self::Retry | Self::Replan => 4,
            // What a shell reports for a program that SIGINT ended.
            Self::Again => 130,
        }
    }

    /// Returns the code of machine output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Report => "internal",
            Self::FixInput => "invalid_input",
            Self::Allow => "refused",
            Self::Retry => "transient",
            Self::Replan => "conflict",
            Self::Again => "interrupted",
        }
    }
}

impl Error {
    /// Says who can mend it and what to do, as one sentence.
    #[must_use]
    pub fn remedy(&self) -> (Remedy, String) {
        if chain(self).any(|cause| cause.is::<Interrupted>()) {
            let help = "run it again: what was not committed yet was deleted".to_owned();
            return (Remedy::Again, help);
        }
        match self {
            Self::Collect(error) => (Remedy::FixInput, collect_help(error)),
            Self::Config(error) => (Remedy::FixInput, error.help()),
            Self::Usage { help, .. } => (Remedy::FixInput, help.clone()),
            Self::File { .. } => {
                (Remedy::FixInput, "check that the path exists and may be used".to_owned())
            }
            Self::Content { .. } => {
                (Remedy::FixInput, "correct the file at the place named above".to_owned())
            }
            Self::Graph(error) => plugin_fault(error),
            Self::Plan(error) => plugin_fault(error),
            Self::Layout(error) => layout_remedy(error),
            Self::Lake(error) => lake_remedy(error),
            Self::Predicate { source, .. } => lake_remedy(source),
            Self::Sandbox(error) => sandbox_remedy(error),
            Self::Outdated { .. } => {
                (Remedy::Replan, "plan again: the table's layout has changed".to_owned())
            }
            Self::OverBudget { .. } => {
                (Remedy::Allow, "plan again within the budget, or with a larger one".to_owned())
            }
            Self::Protected { .. } => (
                Remedy::Allow,
                "plan again, or take the table out of `protect` under [plan]".to_owned(),
            ),
            Self::Output(_) => {
                (Remedy::Retry, "check that standard output can be written to".to_owned())
            }
            Self::Died { .. } | Self::Mismatch { .. } => report(),
        }
    }

    /// Lists the causes, outermost first.
    #[must_use]
    pub fn causes(&self) -> Vec<String> {
        causes_of(self)
    }
}

/// Renders an error and its causes on one line, for a warning or a reason in a plan.
#[must_use]
pub fn with_causes(error: &(dyn StdError + 'static)) -> String {
    let mut parts = vec![one_line(error)];
    parts.extend(causes_of(error));
    parts.join(": ")
}

fn causes_of(error: &(dyn StdError + 'static)) -> Vec<String> {
    let mut causes = Vec::new();
    let mut last = one_line(error);
    for cause in chain(error) {
        let text = one_line(cause);
        if text != last {
            // A wrapper that only puts a label before its cause adds nothing.
            causes.pop_if(|wrapper: &mut String| wrapper.ends_with(&text));
            causes.push(text.clone());
        }
        last = text;
    }
    causes
}

/// Renders an error on one line, without the causes that some errors repeat in their own text and
/// without the stack that the Delta kernel appends when RUST_BACKTRACE is set.
fn one_line(error: &dyn StdError) -> String {
    let text = error.to_string();
    let lines = text.lines().take_while(|line| !line.trim_start().starts_with("0: "));
    let flat = lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
    flat.split(" caused by ").next().unwrap_or(&flat).to_owned()
}

fn report() -> (Remedy, String) {
    (Remedy::Report, "this is a fault of Lakebed: please report it with the lines above".to_owned())
}

fn collect_help(error: &CollectError) -> String {
    match error {
        CollectError::MissingLog { .. } => {
            "give the path of a Spark event log (file or eventlog_v2_… folder), or of an exported query history"
                .to_owned()
        }
        CollectError::MissingColumn { .. } => {
            "export that column too; examples/query-history/README.md has the query for each product".to_owned()
        }
        _ => "see `lakebed collect --help` for the formats that are read".to_owned(),
    }
}

/// The causes of an error, outermost first.
fn chain<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

fn plugin_fault(error: &(dyn StdError + 'static)) -> (Remedy, String) {
    if let Some(fault) = chain(error).find_map(|cause| cause.downcast_ref::<SandboxError>()) {
        return sandbox_remedy(fault);
    }
    (Remedy::FixInput, "check the settings of the plugin or of the plan named above".to_owned())
}

fn sandbox_remedy(error: &SandboxError) -> (Remedy, String) {
    match error {
        SandboxError::Engine { .. } => report(),
        SandboxError::Refused { kind: RefusalKind::InvalidConfig, .. } => (
            Remedy::FixInput,
            "correct the plugin's settings, under [plugin_config] or in the chain".to_owned(),
        ),
        SandboxError::Refused { kind: RefusalKind::InvalidInput, .. } => {
            (Remedy::FixInput, "correct the data or the settings that the plugin names".to_owned())
        }
        _ => (
            Remedy::Allow,
            "mend the plugin, or name another one under [plugins] in lakebed.toml".to_owned(),
        ),
    }
}

fn layout_remedy(error: &LayoutError) -> (Remedy, String) {
    match error {
        LayoutError::TooManyColumns { .. }
        | LayoutError::DuplicateColumn { .. }
        | LayoutError::UnknownColumn { .. }
        | LayoutError::UnsupportedType { .. }
        | LayoutError::Cuts { .. }
        | LayoutError::MissingStats { .. }
        | LayoutError::FullWithoutColumns { .. }
        | LayoutError::Property { .. }
        | LayoutError::NotAllowed { .. }
        | LayoutError::Statement { .. } => {
            (Remedy::FixInput, "correct the statement or choose other columns".to_owned())
        }
        LayoutError::UnknownSetting { nearest, .. } => {
            (Remedy::FixInput, format!("did you mean `{nearest}`?"))
        }
        LayoutError::SettingValue { expected, .. } => {
            (Remedy::FixInput, format!("give {expected}"))
        }
        LayoutError::Chain { .. } => {
            (Remedy::FixInput, "correct the iterators or the row keys".to_owned())
        }
        LayoutError::Protected { .. } => (
            Remedy::Allow,
            "leave this table to the engine that wrote it, or remove the feature there".to_owned(),
        ),
        LayoutError::VacuumRefused { .. } | LayoutError::DeletionVectorPlace { .. } => (
            Remedy::Allow,
            "let the engine that wrote this table delete its files".to_owned(),
        ),
        LayoutError::RetentionTooShort { .. } => (
            Remedy::Allow,
            "ask for a longer retention; or, when nobody reads older versions or writes now, switch the retention check off".to_owned(),
        ),
        LayoutError::InvalidInterval { .. } => {
            (Remedy::FixInput, "correct the table's property, or say the retention".to_owned())
        }
        LayoutError::Aborted { .. } => {
            (Remedy::Replan, "plan again: the table's rules have changed".to_owned())
        }
        LayoutError::TooManyConflicts { .. } => {
            (Remedy::Retry, "run it again when fewer writers are active".to_owned())
        }
        LayoutError::RowCount { .. } | LayoutError::UncountedRows { .. } => report(),
        LayoutError::UnreadableVersion { .. } => storage_help(),
        LayoutError::Lake(fault) => fault_remedy(fault),
        LayoutError::Executor { .. } => executor_remedy(error),
    }
}

/// An executor fails because storage does or because an iterator says no; the chain of causes tells.
fn executor_remedy(error: &(dyn StdError + 'static)) -> (Remedy, String) {
    for cause in chain(error) {
        if let Some(fault) = cause.downcast_ref::<SandboxError>() {
            return sandbox_remedy(fault);
        }
        if let Some(refused) = cause.downcast_ref::<Error>() {
            return refused.remedy();
        }
    }
    if is_out_of_memory(error) {
        return memory_help();
    }
    if chain(error).any(|cause| cause.is::<lakebed_compact::CompactError>()) {
        return (Remedy::FixInput, "correct the iterators or the rows named above".to_owned());
    }
    store_remedy(error)
}

fn lake_remedy(error: &LakeError) -> (Remedy, String) {
    match error {
        LakeError::Fault(fault) => fault_remedy(fault),
        LakeError::Layout(error) => layout_remedy(error),
        LakeError::Query { .. } | LakeError::Engine { .. } if is_out_of_memory(error) => {
            memory_help()
        }
        LakeError::Query { .. } | LakeError::Engine { .. } if is_violation(error) => {
            (Remedy::FixInput, "correct the rows: nothing of them was written".to_owned())
        }
        LakeError::Query { .. } if is_of_storage(error) => store_remedy(error),
        LakeError::Insert { .. } => {
            (Remedy::FixInput, "give the query the table's columns, or list others".to_owned())
        }
        LakeError::NoVersion { .. } => {
            (Remedy::FixInput, "choose one of the versions that DESCRIBE HISTORY lists".to_owned())
        }
        LakeError::Query { .. } => {
            (Remedy::FixInput, "correct the query, or check the tables it names".to_owned())
        }
        LakeError::Engine { .. } if error.is_of_table() => (
            Remedy::FixInput,
            "restore the table's files, or the version of its log that has them".to_owned(),
        ),
        LakeError::Engine { .. } | LakeError::Folder { .. } | LakeError::Fetch { .. } => {
            store_remedy(error)
        }
        LakeError::Location { .. } => {
            (Remedy::FixInput, "give a folder or a URL such as file:///lake/orders".to_owned())
        }
        LakeError::SpillFolder { .. } => {
            (Remedy::FixInput, "give --spill-dir a folder that may be written".to_owned())
        }
        LakeError::TableExists { .. } => {
            (Remedy::FixInput, "choose an empty folder, or remove the table first".to_owned())
        }
    }
}

fn fault_remedy(fault: &LakeFault) -> (Remedy, String) {
    match fault {
        LakeFault::UnknownTable { .. } => (
            Remedy::FixInput,
            "name a table of the lake, or set [lake] folder or [tables] in lakebed.toml".to_owned(),
        ),
        LakeFault::Storage { .. } => store_remedy(fault),
        LakeFault::Unsettled { version, .. } => (
            Remedy::Retry,
            format!("see in DESCRIBE HISTORY whether version {version} has appeared since, before running it again"),
        ),
        LakeFault::UnsafeCommit { .. } => (
            Remedy::Allow,
            "use a store whose conditional put (If-None-Match: *) is kept, and leave aws_conditional_put alone; nothing was written".to_owned(),
        ),
        LakeFault::Unsupported { .. } => (
            Remedy::Allow,
            "leave this table to the engine that wrote it, or remove the feature there".to_owned(),
        ),
        LakeFault::Malformed { .. } => {
            (Remedy::FixInput, "the table's log is damaged: restore that file".to_owned())
        }
        LakeFault::Damaged { .. } => {
            (Remedy::FixInput, "restore the files of the table's log".to_owned())
        }
    }
}

/// Storage fails because it cannot be reached now, or because of what is said of it.
fn store_remedy(error: &(dyn StdError + 'static)) -> (Remedy, String) {
    let help = match store_problem(error) {
        None => return storage_help(),
        Some(StoreProblem::NoCredentials) => {
            "set the credentials under [storage] in lakebed.toml or in the environment (AWS_…, AZURE_…, GOOGLE_…); for public data aws_skip_signature = true"
        }
        Some(StoreProblem::Denied) => "check the credentials and what they may do in this bucket",
        Some(StoreProblem::NoBucket) => "check the bucket's name in the URL, and the endpoint",
        Some(StoreProblem::OtherRegion) => {
            "set aws_region under [storage] in lakebed.toml, or AWS_REGION, to the bucket's region"
        }
        Some(StoreProblem::Unsupported) => "check the endpoint: its server lacks this operation",
        Some(StoreProblem::Options) => {
            "correct the options under [storage] in lakebed.toml or in the environment"
        }
    };
    (Remedy::FixInput, help.to_owned())
}

fn memory_help() -> (Remedy, String) {
    (
        Remedy::Allow,
        "raise --memory-limit, or lower threads under [engine] in lakebed.toml; nothing was lost"
            .to_owned(),
    )
}

fn storage_help() -> (Remedy, String) {
    (
        Remedy::Retry,
        "check that the storage can be reached, has room and may be written; nothing was lost"
            .to_owned(),
    )
}
