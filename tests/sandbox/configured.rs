//! A guest named in `lakebed.toml`: what the command says and how it ends.

use std::{fs, path::Path};

use crate::support::{lakebed, project, stable};

/// Writes a component and a configuration that scores with it.
fn configured(folder: &Path, wasm: &[u8]) {
    fs::write(folder.join("mine.wasm"), wasm).unwrap();
    fs::write(folder.join("lakebed.toml"), "[plugins]\nscorer = \"mine.wasm\"\n").unwrap();
}

/// Scores the first window with a component, expects to fail, and shows how. Another run works.
#[track_caller]
fn refused(wasm: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    configured(folder.path(), wasm);
    let log = project("examples/logs/w1").display().to_string();
    let text = lakebed(folder.path(), &["graph", &log]).failure();
    lakebed(folder.path(), &["graph", &log, "--scorer", "ajlo-jis"]).succeeded();
    stable(&text, folder.path())
}

fn evil(name: &str) -> &'static [u8] {
    let mut guests = lakebed_bundle::evil().iter();
    guests.find(|guest| guest.name == name).expect("the bundle has the attack").wasm
}

#[test]
fn trap_is_reported_as_what_it_is() {
    insta::assert_snapshot!(refused(evil("trap")), @r"
    exit code 3
     WARN plugin failed error=call `score` of plugin `mine.wasm`: it trapped: wasm `unreachable` instruction executed
    error: failed to score 3 edges with `trap`
    caused by: call `score` of plugin `mine.wasm`: it trapped: wasm `unreachable` instruction executed
    help: mend the plugin, or name another one under [plugins] in lakebed.toml
    ");
}

#[test]
fn nan_is_refused_with_its_place() {
    insta::assert_snapshot!(refused(evil("nan")), @r"
    exit code 3
     WARN plugin failed error=call `score` of plugin `mine.wasm`: expected finite values, got NaN at index 2
    error: failed to score 3 edges with `nan`
    caused by: call `score` of plugin `mine.wasm`: expected finite values, got NaN at index 2
    help: mend the plugin, or name another one under [plugins] in lakebed.toml
    ");
}

#[test]
fn short_list_is_counted() {
    insta::assert_snapshot!(refused(evil("short")), @r"
    exit code 3
     WARN plugin failed error=call `score` of plugin `mine.wasm`: expected 3 values, got 2
    error: failed to score 3 edges with `short`
    caused by: call `score` of plugin `mine.wasm`: expected 3 values, got 2
    help: mend the plugin, or name another one under [plugins] in lakebed.toml
    ");
}

#[test]
fn spin_ends_at_its_deadline() {
    insta::assert_snapshot!(refused(evil("spin")), @r"
    exit code 3
     WARN plugin failed error=call `score` of plugin `mine.wasm`: it did not end within 2000 ms
    error: failed to score 3 edges with `spin`
    caused by: call `score` of plugin `mine.wasm`: it did not end within 2000 ms
    help: mend the plugin, or name another one under [plugins] in lakebed.toml
    ");
}

/// Which interfaces are imported depends on the standard library that the guest was built with.
#[test]
fn imports_are_refused_by_name() {
    let text = refused(evil("wasi"));
    let (start, rest) = text.split_once("wasi:").expect("an import");
    let (imports, end) = rest.split_once(';').expect("advice");
    assert!(imports.contains("clocks/wall-clock@0.2."), "{text}");
    insta::assert_snapshot!(format!("{start}…{end}"), @r"
    exit code 3
    error: failed to admit plugin `mine.wasm`: it imports … a policy plugin imports nothing: build it as `#![no_std]` with `lakebed-guest`, without clock, random numbers, files or printing
    help: mend the plugin, or name another one under [plugins] in lakebed.toml
    ");
}

#[test]
fn component_of_another_world_is_refused() {
    let meter = lakebed_bundle::guest("drift-meter-ajlo").expect("shipped").wasm;
    insta::assert_snapshot!(refused(meter), @r"
    exit code 3
    error: failed to admit plugin `mine.wasm`: expected world `scorer`, found `drift-meter`
    help: mend the plugin, or name another one under [plugins] in lakebed.toml
    ");
}

#[test]
fn file_that_is_no_component_is_refused() {
    insta::assert_snapshot!(refused(b"hello"), @r"
    exit code 3
    error: failed to admit plugin `mine.wasm`: expected a WebAssembly component, found bytes of no known format
    help: mend the plugin, or name another one under [plugins] in lakebed.toml
    ");
    insta::assert_snapshot!(refused(b"\0asm\x01\0\0\0"), @r"
    exit code 3
    error: failed to admit plugin `mine.wasm`: expected a WebAssembly component, found a core module: build it for wasm32-wasip2, or wrap it with `wasm-tools component new`
    help: mend the plugin, or name another one under [plugins] in lakebed.toml
    ");
}

#[test]
fn settings_of_a_plugin_are_checked_by_the_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[plugin_config.scorer-ajlo-jis]\nepsilon = -1\n";
    fs::write(folder.path().join("lakebed.toml"), config).unwrap();
    let log = project("examples/logs/w1").display().to_string();
    insta::assert_snapshot!(lakebed(folder.path(), &["graph", &log]).failure(), @r"
    exit code 2
     WARN plugin failed error=call `configure` of plugin `scorer-ajlo-jis`: it reports invalid config: epsilon is -1, expected a number above 0
    error: failed to call `configure` of plugin `scorer-ajlo-jis`: it reports invalid config: epsilon is -1, expected a number above 0
    help: correct the plugin's settings, under [plugin_config] or in the chain
    ");
}

/// A user's copy of the shipped formula scores as the shipped one does.
#[test]
fn component_of_a_users_own_is_loaded_like_a_shipped_one() {
    let folder = tempfile::tempdir().unwrap();
    configured(folder.path(), lakebed_bundle::guest("scorer-ajlo-jis").expect("shipped").wasm);
    let log = project("examples/logs/w1").display().to_string();
    let own = lakebed(folder.path(), &["graph", &log, "--json"]).json();
    let shipped = lakebed(folder.path(), &["graph", &log, "--json", "--scorer", "ajlo-jis"]).json();
    assert_eq!((&own["edges"], &own["scorer"]), (&shipped["edges"], &shipped["scorer"]));
}

#[test]
fn check_and_inspect_say_of_an_attack_what_admission_would() {
    let folder = tempfile::tempdir().unwrap();
    configured(folder.path(), evil("wasi"));
    let inspected = lakebed(folder.path(), &["plugin", "inspect", "mine.wasm", "--json"]).json();
    assert_eq!(inspected["worlds"], serde_json::json!(["scorer"]));
    let imports = inspected["imports"].as_array().unwrap();
    assert!(imports.iter().any(|name| name.as_str().unwrap().starts_with("wasi:")), "{imports:?}");
    let checked = lakebed(folder.path(), &["plugin", "check", "mine.wasm"]);
    assert!(
        checked.failure().starts_with(
            "exit code 3\nerror: failed to admit plugin `mine.wasm`: it imports wasi:"
        )
    );
    let good = project("examples/logs/w1").display().to_string();
    lakebed(folder.path(), &["graph", &good, "--scorer", "bytes-saved"]).succeeded();
}
