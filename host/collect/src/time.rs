//! Points in time as logs and literals spell them.

use lakebed_model::Literal;

const DAY_MICROS: i64 = 86_400_000_000;

/// Parses `yyyy-mm-dd[T ]hh:mm[:ss[.fraction]][Z|±hh[:mm]]` into microseconds since the epoch.
///
/// Without an offset the time is taken as UTC: logs do not say which zone a session had.
pub(crate) fn parse_micros(text: &str) -> Option<i64> {
    let text = text.trim();
    let date = text.get(..10)?;
    let Some(Literal::Date(days)) = Literal::parse_date(date) else { return None };
    let rest = &text[10..];
    let midnight = i64::from(days) * DAY_MICROS;
    if rest.is_empty() {
        return Some(midnight);
    }
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let clock_end =
        rest.find(|c: char| !(c.is_ascii_digit() || c == ':' || c == '.')).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(clock_end);
    Some(midnight + clock_micros(clock)? - offset_micros(zone.trim())?)
}

/// Parses an RFC 3339 instant, or a count of milliseconds, into milliseconds since the epoch.
pub(crate) fn parse_epoch_ms(text: &str) -> Option<i64> {
    if let Ok(ms) = text.trim().parse() {
        return Some(ms);
    }
    parse_micros(text).map(|micros| micros.div_euclid(1_000))
}

fn clock_micros(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let hour = bounded(parts.next()?, 24)?;
    let minute = bounded(parts.next()?, 60)?;
    let (second, fraction) = match parts.next() {
        None => (0, 0),
        Some(seconds) => {
            let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
            // 60 is a leap second.
            (bounded(whole, 61)?, fraction_micros(fraction)?)
        }
    };
    if parts.next().is_some() {
        return None;
    }
    Some(((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction)
}

fn fraction_micros(digits: &str) -> Option<i64> {
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let padded: String = digits.chars().chain(std::iter::repeat('0')).take(6).collect();
    padded.parse().ok()
}

fn offset_micros(zone: &str) -> Option<i64> {
    if zone.is_empty() || zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = match zone.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = zone[1..].chars().filter(|c| *c != ':').collect();
    let hours = bounded(digits.get(..2)?, 24)?;
    let minutes = if digits.len() > 2 { bounded(&digits[2..], 60)? } else { 0 };
    Some(sign * (hours * 60 + minutes) * 60_000_000)
}

fn bounded(digits: &str, limit: i64) -> Option<i64> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|value| *value < limit)
}

#[cfg(test)]
mod tests {
    use super::{parse_epoch_ms, parse_micros};

    #[track_caller]
    fn check(text: &str, expected_ms: Option<i64>) {
        assert_eq!(parse_epoch_ms(text), expected_ms, "{text}");
    }

    #[test]
    fn instants_parse_with_and_without_zone_and_fraction() {
        check("1970-01-01T00:00:00Z", Some(0));
        check("2000-02-29T12:34:56.789Z", Some(951_827_696_789));
        check("2000-02-29T13:34:56.789+01:00", Some(951_827_696_789));
        check("2000-02-29 07:04:56.789-0530", Some(951_827_696_789));
        check("951827696789", Some(951_827_696_789));
        check("1970-01-02", Some(86_400_000));
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for text in ["", "yesterday", "2000-02-30T00:00:00Z", "2000-01-01T25:00:00Z", "2000-01-01Q"]
        {
            check(text, None);
        }
        assert_eq!(parse_micros("2000-01-01T00:00:00+x"), None);
    }
}
