//! Auto-compaction: a write that leaves many small files merges them right away.
//!
//! 1. **When.** The session's `autoCompact.enabled` says so, or where it is not set the table's
//!    `delta.autoOptimize.autoCompact`: `true` (also spelled `legacy`), `auto` or `false`. It runs
//!    when the commit added files and at least `autoCompact.minNumFiles` files are small.
//! 2. **What is small.** Files under `autoCompact.minFileSize`; where not set, half the size it makes.
//!    That is `autoCompact.maxFileSize`; where not set, the table's own file size (`auto`), at most
//!    128 MiB (`true`), so that what it makes is no larger than OPTIMIZE would make it.
//! 3. **What it takes.** The smallest files, each no larger than twice what is smaller than it; all
//!    where too many small files would stay. So each byte is moved a logarithmic number of times
//!    however small the portions that arrive, and fewer than `minNumFiles` small files remain.
//! 4. **In a clustered table** it merges only files that no clustering implementation has touched, and
//!    leaves them so: without cube tags and provider. Rows keep the order in which they came, and the
//!    next OPTIMIZE lays the merged files out as it would have laid out the small ones. Clustered
//!    files are OPTIMIZE's, small ones too: merged without order they would have to be laid out again.
//! 5. It is a commit of its own, OPTIMIZE with `auto` true, judged like any rewrite. The write is
//!    done before it begins, so its failure is told and fails nothing.

use std::{cmp::Ordering, fmt};

use lakebed_model::{Bytes, TableName};

use crate::{
    Bin, BinReport, Executor, Lake, LayoutError, OptimizeOptions, OptimizeReport, Reason,
    Selection, TableSnapshot, WriteOptions,
    action::AddFile,
    optimize::{DEFAULT_FILE_SIZE, Purpose, Work, rewrite_bins},
    sizing::{counted_bytes, live_bytes},
    zcube::{self, Membership},
};

/// Table property that switches it on.
pub(crate) const PROPERTY: &str = "delta.autoOptimize.autoCompact";
/// Its predecessor, which delta-spark still obeys.
const OLD_PROPERTY: &str = "delta.autoOptimize";

/// Whether writes merge small files, and into how large ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoCompact {
    /// They do not.
    Off,
    /// Into files of at most 128 MiB.
    On,
    /// Into files of the table's size.
    Auto,
}

impl AutoCompact {
    /// Reads a setting's or property's value.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "true" | "legacy" => Some(Self::On),
            "auto" => Some(Self::Auto),
            "false" => Some(Self::Off),
            _ => None,
        }
    }

    /// Finds out what holds for a table: the session's setting, or the table's property.
    fn of(table: &TableSnapshot, options: &WriteOptions) -> Self {
        let by_table = || {
            if table.is_on(OLD_PROPERTY) {
                return Self::On;
            }
            let set = table.properties.get(PROPERTY);
            set.and_then(|text| Self::parse(text)).unwrap_or(Self::Off)
        };
        options.settings.auto_compact.unwrap_or_else(by_table)
    }
}

impl fmt::Display for AutoCompact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "false",
            Self::On => "true",
            Self::Auto => "auto",
        })
    }
}

/// What an auto-compaction did; the write before it is done in any case.
#[derive(Debug, Clone, PartialEq)]
pub struct AutoCompaction {
    /// The newest version it read or wrote.
    pub version: u64,
    /// What it merged.
    pub bins: Vec<BinReport>,
    /// Why it did not go on, with its causes.
    pub failure: Option<String>,
}

/// The numbers it goes by in one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Policy {
    files_min: usize,
    small_below: Bytes,
    target: Bytes,
}

