//! What a session may set about clustering and about writes: names, defaults and ranges.
//!
//! Names are those of Fabric and Delta as they stand, and the same with `lakebed.` in place of
//! `spark.microsoft.delta.` or `spark.databricks.delta.`. Of the automatic reclustering the middle
//! parts `incremental` and `autoRecluster` may be left out, as in
//! `….optimize.clustering.strategy.minOffendingFiles`: no two settings become the same by that.

use std::fmt;

use lakebed_model::Bytes;

use crate::{AutoCompact, FileSizing, LayoutError, optimize::DEFAULT_FILE_SIZE};

/// Settings of a session about clustering and about writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusteringSettings {
    /// OPTIMIZE rewrites only what needs it; otherwise every file of a cube under 100 GiB, as
    /// delta-spark does, whenever there is something new.
    pub strategy_incremental: bool,
    /// An incremental OPTIMIZE also rewrites clustered files whose ranges overlap.
    pub auto_recluster: bool,
    /// How many files must overlap before they are reclustered, at least 2.
    pub min_offending_files: u32,
    /// Overlap score that a pair of files must exceed, in (0.25, 1].
    pub min_overlap_threshold: f64,
    /// Small clustered files wait until they make a healthy file.
    pub fast_optimize: bool,
    /// A table that does not say how large its files should be gets a size by its own.
    pub adaptive_target: bool,
    /// Structs, arrays and maps may be clustering columns.
    pub complex_types: bool,
    /// VACUUM refuses a retention shorter than the table's own.
    pub retention_check: bool,
    /// Share of a file's rows that deletion vectors may hide before the file is rewritten.
    pub deleted_rows_ratio: f64,
    /// Whether writes merge small files afterwards; where not set, the table says.
    pub auto_compact: Option<AutoCompact>,
    /// How many small files an auto-compaction waits for.
    pub auto_compact_min_files: u32,
    /// Size of the files that an auto-compaction makes; where not set, see [`crate::auto_compact()`].
    pub auto_compact_max_file_size: Option<Bytes>,
    /// Files under this size are small to an auto-compaction; half the size it makes where not set.
    pub auto_compact_min_file_size: Option<Bytes>,
    /// Whether a write gathers the rows of all threads; where not set, the table says.
    pub optimize_write: Option<bool>,
    /// Size of the files that an optimized write makes; the table's own where not set.
    pub optimize_write_bin_size: Option<Bytes>,
}

impl Default for ClusteringSettings {
    fn default() -> Self {
        Self {
            strategy_incremental: true,
            auto_recluster: true,
            min_offending_files: 4,
            min_overlap_threshold: 0.75,
            fast_optimize: true,
            adaptive_target: true,
            complex_types: false,
            retention_check: true,
            deleted_rows_ratio: 0.05,
            auto_compact: None,
            auto_compact_min_files: 50,
            auto_compact_max_file_size: None,
            auto_compact_min_file_size: None,
            optimize_write: None,
            optimize_write_bin_size: None,
        }
    }
}

