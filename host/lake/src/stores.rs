//! Which object store holds a location, and with which options it is reached.
//!
//! A store belongs to a *place*: scheme and bucket, or container and account. It is built once and
//! shared by all tables there, so that connections are. The options have object_store's names; that
//! crate speaks S3, Azure and Google itself, and all three can put an object only if it is absent.
//!
//! deltalake and the engine know stores by scheme and host and leave out the user of a URL, in which
//! Azure has the container; [`Stores::log_store`] therefore moves the container into the host.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use deltalake::logstore::{LogStoreRef, StorageConfig, default_logstore, logstore_for};
use object_store::{
    BackoffConfig, ClientConfigKey, Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    azure::{AzureConfigKey, MicrosoftAzureBuilder},
    gcp::{GoogleCloudStorageBuilder, GoogleConfigKey},
    memory::InMemory,
    path::Path,
    prefix::PrefixStore,
};
use url::{Position, Url};
use uuid::Uuid;

use crate::guarded::{Guarded, Secrets, StoreError, StoreProblem, told};

/// Schemes of locations.
pub(crate) const SCHEMES: [&str; 8] = ["file", "s3", "s3a", "gs", "abfss", "abfs", "az", "memory"];

/// How often a request is sent again after a connection or the server failed.
const RETRIES: usize = 6;
/// How long after its first attempt a request is no longer sent again: who waits is a person.
const RETRY_SPAN: Duration = Duration::from_secs(20);
/// Longest wait between two attempts.
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// Folder of a table in which a store shows that it keeps conditional puts. Readers pass by what
/// begins with `_`.
const TRIALS: &str = "_lakebed_put_if_absent";

/// Options of object stores: of all, and of single buckets or containers. Later ones win.
#[derive(Clone, Default)]
pub struct StoreOptions(Vec<StoreOption>);

#[derive(Clone)]
struct StoreOption {
    /// Where it holds, as [`place_of`] spells it; everywhere by default.
    place: Option<String>,
    name: String,
    value: String,
}

/// Options hold secrets: only their names are shown.
impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|option| (option.place.as_deref(), option.name.as_str()));
        f.debug_list().entries(names).finish()
    }
}

/// Why an option of an object store cannot be set.
#[derive(Debug, thiserror::Error)]
pub enum OptionRefusal {
    /// No store has it.
    #[error("there is no such option of an object store")]
    Unknown {
        /// Common options, one of which may be meant.
        known: &'static [&'static str],
    },
    /// The place is none.
    #[error(
        "options belong to a bucket or a container, such as `s3://logs` or \
         `abfss://lake@account.dfs.core.windows.net`, without a path"
    )]
    Place,
}

/// What is set most often, to guess at what was meant.
const COMMON: &[&str] = &[
    "allow_http",
    "aws_access_key_id",
    "aws_conditional_put",
    "aws_endpoint",
    "aws_region",
    "aws_secret_access_key",
    "aws_session_token",
    "aws_skip_signature",
    "aws_virtual_hosted_style_request",
    "azure_client_id",
    "azure_client_secret",
    "azure_endpoint",
    "azure_storage_account_key",
    "azure_storage_account_name",
    "azure_storage_sas_token",
    "azure_tenant_id",
    "azure_use_emulator",
    "connect_timeout",
    "google_application_credentials",
    "google_base_url",
    "google_service_account",
    "google_service_account_key",
    "google_skip_signature",
    "proxy_url",
    "timeout",
];

impl StoreOptions {
    /// Sets an option everywhere, or in one bucket or container.
    ///
    /// # Errors
    /// Fails when no store has such an option, or the place is no bucket or container.
    pub fn set(
        &mut self,
        place: Option<&str>,
        name: &str,
        value: &str,
    ) -> Result<(), OptionRefusal> {
        let place = match place {
            None => None,
            Some(place) => {
                let url = Url::parse(place).map_err(|_| OptionRefusal::Place)?;
                let is_place = is_remote(&url) && matches!(url.path(), "" | "/");
                Some(is_place.then(|| place_of(&url)).ok_or(OptionRefusal::Place)?)
            }
        };
        if !Self::is_known(name) {
            return Err(OptionRefusal::Unknown { known: COMMON });
        }
        self.0.push(StoreOption { place, name: name.to_owned(), value: value.to_owned() });
        Ok(())
    }