impl Policy {
    /// Decides for a table; `None` where it is switched off.
    fn of(table: &TableSnapshot, options: &WriteOptions) -> Option<Self> {
        let settings = &options.settings;
        let own = table.target_file_size(options.default_file_size);
        let usual = match AutoCompact::of(table, options) {
            AutoCompact::Off => return None,
            AutoCompact::On => own.min(DEFAULT_FILE_SIZE),
            AutoCompact::Auto => own,
        };
        let target = settings.auto_compact_max_file_size.unwrap_or(usual);
        Some(Self {
            files_min: usize::try_from(settings.auto_compact_min_files).unwrap_or(usize::MAX),
            small_below: settings.auto_compact_min_file_size.unwrap_or(Bytes(target.0 / 2)),
            target,
        })
    }
}

/// Merges small files after a write that added some, where session or table ask for it; `written` is
/// the table as the write read it.
pub async fn auto_compact(
    lake: &dyn Lake,
    executor: &dyn Executor,
    written: &TableSnapshot,
    options: &WriteOptions,
    now: lakebed_model::Instant,
) -> Option<AutoCompaction> {
    Policy::of(written, options)?;
    let table = &written.table;
    let optimize = OptimizeOptions {
        full: false,
        default_file_size: options.default_file_size,
        settings: options.settings,
        now,
    };
    let mut report = empty(table);
    let choose =
        |snapshot: &TableSnapshot| -> Result<Work, LayoutError> { Ok(work(snapshot, options)) };
    let ended = rewrite_bins(lake, executor, &optimize, &choose, &mut report).await;
    let failure = ended.err().map(|error| {
        let text = with_causes(&error);
        tracing::warn!(%table, error = text, "auto-compaction failed; the write before it stands");
        text
    });
    Some(AutoCompaction { version: report.version, bins: report.bins, failure })
}

fn empty(table: &TableName) -> OptimizeReport {
    OptimizeReport { table: table.clone(), version: 0, bins: Vec::new() }
}

