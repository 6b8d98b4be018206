//! The files of a table's folder as they lie there, whether or not the log knows them.
//!
//! A local folder is walked as the file system shows it: the object store over it hides what a killed
//! upload left (`name#1`) and cannot name what its own rules forbid. Everything else is listed and
//! deleted through the object store, by the very path the listing gave, so that no character is
//! encoded twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
    sync::Arc,
    time::UNIX_EPOCH,
};

use futures::{StreamExt, TryStreamExt, stream};
use lakebed_layout::{LakeFault, vacuum::StoredFile};
use lakebed_model::TableName;
use object_store::{ObjectStore, path::Path};
use url::Url;

use crate::{DeltaLake, tables::storage_fault};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A table's folder.
#[derive(Debug, Clone)]
pub(crate) enum Storage {
    Local(PathBuf),
    Objects(Arc<dyn ObjectStore>),
}

/// What became of a list of files to delete.
#[derive(Debug, Default)]
pub(crate) struct Deleted {
    /// Files that were there and are gone, in order.
    pub(crate) paths: BTreeSet<String>,
    /// Files that could not be deleted.
    pub(crate) failures: Vec<(String, Failure)>,
}

impl DeltaLake {
    pub(crate) fn storage(&self, table: &TableName) -> Result<Storage, LakeFault> {
        let location = self.location(table)?;
        match location.scheme() {
            "file" => Ok(Storage::Local(local_path(table, location)?)),
            _ => Ok(Storage::Objects(self.log_store(table)?.object_store(None))),
        }
    }
}

fn local_path(table: &TableName, location: &Url) -> Result<PathBuf, LakeFault> {
    let fail = |()| storage_fault("open", table, location, "the URL names no local folder");
    location.to_file_path().map_err(fail)
}

impl Storage {
    /// Lists all files under a folder; paths are relative to it, sorted.
    ///
    /// `skips` tells whether a folder directly under it is left out. Links are not followed and not
    /// listed. A folder that does not exist is empty.
    pub(crate) async fn list(
        &self,
        folder: &'static str,
        skips: fn(&str) -> bool,
    ) -> Result<Vec<StoredFile>, Failure> {
        let mut files = match self {
            Self::Local(root) => {
                let root = root.join(folder);
                tokio::task::spawn_blocking(move || walk(root, skips)).await??
            }
            Self::Objects(store) => list_objects(store.as_ref(), folder, skips).await?,
        };
        files.sort();
        Ok(files)
    }

    /// Deletes files under a folder. One that is gone already counts as neither deleted nor failed,
    /// where storage tells: most object stores say of every deletion that it was done.
    pub(crate) async fn delete(&self, folder: &'static str, paths: Vec<String>) -> Deleted {
        match self {
            Self::Local(root) => {
                let root = root.join(folder);
                let deletion = tokio::task::spawn_blocking(move || delete_local(&root, paths));
                deletion.await.unwrap_or_else(|error| Deleted {
                    failures: vec![(folder.to_owned(), error.into())],
                    ..Deleted::default()
                })
            }
            Self::Objects(store) => delete_objects(store, folder, paths).await,
        }
    }
}

fn walk(root: PathBuf, skips: fn(&str) -> bool) -> io::Result<Vec<StoredFile>> {
    let mut files = Vec::new();
    let mut folders = vec![(root, String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            // A name that is no text is in no log, and none of ours.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let kind = entry.file_type()?;
            if kind.is_dir() && !(prefix.is_empty() && skips(&name)) {
                folders.push((entry.path(), format!("{prefix}{name}/")));
            } else if kind.is_file() {
                // Other writers may delete it meanwhile.
                let Some(metadata) = present(entry.metadata())? else { continue };
                let modified = metadata.modified()?;
                let age = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
                files.push(StoredFile {
                    path: format!("{prefix}{name}"),
                    size: metadata.len(),
                    modified_ms: i64::try_from(age.as_millis()).unwrap_or(i64::MAX),
                });
            }
        }
    }
    Ok(files)
}

fn present<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

fn delete_local(root: &std::path::Path, paths: Vec<String>) -> Deleted {
    let mut deleted = Deleted::default();
    for path in paths {
        match present(std::fs::remove_file(root.join(&path))) {
            Ok(Some(())) => {
                deleted.paths.insert(path);
            }
            Ok(None) => {}
            Err(error) => deleted.failures.push((path, error.into())),
        }
    }
    deleted
}