impl ClusteringSettings {
    /// Sets one setting from text.
    ///
    /// # Errors
    /// Fails when there is no such setting, naming the nearest, or when the value is out of range.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), LayoutError> {
        let setting = find(key)?;
        let text = value.trim();
        let done = match setting.field {
            Field::Flag(field) => {
                let parsed = text.to_ascii_lowercase().parse().ok();
                parsed.map(|value| *field(self) = value)
            }
            Field::Count { least, field } => {
                let parsed = text.parse().ok().filter(|count| *count >= least);
                parsed.map(|value| *field(self) = value)
            }
            Field::Share { holds, field } => {
                let parsed = text.parse().ok().filter(|share| holds(*share));
                parsed.map(|value| *field(self) = value)
            }
            Field::Size(field) => {
                let parsed = size(setting, key, text).filter(|size| size.0 > 0);
                parsed.map(|value| *field(self) = Some(value))
            }
            Field::Switch(field) => {
                let parsed = text.to_ascii_lowercase().parse().ok();
                parsed.map(|value| *field(self) = Some(value))
            }
            Field::Mode(field) => {
                let parsed = AutoCompact::parse(text);
                parsed.map(|value| *field(self) = Some(value))
            }
        };
        done.ok_or_else(|| LayoutError::SettingValue {
            key: key.to_owned(),
            value: value.to_owned(),
            expected: setting.expected,
        })
    }

    /// Sets one setting, or all of them, back to the default.
    ///
    /// # Errors
    /// Fails when there is no such setting, naming the nearest.
    pub fn reset(&mut self, key: Option<&str>) -> Result<(), LayoutError> {
        let mut initial = Self::default();
        let Some(key) = key else {
            *self = initial;
            return Ok(());
        };
        match find(key)?.field {
            Field::Flag(field) => *field(self) = *field(&mut initial),
            Field::Count { field, .. } => *field(self) = *field(&mut initial),
            Field::Share { field, .. } => *field(self) = *field(&mut initial),
            Field::Size(field) => *field(self) = *field(&mut initial),
            Field::Switch(field) => *field(self) = *field(&mut initial),
            Field::Mode(field) => *field(self) = *field(&mut initial),
        }
        Ok(())
    }

    /// Lists all settings under their full names, with their values.
    #[must_use]
    pub fn entries(&self) -> Vec<(String, String)> {
        let mut copy = *self;
        let mut entries = Vec::with_capacity(SETTINGS.len());
        for setting in &SETTINGS {
            let value = match setting.field {
                Field::Flag(field) => field(&mut copy).to_string(),
                Field::Count { field, .. } => field(&mut copy).to_string(),
                Field::Share { field, .. } => field(&mut copy).to_string(),
                // With its unit, so that what is shown can be set again under every name.
                Field::Size(field) => shown(field(&mut copy).map(|size| format!("{}B", size.0))),
                Field::Switch(field) => shown(*field(&mut copy)),
                Field::Mode(field) => shown(*field(&mut copy)),
            };
            entries.push((setting.key.to_owned(), value));
        }
        entries
    }

    /// Shows one setting under its own name.
    ///
    /// # Errors
    /// Fails when there is no such setting, naming the nearest.
    pub fn entry(&self, key: &str) -> Result<(String, String), LayoutError> {
        let own = find(key)?.key;
        let found = self.entries().into_iter().find(|(known, _)| known == own);
        Ok(found.unwrap_or_else(|| (own.to_owned(), String::new())))
    }

    /// Decides how files are sized in a table that does not say, given the size that the
    /// configuration names, if any.
    #[must_use]
    pub const fn file_sizing(&self, configured: Option<Bytes>) -> FileSizing {
        match configured {
            Some(size) => FileSizing::Fixed(size),
            None if self.adaptive_target => FileSizing::Adaptive,
            None => FileSizing::Fixed(DEFAULT_FILE_SIZE),
        }
    }
}

/// Shows a value that may not be set, as Spark does.
fn shown(value: Option<impl fmt::Display>) -> String {
    value.map_or_else(|| "<undefined>".to_owned(), |value| value.to_string())
}

struct Setting {
    key: &'static str,
    /// The name that the other vendor gives the same setting.
    other_key: Option<&'static str>,
    expected: &'static str,
    field: Field,
}

#[derive(Clone, Copy)]
enum Field {
    Flag(fn(&mut ClusteringSettings) -> &mut bool),
    Count { least: u32, field: fn(&mut ClusteringSettings) -> &mut u32 },
    Share { holds: fn(f64) -> bool, field: fn(&mut ClusteringSettings) -> &mut f64 },
    Size(fn(&mut ClusteringSettings) -> &mut Option<Bytes>),
    Switch(fn(&mut ClusteringSettings) -> &mut Option<bool>),
    Mode(fn(&mut ClusteringSettings) -> &mut Option<AutoCompact>),
}

const fn flag(key: &'static str, field: fn(&mut ClusteringSettings) -> &mut bool) -> Setting {
    Setting { key, other_key: None, expected: "true or false", field: Field::Flag(field) }
}