    /// Tells whether some store has an option of a name.
    #[must_use]
    pub fn is_known(name: &str) -> bool {
        name.parse::<AmazonS3ConfigKey>().is_ok()
            || name.parse::<AzureConfigKey>().is_ok()
            || name.parse::<GoogleConfigKey>().is_ok()
    }

    /// Lists what holds in a place: names and values.
    fn of(&self, place: &str) -> Vec<(&str, &str)> {
        let general = self.0.iter().filter(|option| option.place.is_none());
        let special = self.0.iter().filter(|option| option.place.as_deref() == Some(place));
        general.chain(special).map(|option| (option.name.as_str(), option.value.as_str())).collect()
    }
}

/// The object stores of a lake.
#[derive(Clone, Default)]
pub(crate) struct Stores {
    options: Arc<StoreOptions>,
    built: Arc<Mutex<BTreeMap<String, BuiltStore>>>,
    /// Places that have shown that they put only what is absent.
    proven: Arc<Mutex<BTreeSet<String>>>,
}

#[derive(Clone)]
struct BuiltStore {
    store: Arc<dyn ObjectStore>,
    /// Whether its conditional put must be seen to be believed.
    is_doubtful: bool,
}

impl fmt::Debug for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stores").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Stores {
    pub(crate) fn new(options: StoreOptions) -> Self {
        Self { options: Arc::new(options), ..Self::default() }
    }

    /// Returns the store of a place, whose paths begin at the bucket's or container's root.
    pub(crate) fn root(&self, location: &Url) -> Result<Arc<dyn ObjectStore>, Error> {
        Ok(self.built(location)?.store)
    }

    fn built(&self, location: &Url) -> Result<BuiltStore, Error> {
        let place = place_of(location);
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = built.get(&place) {
            return Ok(store.clone());
        }
        let store = build(location.scheme(), &place, &self.options.of(&place))?;
        built.insert(place, store.clone());
        Ok(store)
    }

    /// Opens a table's storage without reading anything.
    pub(crate) fn log_store(
        &self,
        location: &Url,
    ) -> Result<LogStoreRef, deltalake::DeltaTableError> {
        let config = StorageConfig::default();
        if location.scheme() == "file" {
            return logstore_for(location, config);
        }
        let root = self.root(location)?;
        let folder = Path::from_url_path(location.path()).map_err(Error::from)?;
        let prefixed = Arc::new(PrefixStore::new(Arc::clone(&root), folder));
        Ok(default_logstore(prefixed, root, &with_container_in_host(location), &config))
    }

    /// Makes sure that a place puts only what is absent: without that, two writers of one version
    /// would both believe that theirs is in the log.
    ///
    /// Where an endpoint is configured the server may be of any kind, so it is tried once per process:
    /// of two conditional puts of one object in the table's folder the second must be refused.
    pub(crate) async fn ensure_put_if_absent(&self, location: &Url) -> Result<(), PutRefusal> {
        if location.scheme() == "file" {
            return Ok(());
        }
        let BuiltStore { store, is_doubtful } = self.built(location)?;
        let place = place_of(location);
        let is_proven =
            || self.proven.lock().unwrap_or_else(PoisonError::into_inner).contains(&place);
        if !is_doubtful || is_proven() {
            return Ok(());
        }
        let folder = Path::from_url_path(location.path()).map_err(Error::from)?;
        let trial = folder.join(TRIALS).join(Uuid::new_v4().to_string());
        let verdict = try_put_if_absent(store.as_ref(), &trial).await;
        if let Err(error) = store.delete(&trial).await {
            tracing::debug!(%trial, %error, "trial of the conditional put not deleted");
        }
        verdict?;
        self.proven.lock().unwrap_or_else(PoisonError::into_inner).insert(place);
        Ok(())
    }

    /// Puts a store in a place, for tests.
    #[cfg(test)]
    pub(crate) fn insert(&self, location: &Url, store: Arc<dyn ObjectStore>, is_doubtful: bool) {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        built.insert(place_of(location), BuiltStore { store, is_doubtful });
    }
}

