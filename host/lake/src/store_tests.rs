//! A lake on object stores that fail in every way a commit can: the store under them is in memory.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex},
};

use arrow::{
    array::{AsArray, Int64Array, RecordBatch},
    datatypes::{DataType, Field, Int64Type, Schema},
};
use async_trait::async_trait;
use futures::{TryStreamExt, stream::BoxStream};
use lakebed_layout::{FileSizing, Lake, LakeFault, OptimizeOptions, optimize};
use lakebed_model::{Bytes, Instant, TableName};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    memory::InMemory, path::Path,
};
use url::Url;

use crate::{
    DeltaLake, LakeError, LakeOptions, NewTable, StoreOptions, StoreProblem,
    guarded::{Guarded, Secrets, store_problem},
    stores::{Stores, location_refusal},
    tables::parse_location,
};

const LOCATION: &str = "memory://bucket/lake/a%20table";
const NOW: Instant = Instant::from_epoch_ms(1_796_000_000_000);

/// What becomes of the next conditional put of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    /// It is written and its answer lost.
    TimeoutAfterWrite,
    /// It is written, its answer lost, and it is sent again by the client below.
    ExistsAfterWrite,
    /// It is not written, and its answer lost.
    Timeout,
    /// Two requests meet: the server writes neither and says so.
    Conflict,
    /// The condition is not looked at.
    Unconditional,
    /// The server does not know the condition.
    Unknown,
}

/// A store in memory whose conditional puts have fates; the last one lasts.
#[derive(Debug)]
struct Fateful {
    inner: InMemory,
    fates: Mutex<VecDeque<Fate>>,
}

impl fmt::Display for Fateful {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fateful")
    }
}

impl Fateful {
    fn next_fate(&self) -> Fate {
        let mut fates = self.fates.lock().unwrap();
        if fates.len() > 1 { fates.pop_front().unwrap() } else { fates[0] }
    }

    fn set(&self, fates: &[Fate]) {
        *self.fates.lock().unwrap() = fates.iter().copied().collect();
    }

    async fn keys(&self) -> Vec<String> {
        let objects: Vec<_> = self.inner.list(None).try_collect().await.unwrap();
        objects.into_iter().map(|object| object.location.to_string()).collect()
    }
}

fn generic(text: &str) -> Error {
    Error::Generic { store: "Fateful", source: text.into() }
}

fn exists(path: &Path) -> Error {
    Error::AlreadyExists { path: path.to_string(), source: "412".into() }
}