const fn file_size(
    key: &'static str,
    other_key: Option<&'static str>,
    field: fn(&mut ClusteringSettings) -> &mut Option<Bytes>,
) -> Setting {
    Setting { key, other_key, expected: "a size above 0 such as 64MiB", field: Field::Size(field) }
}

const SETTINGS: [Setting; 15] = [
    flag("spark.microsoft.delta.optimize.clustering.strategy.incremental", |s| {
        &mut s.strategy_incremental
    }),
    flag("spark.microsoft.delta.optimize.clustering.strategy.incremental.autoRecluster", |s| {
        &mut s.auto_recluster
    }),
    Setting {
        key: "spark.microsoft.delta.optimize.clustering.strategy.incremental.autoRecluster.minOffendingFiles",
        other_key: None,
        expected: "a whole number of at least 2",
        field: Field::Count { least: 2, field: |s| &mut s.min_offending_files },
    },
    Setting {
        key: "spark.microsoft.delta.optimize.clustering.strategy.incremental.autoRecluster.minOverlapThreshold",
        other_key: None,
        expected: "a number above 0.25 and at most 1",
        field: Field::Share {
            holds: |share| share > 0.25 && share <= 1.0,
            field: |s| &mut s.min_overlap_threshold,
        },
    },
    flag("spark.microsoft.delta.optimize.fast.enabled", |s| &mut s.fast_optimize),
    flag("spark.microsoft.delta.targetFileSize.adaptive.enabled", |s| &mut s.adaptive_target),
    flag("spark.microsoft.delta.clusteredTable.complexTypes.enabled", |s| &mut s.complex_types),
    flag("spark.databricks.delta.retentionDurationCheck.enabled", |s| &mut s.retention_check),
    Setting {
        key: "spark.databricks.delta.optimize.maxDeletedRowsRatio",
        other_key: None,
        expected: "a number of at least 0 and at most 1",
        field: Field::Share {
            holds: |share| (0.0..=1.0).contains(&share),
            field: |s| &mut s.deleted_rows_ratio,
        },
    },
    Setting {
        key: "spark.databricks.delta.autoCompact.enabled",
        other_key: None,
        expected: "true, auto, legacy or false",
        field: Field::Mode(|s| &mut s.auto_compact),
    },
    Setting {
        key: "spark.databricks.delta.autoCompact.minNumFiles",
        other_key: None,
        expected: "a whole number of at least 2",
        field: Field::Count { least: 2, field: |s| &mut s.auto_compact_min_files },
    },
    file_size("spark.databricks.delta.autoCompact.maxFileSize", None, |s| {
        &mut s.auto_compact_max_file_size
    }),
    file_size("spark.databricks.delta.autoCompact.minFileSize", None, |s| {
        &mut s.auto_compact_min_file_size
    }),
    Setting {
        key: "spark.databricks.delta.optimizeWrite.enabled",
        other_key: Some("spark.microsoft.delta.optimizeWrite.enabled"),
        expected: "true or false",
        field: Field::Switch(|s| &mut s.optimize_write),
    },
    file_size(BIN_SIZE, Some("spark.microsoft.delta.optimizeWrite.binSize"), |s| {
        &mut s.optimize_write_bin_size
    }),
];

/// Delta reads a bare number of this one as MiB; everywhere else it is bytes.
const BIN_SIZE: &str = "spark.databricks.delta.optimizeWrite.binSize";

fn size(setting: &Setting, key: &str, text: &str) -> Option<Bytes> {
    let is_mib = setting.key == BIN_SIZE && key == BIN_SIZE;
    match text.parse::<u64>() {
        Ok(number) if is_mib => number.checked_mul(1 << 20).map(Bytes),
        _ => Bytes::parse(text).ok(),
    }
}

const OURS: &str = "lakebed.";
const THEIRS: [&str; 2] = ["spark.microsoft.delta.", "spark.databricks.delta."];

