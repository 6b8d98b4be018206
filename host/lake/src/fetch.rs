//! Files of an object store, brought to a local folder: query logs, which readers want as files.

use std::{
    io,
    path::{Path, PathBuf},
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use object_store::{Error, ObjectStore, ObjectStoreExt as _, path::Path as ObjectPath};
use tokio::{fs, io::AsyncWriteExt as _};

use crate::{DeltaLake, LakeError, stores::is_remote, tables::parse_location};

/// Objects that are copied at once.
const COPIES: usize = 4;

impl DeltaLake {
    /// Copies an object, or every object below a folder of an object store, into a local folder, as
    /// they come and without holding one in memory. Returns where the file or folder is then; `None`
    /// when the store has nothing there.
    ///
    /// # Errors
    /// Fails when the location is none, the store fails, or the local folder cannot be written.
    pub async fn fetch(&self, location: &str, into: &Path) -> Result<Option<PathBuf>, LakeError> {
        let url = parse_location(location)?;
        if !is_remote(&url) {
            let path = url.to_file_path().map_err(|()| LakeError::Location {
                location: location.to_owned(),
                reason: "the URL names no local file".to_owned(),
            })?;
            return Ok(path.exists().then_some(path));
        }
        let fail = |source| LakeError::Fetch { location: url.to_string(), source };
        let store = self.stores.root(&url).map_err(fail)?;
        let root = ObjectPath::from_url_path(url.path()).map_err(|error| fail(error.into()))?;
        let name = root.filename().unwrap_or("logs").to_owned();
        let target = into.join(&name);
        match store.head(&root).await {
            Ok(_) => {
                copy(&*store, &root, target.clone()).await.map_err(fail)?;
                return Ok(Some(target));
            }
            Err(Error::NotFound { .. }) => {}
            // The root of a bucket is no object, whatever a store says of it.
            Err(_) if root.as_ref().is_empty() => {}
            Err(error) => return Err(fail(error)),
        }
        let objects: Vec<ObjectPath> = store
            .list(Some(&root))
            .map_ok(|object| object.location)
            .try_collect()
            .await
            .map_err(fail)?;
        let copies = objects.iter().filter_map(|object| {
            let inside = object.prefix_match(&root)?;
            let path = inside.fold(target.clone(), |path, part| path.join(part.as_ref()));
            Some((object, path))
        });
        let copied: Vec<()> = stream::iter(copies)
            .map(|(object, path)| copy(&*store, object, path))
            .buffer_unordered(COPIES)
            .try_collect()
            .await
            .map_err(fail)?;
        Ok((!copied.is_empty()).then_some(target))
    }
}

async fn copy(store: &dyn ObjectStore, from: &ObjectPath, to: PathBuf) -> Result<(), Error> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).await.map_err(local)?;
    }
    let mut file = fs::File::create(&to).await.map_err(local)?;
    let mut bytes = store.get(from).await?.into_stream();
    while let Some(chunk) = bytes.try_next().await? {
        file.write_all(&chunk).await.map_err(local)?;
    }
    file.flush().await.map_err(local)
}

fn local(error: io::Error) -> Error {
    Error::Generic { store: "local folder", source: Box::new(error) }
}
