//! OPTIMIZE killed at any moment (SIGKILL): every version reads, no row is lost or doubled, the next
//! OPTIMIZE succeeds, and what lies about at the end is for VACUUM.

use std::{collections::BTreeSet, fs, path::Path, process::Stdio, time::Duration};

use lakebed_layout::vacuum::VacuumOptions;
use lakebed_model::{Clock, Instant, SystemClock};

use crate::support::{
    Dice, Numbers, Shadow, adds, command_line, files_of, lakebed, number_from, read_commits,
    runtime,
};

const FILES: i64 = 6;
const ROWS: i64 = 60_000;
/// Kills of a run; LAKEBED_KILLS=100 for more.
const KILLS: u64 = 12;
/// So many kills per one in time may come after the end of the run: how long it takes is a guess.
const LATE_MAX: u32 = 5;

/// The same rows in another order each time, so that every OPTIMIZE FULL has all of them to rewrite.
fn set_keys(folder: &Path, turn: u32) {
    let keys = if turn.is_multiple_of(2) { "v, w" } else { "w" };
    let alter = format!("ALTER TABLE t CLUSTER BY ({keys})");
    lakebed(folder, &["--lake", ".", "sql", &alter]).succeeded();
}

const OPTIMIZE: [&str; 4] = ["--lake", ".", "sql", "OPTIMIZE t FULL"];

/// Starts OPTIMIZE and kills it after a while; tells whether it had ended by then.
fn killed(folder: &Path, after: Duration) -> bool {
    let mut command = command_line(folder, &OPTIMIZE);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a child");
    runtime(async { tokio::time::sleep(after).await });
    let had_ended = child.try_wait().expect("a child").is_some();
    // On Unix this is SIGKILL; a child that has ended does not mind.
    child.kill().expect("a signal");
    child.wait().expect("a child");
    had_ended
}

#[track_caller]
fn check(times: u32, seed: u64) {
    println!("seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let properties = [("delta.targetFileSize", "40000"), ("delta.checkpointInterval", "5")];
    let numbers = Numbers::create_with(folder.path(), FILES, ROWS / FILES, &properties);
    let table = folder.path().join("t");
    let expected: Vec<i64> = (0..ROWS).collect();
    let mut shadow = Shadow::of(&table);
    set_keys(folder.path(), 0);
    let optimize = || {
        let started_ms = SystemClock.now().epoch_ms();
        lakebed(folder.path(), &OPTIMIZE).succeeded();
        (SystemClock.now().epoch_ms() - started_ms).unsigned_abs()
    };
    let mut whole_run_ms = optimize();

    let mut moments = Dice(seed);
    let (mut in_time, mut late, mut committed) = (0, 0, 0);
    for turn in 1.. {
        if in_time == times || late == LATE_MAX * times {
            break;
        }
        set_keys(folder.path(), turn);
        let before = read_commits(&table).len();
        let after = Duration::from_micros(moments.roll((whole_run_ms * 1_050).max(1)));
        let ended = killed(folder.path(), after);
        late += u32::from(ended);
        in_time += u32::from(!ended);
        let commits = read_commits(&table).len() - before;
        committed += u32::from(!ended && commits > 0);
        assert_eq!(numbers.keys(), expected, "turn {turn}, killed after {after:?}");
        while let Some(shown) = shadow.next_version() {
            assert_eq!(shown.keys, expected, "version {}, turn {turn}", shown.version);
        }
        check_files_of_every_version(&table);
        let after_ms = optimize();
        if commits == 0 {
            // It had all of the work to do, on a machine as busy as it is now.
            whole_run_ms = after_ms;
        }
    }
    assert_eq!(in_time, times, "{late} kills came after the end of runs of {whole_run_ms} ms");
    while let Some(shown) = shadow.next_version() {
        assert_eq!(shown.keys, expected, "version {}", shown.version);
    }
    let named = named_files(&table);
    let orphans = files_of(&table).into_iter().filter(|name| !named.contains(name)).count();
    println!(
        "{times} kills of runs of {whole_run_ms} ms: {committed} left a commit, {orphans} orphans; {late} more came late"
    );
    vacuum(&numbers, &table);
    assert_eq!(numbers.keys(), expected);
}

/// Every file that any version names is there: nothing has been deleted here but by a rewrite that
/// did not commit.
#[track_caller]
fn check_files_of_every_version(table: &Path) {
    let there: BTreeSet<String> = files_of(table).into_iter().collect();
    let missing: Vec<String> = named_files(table).difference(&there).cloned().collect();
    assert_eq!(missing, Vec::<String>::new());
}

fn named_files(table: &Path) -> BTreeSet<String> {
    let commits = read_commits(table);
    commits.iter().flat_map(|commit| adds(commit)).map(|add| add.path.clone()).collect()
}

/// Orphans go with a retention that keeps every version; then, with none and in an hour, all but the
/// live files.
#[track_caller]
fn vacuum(numbers: &Numbers, table: &Path) {
    let now = SystemClock.now().epoch_ms();
    let named = named_files(table);
    let run = |retain, shift_ms| {
        let now = Instant::from_epoch_ms(now + shift_ms);
        let options =
            VacuumOptions { retain: Some(retain), dry_run: false, retention_check: false, now };
        runtime(numbers.lake.vacuum(&numbers.table, &options)).expect("a VACUUM")
    };
    let week = Duration::from_secs(7 * 24 * 3_600);
    assert_eq!(run(week, 0).files, Vec::<String>::new(), "all is younger than the retention");
    age_orphans(table, &named);
    run(week, 0);
    let there: BTreeSet<String> = files_of(table).into_iter().collect();
    assert_eq!(there, named, "orphans went, and no file of any version");
    run(Duration::ZERO, 3_600_000);
    let live = runtime(lakebed_layout::Lake::snapshot(&numbers.lake, &numbers.table)).unwrap();
    let live: BTreeSet<String> = live.files.into_iter().map(|file| file.path).collect();
    let there: BTreeSet<String> = files_of(table).into_iter().collect();
    assert_eq!(there, live);
}

/// Takes the files that no commit names to a month ago.
fn age_orphans(table: &Path, named: &BTreeSet<String>) {
    for name in files_of(table) {
        if !named.contains(&name) {
            let file = fs::File::options().write(true).open(table.join(name)).unwrap();
            let month = Duration::from_secs(30 * 24 * 3_600);
            let modified = file.metadata().unwrap().modified().unwrap() - month;
            file.set_modified(modified).unwrap();
        }
    }
}

fn seed() -> u64 {
    SystemClock.now().epoch_ms().unsigned_abs()
}

#[test]
fn optimize_killed_at_random_moments_loses_nothing() {
    let kills = number_from("LAKEBED_KILLS", KILLS);
    check(u32::try_from(kills).unwrap(), seed());
}