/// Why nothing is committed in a place.
#[derive(Debug)]
pub(crate) enum PutRefusal {
    /// Its conditional put is none.
    Unsafe(String),
    /// It could not be tried.
    Failed(Error),
}

impl From<Error> for PutRefusal {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

async fn try_put_if_absent(store: &dyn ObjectStore, trial: &Path) -> Result<(), PutRefusal> {
    let put = || store.put_opts(trial, "trial".into(), PutOptions::from(PutMode::Create));
    let refusal = |error: Error| match crate::guarded::store_problem(&error) {
        Some(StoreProblem::Unsupported) => {
            PutRefusal::Unsafe(format!("it does not know it: {error}"))
        }
        _ => PutRefusal::Failed(error),
    };
    match put().await {
        Ok(_) => {}
        // Sent again after its answer was lost.
        Err(Error::AlreadyExists { .. }) => return Ok(()),
        Err(error) => return Err(refusal(error)),
    }
    match put().await {
        Ok(_) => Err(PutRefusal::Unsafe(
            "of two conditional puts of one object it accepted both".to_owned(),
        )),
        Err(Error::AlreadyExists { .. }) => Ok(()),
        Err(error) => Err(refusal(error)),
    }
}

/// Tells whether a location lies in an object store.
pub(crate) fn is_remote(location: &Url) -> bool {
    location.scheme() != "file" && SCHEMES.contains(&location.scheme())
}

/// Says why a URL is no location; `None` for one that is.
pub(crate) fn location_refusal(location: &Url) -> Option<String> {
    let scheme = location.scheme();
    if !SCHEMES.contains(&scheme) {
        return Some(format!(
            "there is no storage `{scheme}://`, expected one of {}",
            SCHEMES.map(|known| format!("{known}://")).join(", ")
        ));
    }
    if !is_remote(location) {
        return None;
    }
    if location.password().is_some() {
        return Some("a URL must not hold a password: use [storage] in lakebed.toml".to_owned());
    }
    if location.query().is_some() || location.fragment().is_some() {
        return Some("a URL of a table has no `?` and no `#`: write %3F or %23".to_owned());
    }
    if scheme != "memory" && location.host_str().is_none_or(str::is_empty) {
        return Some("the URL names no bucket".to_owned());
    }
    if !location.username().is_empty() && !matches!(scheme, "abfss" | "abfs" | "az") {
        return Some("only a URL of Azure has a name before `@`: its container".to_owned());
    }
    None
}

/// Returns scheme and authority.
fn place_of(location: &Url) -> String {
    location[..Position::BeforePath].to_owned()
}

/// Moves the container of a URL of Azure from before the host into it; other URLs stay.
pub(crate) fn with_container_in_host(location: &Url) -> Url {
    let container = location.username();
    let host = location.host_str().filter(|_| !container.is_empty());
    let moved = host.and_then(|host| {
        let text = format!("{}://{container}.{host}{}", location.scheme(), location.path());
        Url::parse(&text).ok()
    });
    moved.unwrap_or_else(|| location.clone())
}

fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig { max_backoff: BACKOFF_MAX, ..BackoffConfig::default() },
        max_retries: RETRIES,
        retry_timeout: RETRY_SPAN,
    }
}

fn build(scheme: &str, place: &str, options: &[(&str, &str)]) -> Result<BuiltStore, Error> {
    let secrets = Secrets::of(options.iter().copied());
    let (store, is_doubtful): Built = match scheme {
        "memory" => return Ok(BuiltStore { store: Arc::new(InMemory::new()), is_doubtful: false }),
        "s3" | "s3a" => s3(place, options),
        "gs" => google(place, options),
        _ => azure(place, options),
    };
    match store {
        Ok(store) => Ok(BuiltStore { store: Arc::new(Guarded::new(store, secrets)), is_doubtful }),
        Err(error) => Err(unusable(&secrets, error)),
    }
}

/// A store that cannot even be set up has an option that makes no sense.
fn unusable(secrets: &Secrets, error: Error) -> Error {
    let (store, source) = match told(secrets, error) {
        Error::Generic { store, source } => (store, source),
        error => return error,
    };
    match source.downcast::<StoreError>() {
        Ok(mut source) => {
            source.problem = Some(StoreProblem::Options);
            Error::Generic { store, source }
        }
        Err(source) => Error::Generic { store, source },
    }
}