#[async_trait]
impl ObjectStore for Fateful {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        if options.mode != PutMode::Create {
            return self.inner.put_opts(location, payload, options).await;
        }
        let write = || self.inner.put_opts(location, payload.clone(), options.clone());
        match self.next_fate() {
            Fate::Kept => write().await,
            Fate::TimeoutAfterWrite => write().await.and(Err(generic("operation timed out"))),
            Fate::ExistsAfterWrite => write().await.and(Err(exists(location))),
            Fate::Timeout => Err(generic("operation timed out")),
            Fate::Conflict => Err(exists(location)),
            Fate::Unconditional => {
                self.inner.put_opts(location, payload, PutOptions::from(PutMode::Overwrite)).await
            }
            Fate::Unknown => Err(Error::NotImplemented {
                operation: "put_opts".to_owned(),
                implementer: self.to_string(),
            }),
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// Makes a lake whose only bucket has a fate.
fn fateful(is_doubtful: bool) -> (DeltaLake, Arc<Fateful>) {
    let store = Arc::new(Fateful {
        inner: InMemory::new(),
        fates: Mutex::new(VecDeque::from([Fate::Kept])),
    });
    let lake = DeltaLake::new(LakeOptions::default()).unwrap();
    let guarded = Arc::new(Guarded::new(Arc::clone(&store) as _, Secrets::default()));
    lake.stores().insert(&Url::parse(LOCATION).unwrap(), guarded, is_doubtful);
    (lake, store)
}

fn numbers(from: i64) -> RecordBatch {
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
    let column = Int64Array::from_iter_values(from..from + 10);
    RecordBatch::try_new(schema, vec![Arc::new(column)]).unwrap()
}

fn new_table() -> NewTable {
    NewTable {
        name: table(),
        location: LOCATION.to_owned(),
        schema: numbers(0).schema(),
        cluster_by: vec!["a".to_owned()],
        ..NewTable::default()
    }
}

fn table() -> TableName {
    TableName::new("t")
}

async fn count_and_sum(lake: &DeltaLake) -> (i64, i64) {
    let answer = lake.session().run("SELECT count(*), sum(a) FROM t").await.unwrap();
    let value = |at: usize| answer.batches[0].column(at).as_primitive::<Int64Type>().value(0);
    (value(0), value(1))
}

fn optimize_options() -> OptimizeOptions {
    OptimizeOptions {
        full: true,
        default_file_size: FileSizing::Fixed(Bytes(16 << 20)),
        settings: lakebed_layout::ClusteringSettings::default(),
        now: NOW,
    }
}

/// Appends under fates and says what the table holds then and how many data files lie there.
async fn append_under(fates: &[Fate]) -> (std::result::Result<u64, LakeError>, (i64, i64), usize) {
    let (mut lake, store) = fateful(false);
    lake.create_table(new_table(), vec![vec![numbers(0)]], None, NOW).await.unwrap();
    store.set(fates);
    let appended = lake.append(&table(), vec![numbers(100)], NOW).await;
    store.set(&[Fate::Kept]);
    let is_data = |key: &&String| key.ends_with(".parquet");
    let files = store.keys().await.iter().filter(is_data).count();
    (appended, count_and_sum(&lake).await, files)
}

const BEFORE: (i64, i64) = (10, 45);
const AFTER: (i64, i64) = (20, 45 + 1045);

#[tokio::test]
async fn a_commit_that_arrived_counts_once_whatever_its_answer_was() {
    for fate in [Fate::TimeoutAfterWrite, Fate::ExistsAfterWrite] {
        let (appended, rows, files) = append_under(&[fate, Fate::Kept]).await;
        assert_eq!((appended.unwrap(), rows, files), (1, AFTER, 2), "{fate:?}");
    }
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_put_again() {
    let (appended, rows, files) = append_under(&[Fate::Timeout, Fate::Kept]).await;
    assert_eq!((appended.unwrap(), rows, files), (1, AFTER, 2));
}

/// It may still arrive, and then its files must be there; until then VACUUM takes them for orphans.
#[tokio::test]
async fn a_commit_without_an_answer_leaves_its_files() {
    let (appended, rows, files) = append_under(&[Fate::Timeout]).await;
    let error = appended.unwrap_err();
    assert!(matches!(error, LakeError::Layout(_)), "{error}");
    assert_eq!((rows, files), (BEFORE, 2));
}

#[tokio::test]
async fn a_conflict_without_a_winner_is_tried_again() {
    let (appended, rows, files) = append_under(&[Fate::Conflict, Fate::Conflict, Fate::Kept]).await;
    assert_eq!((appended.unwrap(), rows, files), (1, AFTER, 2));
}

#[tokio::test]
async fn a_table_whose_first_answer_was_lost_is_created_once() {
    for fate in [Fate::TimeoutAfterWrite, Fate::ExistsAfterWrite] {
        let (mut lake, store) = fateful(false);
        store.set(&[fate, Fate::Kept]);
        let created = lake.create_table(new_table(), vec![vec![numbers(0)]], None, NOW).await;
        assert_eq!(created.unwrap(), 0, "{fate:?}");
        assert_eq!(count_and_sum(&lake).await, BEFORE, "{fate:?}");
    }
}

#[tokio::test]
async fn a_store_that_does_not_keep_conditional_puts_gets_no_file() {
    for (fates, reason) in
        [(&[Fate::Unconditional][..], "accepted both"), (&[Fate::Unknown], "does not know it")]
    {
        let (mut lake, store) = fateful(true);
        store.set(fates);
        let refused = lake.create_table(new_table(), vec![vec![numbers(0)]], None, NOW).await;
        let error = refused.unwrap_err();
        assert!(matches!(error, LakeError::Fault(LakeFault::UnsafeCommit { .. })), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(store.keys().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_store_that_keeps_them_is_tried_once_and_cleaned_up() {
    let (mut lake, store) = fateful(true);
    lake.create_table(new_table(), vec![vec![numbers(0)]], None, NOW).await.unwrap();
    // From here on the fate would be found out.
    store.set(&[Fate::Conflict, Fate::Kept]);
    lake.append(&table(), vec![numbers(100)], NOW).await.unwrap();
    assert_eq!(count_and_sum(&lake).await, AFTER);
    let keys = store.keys().await;
    assert!(!keys.iter().any(|key| key.contains("_lakebed_put_if_absent")), "{keys:?}");
}

#[tokio::test]
async fn two_lakes_on_one_bucket_see_one_log() {
    let (mut first, _store) = fateful(false);
    first.create_table(new_table(), vec![vec![numbers(0)]], None, NOW).await.unwrap();
    let second = first.clone();
    for round in 0..5 {
        let table = table();
        let (one, other) = tokio::join!(
            first.append(&table, vec![numbers(0)], NOW),
            second.append(&table, vec![numbers(0)], NOW),
        );
        assert_ne!(one.unwrap(), other.unwrap(), "round {round}");
    }
    assert_eq!(count_and_sum(&second).await, (110, 11 * 45));
    let report = optimize(&first, &first, &table(), &optimize_options()).await.unwrap();
    assert_eq!((report.version, report.bins[0].files_out), (11, 1));
    assert_eq!(count_and_sum(&second).await, (110, 11 * 45));
    let options = lakebed_layout::vacuum::VacuumOptions {
        retain: Some(std::time::Duration::ZERO),
        retention_check: false,
        dry_run: false,
        // Files of a store in memory are dated by the machine's clock.
        now: Instant::from_epoch_ms(4_102_444_800_000),
    };
    let vacuumed = second.vacuum(&table(), &options).await.unwrap();
    assert_eq!(vacuumed.files.len(), 11);
    assert_eq!(count_and_sum(&first).await, (110, 11 * 45));
    assert_eq!(first.snapshot(&table()).await.unwrap().files.len(), 1);
}

#[tokio::test]
async fn a_lakes_folder_in_a_bucket_lists_its_tables() {
    let (mut lake, store) = fateful(false);
    for name in ["plain", "with space", "50%", "_hidden"] {
        let mut location = Url::parse("memory://bucket/lake").unwrap();
        location.path_segments_mut().unwrap().push(name);
        let new =
            NewTable { name: TableName::new(name), location: location.to_string(), ..new_table() };
        lake.create_table(new, vec![vec![numbers(0)]], None, NOW).await.unwrap();
    }
    store
        .inner
        .put_opts(&Path::from("lake/no_table/file"), "x".into(), PutOptions::default())
        .await
        .unwrap();
    let mut opened = DeltaLake::new(LakeOptions::default()).unwrap();
    opened.stores().insert(&Url::parse(LOCATION).unwrap(), store as _, false);
    assert_eq!(opened.add_lake("memory://bucket/lake/").await.unwrap(), 3);
    let names: Vec<&str> = opened.names().map(TableName::as_str).collect();
    assert_eq!(names, ["50%", "plain", "with space"]);
    for name in names.iter().map(|name| TableName::new(*name)) {
        assert_eq!(opened.snapshot(&name).await.unwrap().rows(), Some(10), "{name}");
    }
}

#[test]
fn locations_that_are_none_are_refused_without_their_secrets() {
    #[track_caller]
    fn check(location: &str, expected: &str) {
        assert_eq!(parse_location(location).unwrap_err().to_string(), expected);
    }
    check(
        "hdfs://name/t",
        "open lake at `hdfs://name/t`: there is no storage `hdfs://`, expected one of file://, s3://, s3a://, gs://, abfss://, abfs://, az://, memory://",
    );
    check(
        "s3://key:verysecret@bucket/t",
        "open lake at `s3://key:***@bucket/t`: a URL must not hold a password: use [storage] in lakebed.toml",
    );
    check(
        "abfss://lake@account.dfs.core.windows.net/t?sig=verysecret",
        "open lake at `abfss://lake@account.dfs.core.windows.net/t?***`: a URL of a table has no `?` and no `#`: write %3F or %23",
    );
    check("s3:///t", "open lake at `s3:///t`: the URL names no bucket");
    check(
        "s3://someone@bucket/t",
        "open lake at `s3://someone@bucket/t`: only a URL of Azure has a name before `@`: its container",
    );
    for location in ["s3://b/t", "gs://b", "abfss://c@a.dfs.core.windows.net/t", "memory:///t"] {
        assert_eq!(location_refusal(&Url::parse(location).unwrap()), None, "{location}");
    }
}

#[test]
fn containers_of_one_account_are_different_stores() {
    let mut options = StoreOptions::default();
    options.set(None, "azure_storage_account_key", "c2VjcmV0LW9mLWEtdGVzdA==").unwrap();
    let stores = Stores::new(options);
    let host = |location: &str| {
        let store = stores.log_store(&Url::parse(location).unwrap()).unwrap();
        store.root_url().host_str().map(ToOwned::to_owned)
    };
    assert_eq!(
        host("abfss://one@account.dfs.core.windows.net/t"),
        Some("one.account.dfs.core.windows.net".to_owned())
    );
    assert_ne!(
        host("abfss://one@account.dfs.core.windows.net/t"),
        host("abfss://two@account.dfs.core.windows.net/t")
    );
}

#[test]
fn the_kernel_knows_a_container_by_its_host() {
    let folder = |location: &str| crate::kernel::folder(&Url::parse(location).unwrap()).to_string();
    assert_eq!(
        folder("abfss://one@account.dfs.core.windows.net/a%20b"),
        "abfss://one.account.dfs.core.windows.net/a%20b/"
    );
    assert_eq!(folder("s3://bucket"), "s3://bucket/");
    assert_eq!(folder("file:///lake/t"), "file:///lake/t/");
}

#[test]
fn options_are_those_of_a_store_and_hide_their_values() {
    let mut options = StoreOptions::default();
    for name in ["aws_endpoint", "azure_storage_account_key", "google_base_url", "timeout"] {
        options.set(None, name, "verysecret").unwrap();
    }
    options.set(Some("s3://logs"), "aws_region", "verysecret").unwrap();
    options.set(Some("s3://logs/"), "aws_region", "verysecret").unwrap();
    assert!(options.set(None, "aws_regoin", "x").is_err());
    for place in ["logs", "s3://logs/a", "file:///logs", "https://logs"] {
        assert!(options.set(Some(place), "aws_region", "x").is_err(), "{place}");
    }
    assert!(!format!("{options:?}").contains("verysecret"));
}

#[test]
fn an_options_value_that_makes_no_sense_is_a_fault_of_the_options() {
    let mut options = StoreOptions::default();
    options.set(None, "aws_skip_signature", "perhaps").unwrap();
    let error = Stores::new(options).root(&Url::parse("s3://logs/t").unwrap()).unwrap_err();
    assert_eq!(store_problem(&error), Some(StoreProblem::Options));
    assert!(error.to_string().contains("perhaps"), "{error}");
}

/// Turns a server's answer into the error that a user sees.
#[track_caller]
fn tell(
    kind: fn(Box<dyn std::error::Error + Send + Sync>) -> Error,
    text: &str,
) -> (String, Option<StoreProblem>) {
    let secrets = [("aws_secret_access_key", "verysecret"), ("proxy_url", "http://me:pass@proxy")];
    let error = crate::guarded::told(&Secrets::of(secrets.into_iter()), kind(text.into()));
    (error.to_string(), store_problem(&error))
}

#[test]
fn errors_are_one_line_without_queries_and_secrets() {
    let generic = |source| Error::Generic { store: "S3", source };
    assert_eq!(
        tell(
            generic,
            "Error performing GET https://host/bucket?list-type=2&sig=abc in 1s - Server returned non-2xx status code: 403 Forbidden: <?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code><Message>Not you: verysecret\n</Message></Error>"
        ).0,
        "Generic S3 error: Error performing GET https://host/bucket in 1s - Server returned non-2xx status code: 403 Forbidden: AccessDenied: Not you: ***"
    );
    assert_eq!(
        tell(generic, "through me:pass@proxy with X-Amz-Signature=abc&b").0,
        "Generic S3 error: through ***@proxy with X-Amz-Signature=***&b"
    );
}

#[test]
fn what_is_wrong_is_told_by_the_servers_words() {
    let generic = |source| Error::Generic { store: "S3", source };
    let not_found = |source| Error::NotFound { path: "t".to_owned(), source };
    let denied = |source| Error::PermissionDenied { path: "t".to_owned(), source };
    let bucket = "status code: 404: <Error><Code>NoSuchBucket</Code></Error>";
    assert_eq!(tell(not_found, bucket).1, Some(StoreProblem::NoBucket));
    assert_eq!(tell(not_found, "status code: 404: <Error><Code>NoSuchKey</Code></Error>").1, None);
    assert_eq!(tell(denied, "status code: 403").1, Some(StoreProblem::Denied));
    let region = "Received redirect without LOCATION, this normally indicates an incorrectly configured region";
    assert_eq!(tell(generic, region).1, Some(StoreProblem::OtherRegion));
    let metadata = "Error performing PUT http://169.254.169.254/latest/api/token";
    assert_eq!(tell(generic, metadata).1, Some(StoreProblem::NoCredentials));
    assert_eq!(
        tell(generic, "status code: 501 Not Implemented").1,
        Some(StoreProblem::Unsupported)
    );
    assert_eq!(tell(generic, "status code: 503 Slow Down").1, None);
}
