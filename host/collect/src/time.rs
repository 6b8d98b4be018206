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

/// Parses an instant as the tools of databases print it, into milliseconds since the epoch: what
/// [`parse_micros`] reads, with a zone's name for UTC too, and `Wed, 01 May 2024 03:00:00 -0700`.
pub(crate) fn parse_ms(text: &str) -> Option<i64> {
    let micros = parse_micros(text).or_else(|| mail_micros(text.trim()))?;
    Some(micros.div_euclid(1_000))
}

/// RFC 2822 §3.3, which Snowflake's sessions print by default.
fn mail_micros(text: &str) -> Option<i64> {
    let (_, rest) = text.split_once(", ")?;
    let mut words = rest.split_whitespace();
    let day = words.next()?;
    let month = words.next()?.to_ascii_lowercase();
    let months =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let month = months.iter().position(|name| *name == month)? + 1;
    let year = words.next()?;
    let (clock, zone) = (words.next()?, words.next().unwrap_or_default());
    parse_micros(&format!("{year:0>4}-{month:02}-{day:0>2}T{clock}{zone}"))
}

/// Parses a duration with its unit, `PT1M2.5S` (ISO 8601) or `2.50s`, into milliseconds.
pub(crate) fn parse_duration_ms(text: &str) -> Option<u64> {
    let text = text.trim();
    let ms = match text.strip_prefix("PT") {
        Some(parts) => {
            let mut ms = 0.0;
            let mut rest = parts;
            while !rest.is_empty() {
                let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
                let unit = match &rest[end..=end] {
                    "H" => 3_600_000.0,
                    "M" => 60_000.0,
                    "S" => 1_000.0,
                    _ => return None,
                };
                ms += rest[..end].parse::<f64>().ok()? * unit;
                rest = &rest[end + 1..];
            }
            ms
        }
        None => {
            let end = text.find(|c: char| c.is_ascii_alphabetic())?;
            let unit = match &text[end..] {
                "ns" => 1e-6,
                "us" => 1e-3,
                "ms" => 1.0,
                "s" => 1e3,
                "m" => 6e4,
                "h" => 3.6e6,
                "d" => 8.64e7,
                _ => return None,
            };
            text[..end].trim().parse::<f64>().ok()? * unit
        }
    };
    whole_ms(ms)
}

/// Rounds milliseconds to whole ones; negative durations are refused.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and negative durations are refused"
)]
pub(crate) fn whole_ms(ms: f64) -> Option<u64> {
    (ms >= 0.0).then(|| ms.round() as u64)
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
    if ["", "z", "utc", "gmt"].iter().any(|name| zone.eq_ignore_ascii_case(name)) {
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
    use super::{parse_duration_ms, parse_micros, parse_ms};

    #[track_caller]
    fn check(text: &str, expected_ms: Option<i64>) {
        assert_eq!(parse_ms(text), expected_ms, "{text}");
    }

    #[test]
    fn instants_parse_with_and_without_zone_and_fraction() {
        check("1970-01-01T00:00:00Z", Some(0));
        check("2000-02-29T12:34:56.789Z", Some(951_827_696_789));
        check("2000-02-29T13:34:56.789+01:00", Some(951_827_696_789));
        check("2000-02-29 07:04:56.789-0530", Some(951_827_696_789));
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

    #[test]
    fn instants_of_other_tools_are_read() {
        for text in [
            "2024-05-01 10:00:00 UTC",
            "2024-05-01 03:00:00.000 -0700",
            "2024-05-01 10:00:00+00",
            "Wed, 01 May 2024 03:00:00 -0700",
            "Wed, 1 May 2024 10:00:00 GMT",
        ] {
            assert_eq!(parse_ms(text), Some(1_714_557_600_000), "{text}");
        }
        for text in ["951827696789", "Wed, 01 Mai 2024 03:00:00 -0700", "2024-05-01 10:00:00 PST"] {
            assert_eq!(parse_ms(text), None, "{text}");
        }
    }

    #[test]
    fn durations_carry_their_unit() {
        for (text, expected) in [
            ("PT1M2.5S", Some(62_500)),
            ("PT2H", Some(7_200_000)),
            ("2.50s", Some(2_500)),
            ("1.25m", Some(75_000)),
            ("850ms", Some(850)),
            ("PT1X", None),
            ("PT-1S", None),
            ("fast", None),
        ] {
            assert_eq!(parse_duration_ms(text), expected, "{text}");
        }
    }
}
