//! Every kind of plugin is complete, and every guest is met by a test.

use std::collections::BTreeSet;

use super::{
    report::assert_clean,
    source::{Literals, holds, without_comments},
    tree::{self, TextFile, name},
};

/// Folders of `plugins/` that hold no plugin.
const NO_PLUGINS: [&str; 4] = [".cargo", "bundle", "evil", "sdk"];
/// The package of types that the worlds share.
const SHARED: &str = "types.wit";

/// Returns the worlds that a WIT file declares.
fn worlds(file: &TextFile) -> Vec<String> {
    let text = without_comments(&file.text, Literals::Keep);
    let declared = text.lines().filter_map(|line| line.trim().strip_prefix("world "));
    declared
        .filter_map(|rest| rest.split(['{', ' ']).next())
        .map(|world| world.trim_start_matches('%').to_owned())
        .collect()
}

/// Checks that a file holds the world it is named after and nothing else, and names the world.
fn check_file(file: &TextFile) -> (Option<String>, Vec<String>) {
    let stem = name(&file.path).trim_end_matches(".wit");
    let found = worlds(file);
    if found == [stem] {
        return (Some(stem.to_owned()), Vec::new());
    }
    let finding = format!(
        "{}: declares the worlds [{}], expected exactly `{stem}`: one file per world, named after it",
        file.path,
        found.join(", ")
    );
    (None, vec![finding])
}

/// Checks that a world has its binding, its adapter, a plugin and a test.
fn check_world(
    world: &str,
    exists: impl Fn(&str) -> bool,
    plugins: &[String],
    tests: &[TextFile],
) -> Vec<String> {
    let module = world.replace('-', "_");
    let mut findings = Vec::new();
    for (path, what) in [
        (format!("host/sandbox/src/bindings/{module}.rs"), "its binding"),
        (format!("host/app/src/plugged/{module}.rs"), "the adapter to its stage"),
    ] {
        if !exists(&path) {
            findings.push(format!("wit/{world}.wit: no {path}: add {what}"));
        }
    }
    if !plugins.iter().any(|plugin| is_of(plugin, world)) {
        findings.push(format!("wit/{world}.wit: no folder plugins/{world}-…: add an example"));
    }
    let variant: String = world.split('-').map(capitalized).collect();
    let names = [format!("\"{world}\""), format!("\"{world}-"), format!("World::{variant}")];
    if !names.iter().any(|name| is_named(tests, name)) {
        findings.push(format!(
            "wit/{world}.wit: no test names it: add one that does to tests/ or \
             host/sandbox/src/tests/ (`World::{variant}`, or a plugin of it)"
        ));
    }
    findings
}

/// Checks that a plugin's folder is named after its world and that a test names it.
fn check_plugin(plugin: &str, worlds: &[String], tests: &[TextFile]) -> Vec<String> {
    let mut findings = Vec::new();
    if !worlds.iter().any(|world| is_of(plugin, world)) {
        findings.push(format!(
            "plugins/{plugin}: its name begins with no world ({}): call it <world>-<purpose>",
            worlds.join(", ")
        ));
    }
    findings.extend(check_named("plugins", plugin, tests));
    findings
}

fn check_named(folder: &str, guest: &str, tests: &[TextFile]) -> Vec<String> {
    if is_named(tests, &format!("\"{guest}\"")) {
        return Vec::new();
    }
    vec![format!(
        "{folder}/{guest}: no test names it: add one with \"{guest}\" to tests/ or \
         host/sandbox/src/tests/"
    )]
}

fn is_of(plugin: &str, world: &str) -> bool {
    plugin.strip_prefix(world).is_some_and(|rest| rest.len() > 1 && rest.starts_with('-'))
}

