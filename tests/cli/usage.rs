//! The verbs there are, and calls that name others.

use crate::support::{command_line, lakebed, lakebed_with, project};

/// Verbs of the contract; one that does not work yet is absent, not a stub.
const VERBS: [&str; 12] = [
    "demo",
    "collect",
    "graph",
    "plan",
    "apply",
    "watch",
    "drift",
    "explain",
    "sql",
    "compact",
    "plugin",
    "experiment",
];

#[test]
fn help_lists_the_verbs_that_exist_and_each_has_help_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let help = lakebed(folder.path(), &["--help"]);
    let commands = help.succeeded().stdout.split("Commands:\n").nth(1).expect("commands");
    let commands = commands.split("\n\n").next().unwrap_or_default();
    // A description that needs a second line is indented further.
    let verbs: Vec<&str> = commands
        .lines()
        .filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let mut expected = VERBS.to_vec();
    expected.push("help");
    assert_eq!(verbs, expected);
    for verb in VERBS {
        let help = lakebed(folder.path(), &[verb, "--help"]);
        let usage = format!("Usage: lakebed {verb} ");
        assert!(help.succeeded().stdout.contains(&usage), "{}", help.stdout);
    }
}

#[test]
fn unknown_verb_and_missing_argument_are_errors_of_usage() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(lakebed(folder.path(), &["grap"]).failure(), @r"
    exit code 2
    error: failed to read the command line: unrecognized subcommand 'grap'
    help: a similar subcommand exists: 'graph'; usage: lakebed [OPTIONS] <COMMAND>; see `--help`
    ");
    insta::assert_snapshot!(lakebed(folder.path(), &["graph"]).failure(), @r"
    exit code 2
    error: failed to read the command line: the following required arguments were not provided: <SOURCE>...
    help: usage: lakebed graph <SOURCE>...; see `--help`
    ");
    let text = lakebed(folder.path(), &["graph", "--json", "--nope"]).failure();
    let document: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(
        document["error"]["message"],
        "failed to read the command line: unexpected argument '--nope' found"
    );
    let text = lakebed(folder.path(), &[]).failure();
    assert!(text.starts_with("exit code 2\n") && text.contains("\nCommands:\n"), "{text}");
    assert!(text.ends_with(
        "\nerror: failed to run a command: none was given\nhelp: see `lakebed --help`\n"
    ));
}

/// What the caller asked for stands, whatever the environment says.
#[test]
fn quiet_is_quiet() {
    let folder = tempfile::tempdir().unwrap();
    let line = r#"{"ts":"2026-11-29T10:00:00Z","sql":"SELECT a.x FROM a JOIN b ON a.x = b.y"}"#;
    std::fs::write(folder.path().join("log.jsonl"), format!("no JSON\n{line}\n")).unwrap();
    let mut run = command_line(folder.path(), &["graph", "log.jsonl", "-q"]);
    let run = lakebed_with(run.env("RUST_LOG", "trace"));
    assert_eq!(run.succeeded().stderr, "");
}

#[test]
fn size_and_duration_are_checked_where_they_are_given() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(lakebed(folder.path(), &["plan", "log", "--budget", "20 potatoes"]).failure(), @r"
    exit code 2
    error: failed to read the command line: invalid value '20 potatoes' for '--budget <SIZE>': `20 potatoes` has unknown unit `potatoes`: expected B, KiB, MiB, GiB, TiB, KB, MB, GB or TB
    help: see `--help`
    ");
    insta::assert_snapshot!(lakebed(folder.path(), &["graph", "log", "--window", "7 days"]).failure(), @r"
    exit code 2
    error: failed to read the command line: invalid value '7 days' for '--window <DURATION>': `7 days` is not a duration: expected a number and ms, s, m, h, d or w
    help: see `--help`
    ");
}

#[test]
fn search_and_world_that_do_not_exist_are_refused_with_those_that_do() {
    let folder = tempfile::tempdir().unwrap();
    let log = project("examples/logs/w1").display().to_string();
    insta::assert_snapshot!(lakebed(folder.path(), &["plan", &log, "--search", "quantum"]).failure(), @r"
    exit code 2
    error: failed to plan with search `quantum`: there is no such search
    help: choose one of: exact, seeded, greedy
    ");
    std::fs::write(folder.path().join("a.wasm"), b"\0asm\x0d\0\x01\0").unwrap();
    insta::assert_snapshot!(lakebed(folder.path(), &["plugin", "check", "a.wasm", "--world", "scorers"]).failure(), @r"
    exit code 2
    error: failed to check for world `scorers`: there is no such world
    help: worlds are: scorer, cost-model, drift-meter, row-filter, aggregator
    ");
}

#[test]
fn output_to_a_pipe_has_no_escape_codes() {
    let folder = tempfile::tempdir().unwrap();
    let log = project("examples/logs/w1").display().to_string();
    for arguments in [
        ["graph", log.as_str()].as_slice(),
        &["graph", "nothing"],
        &["plugin", "list"],
        &["graph"],
        &["--help"],
    ] {
        for (name, value) in [("NO_COLOR", "1"), ("CLICOLOR_FORCE", "0")] {
            let run = lakebed_with(command_line(folder.path(), arguments).env(name, value));
            assert!(!run.stdout.contains('\u{1b}') && !run.stderr.contains('\u{1b}'), "{run:?}");
        }
    }
}

#[test]
fn every_shipped_plugin_is_listed_and_the_three_formulas_are_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let list = lakebed(folder.path(), &["plugin", "list", "--json"]).json();
    let list = list.as_array().unwrap();
    let names: Vec<&str> = list.iter().filter_map(|plugin| plugin["name"].as_str()).collect();
    let shipped: Vec<&str> = lakebed_bundle::guests().iter().map(|guest| guest.name).collect();
    assert_eq!(names, shipped);
    let in_use: Vec<&str> = list
        .iter()
        .filter(|plugin| plugin["in_use"] == true)
        .filter_map(|plugin| plugin["name"].as_str())
        .collect();
    assert_eq!(in_use, ["cost-model-npv", "drift-meter-ajlo", "scorer-ajlo-jis"]);
}
