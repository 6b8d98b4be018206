//! An object store whose errors say what is wrong, and tell no secret.
//!
//! Errors of object stores are long, quote whole answers of the server, and may hold what a request
//! was signed with. [`Guarded`] turns the cause of each into a [`StoreError`]: one line, without
//! secrets, and with a [`StoreProblem`] where it is known who can mend it. The kinds of error that
//! callers go by (not found, exists already, …) stay.

use std::{error::Error as StdError, fmt, sync::Arc};

use async_trait::async_trait;
use futures::{FutureExt, StreamExt, TryStreamExt, stream::BoxStream};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    UploadPart,
    client::{HttpError, HttpErrorKind},
    path::Path,
};

/// Longest text that is quoted of a server's answer.
const QUOTED_CHARS: usize = 300;
/// Where the clouds tell their own machines who they are.
const METADATA: [&str; 5] = [
    "169.254.169.254",
    "169.254.170.2",
    "metadata.google.internal",
    "/latest/api/token",
    "/latest/meta-data/",
];
const HIDDEN: &str = "***";
/// Shortest value of an option that is hidden.
const SECRET_BYTES_MIN: usize = 8;

/// What is wrong with an object store, where trying again does not help or others must act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreProblem {
    /// There is nothing to sign requests with.
    NoCredentials,
    /// The server knows who asks and says no, or does not believe it.
    Denied,
    /// There is no such bucket or container.
    NoBucket,
    /// The bucket lies in another region.
    OtherRegion,
    /// The server does not know what was asked for.
    Unsupported,
    /// An option's value cannot be used.
    Options,
}

/// Why an object store failed, without secrets.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct StoreError {
    pub(crate) problem: Option<StoreProblem>,
    text: String,
}

/// Finds what is wrong with an object store among an error and its causes; `None` where nothing but
/// another try is known to help.
#[must_use]
pub fn store_problem(error: &(dyn StdError + 'static)) -> Option<StoreProblem> {
    causes(error).find_map(|cause| {
        let told = cause.downcast_ref::<StoreError>().and_then(|error| error.problem);
        told.or_else(|| match cause.downcast_ref::<Error>()? {
            Error::NotImplemented { .. } => Some(StoreProblem::Unsupported),
            Error::UnknownConfigurationKey { .. } => Some(StoreProblem::Options),
            _ => None,
        })
    })
}

/// Tells whether an operation failed because an object store did, rather than for what was asked.
#[must_use]
pub fn is_of_storage(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(|cause| {
        let found = cause.downcast_ref::<Error>();
        found.is_some_and(|error| !matches!(error, Error::NotFound { .. }))
    })
}

/// An error and its causes, outermost first; the Delta kernel does not name an object store's error as
/// its own errors' cause.
fn causes<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&cause| within_kernel(cause).or_else(|| cause.source()))
}

fn within_kernel<'e>(cause: &'e (dyn StdError + 'static)) -> Option<&'e (dyn StdError + 'static)> {
    use delta_kernel::Error as Kernel;
    let boxed = || cause.downcast_ref::<Box<Kernel>>().map(AsRef::as_ref);
    match cause.downcast_ref::<Kernel>().or_else(boxed)? {
        Kernel::ObjectStore(error) => Some(error),
        Kernel::Backtraced { source, .. } => Some(source.as_ref()),
        _ => None,
    }
}

/// Texts that no message may show.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Collects the values of options whose names say that they are secret.
    pub(crate) fn of<'o>(options: impl Iterator<Item = (&'o str, &'o str)>) -> Self {
        const WORDS: [&str; 6] = ["secret", "key", "token", "password", "sas", "credential"];
        let mut secrets = Vec::new();
        for (name, value) in options {
            let is_secret = WORDS.iter().any(|word| name.contains(word));
            // Names of keys, paths of files and words such as `true` are none.
            let is_harmless = name.ends_with("_id") || name.ends_with("_file");
            if is_secret && !is_harmless && value.len() >= SECRET_BYTES_MIN {
                secrets.push(value.to_owned());
            }
            secrets.extend(user_of(value).filter(|user| !user.is_empty()).map(ToOwned::to_owned));
        }
        Self(secrets)
    }

    fn hide(&self, text: &str) -> String {
        let text = self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN));
        without_signatures(&text)
    }
}