type Built = (Result<Arc<dyn ObjectStore>, Error>, bool);

fn s3(place: &str, options: &[(&str, &str)]) -> Built {
    use AmazonS3ConfigKey as Key;
    let mut set = parsed::<Key>(options);
    // A token of another key would break the signature.
    drop_earlier(&mut set, Key::Token, Key::AccessKeyId);
    // object_store prefers it whichever came last.
    drop_earlier(&mut set, Key::S3Endpoint, Key::Endpoint);
    let is_set = |key: Key| set.iter().any(|(option, _)| *option == key);
    let is_plain = set.iter().any(|(key, value)| {
        matches!(key, Key::Endpoint | Key::S3Endpoint) && value.starts_with("http://")
    });
    let mut builder = AmazonS3Builder::new().with_url(place).with_retry(retries());
    if is_plain && !is_set(Key::Client(ClientConfigKey::AllowHttp)) {
        builder = builder.with_allow_http(true);
    }
    builder =
        set.into_iter().fold(builder, |builder, (key, value)| builder.with_config(key, value));
    let endpoint = [Key::S3Endpoint, Key::Endpoint];
    let endpoint = endpoint.iter().find_map(|key| builder.get_config_value(key));
    let put = builder.get_config_value(&Key::ConditionalPut);
    let is_doubtful = endpoint.is_some_and(|endpoint| !is_of_amazon(&endpoint))
        || put.is_some_and(|put| put.trim().eq_ignore_ascii_case("disabled"));
    (builder.build().map(|store| Arc::new(store) as Arc<dyn ObjectStore>), is_doubtful)
}

/// Drops an option that was set before another one.
fn drop_earlier(
    set: &mut Vec<(AmazonS3ConfigKey, String)>,
    dropped: AmazonS3ConfigKey,
    by: AmazonS3ConfigKey,
) {
    let last = set.iter().rposition(|(key, _)| *key == by).unwrap_or(0);
    let kept = set.drain(..).enumerate().filter(|(at, (key, _))| *key != dropped || *at > last);
    let kept: Vec<_> = kept.map(|(_, option)| option).collect();
    *set = kept;
}

fn is_of_amazon(endpoint: &str) -> bool {
    let host = Url::parse(endpoint).ok().and_then(|url| url.host_str().map(ToOwned::to_owned));
    host.is_some_and(|host| host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn"))
}

fn google(place: &str, options: &[(&str, &str)]) -> Built {
    let builder = GoogleCloudStorageBuilder::new().with_url(place).with_retry(retries());
    let builder = parsed(options)
        .into_iter()
        .fold(builder, |builder, (key, value)| builder.with_config(key, value));
    let is_doubtful = builder.get_config_value(&GoogleConfigKey::BaseUrl).is_some();
    (builder.build().map(|store| Arc::new(store) as Arc<dyn ObjectStore>), is_doubtful)
}

fn azure(place: &str, options: &[(&str, &str)]) -> Built {
    use AzureConfigKey as Key;
    let set = parsed::<Key>(options);
    let is_set = |key: Key| set.iter().any(|(option, _)| *option == key);
    let is_plain =
        set.iter().any(|(key, value)| *key == Key::Endpoint && value.starts_with("http://"));
    let mut builder = MicrosoftAzureBuilder::new().with_url(place).with_retry(retries());
    if is_plain && !is_set(Key::Client(ClientConfigKey::AllowHttp)) {
        builder = builder.with_allow_http(true);
    }
    let is_doubtful = is_set(Key::Endpoint) || is_set(Key::UseEmulator);
    builder =
        set.into_iter().fold(builder, |builder, (key, value)| builder.with_config(key, value));
    (builder.build().map(|store| Arc::new(store) as Arc<dyn ObjectStore>), is_doubtful)
}

/// Keeps the options that one kind of store has.
fn parsed<K: FromStr>(options: &[(&str, &str)]) -> Vec<(K, String)> {
    options
        .iter()
        .filter_map(|(name, value)| Some((name.parse().ok()?, (*value).to_owned())))
        .collect()
}
