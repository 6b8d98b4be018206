//! Durations as table properties spell them: `interval 7 days`. Pure.
//!
//! delta-spark reads them as calendar intervals (`DeltaConfigs.parseCalendarInterval`) and refuses
//! months and years, whose length depends on when they begin. The word `interval` may be missing,
//! several parts add up, letters have no case.

use std::time::Duration;

/// Reads a duration; `None` when it is none, is negative, or has months or years.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    let lower = text.trim().to_ascii_lowercase();
    let parts = lower.strip_prefix("interval").unwrap_or(&lower);
    let mut words = parts.split_whitespace();
    let mut total = None;
    while let Some(number) = words.next() {
        let number: u64 = number.parse().ok()?;
        let part = unit(words.next()?)?.checked_mul(u32::try_from(number).ok()?)?;
        total = Some(total.unwrap_or(Duration::ZERO).checked_add(part)?);
    }
    total
}

fn unit(word: &str) -> Option<Duration> {
    const HOUR: u64 = 3_600;
    Some(match word.strip_suffix('s').unwrap_or(word) {
        "microsecond" => Duration::from_micros(1),
        "millisecond" => Duration::from_millis(1),
        "second" => Duration::from_secs(1),
        "minute" => Duration::from_secs(60),
        "hour" => Duration::from_secs(HOUR),
        "day" => Duration::from_secs(24 * HOUR),
        "week" => Duration::from_secs(7 * 24 * HOUR),
        _ => return None,
    })
}

/// Shows a duration in the largest unit, up to hours, that it is a whole number of.
#[must_use]
pub fn render(duration: Duration) -> String {
    let ms = duration.as_millis();
    let (count, unit) = match ms {
        _ if ms.is_multiple_of(3_600_000) => (ms / 3_600_000, "hour"),
        _ if ms.is_multiple_of(60_000) => (ms / 60_000, "minute"),
        _ if ms.is_multiple_of(1_000) => (ms / 1_000, "second"),
        _ => (ms, "millisecond"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{parse, render};

    #[test]
    fn intervals_are_read_as_delta_spark_reads_them() {
        let hours = |hours: u64| Some(Duration::from_secs(hours * 3_600));
        for (text, expected) in [
            ("interval 7 days", hours(168)),
            ("INTERVAL 1 Week", hours(168)),
            ("30 days", hours(720)),
            ("interval 1 day 12 hours", hours(36)),
            ("interval 0 seconds", hours(0)),
            ("interval 90 minutes", Some(Duration::from_secs(5_400))),
            ("interval 1 month", None),
            ("interval -1 days", None),
            ("interval", None),
            ("interval 7", None),
            ("7", None),
            ("", None),
            ("interval 99999999999999999999 days", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn durations_are_shown_in_whole_units() {
        let shown = |ms| render(Duration::from_millis(ms));
        assert_eq!(shown(3_600_000), "1 hour");
        assert_eq!(shown(604_800_000), "168 hours");
        assert_eq!(shown(5_400_000), "90 minutes");
        assert_eq!((shown(0), shown(1_500)), ("0 hours".into(), "1500 milliseconds".into()));
    }
}
