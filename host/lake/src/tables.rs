//! Which tables a lake has and how they are opened.

use std::{
    collections::BTreeMap,
    fmt,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use arrow::{datatypes::SchemaRef, error::ArrowError};
use datafusion::execution::{
    memory_pool::FairSpillPool,
    runtime_env::{RuntimeEnv, RuntimeEnvBuilder},
};
use delta_kernel::{DeltaResult, Engine, snapshot::SnapshotRef};
use deltalake::{DeltaTableError, kernel::transaction::TransactionError, logstore::LogStoreRef};
use futures::{StreamExt, TryStreamExt, stream};
use lakebed_compact::{NoPlugins, Plugins};
use lakebed_layout::{DEFAULT_CHECKPOINT_INTERVAL, LakeFault, TableSnapshot};
use lakebed_model::{Bytes, Instant, TableName};
use object_store::{ObjectStore, path::Path as ObjectPath};
use parquet::errors::ParquetError;
use url::Url;

use crate::{
    LakeError, kernel,
    meter::Meter,
    snapshot,
    stores::{PutRefusal, StoreOptions, Stores, is_remote, location_refusal},
    versions::Version,
};

/// Folders of a lake looked into at once.
const FOLDERS: usize = 16;

/// Resources of a lake.
#[derive(Debug, Clone)]
pub struct LakeOptions {
    /// Threads of a query or rewrite.
    pub threads: NonZeroUsize,
    /// Memory of sorts and joins before they spill.
    pub memory: Bytes,
    /// Where sorts and joins spill to; none for the system's folder of temporary files.
    pub spill_folder: Option<PathBuf>,
    /// Most rows of a Parquet row group.
    pub row_group_rows: usize,
    /// Counts the rows of rewrites, and stops them.
    pub meter: Arc<Meter>,
    /// How object stores are reached.
    pub storage: StoreOptions,
}

impl Default for LakeOptions {
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            memory: Bytes(4 << 30),
            spill_folder: None,
            row_group_rows: 1 << 20,
            meter: Arc::default(),
            storage: StoreOptions::default(),
        }
    }
}

/// Delta tables by name.
#[derive(Clone)]
pub struct DeltaLake {
    tables: BTreeMap<TableName, Url>,
    pub(crate) stores: Stores,
    pub(crate) options: LakeOptions,
    pub(crate) runtime: Arc<RuntimeEnv>,
    pub(crate) plugins: Arc<dyn Plugins + Send + Sync>,
    pub(crate) started: std::time::Instant,
    /// `delta.checkpointInterval` of the tables that were read.
    checkpoint_intervals: Arc<Mutex<BTreeMap<TableName, u64>>>,
}

impl fmt::Debug for DeltaLake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tables, options, .. } = self;
        f.debug_struct("DeltaLake")
            .field("tables", tables)
            .field("options", options)
            .finish_non_exhaustive()
    }
}

