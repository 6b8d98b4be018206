//! Quantities that decisions are made in.

use std::{fmt, iter::Sum, ops};

/// A number of bytes. Prints in binary units: `1.5 MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Returns the count as a float, for formulas.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "byte sums under 8 PiB are exact in f64")]
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// Rounds a formula's result back to bytes; negative values and NaN become zero.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, which is what is wanted for values beyond u64"
    )]
    pub fn from_f64(bytes: f64) -> Self {
        Self(bytes.round().max(0.0) as u64)
    }

    /// Parses a size such as `512`, `20GiB`, `1.5 MiB` or `2GB`.
    ///
    /// # Errors
    /// Returns what was expected when the text is no size.
    pub fn parse(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let split = trimmed
            .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
            .unwrap_or(trimmed.len());
        let (digits, unit) = trimmed.split_at(split);
        let number: f64 = digits.replace('_', "").parse().map_err(|_| {
            format!("`{text}` is not a size: expected a number and a unit such as `20GiB`")
        })?;
        let factor = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "k" | "kib" => 1024.0,
            "m" | "mib" => 1024.0 * 1024.0,
            "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
            "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
            "kb" => 1e3,
            "mb" => 1e6,
            "gb" => 1e9,
            "tb" => 1e12,
            other => {
                return Err(format!(
                    "`{text}` has unknown unit `{other}`: expected B, KiB, MiB, GiB, TiB, KB, MB, GB or TB"
                ));
            }
        };
        Ok(Self::from_f64(number * factor))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let mut value = self.as_f64() / 1024.0;
        let mut unit = 0;
        while value >= 1023.95 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        write!(f, "{value:.1} {}", UNITS[unit])
    }
}

impl ops::Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl ops::AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self(0), ops::Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn sizes_print_in_binary_units() {
        let shown: Vec<String> = [0, 1023, 1024, 1_572_864, 1_073_741_823, u64::MAX]
            .into_iter()
            .map(|b| Bytes(b).to_string())
            .collect();
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "1.5 MiB", "1.0 GiB", "16384.0 PiB"]);
    }

    #[test]
    fn sizes_parse_with_and_without_units() {
        assert_eq!(Bytes::parse("512"), Ok(Bytes(512)));
        assert_eq!(Bytes::parse("20GiB"), Ok(Bytes(20 << 30)));
        assert_eq!(Bytes::parse("1.5 MiB"), Ok(Bytes(1_572_864)));
        assert_eq!(Bytes::parse("2gb"), Ok(Bytes(2_000_000_000)));
        assert!(Bytes::parse("2 parsecs").unwrap_err().contains("unknown unit `parsecs`"));
        assert!(Bytes::parse("many").unwrap_err().contains("is not a size"));
    }
}
