//! Settings from `lakebed.toml` and the environment: the only place that reads either.
//!
//! Unknown keys are refused with their position and the nearest known key.

use std::{
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroUsize},
    path::{Path, PathBuf},
};

use lakebed_lake::StoreOptions;
use lakebed_layout::FileSizing;
use lakebed_model::Bytes;
use lakebed_plan::{DEFAULT_DISCOUNT_RATE, DEFAULT_HORIZON_WINDOWS, Settings};
use serde::Deserialize;

use crate::{settings::SettingsSection, storage::StorageSection};

/// The file that is read when none is named.
pub const DEFAULT_FILE: &str = "lakebed.toml";

/// The whole configuration.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where the tables are.
    pub lake: LakeSection,
    /// Tables by name: paths or URLs.
    pub tables: BTreeMap<String, String>,
    /// Formulas by world.
    pub plugins: PluginSection,
    /// Settings of plugins by the name they are chosen under.
    pub plugin_config: BTreeMap<String, toml::Table>,
    /// The planner.
    pub plan: PlanSection,
    /// The engine.
    pub engine: EngineSection,
    /// Drift.
    pub drift: DriftSection,
    /// Iterator compaction.
    pub compact: CompactSection,
    /// What `SET` sets in a session.
    pub settings: SettingsSection,
    /// How object stores are reached.
    pub storage: StorageSection,
    /// The folder that relative paths are relative to.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// `[lake]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LakeSection {
    /// A folder, or its URL, whose subfolders with a `_delta_log` are tables; our records go to
    /// `_lakebed/` in it.
    pub folder: Option<PathBuf>,
    /// What is kept there of the statements that `lakebed sql` runs.
    pub history: OwnHistory,
}

/// What Lakebed keeps of the statements that its own engine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OwnHistory {
    /// The statements as they were written.
    #[default]
    Full,
    /// The statements without constants.
    Redacted,
    /// Nothing.
    Off,
}

/// `[plugins]`: the name of a shipped plugin, or a path to a component.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct PluginSection {
    /// Scores join edges.
    pub scorer: String,
    /// Prices layout candidates.
    pub cost_model: String,
    /// Measures drift.
    pub drift_meter: String,
    /// Further plugins for iterator chains, by the name that chains use.
    pub iterators: BTreeMap<String, String>,
}

impl Default for PluginSection {
    fn default() -> Self {
        Self {
            scorer: "scorer-ajlo-jis".to_owned(),
            cost_model: "cost-model-npv".to_owned(),
            drift_meter: "drift-meter-ajlo".to_owned(),
            iterators: BTreeMap::new(),
        }
    }
}

/// `[plan]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlanSection {
    /// Bytes a plan may rewrite, such as `20GiB`.
    pub rewrite_budget: Option<String>,
    /// Bytes of old files a plan may leave until VACUUM.
    pub storage_budget: Option<String>,
    /// Windows over which savings count.
    pub horizon_windows: NonZeroU32,
    /// Discount per window.
    pub discount_rate: f64,
    /// Name of the search.
    pub search: String,
    /// Tables that are never planned for nor rewritten by a plan.
    pub protect: Vec<String>,
}

impl Default for PlanSection {
    fn default() -> Self {
        Self {
            rewrite_budget: None,
            storage_budget: None,
            horizon_windows: DEFAULT_HORIZON_WINDOWS,
            discount_rate: DEFAULT_DISCOUNT_RATE,
            search: "exact".to_owned(),
            protect: Vec::new(),
        }
    }
}

/// Least memory of the engine where nobody says another.
const DEFAULT_MEMORY_MIN: Bytes = Bytes(256 << 20);

/// `[engine]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineSection {
    /// Threads; all cores by default.
    pub threads: Option<NonZeroUsize>,
    /// Memory of sorts and joins before they spill, such as `4GiB`; a quarter of the machine's by
    /// default.
    pub memory: Option<String>,
    /// Folder that sorts and joins spill to; the system's for temporary files by default.
    pub spill_folder: Option<PathBuf>,
    /// Size of a file where a table does not say (`delta.targetFileSize`), such as `128MiB`; by the
    /// table's size where this is not set either.
    pub file_size: Option<String>,
}

/// `[drift]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DriftSection {
    /// Distance above which to plan again.
    pub threshold: f64,
}

impl Default for DriftSection {
    fn default() -> Self {
        Self { threshold: lakebed_graph::DEFAULT_THRESHOLD }
    }
}

/// `[compact]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompactSection {
    /// Columns that identify a row, by table.
    pub row_keys: BTreeMap<String, Vec<String>>,
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("read configuration `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The file is no TOML, or holds a key or value we do not know.
    #[error("read configuration `{}` at line {line}, column {column}: {message}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong.
        message: String,
        /// The key that was perhaps meant.
        nearest: Option<String>,
    },
    /// A value is out of range.
    #[error("use `{key}` of the configuration: {reason}")]
    Value {
        /// The key.
        key: &'static str,
        /// What is wrong with its value.
        reason: String,
    },
}