/// The user and password of a URL.
fn user_of(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    authority.rsplit_once('@').map(|(user, _)| user)
}

/// Hides signatures in the queries of URLs.
fn without_signatures(text: &str) -> String {
    const NAMES: [&str; 4] =
        ["sig=", "X-Amz-Signature=", "X-Amz-Security-Token=", "X-Goog-Signature="];
    let mut text = text.to_owned();
    for name in NAMES {
        let mut from = 0;
        while let Some(found) = text[from..].find(name) {
            let start = from + found + name.len();
            let rest = &text[start..];
            let end = start + rest.find(['&', ' ', '"', ')', '<']).unwrap_or(rest.len());
            text.replace_range(start..end, HIDDEN);
            from = start + HIDDEN.len();
        }
    }
    text
}

/// A store behind [`StoreError`]s.
#[derive(Clone)]
pub(crate) struct Guarded {
    inner: Arc<dyn ObjectStore>,
    secrets: Arc<Secrets>,
}

impl Guarded {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, secrets: Secrets) -> Self {
        Self { inner, secrets: Arc::new(secrets) }
    }

    fn told(&self, error: Error) -> Error {
        told(&self.secrets, error)
    }
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guarded({})", self.inner)
    }
}

impl fmt::Display for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Guarded {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let put = self.inner.put_opts(location, payload, options).await;
        put.map_err(|error| self.told(error))
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let begun = self.inner.put_multipart_opts(location, options).await;
        let inner = begun.map_err(|error| self.told(error))?;
        Ok(Box::new(GuardedUpload { inner, secrets: Arc::clone(&self.secrets) }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let got = self.inner.get_opts(location, options).await;
        let mut got = got.map_err(|error| self.told(error))?;
        if let GetResultPayload::Stream(bytes) = got.payload {
            let secrets = Arc::clone(&self.secrets);
            let bytes = bytes.map_err(move |error| told(&secrets, error)).boxed();
            got.payload = GetResultPayload::Stream(bytes);
        }
        Ok(got)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let secrets = Arc::clone(&self.secrets);
        self.inner.delete_stream(locations).map_err(move |error| told(&secrets, error)).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let secrets = Arc::clone(&self.secrets);
        self.inner.list(prefix).map_err(move |error| told(&secrets, error)).boxed()
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let secrets = Arc::clone(&self.secrets);
        let listed = self.inner.list_with_offset(prefix, offset);
        listed.map_err(move |error| told(&secrets, error)).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await.map_err(|error| self.told(error))
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await.map_err(|error| self.told(error))
    }
}

struct GuardedUpload {
    inner: Box<dyn MultipartUpload>,
    secrets: Arc<Secrets>,
}

impl fmt::Debug for GuardedUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedUpload").finish_non_exhaustive()
    }
}

#[async_trait]
impl MultipartUpload for GuardedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let secrets = Arc::clone(&self.secrets);
        let part = self.inner.put_part(data);
        part.map(move |sent| sent.map_err(|error| told(&secrets, error))).boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.inner.complete().await.map_err(|error| told(&self.secrets, error))
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await.map_err(|error| told(&self.secrets, error))
    }
}

/// Replaces an error's cause by what may be told of it.
pub(crate) fn told(secrets: &Secrets, error: Error) -> Error {
    let told = |source: &(dyn StdError + 'static), problem: Option<StoreProblem>| {
        Box::new(StoreError { problem, text: text_of(secrets, source) })
    };
    match error {
        // A bucket that is missing is no object that is missing: that would be an absent table.
        Error::NotFound { source, .. }
            if problem_of(source.as_ref()) == Some(StoreProblem::NoBucket) =>
        {
            let source = told(source.as_ref(), Some(StoreProblem::NoBucket));
            Error::Generic { store: "storage", source }
        }
        Error::NotFound { path, source } => {
            let source = told(source.as_ref(), None);
            Error::NotFound { path, source }
        }
        Error::AlreadyExists { path, source } => {
            Error::AlreadyExists { path, source: told(source.as_ref(), None) }
        }
        Error::Precondition { path, source } => {
            Error::Precondition { path, source: told(source.as_ref(), None) }
        }
        Error::NotModified { path, source } => {
            Error::NotModified { path, source: told(source.as_ref(), None) }
        }
        Error::PermissionDenied { path, source } => {
            let problem = problem_of(source.as_ref()).unwrap_or(StoreProblem::Denied);
            Error::PermissionDenied { path, source: told(source.as_ref(), Some(problem)) }
        }
        Error::Unauthenticated { path, source } => {
            let problem = problem_of(source.as_ref()).unwrap_or(StoreProblem::Denied);
            Error::Unauthenticated { path, source: told(source.as_ref(), Some(problem)) }
        }
        Error::NotSupported { source } => {
            let problem = Some(StoreProblem::Unsupported);
            Error::NotSupported { source: told(source.as_ref(), problem) }
        }
        Error::Generic { store, source } => {
            let problem = problem_of(source.as_ref());
            Error::Generic { store, source: told(source.as_ref(), problem) }
        }
        error => error,
    }
}

