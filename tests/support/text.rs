//! Text that is the same on every machine.

use std::path::{Path, PathBuf};

/// Reads how much of a long test to do, for those who have the time.
#[expect(clippy::disallowed_methods, reason = "a test has no configuration file")]
pub(crate) fn number_from(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Reads where something is that only some machines have.
#[expect(clippy::disallowed_methods, reason = "a test has no configuration file")]
pub(crate) fn text_from(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|text| !text.is_empty())
}

/// Returns a path of the project.
pub(crate) fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Replaces a test's folder, the project's folder and digests.
pub(crate) fn stable(text: &str, folder: &Path) -> String {
    let folder = folder.display().to_string();
    let text = text.replace(&folder, "<folder>");
    let text = text.replace(&project("").display().to_string(), "<project>/");
    without_digests(&text)
}

fn without_digests(text: &str) -> String {
    const START: &str = "sha256:";
    let mut parts = text.split(START);
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(START);
        kept.push('…');
        kept.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    kept
}
