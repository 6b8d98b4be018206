//! `collect`: how fast query history is read, on one core and on two, and what that takes.
//!
//! 1. The log of window 1 that is shipped is laid down as many applications, 2 GB of raw JSON in all.
//! 2. The folder is read with one thread, then with two; decompression alone is timed beside it.
//! 3. The same bytes are read as one log, where the second core can only decompress.
//! 4. SQL text is read as JSON lines: statements that are all different, then the same with other
//!    constants, so that fingerprints repeat.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::Write as _,
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

use lakebed_collect::{CollectOptions, EmptyCatalog, collect, decompressed_bytes};
use lakebed_model::{Bytes, Workload};
use tempfile::TempDir;

use super::{
    Experiment, ExperimentReport, ExperimentSettings, Goal, Machine, Running, replay::now,
    shipped::W1,
};
use crate::{error::Error, pipeline::blocking};

const RAW_BYTES: u64 = 2_000_000_000;
const QUICK_RAW_BYTES: u64 = 200_000_000;
/// Statements of each of the two files of SQL text.
const STATEMENTS: usize = 600;
const QUICK_STATEMENTS: usize = 30;
/// The middle one of so many runs counts.
const RUNS: usize = 3;

/// The experiment.
#[derive(Debug, Clone, Copy)]
pub struct CollectSpeed;

impl Experiment for CollectSpeed {
    fn name(&self) -> &'static str {
        "collect"
    }

    fn about(&self) -> &'static str {
        "speed and memory of reading Spark event logs and SQL text"
    }

    fn run(&self, settings: ExperimentSettings) -> Running<'_> {
        Box::pin(blocking("measuring", move || measure(settings)))
    }
}

fn measure(settings: ExperimentSettings) -> Result<ExperimentReport, Error> {
    let folder = tempfile::Builder::new().prefix("lakebed-collect-").tempdir();
    let folder = folder.map_err(|source| Error::File {
        action: "create a folder for logs in",
        path: std::env::temp_dir(),
        source,
    })?;
    let mut report = ExperimentReport {
        goals: vec![
            Goal::AtLeast("raw_mb_per_second_per_core", 150.0),
            Goal::AtMost("peak_bytes", 300.0 * 1024.0 * 1024.0),
            Goal::AtLeast("two_threads_speedup", 1.8),
            Goal::AtLeast("statements_per_second_warm", 2_000.0),
            Goal::AtLeast("statements_per_second_cold", 300.0),
        ],
        ..ExperimentReport::default()
    };
    logs(settings, &folder, &mut report)?;
    statements(settings, &folder, &mut report)?;
    Ok(report)
}

fn logs(
    settings: ExperimentSettings,
    folder: &TempDir,
    report: &mut ExperimentReport,
) -> Result<(), Error> {
    let many = folder.path().join("applications");
    let one = folder.path().join("one-application.zstd");
    let first = application(&many, 0)?;
    let raw_each = decompressed_bytes(&first)?;
    let wanted = if settings.quick { QUICK_RAW_BYTES } else { RAW_BYTES };
    let copies = wanted.div_ceil(raw_each.max(1));
    for number in 1..copies {
        application(&many, number)?;
    }
    let mut file = File::create(&one).map_err(fail(&one))?;
    for _ in 0..copies {
        file.write_all(W1.events).map_err(fail(&one))?;
    }
    drop(file);
    let raw_mb = in_mb(raw_each * copies);
    report
        .notes
        .push(format!("{copies} copies of the log of window 1, {raw_mb:.0} MB of raw JSON"));
    let runs = if settings.quick { 1 } else { RUNS };

    let decompression = middle(runs, || decompressed_bytes(&many).map(|_| ()))?;
    let alone = middle(runs, || read(&many, 1).map(|_| ()))?;
    report.measured("raw_mb_per_second_per_core", raw_mb / alone.wall);
    match (decompression.processor, alone.processor) {
        (Some(decompression), Some(alone)) => {
            report.measured("raw_mb_per_processor_second", raw_mb / alone);
            report.measured("decompression_share", decompression / alone);
        }
        _ => report.measured("decompression_share", decompression.wall / alone.wall),
    }
    note_company(&alone, report);
    if Machine::here().cores < 2 {
        report.notes.push("one core: what two give was not measured".to_owned());
    } else {
        let two = middle(runs, || read(&many, 2).map(|_| ()))?;
        report.measured("two_threads_speedup", alone.wall / two.wall);
        let one_log = middle(runs, || read(&one, 2).map(|_| ()))?;
        report.measured("one_log_mb_per_second_two_cores", raw_mb / one_log.wall);
    }
    match peak_bytes() {
        Some(peak) => report.measured("peak_bytes", peak),
        None => report.notes.push("this system does not tell the peak of memory".to_owned()),
    }
    let workload = read(&many, 1)?;
    let expected = 40;
    if workload.records.len() != expected {
        return Err(Error::Mismatch {
            what: format!("{} statements against {expected}", workload.records.len()),
        });
    }
    Ok(())
}