fn with_causes(error: &LayoutError) -> String {
    let first: &dyn std::error::Error = error;
    let causes = std::iter::successors(Some(first), |cause| cause.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// What is to be merged in the newest version, whose owner may have switched it off meanwhile.
fn work(snapshot: &TableSnapshot, options: &WriteOptions) -> Work {
    let policy = Policy::of(snapshot, options);
    Work {
        selection: policy.map(|policy| choose(snapshot, policy)).unwrap_or_default(),
        target: policy.map_or(DEFAULT_FILE_SIZE, |policy| policy.target),
        purpose: Purpose::Merge,
    }
}

/// Chooses the files to merge, as one bin or none.
fn choose(snapshot: &TableSnapshot, policy: Policy) -> Selection {
    let keys = snapshot.cluster_by();
    let is_ours = |file: &&AddFile| {
        keys.is_empty() || zcube::membership(file, &keys, None) == Membership::Unclustered
    };
    let mut small: Vec<(u64, &AddFile)> = snapshot
        .files
        .iter()
        .filter(is_ours)
        .map(|file| (counted_bytes(file), file))
        .filter(|(bytes, _)| *bytes < policy.small_below.0)
        .collect();
    if small.len() < policy.files_min {
        return Selection::default();
    }
    small.sort_by(|(a, one), (b, other)| match a.cmp(b) {
        Ordering::Equal => one.path.cmp(&other.path),
        unequal => unequal,
    });
    small.truncate(taken(&small, policy));
    let bytes: u64 = small.iter().map(|(_, file)| live_bytes(file)).sum();
    let files_after = bytes.div_ceil(policy.target.0.max(1)).max(1);
    if u64::try_from(small.len()).unwrap_or(u64::MAX) <= files_after {
        return Selection::default();
    }
    let files = small.into_iter().map(|(_, file)| (file.clone(), Reason::Small)).collect();
    Selection { bins: vec![Bin { files, cube: None }] }
}

/// How many of the small files, from the smallest on, are taken.
fn taken(small: &[(u64, &AddFile)], policy: Policy) -> usize {
    let mut gathered = 0_u64;
    let mut count = 0;
    for (bytes, _) in small {
        if count > 0 && *bytes > gathered.saturating_mul(2) {
            break;
        }
        gathered = gathered.saturating_add(*bytes);
        count += 1;
    }
    let merged = usize::from(gathered < policy.small_below.0);
    let stay = small.len() - count + merged;
    if count < 2 || stay >= policy.files_min { small.len() } else { count }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        future::Future,
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use lakebed_model::{Bytes, Instant};

    use super::{AutoCompact, AutoCompaction, PROPERTY, Policy, auto_compact, choose};
    use crate::{
        ClusteringSettings, FileSizing, Lake, TableSnapshot, WriteOptions,
        action::{Action, AddFile},
        testing::{Call, FakeLake, clustered_file, plain_file, snapshot},
        zcube,
    };

    fn options(mode: Option<AutoCompact>, files_min: u32) -> WriteOptions {
        WriteOptions {
            default_file_size: FileSizing::Fixed(Bytes(1_000)),
            settings: ClusteringSettings {
                auto_compact: mode,
                auto_compact_min_files: files_min,
                ..ClusteringSettings::default()
            },
        }
    }

    fn ready<F: Future>(future: F) -> F::Output {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("the fake lake waited"),
        }
    }

    fn taken_snapshot(lake: &FakeLake) -> TableSnapshot {
        ready(lake.snapshot(&lakebed_model::TableName::new("t"))).unwrap()
    }

    fn run(lake: &FakeLake, options: &WriteOptions) -> Option<AutoCompaction> {
        let written = snapshot(&[], Vec::new());
        ready(auto_compact(lake, lake, &written, options, Instant::from_epoch_ms(1)))
    }

    /// Which files are chosen, by name.
    #[track_caller]
    fn check(keys: &[&str], files: Vec<AddFile>, files_min: u32, expected: &[&str]) {
        let table = snapshot(keys, files);
        let policy = Policy::of(&table, &options(Some(AutoCompact::On), files_min)).unwrap();
        let chosen = choose(&table, policy);
        let names: Vec<&str> = chosen
            .bins
            .iter()
            .flat_map(|bin| bin.files.iter().map(|(file, _)| file.path.as_str()))
            .collect();
        assert_eq!(names, expected);
    }

    fn files(sizes: &[u64]) -> Vec<AddFile> {
        let file = |(n, size): (usize, &u64)| plain_file(&format!("f{n}"), *size);
        sizes.iter().enumerate().map(file).collect()
    }

    #[test]
    fn so_many_small_files_are_needed_and_larger_ones_are_left() {
        check(&[], files(&[10, 10, 900]), 3, &[]);
        check(&[], files(&[10, 10, 499, 500]), 3, &["f0", "f1"]);
        check(&[], files(&[10, 10, 12, 500]), 3, &["f0", "f1", "f2"]);
    }

    #[test]
    fn files_that_would_not_get_fewer_are_left() {
        check(&[], files(&[400]), 1, &[]);
    }

    #[test]
    fn a_much_larger_small_file_waits_for_its_like() {
        check(&[], files(&[400, 1, 1, 1, 1]), 5, &["f1", "f2", "f3", "f4"]);
        check(&[], files(&[400, 1]), 2, &["f1", "f0"]);
    }

    #[test]
    fn files_of_a_clustering_are_left_to_optimize() {
        let mut table = files(&[1, 1, 1]);
        table.push(clustered_file("c0", 1, "cube", &["a"]));
        table.push(clustered_file("stale", 1, "cube", &["b"]));
        check(&["a"], table.clone(), 3, &["f0", "f1", "f2"]);
        check(&["a"], table, 4, &[]);
    }

    #[test]
    fn the_session_switches_it_before_the_table() {
        let policy = |session, properties: &[(&str, &str)]| {
            let mut table = snapshot(&[], Vec::new());
            let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            table.properties = properties.iter().map(own).collect::<BTreeMap<_, _>>();
            let options = WriteOptions {
                default_file_size: FileSizing::Fixed(Bytes(1 << 30)),
                ..options(session, 50)
            };
            Policy::of(&table, &options).map(|policy| policy.target.0 >> 20)
        };
        assert_eq!(policy(None, &[]), None);
        assert_eq!(policy(None, &[(PROPERTY, "true")]), Some(128));
        assert_eq!(policy(None, &[(PROPERTY, "Legacy")]), Some(128));
        assert_eq!(policy(None, &[("delta.autoOptimize", "true")]), Some(128));
        assert_eq!(policy(None, &[(PROPERTY, "auto")]), Some(1_024));
        assert_eq!(policy(Some(AutoCompact::Off), &[(PROPERTY, "auto")]), None);
        assert_eq!(policy(Some(AutoCompact::On), &[(PROPERTY, "false")]), Some(128));
        let own_size = [(PROPERTY, "true"), ("delta.targetFileSize", "16MiB")];
        assert_eq!(policy(None, &own_size), Some(16));
    }

    #[test]
    fn merged_files_are_unclustered_and_nothing_is_left_to_merge() {
        let lake = FakeLake::new(&["a"], files(&[10, 20, 30]));
        let options = options(Some(AutoCompact::On), 3);
        let report = run(&lake, &options).unwrap();
        assert_eq!((report.version, report.bins.len(), report.failure), (1, 1, None));
        let live = lake.live();
        assert_eq!((live.len(), live[0].size, live[0].data_change), (1, 60, false));
        assert_eq!(live[0].clustering_provider, None);
        assert_eq!(live[0].tag(zcube::ZCUBE_ID), None);
        assert_eq!(run(&lake, &options).unwrap().bins, []);
        let info = lake.commit_info(1).unwrap();
        assert_eq!(info["operation"], "OPTIMIZE");
        assert_eq!(info["operationParameters"]["auto"], true);
        assert_eq!(info["operationParameters"]["clusterBy"], "[]");
    }

    #[test]
    fn switched_off_it_reads_nothing() {
        let lake = FakeLake::new(&[], files(&[10, 20, 30]));
        lake.fail(Call::Snapshot, 1);
        assert_eq!(run(&lake, &options(None, 3)), None);
    }

    #[test]
    fn failure_is_told_and_leaves_the_table_as_it_was() {
        for call in [Call::Snapshot, Call::CommitsSince, Call::Put] {
            let lake = FakeLake::new(&[], files(&[10, 20, 30]));
            lake.fail(call, 1);
            let report = run(&lake, &options(Some(AutoCompact::On), 3)).unwrap();
            assert!(report.failure.unwrap().contains("injected fault"), "{call:?}");
            assert_eq!((lake.live().len(), lake.version()), (3, 0), "{call:?}");
            assert_eq!(lake.unreferenced(), Vec::<String>::new(), "{call:?}");
        }
    }

    #[test]
    fn concurrent_delete_of_an_input_is_not_undone() {
        let lake = FakeLake::new(&[], files(&[10, 20, 30]));
        let gone = plain_file("f0", 10).to_remove(1, true);
        lake.rival(1, vec![Action::Remove(Box::new(gone))]);
        let report = run(&lake, &options(Some(AutoCompact::On), 2)).unwrap();
        assert_eq!((report.bins.len(), report.failure), (1, None));
        let rows: u64 = lake.live().iter().filter_map(AddFile::rows).sum();
        assert_eq!((rows, lake.live().len(), lake.unreferenced()), (200, 1, vec![]));
    }

    /// A thousand portions: each byte is moved a logarithmic number of times.
    #[test]
    fn many_portions_cost_their_logarithm() {
        let lake = FakeLake::new(&[], Vec::new());
        let options = WriteOptions {
            default_file_size: FileSizing::Fixed(Bytes(1_000_000)),
            ..options(Some(AutoCompact::On), 50)
        };
        let mut moved = 0;
        for n in 0..1_000 {
            lake.append(vec![plain_file(&format!("append-{n}"), 100)]);
            let report = run(&lake, &options).unwrap();
            moved += report.bins.iter().map(|bin| bin.bytes_in.0).sum::<u64>();
            assert!(taken_snapshot(&lake).files.len() < 50);
        }
        assert!(moved < 3 * 100_000, "{moved}");
    }
}
