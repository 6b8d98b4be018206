//! Documents name what exists: links, headings, and the code map of ARCHITECTURE.md.

use std::collections::BTreeMap;

use super::{
    manifest::Workspace,
    report::assert_clean,
    tree::{self, TextFile, parent, resolve},
};

const DOCUMENTS: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "LICENSE"];
const MAP: &str = "ARCHITECTURE.md";

/// Returns the lines of a Markdown text outside of fenced code, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            lines.push((index + 1, line));
        }
    }
    lines
}

/// Returns the targets of a line's links: `[text](target)` and `[name]: target`, not in code.
fn targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    if let Some((label, target)) = line.split_once("]: ")
        && label.starts_with('[')
    {
        found.extend(target.split_whitespace().next());
    }
    let mut code = false;
    for (at, c) in line.char_indices() {
        if c == '`' {
            code = !code;
        }
        if !code && let Some(rest) = line[at..].strip_prefix("](") {
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            found.push(target.trim_start_matches('<').trim_end_matches('>'));
        }
    }
    found
}

/// Returns the anchors of a document's headings, in the spelling of GitHub.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = Vec::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let before = seen.entry(anchor.clone()).or_default();
        anchors.push(if *before == 0 { anchor } else { format!("{anchor}-{before}") });
        *before += 1;
    }
    anchors
}

/// Checks that the relative links of a document lead to files, and their anchors to headings.
fn check_links(
    document: &TextFile,
    exists: impl Fn(&str) -> bool,
    read: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut findings = Vec::new();
    for (number, line) in prose(&document.text) {
        for target in targets(line) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let place = format!("{}:{number}", document.path);
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = match file {
                "" => document.path.clone(),
                file => resolve(parent(&document.path), file),
            };
            if !exists(&path) {
                findings.push(format!("{place}: link to `{target}`, but there is no {path}"));
            } else if !anchor.is_empty()
                && path.ends_with(".md")
                && read(&path).is_none_or(|text| !anchors(&text).iter().any(|own| own == anchor))
            {
                findings.push(format!(
                    "{place}: link to `{target}`, but {path} has no heading of anchor #{anchor}"
                ));
            }
        }
    }
    findings
}

/// Checks that the code map has every member of the workspace.
fn check_map(map: &TextFile, members: &[String]) -> Vec<String> {
    let lacks = members.iter().filter(|member| {
        !map.text.match_indices(member.as_str()).any(|(at, _)| {
            let before = map.text[..at].chars().next_back();
            let after = map.text[at + member.len()..].chars().next();
            let opens = !before.is_some_and(|c| is_path(c) || c == '/');
            // A bare word such as "tests" is no path yet.
            let closes = matches!(after, Some('/' | '`'))
                || (member.contains('/') && !after.is_some_and(is_path));
            opens && closes
        })
    });
    lacks
        .map(|member| {
            format!("{}: the code map lacks `{member}`: add what it does and keeps", map.path)
        })
        .collect()
}

/// Checks that what a document calls by a path under `host/` exists. A path ends before the first
/// placeholder, as in `host/app/src/cli/<verb>.rs`.
fn check_host_paths(document: &TextFile, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut findings = Vec::new();
    for (index, line) in document.text.lines().enumerate() {
        for (at, _) in line.match_indices("host/") {
            if line[..at].chars().next_back().is_some_and(|c| is_path(c) || c == '/') {
                continue;
            }
            let rest = &line[at..];
            let length = rest.find(|c| !is_path(c) && c != '/').unwrap_or(rest.len());
            let is_cut = rest[length..].starts_with(['<', '*', '{', '…']);
            let path = match &rest[..length] {
                path if is_cut => parent(path),
                path => path.trim_end_matches(['.', '/', '-']),
            };
            if !exists(path) {
                findings.push(format!(
                    "{}:{}: names `{path}`, which does not exist: correct the document",
                    document.path,
                    index + 1
                ));
            }
        }
    }
    findings
}

fn is_path(c: char) -> bool {
    c.is_alphanumeric() || "_-.".contains(c)
}