fn is_named(tests: &[TextFile], name: &str) -> bool {
    tests.iter().any(|test| holds(&test.text, name))
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Returns the tests of worlds and guests, without comments. This module is none of them: it would
/// name every guest and prove nothing.
fn tests_of_guests() -> Result<Vec<TextFile>, String> {
    let mut files = tree::files("tests", &[".rs"])?;
    files.extend(tree::files("host/sandbox/src", &[".rs"])?);
    files.retain(|file| {
        let of_sandbox = file.path.starts_with("host/sandbox/src/tests");
        let across = file.path.starts_with("tests/") && !file.path.starts_with("tests/tidy/");
        of_sandbox || across
    });
    Ok(files
        .iter()
        .map(|file| TextFile::new(file.path.as_str(), without_comments(&file.text, Literals::Keep)))
        .collect())
}

fn plugins() -> Result<Vec<String>, String> {
    let folders = tree::folders("plugins")?.into_iter();
    Ok(folders.filter(|folder| !NO_PLUGINS.contains(&folder.as_str())).collect())
}

/// Returns the worlds of `wit/` and what is wrong with the files.
fn worlds_of_files() -> Result<(Vec<String>, Vec<String>), String> {
    let (mut worlds, mut findings) = (Vec::new(), Vec::new());
    for file in tree::files("wit", &[".wit"])?.iter().filter(|file| name(&file.path) != SHARED) {
        let (world, wrong) = check_file(file);
        worlds.extend(world);
        findings.extend(wrong);
    }
    Ok((worlds, findings))
}

/// Returns the attacks: files of `examples/`, and folders that are crates of their own.
fn attacks() -> Result<BTreeSet<String>, String> {
    let examples = tree::files("plugins/evil/examples", &[".rs"])?;
    let examples = examples.iter().map(|file| name(&file.path).trim_end_matches(".rs").to_owned());
    let crates = tree::folders("plugins/evil")?.into_iter();
    let crates = crates.filter(|folder| tree::exists(&format!("plugins/evil/{folder}/Cargo.toml")));
    Ok(examples.chain(crates).collect())
}

#[test]
fn every_world_has_a_binding_an_adapter_a_plugin_and_a_test() -> Result<(), String> {
    let (worlds, mut findings) = worlds_of_files()?;
    let (plugins, tests) = (plugins()?, tests_of_guests()?);
    for world in &worlds {
        findings.extend(check_world(world, tree::exists, &plugins, &tests));
    }
    assert_clean("a kind of plugin is complete", &findings);
    Ok(())
}

#[test]
fn every_plugin_is_named_after_its_world_and_by_a_test() -> Result<(), String> {
    let (worlds, _) = worlds_of_files()?;
    let tests = tests_of_guests()?;
    let findings: Vec<String> =
        plugins()?.iter().flat_map(|plugin| check_plugin(plugin, &worlds, &tests)).collect();
    assert_clean("no plugin goes untested", &findings);
    Ok(())
}

#[test]
fn every_attack_is_met_by_a_test() -> Result<(), String> {
    let tests = tests_of_guests()?;
    let findings: Vec<String> =
        attacks()?.iter().flat_map(|guest| check_named("plugins/evil", guest, &tests)).collect();
    assert_clean("no attack goes unmet", &findings);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{check_file, check_named, check_plugin, check_world};
    use crate::tidy::tree::TextFile;

    #[track_caller]
    fn check(findings: &[String], expected: &[&str]) {
        assert_eq!(findings.len(), expected.len(), "{findings:#?}");
        for (finding, start) in findings.iter().zip(expected) {
            assert!(finding.starts_with(start), "{finding}");
        }
    }

    fn tests(text: &str) -> [TextFile; 1] {
        [TextFile::new("tests/sandbox/a.rs", text)]
    }

    #[test]
    fn file_holds_the_world_it_is_named_after() {
        let text = "// world c {\nworld a-b {\n}\n";
        assert_eq!(check_file(&TextFile::new("wit/a-b.wit", text)).0.as_deref(), Some("a-b"));
        check(
            &check_file(&TextFile::new("wit/b.wit", text)).1,
            &["wit/b.wit: declares the worlds [a-b], expected exactly `b`"],
        );
        check(
            &check_file(&TextFile::new("wit/a-b.wit", "world a-b {}\nworld c {}")).1,
            &["wit/a-b.wit: declares the worlds [a-b, c], expected exactly `a-b`"],
        );
    }

    #[test]
    fn complete_world_passes() {
        let plugins = ["row-sieve-mesh".to_owned()];
        let named = tests("World::RowSieve");
        check(&check_world("row-sieve", |_| true, &plugins, &named), &[]);
    }

    #[test]
    fn everything_a_world_lacks_is_named() {
        let plugins = ["row-sievemesh".to_owned(), "row-sieve-".to_owned()];
        check(
            &check_world("row-sieve", |_| false, &plugins, &tests("World::RowSieves()")),
            &[
                "wit/row-sieve.wit: no host/sandbox/src/bindings/row_sieve.rs: add its binding",
                "wit/row-sieve.wit: no host/app/src/plugged/row_sieve.rs: add the adapter",
                "wit/row-sieve.wit: no folder plugins/row-sieve-…",
                "wit/row-sieve.wit: no test names it",
            ],
        );
    }

    #[test]
    fn plugin_of_no_world_and_without_a_test_is_named() {
        let worlds = ["sieve".to_owned()];
        check(&check_plugin("sieve-mesh", &worlds, &tests("shipped(\"sieve-mesh\")")), &[]);
        check(
            &check_plugin("mesh", &worlds, &tests("shipped(\"sieve-mesh\")")),
            &[
                "plugins/mesh: its name begins with no world (sieve)",
                "plugins/mesh: no test names it",
            ],
        );
    }

    #[test]
    fn attack_is_named_by_its_whole_name_only() {
        check(&check_named("plugins/evil", "spin", &tests("evil(\"spin\")")), &[]);
        check(
            &check_named("plugins/evil", "spin", &tests("evil(\"spin-configure\")")),
            &["plugins/evil/spin: no test names it"],
        );
    }
}