impl DeltaLake {
    /// Makes a lake without tables.
    ///
    /// # Errors
    /// Fails when the engine's runtime cannot be set up, for instance without a folder to spill to.
    pub fn new(options: LakeOptions) -> Result<Self, LakeError> {
        let memory = usize::try_from(options.memory.0).unwrap_or(usize::MAX);
        if let Some(folder) = &options.spill_folder {
            std::fs::create_dir_all(folder).map_err(|source| LakeError::SpillFolder {
                folder: folder.display().to_string(),
                source,
            })?;
        }
        let mut runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(FairSpillPool::new(memory)))
            // The disk itself is the limit: a figure of ours would only fail earlier.
            .with_max_temp_directory_size(u64::MAX);
        if let Some(folder) = &options.spill_folder {
            runtime = runtime.with_temp_file_path(folder);
        }
        let runtime = runtime.build_arc().map_err(|source| LakeError::Engine {
            action: "set up the engine for",
            table: "*".to_owned(),
            source,
        })?;
        #[expect(clippy::disallowed_methods, reason = "durations in reports start here")]
        let started = std::time::Instant::now();
        Ok(Self {
            tables: BTreeMap::new(),
            stores: Stores::new(options.storage.clone()),
            options,
            runtime,
            plugins: Arc::new(NoPlugins),
            started,
            checkpoint_intervals: Arc::default(),
        })
    }

    /// Returns what counts this lake's rewrites, and stops them.
    #[must_use]
    pub const fn meter(&self) -> &Arc<Meter> {
        &self.options.meter
    }

    /// Gives the lake the plugins that iterator chains may name.
    #[must_use]
    pub fn with_plugins(mut self, plugins: Arc<dyn Plugins + Send + Sync>) -> Self {
        self.plugins = plugins;
        self
    }

    /// Adds a table under a name; a path is made absolute.
    ///
    /// # Errors
    /// Fails when the location is neither a path nor a URL.
    pub fn add_table(&mut self, name: &str, location: &str) -> Result<(), LakeError> {
        self.tables.insert(TableName::new(name), parse_location(location)?);
        Ok(())
    }

    /// Adds every table found directly under a folder: each subfolder with a `_delta_log`.
    ///
    /// Folders that begin with `_` or `.` are ours or hidden and are left out.
    ///
    /// # Errors
    /// Fails when the folder cannot be read.
    pub fn add_folder(&mut self, folder: &Path) -> Result<usize, LakeError> {
        let fail = |error: std::io::Error| LakeError::Location {
            location: folder.display().to_string(),
            reason: error.to_string(),
        };
        let mut found = 0;
        for entry in std::fs::read_dir(folder).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with(['_', '.']) || !path.join("_delta_log").is_dir() {
                continue;
            }
            self.add_table(name, &path.to_string_lossy())?;
            found += 1;
        }
        Ok(found)
    }

    /// Adds every table found directly under a folder, local or of an object store, as
    /// [`DeltaLake::add_folder`] does.
    ///
    /// # Errors
    /// Fails when the folder cannot be read.
    pub async fn add_lake(&mut self, location: &str) -> Result<usize, LakeError> {
        let url = parse_location(location)?;
        if !is_remote(&url) {
            let path = url.to_file_path().map_err(|()| LakeError::Location {
                location: location.to_owned(),
                reason: "the URL names no local folder".to_owned(),
            })?;
            return self.add_folder(&path);
        }
        let fail =
            |source: object_store::Error| LakeError::Folder { location: url.to_string(), source };
        let store = self.stores.root(&url).map_err(fail)?;
        let root = ObjectPath::from_url_path(url.path())
            .map_err(|error| fail(object_store::Error::from(error)))?;
        let listed = store.list_with_delimiter(Some(&root)).await.map_err(fail)?;
        let folders = listed
            .common_prefixes
            .into_iter()
            .filter(|folder| folder.filename().is_some_and(|name| !name.starts_with(['_', '.'])));
        let found: Vec<Option<String>> = stream::iter(folders)
            .map(|folder| table_of(Arc::clone(&store), folder))
            .buffered(FOLDERS)
            .try_collect()
            .await
            .map_err(fail)?;
        let found: Vec<String> = found.into_iter().flatten().collect();
        for name in &found {
            let mut location = url.clone();
            if let Ok(mut segments) = location.path_segments_mut() {
                segments.pop_if_empty().push(name).push("");
            }
            self.tables.insert(TableName::new(name), location);
        }
        Ok(found.len())
    }

    /// Lists the tables' names in order.
    pub fn names(&self) -> impl Iterator<Item = &TableName> {
        self.tables.keys()
    }

    /// Tells whether the lake has a table.
    #[must_use]
    pub fn contains(&self, table: &TableName) -> bool {
        self.find(table).is_some()
    }

    /// Finds a table as Spark's catalog does: the case of letters tells two tables apart only where
    /// the lake has both.
    fn find(&self, table: &TableName) -> Option<&Url> {
        self.tables.get(table).or_else(|| {
            let wanted = table.as_str().to_lowercase();
            let is_same = |name: &TableName| name.as_str().to_lowercase() == wanted;
            let mut found = self.tables.iter().filter(|(name, _)| is_same(name));
            match (found.next(), found.next()) {
                (Some((_, url)), None) => Some(url),
                _ => None,
            }
        })
    }

    /// Finds a table's URL.
    ///
    /// # Errors
    /// Fails with the names there are when there is no such table.
    pub fn location(&self, table: &TableName) -> Result<&Url, LakeFault> {
        const SHOWN: usize = 20;
        self.find(table).ok_or_else(|| {
            let names: Vec<&str> = self.tables.keys().map(TableName::as_str).collect();
            LakeFault::UnknownTable {
                table: table.to_string(),
                known: match names.len() {
                    0 => "the lake has no tables".to_owned(),
                    1..=SHOWN => format!("the lake has {}", names.join(", ")),
                    more => format!(
                        "the lake has {} and {} more",
                        names[..SHOWN].join(", "),
                        more - SHOWN
                    ),
                },
            }
        })
    }

    /// Finds the lake's name for a table as a statement spells it: with catalog and schema where the
    /// lake has it so, else without.
    #[must_use]
    pub fn named(&self, spelled: &str) -> TableName {
        let starts = spelled.match_indices('.').map(|(at, _)| at + 1);
        let mut names = std::iter::once(0).chain(starts).map(|at| TableName::new(&spelled[at..]));
        names.find(|name| self.contains(name)).unwrap_or_else(|| TableName::new(spelled))
    }

    /// Keeps a table's interval for the commits that follow; a commit itself reads no table.
    pub(crate) fn remember_checkpoint_interval(&self, table: &TableName, interval: u64) {
        let mut intervals =
            self.checkpoint_intervals.lock().unwrap_or_else(PoisonError::into_inner);
        intervals.insert(table.clone(), interval);
    }

    /// Returns after how many versions of a table a checkpoint is due; the default for one that was
    /// not read yet.
    pub(crate) fn checkpoint_interval(&self, table: &TableName) -> u64 {
        let intervals = self.checkpoint_intervals.lock().unwrap_or_else(PoisonError::into_inner);
        intervals.get(table).copied().unwrap_or(DEFAULT_CHECKPOINT_INTERVAL).max(1)
    }

    #[cfg(test)]
    pub(crate) const fn stores(&self) -> &Stores {
        &self.stores
    }

    /// Opens a table's storage without reading its log.
    pub(crate) fn log_store(&self, table: &TableName) -> Result<LogStoreRef, LakeFault> {
        let location = self.location(table)?;
        self.stores
            .log_store(location)
            .map_err(|error| storage_fault("open", table, location, error))
    }

    /// Opens a table's folder to write files there that a commit will name, once it is known that
    /// its storage keeps commits apart.
    pub(crate) async fn writable(
        &self,
        table: &TableName,
    ) -> Result<Arc<dyn ObjectStore>, LakeFault> {
        let location = self.location(table)?;
        self.stores.ensure_put_if_absent(location).await.map_err(|refusal| match refusal {
            PutRefusal::Failed(error) => {
                storage_fault("try the conditional put of", table, location, error)
            }
            PutRefusal::Unsafe(reason) => LakeFault::UnsafeCommit {
                table: table.to_string(),
                location: location.to_string(),
                reason,
            },
        })?;
        Ok(self.log_store(table)?.object_store(None))
    }

    /// Reads a table as it was at a version.
    pub(crate) async fn snapshot_at(
        &self,
        table: &TableName,
        version: Version,
    ) -> Result<TableSnapshot, LakeError> {
        let number = match version {
            Version::Number(number) => number,
            Version::At(instant) => self.version_at(table, instant).await?,
        };
        let newest = self.open(table).await?.version();
        let location = self.location(table)?;
        let missing = || LakeError::NoVersion {
            table: table.to_string(),
            asked: format!("version {number}"),
            known: format!("the newest is {newest}"),
        };
        if number > newest {
            return Err(missing());
        }
        let version = self.open_at(table, number).await?;
        let engine = self.log_store(table)?.engine(None);
        Ok(snapshot::read(table, location, engine, version).await?)
    }

    /// Finds the newest version at an instant: by the commit's own time where it has one, else by
    /// when its file was written.
    async fn version_at(&self, table: &TableName, at: Instant) -> Result<u64, LakeError> {
        let times = self.commit_times(table).await?;
        let newest = times.first().copied();
        let missing = |known: String| LakeError::NoVersion {
            table: table.to_string(),
            asked: format!("a version at {}", at.to_rfc3339()),
            known,
        };
        match newest {
            Some((_, time)) if time < at.epoch_ms() => Err(missing(format!(
                "[DELTA_TIMESTAMP_GREATER_THAN_COMMIT] the newest is of {}",
                Instant::from_epoch_ms(time).to_rfc3339()
            ))),
            _ => times
                .iter()
                .find(|(_, time)| *time <= at.epoch_ms())
                .map(|(version, _)| *version)
                .ok_or_else(|| {
                    missing(
                        "[DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION] the log begins later"
                            .to_owned(),
                    )
                }),
        }
    }

    /// Reads the columns of a version.
    pub(crate) async fn schema_at(
        &self,
        table: &TableName,
        version: u64,
    ) -> Result<SchemaRef, LakeFault> {
        let version = self.open_at(table, version).await?;
        snapshot::schema(table, self.location(table)?, &version)
    }

    /// Opens a table at a version, without its files.
    async fn open_at(&self, table: &TableName, version: u64) -> Result<SnapshotRef, LakeFault> {
        self.read_log(table, move |engine, root| kernel::snapshot(engine, root, version)).await
    }

    /// Opens a table at its newest version, without its files.
    pub(crate) async fn open(&self, table: &TableName) -> Result<SnapshotRef, LakeFault> {
        let location = self.location(table)?;
        // A local folder that is missing is no storage that may answer later.
        if location.to_file_path().is_ok_and(|path| !path.exists()) {
            return Err(LakeFault::UnknownTable {
                table: table.to_string(),
                known: format!("there is nothing at {location}"),
            });
        }
        self.read_log(table, kernel::newest).await
    }

    async fn read_log(
        &self,
        table: &TableName,
        read: impl FnOnce(&dyn Engine, Url) -> DeltaResult<SnapshotRef> + Send + 'static,
    ) -> Result<SnapshotRef, LakeFault> {
        let location = self.location(table)?;
        let root = kernel::folder(location);
        let engine = self.log_store(table)?.engine(None);
        kernel::blocking(engine, move |engine| read(engine, root)).await.map_err(|error| {
            // The kernel has no variant for it; deltalake tells it by the same text.
            if error.to_string().contains("No files in log segment") {
                LakeFault::UnknownTable {
                    table: table.to_string(),
                    known: format!("{location} holds no Delta table"),
                }
            } else {
                table_fault("read", table, location, error.into())
            }
        })
    }
}