impl ConfigError {
    /// Says what to do.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Read { .. } => "check the path given with --config".to_owned(),
            Self::Parse { nearest: Some(key), .. } => format!("did you mean `{key}`?"),
            Self::Parse { nearest: None, .. } => "correct the file at that place".to_owned(),
            Self::Value { .. } => "correct the value".to_owned(),
        }
    }
}

impl Config {
    /// Reads a named file, or `lakebed.toml` where there is one, or the defaults.
    ///
    /// # Errors
    /// Fails when the file cannot be read or holds something unknown.
    pub fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        let path = match file {
            Some(path) => path,
            None if Path::new(DEFAULT_FILE).is_file() => Path::new(DEFAULT_FILE),
            None => return Ok(Self::default()),
        };
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let mut config = Self::parse(&text, path)?;
        config.folder = path.parent().unwrap_or_else(|| Path::new("")).to_owned();
        Ok(config)
    }

    /// Parses the text of a configuration file; `path` is for messages.
    ///
    /// # Errors
    /// Fails when the text is no TOML or holds something unknown.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let refuse = |at: usize, message: &str, nearest: Option<String>| {
            let (line, column) = position(text, at);
            let (path, message) = (path.to_owned(), message.to_owned());
            ConfigError::Parse { path, line, column, message, nearest }
        };
        let mut config: Self = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            refuse(at, error.message(), nearest_key(error.message()))
        })?;
        config
            .settings
            .evaluate()
            .map_err(|refused| refuse(refused.at, &refused.message, refused.nearest))?;
        config
            .storage
            .check()
            .map_err(|refused| refuse(refused.at, &refused.message, refused.nearest))?;
        Ok(config)
    }

    /// Returns the planner's settings.
    ///
    /// # Errors
    /// Fails when a size or the discount rate makes no sense.
    pub fn plan_settings(&self) -> Result<Settings, ConfigError> {
        let rate = self.plan.discount_rate;
        if !(0.0..=1.0).contains(&rate) {
            return Err(ConfigError::Value {
                key: "plan.discount_rate",
                reason: format!("{rate} is not between 0 and 1"),
            });
        }
        Ok(Settings {
            rewrite_budget: size("plan.rewrite_budget", self.plan.rewrite_budget.as_deref())?,
            storage_budget: size("plan.storage_budget", self.plan.storage_budget.as_deref())?,
            horizon_windows: self.plan.horizon_windows,
            discount_rate: rate,
        })
    }

    /// Returns the engine's memory: as set, or a quarter of what this process may use.
    ///
    /// # Errors
    /// Fails when it is no size.
    pub fn engine_memory(&self) -> Result<Bytes, ConfigError> {
        let set = size("engine.memory", self.engine.memory.as_deref())?;
        match set {
            Some(memory) => Ok(memory),
            None => Ok(Bytes((usable_memory() / 4).max(DEFAULT_MEMORY_MIN.0))),
        }
    }

    /// Returns how files are sized where a table does not say.
    ///
    /// # Errors
    /// Fails when the configured size is none.
    pub fn file_size(&self) -> Result<FileSizing, ConfigError> {
        let set = size("engine.file_size", self.engine.file_size.as_deref())?;
        Ok(self.settings.clustering.file_sizing(set))
    }

    /// Returns how object stores are reached: as the file says, else the environment.
    #[must_use]
    pub fn store_options(&self) -> StoreOptions {
        self.storage.options(variables())
    }

    /// Returns the lake's folder: a URL, or a path relative to the file.
    #[must_use]
    pub fn lake_folder(&self) -> Option<String> {
        Some(self.location(&self.lake.folder.as_ref()?.to_string_lossy()))
    }

    /// Makes a location of the configuration relative to its file, when it is a path.
    #[must_use]
    pub fn location(&self, location: &str) -> String {
        match is_url(location) {
            true => location.to_owned(),
            false => self.resolve(location.as_ref()).to_string_lossy().into_owned(),
        }
    }

    /// Makes a path of the configuration relative to its file.
    #[must_use]
    pub fn resolve(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }
}

/// Returns the memory that this process may use: the machine's, or less in a container.
#[must_use]
pub fn usable_memory() -> u64 {
    let kind = sysinfo::RefreshKind::nothing()
        .with_memory(sysinfo::MemoryRefreshKind::nothing().with_ram());
    let system = sysinfo::System::new_with_specifics(kind);
    let limit = system.cgroup_limits().map_or(u64::MAX, |limits| limits.total_memory);
    system.total_memory().min(limit)
}