fn find(key: &str) -> Result<&'static Setting, LayoutError> {
    let asked = shortest(key);
    let known = |setting: &&Setting| {
        shortest(setting.key) == asked
            || shortest(&our_name(setting.key)) == asked
            || setting.other_key == Some(key)
    };
    SETTINGS
        .iter()
        .find(known)
        .ok_or_else(|| LayoutError::UnknownSetting { key: key.to_owned(), nearest: nearest(key) })
}

/// The name without the parts that may be left out.
fn shortest(key: &str) -> String {
    key.replace(".strategy.incremental.", ".strategy.")
        .replace(".strategy.autoRecluster.min", ".strategy.min")
}

fn our_name(key: &str) -> String {
    let ending = THEIRS.iter().find_map(|prefix| key.strip_prefix(prefix)).unwrap_or(key);
    format!("{OURS}{ending}")
}

fn nearest(key: &str) -> String {
    let names = SETTINGS.iter().map(|setting| {
        if key.starts_with(OURS) { our_name(setting.key) } else { setting.key.to_owned() }
    });
    names.min_by_key(|name| strsim::damerau_levenshtein(key, name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use lakebed_model::Bytes;

    use super::ClusteringSettings;
    use crate::{AutoCompact, FileSizing};

    const STRATEGY: &str = "spark.microsoft.delta.optimize.clustering.strategy";

    #[track_caller]
    fn refuse(key: &str, value: &str, message: &str) {
        let mut settings = ClusteringSettings::default();
        assert_eq!(settings.set(key, value).unwrap_err().to_string(), message);
        assert_eq!(settings, ClusteringSettings::default());
    }

    #[test]
    fn every_spelling_of_a_name_sets_the_same() {
        for key in [
            format!("{STRATEGY}.incremental.autoRecluster.minOffendingFiles"),
            format!("{STRATEGY}.autoRecluster.minOffendingFiles"),
            format!("{STRATEGY}.incremental.minOffendingFiles"),
            format!("{STRATEGY}.minOffendingFiles"),
            "lakebed.optimize.clustering.strategy.incremental.autoRecluster.minOffendingFiles"
                .to_owned(),
            "lakebed.optimize.clustering.strategy.minOffendingFiles".to_owned(),
        ] {
            let mut settings = ClusteringSettings::default();
            settings.set(&key, "7").unwrap();
            let expected =
                ClusteringSettings { min_offending_files: 7, ..ClusteringSettings::default() };
            assert_eq!(settings, expected, "{key}");
        }
    }

    #[test]
    fn entries_are_all_settings_and_set_what_they_show() {
        let changed = ClusteringSettings {
            strategy_incremental: false,
            auto_recluster: false,
            min_offending_files: 2,
            min_overlap_threshold: 1.0,
            fast_optimize: false,
            adaptive_target: false,
            complex_types: true,
            retention_check: false,
            deleted_rows_ratio: 0.5,
            auto_compact: Some(AutoCompact::Auto),
            auto_compact_min_files: 7,
            auto_compact_max_file_size: Some(Bytes(5 << 20)),
            auto_compact_min_file_size: Some(Bytes(5)),
            optimize_write: Some(false),
            optimize_write_bin_size: Some(Bytes(3 << 20)),
        };
        let mut settings = ClusteringSettings::default();
        for (key, value) in changed.entries() {
            settings.set(&key, &value).unwrap();
        }
        assert_eq!(settings, changed);
        for (key, _) in changed.entries() {
            settings.reset(Some(&key)).unwrap();
        }
        assert_eq!(settings, ClusteringSettings::default());
        let mut settings = changed;
        settings.reset(None).unwrap();
        assert_eq!(settings, ClusteringSettings::default());
    }

    #[test]
    fn unknown_names_are_refused_with_the_nearest() {
        refuse(
            "spark.microsoft.delta.optimize.clustering.strategy.increment",
            "true",
            "set `spark.microsoft.delta.optimize.clustering.strategy.increment`: there is no such setting; the nearest is `spark.microsoft.delta.optimize.clustering.strategy.incremental`",
        );
        refuse(
            "lakebed.optimize.fast",
            "true",
            "set `lakebed.optimize.fast`: there is no such setting; the nearest is `lakebed.optimize.fast.enabled`",
        );
        assert!(ClusteringSettings::default().reset(Some("spark.x")).is_err());
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_range() {
        refuse(
            "lakebed.optimize.clustering.strategy.minOffendingFiles",
            "1",
            "set `lakebed.optimize.clustering.strategy.minOffendingFiles` to `1`: it takes a whole number of at least 2",
        );
        for value in ["0.25", "1.01", "NaN", "much"] {
            refuse(
                "lakebed.optimize.clustering.strategy.minOverlapThreshold",
                value,
                &format!(
                    "set `lakebed.optimize.clustering.strategy.minOverlapThreshold` to `{value}`: it takes a number above 0.25 and at most 1"
                ),
            );
        }
        refuse(
            "lakebed.optimize.clustering.strategy.incremental",
            "yes",
            "set `lakebed.optimize.clustering.strategy.incremental` to `yes`: it takes true or false",
        );
    }

    #[test]
    fn booleans_are_read_in_any_case() {
        let mut settings = ClusteringSettings::default();
        settings.set(&format!("{STRATEGY}.incremental"), " FALSE ").unwrap();
        assert!(!settings.strategy_incremental);
    }

    #[test]
    fn settings_of_writes_have_the_names_of_both_vendors() {
        let set = |key: &str, value: &str| {
            let mut settings = ClusteringSettings::default();
            settings.set(key, value).map(|()| settings)
        };
        let off = ClusteringSettings { optimize_write: Some(false), ..Default::default() };
        for key in [
            "spark.databricks.delta.optimizeWrite.enabled",
            "spark.microsoft.delta.optimizeWrite.enabled",
            "lakebed.optimizeWrite.enabled",
        ] {
            assert_eq!(set(key, "False").unwrap(), off, "{key}");
        }
        let bin = |bytes| ClusteringSettings {
            optimize_write_bin_size: Some(Bytes(bytes)),
            ..Default::default()
        };
        assert_eq!(set(super::BIN_SIZE, "512").unwrap(), bin(512 << 20));
        assert_eq!(set(super::BIN_SIZE, "512KiB").unwrap(), bin(512 << 10));
        let bytes = set("spark.microsoft.delta.optimizeWrite.binSize", "1073741824");
        assert_eq!(bytes.unwrap(), bin(1 << 30));
        assert_eq!(set("lakebed.optimizeWrite.binSize", "4096").unwrap(), bin(4_096));
        for (text, mode) in [
            ("true", AutoCompact::On),
            ("LEGACY", AutoCompact::On),
            ("auto", AutoCompact::Auto),
            ("false", AutoCompact::Off),
        ] {
            let expected = ClusteringSettings { auto_compact: Some(mode), ..Default::default() };
            assert_eq!(set("lakebed.autoCompact.enabled", text).unwrap(), expected);
        }
        refuse(
            "spark.databricks.delta.autoCompact.enabled",
            "always",
            "set `spark.databricks.delta.autoCompact.enabled` to `always`: it takes true, auto, legacy or false",
        );
        refuse(
            "lakebed.autoCompact.maxFileSize",
            "0",
            "set `lakebed.autoCompact.maxFileSize` to `0`: it takes a size above 0 such as 64MiB",
        );
        let entry = ClusteringSettings::default().entry("lakebed.autoCompact.enabled").unwrap();
        assert_eq!(entry.1, "<undefined>");
    }

    #[test]
    fn a_configured_file_size_wins_over_the_adaptive_one() {
        let settings = ClusteringSettings::default();
        assert_eq!(settings.file_sizing(None), FileSizing::Adaptive);
        assert_eq!(settings.file_sizing(Some(Bytes(5))), FileSizing::Fixed(Bytes(5)));
        let plain = ClusteringSettings { adaptive_target: false, ..settings };
        assert_eq!(plain.file_sizing(None), FileSizing::Fixed(Bytes(128 << 20)));
    }
}