/// Returns a folder's name when it has a log.
async fn table_of(
    store: Arc<dyn ObjectStore>,
    folder: ObjectPath,
) -> object_store::Result<Option<String>> {
    let first = store.list(Some(&folder.clone().join("_delta_log"))).try_next().await?;
    Ok(first.and_then(|_| folder.filename().map(ToOwned::to_owned)))
}

/// Tells a table that makes no sense or asks for too much from storage that does not answer: only
/// there will trying again help.
pub(crate) fn table_fault(
    action: &str,
    table: &TableName,
    location: &Url,
    error: DeltaTableError,
) -> LakeFault {
    let (name, place) = (table.to_string(), location.to_string());
    if is_damaged(&error) {
        LakeFault::Damaged { table: name, location: place, source: error.into() }
    } else if is_unsupported(&error) {
        LakeFault::Unsupported { table: name, location: place, source: error.into() }
    } else {
        storage_fault(action, table, location, error)
    }
}

fn is_damaged(error: &DeltaTableError) -> bool {
    match error {
        DeltaTableError::KernelError(error) => is_damage(error),
        DeltaTableError::InvalidJsonLog { .. } => true,
        _ => false,
    }
}

fn is_unsupported(error: &DeltaTableError) -> bool {
    match error {
        DeltaTableError::KernelError(error) => is_refusal(error),
        DeltaTableError::Transaction { source } => {
            matches!(source, TransactionError::UnsupportedTableFeatures(_))
        }
        _ => false,
    }
}