/// Tells a URL from a path.
#[must_use]
pub fn is_url(location: &str) -> bool {
    location.contains("://")
}

/// The variables of the environment that are text.
fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

fn size(key: &'static str, text: Option<&str>) -> Result<Option<Bytes>, ConfigError> {
    text.map(|text| Bytes::parse(text).map_err(|reason| ConfigError::Value { key, reason }))
        .transpose()
}

/// Parses a duration such as `7d`, `12h`, `30m`, `45s` or `500ms` into milliseconds.
///
/// # Errors
/// Returns what was expected when the text is no duration.
pub fn parse_duration_ms(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 604_800_000,
        _ => {
            return Err(format!(
                "`{text}` is not a duration: expected a number and ms, s, m, h, d or w"
            ));
        }
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("`{text}` is not a duration: expected a number such as in `7d`"))?;
    number.checked_mul(factor).ok_or_else(|| format!("`{text}` is too long a duration"))
}

/// Tells whether the terminal should stay plain.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this module is where the environment is read")]
pub fn no_color() -> bool {
    std::env::var("NO_COLOR").is_ok_and(|value| !value.is_empty())
}

fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    (line, column)
}

/// serde lists the known keys in its message; the one closest to the unknown key may be meant.
fn nearest_key(message: &str) -> Option<String> {
    let mut names = message.split('`').skip(1).step_by(2);
    let unknown = names.next().filter(|_| message.starts_with("unknown field"))?;
    names
        .map(|known| (strsim::damerau_levenshtein(unknown, known), known))
        .filter(|(distance, known)| *distance <= known.len().max(3) / 2)
        .min()
        .map(|(_, known)| known.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Config, parse_duration_ms};

    #[track_caller]
    fn refuse(text: &str, message: &str, help: &str) {
        let error = Config::parse(text, Path::new("lakebed.toml")).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.help().as_str()), (message, help));
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_place_and_the_nearest_key() {
        refuse(
            "[plan]\nrewrite_buget = \"1GiB\"\n",
            "read configuration `lakebed.toml` at line 2, column 1: unknown field `rewrite_buget`, expected one of `rewrite_budget`, `storage_budget`, `horizon_windows`, `discount_rate`, `search`, `protect`",
            "did you mean `rewrite_budget`?",
        );
    }

    #[test]
    fn broken_toml_is_refused_with_its_place() {
        let error = Config::parse("[plan\n", Path::new("x.toml")).unwrap_err().to_string();
        assert!(error.starts_with("read configuration `x.toml` at line 1, column 6: "), "{error}");
    }

    #[test]
    fn swapping_a_formula_is_one_line() {
        let config =
            Config::parse("[plugins]\nscorer = \"scorer-bytes-saved\"\n", Path::new("x")).unwrap();
        assert_eq!(config.plugins.scorer, "scorer-bytes-saved");
        assert_eq!(config.plugins.cost_model, "cost-model-npv");
    }

    #[test]
    fn settings_are_read_under_quoted_and_dotted_names() {
        let text = "
[settings]
\"spark.microsoft.delta.optimize.clustering.strategy.incremental\" = false
lakebed.optimize.clustering.strategy.autoRecluster.minOffendingFiles = 6
lakebed.optimize.clustering.strategy.autoRecluster.minOverlapThreshold = 0.5
lakebed.optimize.fast.enabled = \"false\"
";
        let settings = Config::parse(text, Path::new("x")).unwrap().settings.clustering;
        assert!(!settings.strategy_incremental && !settings.fast_optimize);
        assert_eq!(settings.min_offending_files, 6);
        assert!((settings.min_overlap_threshold - 0.5).abs() < f64::EPSILON);
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_with_their_place() {
        refuse(
            "[settings]\nlakebed.optimize.fast.enabled = true\nlakebed.optimize.fast.enable = true\n",
            "read configuration `lakebed.toml` at line 3, column 23: set `lakebed.optimize.fast.enable`: there is no such setting; the nearest is `lakebed.optimize.fast.enabled`",
            "did you mean `lakebed.optimize.fast.enabled`?",
        );
        refuse(
            "[settings]\n\"lakebed.optimize.fast.enabled\" = 5\n",
            "read configuration `lakebed.toml` at line 2, column 35: set `lakebed.optimize.fast.enabled` to `5`: it takes true or false",
            "correct the file at that place",
        );
        refuse(
            "[settings]\n\"lakebed.optimize.fast.enabled\" = []\n",
            "read configuration `lakebed.toml` at line 2, column 35: invalid type: sequence, expected a string, a number, true or false",
            "correct the file at that place",
        );
    }

    #[test]
    fn durations_parse() {
        assert_eq!(parse_duration_ms("7d"), Ok(604_800_000));
        assert_eq!(parse_duration_ms("500ms"), Ok(500));
        assert!(parse_duration_ms("7 days").is_err());
    }
}