/// Tells what is wrong by what the servers say; the crate below has no names for most of it.
fn problem_of(error: &(dyn StdError + 'static)) -> Option<StoreProblem> {
    const SIGNS: [(&[&str], StoreProblem); 5] = [
        (
            &["NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist"],
            StoreProblem::NoBucket,
        ),
        (
            &["incorrectly configured region", "AuthorizationHeaderMalformed", "PermanentRedirect"],
            StoreProblem::OtherRegion,
        ),
        (
            &["ExpiredToken", "InvalidToken", "InvalidAccessKeyId", "SignatureDoesNotMatch"],
            StoreProblem::Denied,
        ),
        (&["status code: 501", "<Code>NotImplemented<"], StoreProblem::Unsupported),
        (&["status code: 403", "status code: 401"], StoreProblem::Denied),
    ];
    let causes: Vec<_> = std::iter::successors(Some(error), |&cause| cause.source()).collect();
    let texts: Vec<String> = causes.iter().map(ToString::to_string).collect();
    let says = |sign: &str| texts.iter().any(|text| text.contains(sign));
    if METADATA.into_iter().any(says) {
        return Some(StoreProblem::NoCredentials);
    }
    let is_unreachable = causes.iter().any(|cause| {
        let http = cause.downcast_ref::<HttpError>();
        http.is_some_and(|http| {
            matches!(http.kind(), HttpErrorKind::Connect | HttpErrorKind::Timeout)
        })
    });
    if is_unreachable {
        return None;
    }
    let found = SIGNS.iter().find(|(signs, _)| signs.iter().any(|sign| says(sign)));
    found.map(|(_, problem)| *problem)
}

/// Renders an error and its causes on one line: what a cause repeats is said once, of an answer in XML
/// only the code and the message are kept, of URLs no queries.
fn text_of(secrets: &Secrets, error: &(dyn StdError + 'static)) -> String {
    let mut text = String::new();
    for cause in std::iter::successors(Some(error), |&cause| cause.source()) {
        let own = cause.to_string();
        if text.contains(own.as_str()) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&own);
    }
    let quoted = answer(&text).unwrap_or(text);
    let flat = quoted.split_whitespace().map(without_query).collect::<Vec<_>>().join(" ");
    shortened(&secrets.hide(&flat))
}

/// Keeps of an answer in XML its code and message.
fn answer(text: &str) -> Option<String> {
    let start = text.find("<?xml").or_else(|| text.find("<Error>"))?;
    let element = |name: &str| {
        let (_, rest) = text[start..].split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(value, _)| value.trim())
    };
    let before = text[..start].trim_end_matches([':', ' ']);
    match (element("Code"), element("Message")) {
        (Some(code), Some(message)) => Some(format!("{before}: {code}: {message}")),
        (Some(code), None) => Some(format!("{before}: {code}")),
        _ => None,
    }
}

fn without_query(word: &str) -> &str {
    match word.starts_with("http://") || word.starts_with("https://") {
        true => word.split('?').next().unwrap_or(word),
        false => word,
    }
}

fn shortened(text: &str) -> String {
    const MAX: usize = QUOTED_CHARS * 2;
    if text.chars().count() <= MAX {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let head: String = chars[..QUOTED_CHARS].iter().collect();
    let tail: String = chars[chars.len() - QUOTED_CHARS..].iter().collect();
    format!("{head} … {tail}")
}
