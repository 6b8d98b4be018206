//! Where query logs are: local paths as they stand, those of object stores as copies.

use std::path::PathBuf;

use lakebed_collect::CollectError;
use lakebed_lake::DeltaLake;
use tempfile::TempDir;

use crate::{config::is_url, error::Error};

/// Logs that are local, while this lives.
#[derive(Debug)]
pub struct LocalLogs {
    /// The logs, in the order given.
    pub paths: Vec<PathBuf>,
    _copies: Vec<TempDir>,
}

impl LocalLogs {
    /// Brings the logs that URLs name into temporary folders.
    ///
    /// # Errors
    /// Fails when a store fails or has no such log.
    pub async fn of(lake: &DeltaLake, logs: &[PathBuf]) -> Result<Self, Error> {
        let mut local = Self { paths: Vec::with_capacity(logs.len()), _copies: Vec::new() };
        for log in logs {
            let Some(url) = log.to_str().filter(|text| is_url(text)) else {
                local.paths.push(log.clone());
                continue;
            };
            let folder = tempfile::Builder::new().prefix("lakebed-logs-").tempdir();
            let folder = folder.map_err(|source| Error::File {
                action: "create a folder for logs in",
                path: std::env::temp_dir(),
                source,
            })?;
            match lake.fetch(url, folder.path()).await? {
                Some(path) => local.paths.push(path),
                None => return Err(CollectError::MissingLog { path: log.clone() }.into()),
            }
            local._copies.push(folder);
        }
        Ok(local)
    }
}