fn is_refusal(error: &delta_kernel::Error) -> bool {
    use delta_kernel::Error;
    match error {
        Error::Backtraced { source, .. } => is_refusal(source),
        Error::Unsupported(_) => true,
        _ => false,
    }
}

fn is_damage(error: &delta_kernel::Error) -> bool {
    use delta_kernel::Error;
    match error {
        Error::Backtraced { source, .. } => is_damage(source),
        Error::Generic(text) => text.starts_with("Expected contiguous commit files"),
        Error::Arrow(ArrowError::JsonError(_))
        | Error::MalformedJson(_)
        | Error::MissingMetadata
        | Error::MissingProtocol
        | Error::MissingMetadataAndProtocol
        | Error::InvalidProtocol(_)
        | Error::InvalidCheckpoint(_)
        | Error::Arrow(ArrowError::ParquetError(_)) => true,
        Error::Parquet(error) => is_corrupt(error),
        _ => false,
    }
}

/// Parquet's errors about content; what storage answers comes as an external one.
fn is_corrupt(error: &ParquetError) -> bool {
    matches!(error, ParquetError::General(_) | ParquetError::EOF(_))
}

/// Tells whether an engine's failure lies in a table's own files: one is missing or is no Parquet.
pub(crate) fn is_of_files(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&cause| cause.source()).any(|cause| {
        let missing = cause.downcast_ref::<object_store::Error>();
        matches!(missing, Some(object_store::Error::NotFound { .. }))
            || cause.downcast_ref::<ParquetError>().is_some_and(is_corrupt)
            || matches!(cause.downcast_ref(), Some(ArrowError::ParquetError(_)))
    })
}

