//! How far two windows of one workload are apart by chance.
//!
//! 1. Throw the statements of both windows together: as if nothing had changed.
//! 2. Draw two windows of their sizes from that, with replacement, and measure their distance.
//! 3. The 99th percentile of many such distances is the noise floor (a bootstrap under the hypothesis
//!    that nothing changed: B. Efron and R. Tibshirani, "An Introduction to the Bootstrap", 1993,
//!    chapter 16). A distance below it says nothing.

use lakebed_model::{QueryRecord, Workload};

/// Share of the drawn distances that lie below the floor.
const PERCENTILE: f64 = 0.99;

/// Returns the distance that two windows drawn from the same statements stay below, mostly.
///
/// `draw` picks a number below the one it is given; `measure` is the meter on two windows. No
/// statements or no rounds give a floor of 0.
///
/// # Errors
/// Fails with the first measurement that fails.
pub fn noise_floor<E>(
    before: &Workload,
    after: &Workload,
    rounds: usize,
    mut draw: impl FnMut(usize) -> usize,
    mut measure: impl FnMut(&Workload, &Workload) -> Result<f64, E>,
) -> Result<f64, E> {
    let pool: Vec<&QueryRecord> = before.records.iter().chain(&after.records).collect();
    if pool.is_empty() {
        return Ok(0.0);
    }
    let mut drawn = |size: usize| Workload {
        records: (0..size).map(|_| pool[draw(pool.len())].clone()).collect(),
        ..Workload::default()
    };
    let mut distances = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let (one, other) = (drawn(before.records.len()), drawn(after.records.len()));
        distances.push(measure(&one, &other)?);
    }
    distances.sort_unstable_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a count of rounds"
    )]
    let position = (PERCENTILE * rounds as f64) as usize;
    Ok(distances.get(position.min(rounds.saturating_sub(1))).copied().unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use lakebed_model::{Instant, QueryRecord, QueryStatus, Workload};

    use super::noise_floor;

    fn window(ids: std::ops::Range<i64>) -> Workload {
        let record = |id: i64| QueryRecord {
            id: id.to_string(),
            started_at: Instant::from_epoch_ms(id),
            source: "test".to_owned(),
            sql: None,
            fingerprint: String::new(),
            duration_ms: None,
            status: QueryStatus::Finished,
            joins: Vec::new(),
            scans: Vec::new(),
            confidence: 1.0,
        };
        Workload { records: ids.map(record).collect(), ..Workload::default() }
    }

    #[test]
    fn floor_is_the_99th_percentile_of_what_was_measured() {
        let mut round = 0.0;
        let measure = |before: &Workload, after: &Workload| {
            assert_eq!((before.records.len(), after.records.len()), (3, 5));
            round += 1.0;
            Ok::<f64, ()>(round)
        };
        let mut next = 0;
        let draw = |below: usize| {
            assert_eq!(below, 8, "windows are drawn from all statements");
            next += 5;
            next % below
        };
        assert_eq!(noise_floor(&window(0..3), &window(3..8), 40, draw, measure), Ok(40.0));
    }

    #[test]
    fn nothing_to_draw_from_is_no_noise_and_a_failure_is_passed_on() {
        let none = window(0..0);
        let fails = |_: &Workload, _: &Workload| Err("no");
        assert_eq!(noise_floor(&none, &none, 9, |_| 0, fails), Ok(0.0));
        assert_eq!(noise_floor(&window(0..1), &none, 9, |_| 0, fails), Err("no"));
    }
}