/// Lays the shipped log down as one application's.
fn application(folder: &Path, number: u64) -> Result<PathBuf, Error> {
    let folder = folder.join(format!("eventlog_v2_app-{number}"));
    fs::create_dir_all(&folder).map_err(fail(&folder))?;
    let path = folder.join(format!("events_1_app-{number}.zstd"));
    fs::write(&path, W1.events).map_err(fail(&path))?;
    Ok(path)
}

fn read(path: &Path, threads: usize) -> Result<Workload, Error> {
    let options =
        CollectOptions { threads: NonZeroUsize::new(threads), ..CollectOptions::default() };
    Ok(collect(&[path.to_owned()], &options, &EmptyCatalog)?)
}

fn statements(
    settings: ExperimentSettings,
    folder: &TempDir,
    report: &mut ExperimentReport,
) -> Result<(), Error> {
    let mut dice = settings.seed;
    let quick = settings.quick;
    let cold = if quick { QUICK_STATEMENTS } else { STATEMENTS };
    let warm = if quick { 10 * QUICK_STATEMENTS } else { 10 * STATEMENTS };
    for (figure, of_processor, count, names) in [
        ("statements_per_second_cold", "statements_per_processor_second_cold", cold, cold),
        ("statements_per_second_warm", "statements_per_processor_second_warm", warm, 10),
    ] {
        let mut lines = String::new();
        let mut bytes = 0;
        for number in 0..count {
            let sql = statement(number % names, &mut dice);
            bytes += sql.len();
            let line = serde_json::json!({ "ts": number, "sql": sql, "dialect": "spark" });
            let _ = writeln!(lines, "{line}");
        }
        let path = folder.path().join(format!("{names}.jsonl"));
        fs::write(&path, lines).map_err(fail(&path))?;
        let mut parsed = 0;
        let runs = if quick { 1 } else { RUNS };
        let times = middle(runs, || {
            let workload = read(&path, 1)?;
            parsed = workload.report.parsed;
            Ok::<(), Error>(())
        })?;
        if parsed != u64::try_from(count).unwrap_or(u64::MAX) {
            return Err(Error::Mismatch {
                what: format!("{parsed} of {count} statements read in full"),
            });
        }
        report.measured(figure, in_units(count) / times.wall);
        if let Some(seconds) = times.processor {
            report.measured(of_processor, in_units(count) / seconds);
        }
        report.notes.push(format!(
            "{figure}: {count} statements of six tables, {} each, {names} different",
            Bytes(u64::try_from(bytes / count).unwrap_or(0))
        ));
    }
    Ok(())
}

