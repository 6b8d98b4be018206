//! A published interface changes only together with its version.
//!
//! `wit.lock` has a line per file of `wit/`: its name, its package's version, and a digest of its
//! text without comments and spacing. The digest of a changed text is shown only once the version
//! has changed too.

use std::{collections::BTreeMap, fmt};

use super::{
    report::assert_clean,
    source::{Literals, without_comments},
    tree::{self, TextFile, name},
};

const LOCK: &str = "tests/tidy/wit.lock";

/// What is recorded of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Record {
    version: String,
    digest: u64,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:016x}", self.version, self.digest)
    }
}

/// Hashes bytes by FNV-1a with 64 bits, which is enough to notice a change.
fn fnv1a(bytes: &[u8]) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

fn record(file: &TextFile) -> Result<Record, String> {
    let text = without_comments(&file.text, Literals::Keep);
    let words: Vec<&str> = text.split_whitespace().collect();
    let package = words.iter().position(|word| *word == "package");
    let version = package
        .and_then(|at| words.get(at + 1)?.strip_suffix(';')?.split_once('@'))
        .map(|(_, version)| version.to_owned())
        .ok_or_else(|| format!("{}: expected `package <name>@<version>;`", file.path))?;
    Ok(Record { version, digest: fnv1a(words.join(" ").as_bytes()) })
}

fn parse_lock(text: &str) -> Result<BTreeMap<String, Record>, String> {
    let mut records = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parts: Vec<&str> = line.split_whitespace().collect();
        let [file, version, digest] = parts[..] else {
            return Err(format!("{LOCK}:{}: expected `<file> <version> <digest>`", index + 1));
        };
        let digest = u64::from_str_radix(digest, 16)
            .map_err(|error| format!("{LOCK}:{}: digest {digest:?}: {error}", index + 1))?;
        records.insert(file.to_owned(), Record { version: version.to_owned(), digest });
    }
    Ok(records)
}

fn check_lock(files: &[TextFile], lock: &str) -> Result<Vec<String>, String> {
    let mut locked = parse_lock(lock)?;
    let mut findings = Vec::new();
    let mut first: Option<(&str, Record)> = None;
    for file in files {
        let now = record(file)?;
        let file_name = name(&file.path);
        match locked.remove(file_name) {
            None => findings.push(format!("{}: new: add to {LOCK}: {file_name} {now}", file.path)),
            Some(then) if then.version != now.version => findings.push(format!(
                "{}: its version went from {} to {}: replace its line in {LOCK} by: {file_name} \
                 {now}",
                file.path, then.version, now.version
            )),
            Some(then) if then.digest != now.digest => findings.push(format!(
                "{}: changed, but its version is still {}: raise the version in every file of wit/ \
                 (the last number for an addition; the middle one for what old plugins cannot \
                 know, then in host/sandbox/src/world.rs too) and run this test again",
                file.path, now.version
            )),
            Some(_) => {}
        }
        let (first_path, expected) = first.get_or_insert((file.path.as_str(), now.clone()));
        if expected.version != now.version {
            findings.push(format!(
                "{}: version {}, but {first_path} has {}: all files are one package",
                file.path, now.version, expected.version
            ));
        }
    }
    findings.extend(locked.keys().map(|file| {
        format!(
            "wit/{file}: gone: raise the version in every file of wit/, remove its line in {LOCK}"
        )
    }));
    Ok(findings)
}

#[test]
fn changed_wit_file_has_a_changed_version() -> Result<(), String> {
    let findings = check_lock(&tree::files("wit", &[".wit"])?, &tree::read(LOCK)?.text)?;
    assert_clean("plugins that exist rely on the interface they were built for", &findings);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{check_lock, fnv1a, record};
    use crate::tidy::tree::TextFile;

    const TEXT: &str = "package a:b@0.1.0;\ninterface c {}\n";

    fn file(text: &str) -> TextFile {
        TextFile::new("wit/c.wit", text)
    }

    fn lock() -> String {
        format!("# file version digest\nc.wit {}\n", record(&file(TEXT)).expect("has a version"))
    }

    #[track_caller]
    fn check(files: &[TextFile], expected: &[&str]) {
        let findings = check_lock(files, &lock()).expect("the lock parses");
        assert_eq!(findings.len(), expected.len(), "{findings:#?}");
        for (finding, start) in findings.iter().zip(expected) {
            assert!(finding.starts_with(start), "{finding}");
        }
    }

    #[test]
    fn digest_is_fnv1a() {
        // Test vectors published with the algorithm (Fowler, Noll, Vo: test_fnv.c).
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn comments_and_spacing_change_nothing() {
        check(&[file("/// More.\npackage a:b@0.1.0;\n\n  interface c {}")], &[]);
    }

    #[test]
    fn change_without_a_version_is_refused_without_telling_the_digest() {
        let changed = file("package a:b@0.1.0;\ninterface d {}\n");
        check(
            std::slice::from_ref(&changed),
            &["wit/c.wit: changed, but its version is still 0.1.0"],
        );
        let digest = record(&changed).expect("has a version").to_string();
        let findings = check_lock(&[changed], &lock()).expect("the lock parses");
        assert!(!findings[0].contains(&digest), "{findings:?}");
    }

    #[test]
    fn change_with_a_version_asks_for_the_line_of_the_lock() {
        check(
            &[file("package a:b@0.1.1;\ninterface d {}\n")],
            &["wit/c.wit: its version went from 0.1.0 to 0.1.1: replace its line"],
        );
    }

    #[test]
    fn new_and_lost_files_and_mixed_versions_are_named() {
        check(
            &[TextFile::new("wit/e.wit", "package a:b@0.1.0;")],
            &["wit/e.wit: new: add to tests/tidy/wit.lock: e.wit 0.1.0 ", "wit/c.wit: gone"],
        );
        check(
            &[file(TEXT), TextFile::new("wit/e.wit", "package a:b@0.1.1;")],
            &["wit/e.wit: new", "wit/e.wit: version 0.1.1, but wit/c.wit has 0.1.0"],
        );
    }

    #[test]
    fn broken_lock_is_an_error_with_its_line() {
        let error = check_lock(&[], "# a\nc.wit 0.1.0").expect_err("no digest");
        assert_eq!(error, "tests/tidy/wit.lock:2: expected `<file> <version> <digest>`");
    }
}