#[test]
fn documents_that_a_stranger_looks_for_exist() {
    let lacks = DOCUMENTS.into_iter().filter(|path| !tree::exists(path));
    let findings: Vec<String> = lacks.map(|path| format!("{path}: missing: write it")).collect();
    assert_clean("a stranger finds what it is, how it is built and what is allowed", &findings);
}

#[test]
fn links_lead_somewhere() -> Result<(), String> {
    let read = |path: &str| tree::read(path).ok().map(|file| file.text);
    let documents = tree::files("", &[".md"])?;
    let findings: Vec<String> =
        documents.iter().flat_map(|file| check_links(file, tree::exists, read)).collect();
    assert_clean("links of documents resolve", &findings);
    Ok(())
}

#[test]
fn code_map_has_every_member() -> Result<(), String> {
    let (workspace, _) = Workspace::load()?;
    let findings = check_map(&tree::read(MAP)?, &workspace.members);
    assert_clean("the code map is the workspace", &findings);
    Ok(())
}

#[test]
fn documents_name_existing_paths_of_the_host() -> Result<(), String> {
    let documents = tree::files("", &[".md"])?;
    let findings: Vec<String> =
        documents.iter().flat_map(|file| check_host_paths(file, tree::exists)).collect();
    assert_clean("documents move with the code", &findings);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{anchors, check_host_paths, check_links, check_map};
    use crate::tidy::tree::TextFile;

    #[track_caller]
    fn check(findings: &[String], expected: &[&str]) {
        assert_eq!(findings.len(), expected.len(), "{findings:#?}");
        for (finding, start) in findings.iter().zip(expected) {
            assert!(finding.starts_with(start), "{finding}");
        }
    }

    #[test]
    fn broken_links_are_named_with_their_line() {
        let text = "# A\n[b](b.md), [c](../c.md#d-e), [web](https://example.org)\n\
            `[x](x.md)` [a](#a)\n```\n[y](y.md)\n```\n[z]: z.md\n";
        let document = TextFile::new("docs/a.md", text);
        let exists = |path: &str| path == "c.md" || path == "docs/a.md";
        let read = |path: &str| Some(if path == "c.md" { "## D e!" } else { text }.to_owned());
        check(
            &check_links(&document, exists, read),
            &[
                "docs/a.md:2: link to `b.md`, but there is no docs/b.md",
                "docs/a.md:7: link to `z.md`, but there is no docs/z.md",
            ],
        );
    }

    #[test]
    fn link_to_a_missing_heading_is_named() {
        let document = TextFile::new("a.md", "[b](#b)\n# C\n");
        let read = |_: &str| Some(document.text.clone());
        check(
            &check_links(&document, |_| true, read),
            &["a.md:1: link to `#b`, but a.md has no heading of anchor #b"],
        );
    }

    #[test]
    fn anchors_are_those_of_github() {
        let text =
            "# Who may import whom\n## `a_b` -> C, d\n```\n# code\n```\n# Twice\n# Twice\n#no";
        assert_eq!(anchors(text), ["who-may-import-whom", "a_b---c-d", "twice", "twice-1"]);
    }

    #[test]
    fn member_that_the_map_lacks_is_named() {
        let members = ["host/plan".to_owned(), "tests".to_owned()];
        check(&check_map(&TextFile::new("M.md", "`host/plan`, `tests/`"), &members), &[]);
        check(
            &check_map(&TextFile::new("M.md", "host/planner, our tests, a/tests/"), &members),
            &["M.md: the code map lacks `host/plan`", "M.md: the code map lacks `tests`"],
        );
    }

    #[test]
    fn path_that_does_not_exist_is_named() {
        let text = "host/plan. host/app/src/cli/<verb>.rs\nand (host/attic/) at http://host/x,\n\
            host/plan/src/tp*";
        let exists = |path: &str| ["host/plan", "host/app/src/cli"].contains(&path);
        check(
            &check_host_paths(&TextFile::new("M.md", text), exists),
            &[
                "M.md:2: names `host/attic`, which does not exist",
                "M.md:3: names `host/plan/src`, which does not exist",
            ],
        );
    }
}
