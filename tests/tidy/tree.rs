//! The project's files, with paths relative to its root and always in the same order.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A file and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextFile {
    /// Relative to the project's root, with `/` between the parts.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl TextFile {
    pub(crate) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }
}

/// What lies in a project's folders without being part of it.
const FOREIGN: [&str; 2] = [".git", "target"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Tells whether the project has a file or folder of this path.
pub(crate) fn exists(path: &str) -> bool {
    root().join(path).exists()
}

/// Reads one file.
pub(crate) fn read(path: &str) -> Result<TextFile, String> {
    let text = fs::read_to_string(root().join(path))
        .map_err(|error| format!("failed to read {path}: {error}"))?;
    Ok(TextFile::new(path, text))
}

/// Reads the files under a folder (`""` is the root) whose names end like this.
pub(crate) fn files(folder: &str, endings: &[&str]) -> Result<Vec<TextFile>, String> {
    let mut found = Vec::new();
    for entry in entries(folder)? {
        if entry.is_folder {
            found.extend(files(&entry.path, endings)?);
        } else if endings.iter().any(|ending| entry.path.ends_with(ending)) {
            found.push(read(&entry.path)?);
        }
    }
    Ok(found)
}

/// Lists the names of a folder's folders.
pub(crate) fn folders(folder: &str) -> Result<Vec<String>, String> {
    let folders = entries(folder)?.into_iter().filter(|entry| entry.is_folder);
    Ok(folders.map(|entry| name(&entry.path).to_owned()).collect())
}

/// Returns what follows the last slash.
pub(crate) fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Returns what precedes the last slash; the root is `""`.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// Returns the path from the root of what a file in `folder` calls `relative`.
pub(crate) fn resolve(folder: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(relative.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

struct Entry {
    path: String,
    is_folder: bool,
}

fn entries(folder: &str) -> Result<Vec<Entry>, String> {
    let failed = |error| format!("failed to list {folder:?}: {error}");
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(folder)).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !FOREIGN.contains(&name.as_str()) {
            let is_folder = entry.file_type().map_err(failed)?.is_dir();
            found.push(Entry { path: resolve(folder, &name), is_folder });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{name, parent, resolve};

    #[test]
    fn relative_paths_resolve_against_the_folder() {
        assert_eq!(resolve("examples/logs", "../../README.md"), "README.md");
        assert_eq!(resolve("", "./host/model"), "host/model");
        assert_eq!(resolve("tests", "../../elsewhere"), "../elsewhere");
    }

    #[test]
    fn path_splits_into_parent_and_name() {
        assert_eq!((parent("a/b/c.rs"), name("a/b/c.rs")), ("a/b", "c.rs"));
        assert_eq!((parent("c.rs"), name("c.rs")), ("", "c.rs"));
    }
}