pub(crate) fn storage_fault(
    action: &str,
    table: &TableName,
    location: &Url,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> LakeFault {
    LakeFault::Storage {
        action: action.to_owned(),
        table: table.to_string(),
        location: location.to_string(),
        source: source.into(),
    }
}

/// A URL that is refused may be because it holds what nobody should read.
fn without_secrets(url: &Url) -> String {
    let mut shown = url.clone();
    if shown.password().is_some() {
        // Only URLs without a host refuse a password, and they cannot have one.
        let _ = shown.set_password(Some("***"));
    }
    if shown.query().is_some() {
        shown.set_query(Some("***"));
    }
    shown.to_string()
}

/// Reads a table's location: a URL as it stands, anything else as a path.
pub(crate) fn parse_location(location: &str) -> Result<Url, LakeError> {
    let fail = |reason: String| LakeError::Location { location: location.to_owned(), reason };
    if location.contains("://") {
        let url = Url::parse(location).map_err(|error| fail(error.to_string()))?;
        return match location_refusal(&url) {
            None => Ok(url),
            Some(reason) => Err(LakeError::Location { location: without_secrets(&url), reason }),
        };
    }
    let path = std::path::absolute(location).map_err(|error| fail(error.to_string()))?;
    Url::from_directory_path(&path).map_err(|()| fail("the path is not absolute".to_owned()))
}