/// A statement of the size and shape of TPC-DS's: six tables, a common table expression, a
/// subquery. `name` makes it another one, the dice only change its constants.
fn statement(name: usize, dice: &mut u64) -> String {
    let mut next = |below: u64| {
        // Knuth's linear congruential generator (MMIX).
        *dice =
            dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*dice >> 33) % below
    };
    let (year, month, color) = (1998 + next(5), 1 + next(12), next(90));
    format!(
        "WITH returned_{name} AS (SELECT sr.sr_item_sk AS item_sk, sr.sr_ticket_number AS ticket, \
         sum(sr.sr_return_amt) AS amount FROM store_returns sr JOIN date_dim dr \
         ON sr.sr_returned_date_sk = dr.d_date_sk WHERE dr.d_year = {year} \
         GROUP BY sr.sr_item_sk, sr.sr_ticket_number) \
         SELECT i.i_category, s.s_state, c.c_birth_country, count(*) AS sales_{name}, \
         sum(ss.ss_net_paid) AS paid, avg(r.amount) AS back, \
         sum(CASE WHEN ss.ss_quantity BETWEEN 1 AND {month} THEN ss.ss_net_profit ELSE 0 END) AS p1, \
         sum(CASE WHEN ss.ss_quantity > {color} THEN ss.ss_ext_discount_amt ELSE 0 END) AS p2 \
         FROM store_sales ss JOIN date_dim d ON ss.ss_sold_date_sk = d.d_date_sk \
         JOIN item i ON ss.ss_item_sk = i.i_item_sk JOIN store s ON ss.ss_store_sk = s.s_store_sk \
         JOIN customer c ON ss.ss_customer_sk = c.c_customer_sk \
         LEFT JOIN returned_{name} r ON r.item_sk = ss.ss_item_sk AND r.ticket = ss.ss_ticket_number \
         WHERE d.d_year = {year} AND d.d_moy = {month} AND i.i_color IN ('color{color}', 'plum') \
         AND s.s_market_id < {color} AND c.c_customer_sk IN (SELECT ws.ws_bill_customer_sk \
         FROM web_sales ws JOIN date_dim dw ON ws.ws_sold_date_sk = dw.d_date_sk \
         WHERE dw.d_year = {year}) \
         GROUP BY i.i_category, s.s_state, c.c_birth_country HAVING count(*) > {month} \
         ORDER BY paid DESC LIMIT 100"
    )
}

/// What a run took, in seconds.
#[derive(Debug, Clone, Copy)]
struct Times {
    wall: f64,
    /// The time that all its threads had a processor, which others on the machine do not lengthen by
    /// waiting; `None` where the system does not tell.
    processor: Option<f64>,
}

/// Runs something a few times and returns the middle of its times.
fn middle<E>(runs: usize, mut work: impl FnMut() -> Result<(), E>) -> Result<Times, Error>
where
    Error: From<E>,
{
    let (mut walls, mut processors) = (Vec::with_capacity(runs), Vec::with_capacity(runs));
    for _ in 0..runs {
        let (started, before) = (now(), processor_seconds());
        work()?;
        walls.push(started.elapsed().as_secs_f64());
        processors.extend(processor_seconds().zip(before).map(|(after, before)| after - before));
    }
    walls.sort_by(f64::total_cmp);
    processors.sort_by(f64::total_cmp);
    let processor = processors.get(processors.len() / 2).copied().filter(|seconds| *seconds > 0.0);
    Ok(Times { wall: walls[walls.len() / 2], processor })
}

/// The time that the threads of this process had a processor, where the system tells (Linux).
fn processor_seconds() -> Option<f64> {
    // Fields 14 and 15 of proc_pid_stat(5), in hundredths of a second; the name before them may
    // hold spaces.
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / 100.0)
}

/// Says so where one thread did not have a core for itself.
fn note_company(alone: &Times, report: &mut ExperimentReport) {
    if let Some(share) = alone.processor.map(|seconds| seconds / alone.wall)
        && share < 0.9
    {
        report.notes.push(format!(
            "the machine was busy: one thread had a core {:.0} % of the time, so that figures of \
             wall time are too low",
            100.0 * share
        ));
    }
}

/// The most memory that this process has had, where the system tells (Linux).
fn peak_bytes() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

fn fail(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    move |source| Error::File { action: "write", path: path.to_owned(), source }
}

#[expect(clippy::cast_precision_loss, reason = "bytes of logs are below 2^53")]
fn in_mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "counts of statements are below 2^53")]
fn in_units(count: usize) -> f64 {
    count as f64
}
