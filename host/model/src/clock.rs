//! Time as an argument: a job reads the clock once and passes the instant on.

/// A point in time in milliseconds since the Unix epoch, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(i64);

impl Instant {
    /// Wraps milliseconds since the Unix epoch.
    #[must_use]
    pub const fn from_epoch_ms(epoch_ms: i64) -> Self {
        Self(epoch_ms)
    }

    /// Returns milliseconds since the Unix epoch.
    #[must_use]
    pub const fn epoch_ms(self) -> i64 {
        self.0
    }

    /// Renders the instant as RFC 3339 in UTC with milliseconds, for example `2026-11-30T03:30:38.000Z`.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        let days = self.0.div_euclid(86_400_000);
        let ms_of_day = self.0.rem_euclid(86_400_000);
        let (year, month, day) = civil_from_days(days);
        format!(
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
            ms_of_day / 3_600_000,
            ms_of_day / 60_000 % 60,
            ms_of_day / 1_000 % 60,
            ms_of_day % 1_000
        )
    }
}

/// Gives the current time; tests give a fixed one.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Reads the current time.
    fn now(&self) -> Instant;
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place where the wall clock is read")]
    fn now(&self) -> Instant {
        let since_epoch =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Instant(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Turns days since 1970-01-01 into year, month and day of the proleptic Gregorian calendar.
///
/// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`; eras of
/// 400 years (146 097 days) beginning on 1 March.
pub(crate) const fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::Instant;

    #[track_caller]
    fn check(epoch_ms: i64, expected: &str) {
        assert_eq!(Instant::from_epoch_ms(epoch_ms).to_rfc3339(), expected);
    }

    #[test]
    fn instants_render_as_rfc3339_on_both_sides_of_the_epoch() {
        check(0, "1970-01-01T00:00:00.000Z");
        check(-1, "1969-12-31T23:59:59.999Z");
        check(951_827_696_789, "2000-02-29T12:34:56.789Z");
        check(1_795_995_715_713, "2026-11-29T23:41:55.713Z");
    }
}