async fn list_objects(
    store: &dyn ObjectStore,
    folder: &str,
    skips: fn(&str) -> bool,
) -> Result<Vec<StoredFile>, Failure> {
    let prefix = (!folder.is_empty()).then(|| Path::from(folder));
    let objects: Vec<_> = store.list(prefix.as_ref()).try_collect().await?;
    let relative = |path: &Path| -> Option<String> {
        if folder.is_empty() {
            return Some(path.to_string());
        }
        path.as_ref().strip_prefix(folder)?.strip_prefix('/').map(ToOwned::to_owned)
    };
    let mut files = Vec::with_capacity(objects.len());
    for object in objects {
        let Some(path) = relative(&object.location) else { continue };
        if path.split_once('/').is_some_and(|(top, _)| skips(top)) {
            continue;
        }
        let modified_ms = object.last_modified.timestamp_millis();
        files.push(StoredFile { path, size: object.size, modified_ms });
    }
    Ok(files)
}

/// Stores that delete many objects with one request are asked to. They need not say which object an
/// error is about: it is told of those that were not said to be gone.
async fn delete_objects(store: &Arc<dyn ObjectStore>, folder: &str, paths: Vec<String>) -> Deleted {
    let mut deleted = Deleted::default();
    let mut asked: BTreeMap<Path, String> = BTreeMap::new();
    for path in paths {
        let full = if folder.is_empty() { path.clone() } else { format!("{folder}/{path}") };
        match Path::parse(&full) {
            Ok(location) => drop(asked.insert(location, path)),
            Err(error) => deleted.failures.push((path, error.into())),
        }
    }
    let locations: Vec<_> = asked.keys().cloned().map(Ok).collect();
    let mut results = store.delete_stream(stream::iter(locations).boxed());
    let mut errors: Vec<object_store::Error> = Vec::new();
    while let Some(result) = results.next().await {
        match result {
            Ok(location) => deleted.paths.extend(asked.remove(&location)),
            Err(object_store::Error::NotFound { path, .. }) => {
                asked.retain(|location, _| location.as_ref() != path);
            }
            Err(error) => errors.push(error),
        }
    }
    let mut errors = errors.into_iter();
    let mut last = String::from("storage did not say that it was deleted");
    for path in asked.into_values() {
        let error: Failure = match errors.next() {
            Some(error) => {
                last = error.to_string();
                error.into()
            }
            None => last.clone().into(),
        };
        deleted.failures.push((path, error));
    }
    deleted
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::{ObjectStoreExt, memory::InMemory, path::Path};

    use super::Storage;

    const NAMES: [&str; 6] =
        ["a%20b.parquet", "p=a b/f", "p=a~b/f", "p=ö/f", "p=a%2Fb/f", "_delta_log/0.json"];

    async fn check(storage: Storage, extra: &[&str]) {
        let is_log = |name: &str| name == "_delta_log";
        let listed = storage.list("", is_log).await.unwrap();
        let mut expected: Vec<&str> = NAMES[..5].iter().chain(extra).copied().collect();
        expected.sort_unstable();
        let paths: Vec<String> = listed.into_iter().map(|file| file.path).collect();
        assert_eq!(paths, expected);
        let deleted = storage.delete("", paths).await;
        assert_eq!(deleted.paths.into_iter().collect::<Vec<_>>(), expected);
        assert!(deleted.failures.is_empty());
        assert_eq!(storage.list("", is_log).await.unwrap(), []);
        let log = storage.list("_delta_log", |_| false).await.unwrap();
        assert_eq!(log[0].path, "0.json");
        assert_eq!(storage.delete("_delta_log", vec!["0.json".into()]).await.paths.len(), 1);
        assert_eq!(storage.list("_delta_log", |_| false).await.unwrap(), []);
    }

    #[tokio::test]
    async fn objects_with_odd_names_are_deleted_as_they_were_listed() {
        let store = InMemory::new();
        for name in NAMES {
            store.put(&Path::parse(name).unwrap(), "x".into()).await.unwrap();
        }
        check(Storage::Objects(Arc::new(store)), &[]).await;
    }

    #[tokio::test]
    async fn local_files_with_odd_names_are_deleted_as_they_were_listed() {
        let folder = tempfile::tempdir().unwrap();
        for name in NAMES.iter().chain(&["f.parquet#1"]) {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let storage = Storage::Local(folder.path().to_owned());
        let absent = storage.delete("", vec!["never-there".to_owned()]).await;
        assert!(absent.paths.is_empty() && absent.failures.is_empty());
        check(storage, &["f.parquet#1"]).await;
    }
}
