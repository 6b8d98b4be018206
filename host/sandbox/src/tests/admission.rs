//! What is admitted, and what is said to the rest.

use std::{sync::Arc, thread};

use super::{SANDBOX, evil, evil_guest, sandbox, shipped};
use crate::{
    EdgeColumns, Limits, Sandbox, SandboxError, World,
    engine::{Host, Ticker},
    registry::Registry,
};

#[track_caller]
fn refusal(wasm: &[u8]) -> String {
    sandbox().admit(World::Scorer, "mine", wasm, "{}").expect_err("refused").to_string()
}

#[test]
fn every_shipped_guest_is_admitted_and_says_who_it_is() {
    let configs = |name: &str| match name {
        "row-filter-age-off" => r#"{"column":"c","period_seconds":1}"#,
        "row-filter-hash-sample" => r#"{"column":"c","keep_per_million":1}"#,
        "row-filter-visibility" => r#"{"column":"c","authorizations":[]}"#,
        _ => "{}",
    };
    let described: Vec<String> = lakebed_bundle::guests()
        .iter()
        .map(|guest| {
            let plugin = shipped(guest.name, configs(guest.name));
            assert!(!plugin.doc().is_empty() && plugin.digest().len() == 7 + 64);
            format!("{} {}@{}", plugin.world(), plugin.name(), plugin.version())
        })
        .collect();
    insta::assert_snapshot!(described.join("\n"), @r"
    aggregator sum@0.1.0
    cost-model npv@0.1.0
    drift-meter ajlo@0.1.0
    drift-meter weighted@0.1.0
    row-filter age-off@0.1.0
    row-filter hash-sample@0.1.0
    row-filter visibility@0.1.0
    scorer ajlo-jis@0.1.0
    scorer bytes-saved@0.1.0
    ");
}

#[test]
fn shipped_guests_import_nothing_and_belong_to_one_world() {
    for guest in lakebed_bundle::guests() {
        let inspection = SANDBOX.inspect(guest.name, guest.wasm).expect("a component");
        assert_eq!(inspection.imports, [""; 0], "{}", guest.name);
        assert_eq!(inspection.worlds, [World::parse(guest.world).expect("a world")]);
        assert_eq!(inspection.size_bytes, guest.wasm.len());
    }
}

#[test]
fn bytes_that_are_no_component_are_told_apart() {
    insta::assert_snapshot!(
        refusal(b"\0asm\x01\0\0\0"),
        @"admit plugin `mine`: expected a WebAssembly component, found a core module: build it for wasm32-wasip2, or wrap it with `wasm-tools component new`"
    );
    insta::assert_snapshot!(
        refusal(b"  (component)"),
        @"admit plugin `mine`: expected a WebAssembly component, found the text format: translate it with `wasm-tools parse`"
    );
    insta::assert_snapshot!(
        refusal(b"\x7fELF\x02\x01\x01"),
        @"admit plugin `mine`: expected a WebAssembly component, found machine code: give the component it was made from"
    );
    insta::assert_snapshot!(
        refusal(b"hello"),
        @"admit plugin `mine`: expected a WebAssembly component, found bytes of no known format"
    );
    let trap = evil_guest("trap").wasm;
    let cut = refusal(&trap[..trap.len() / 2]);
    assert!(cut.starts_with("admit plugin `mine`: the component cannot be compiled: "), "{cut}");
}

#[test]
fn empty_component_exports_nothing() {
    insta::assert_snapshot!(
        refusal(b"\0asm\x0d\0\x01\0"),
        @"admit plugin `mine`: expected world `scorer`, found no exports"
    );
}

#[test]
fn component_above_the_limit_is_refused_before_it_is_read() {
    let mut limits = Limits::STANDARD.call;
    limits.component_bytes = 1000;
    let small = SANDBOX.with_call_limits(limits).expect("limits");
    let refused = small.admit(World::Scorer, "mine", &[0; 1001], "{}");
    insta::assert_snapshot!(
        refused.expect_err("too large").to_string(),
        @"admit plugin `mine`: it has 1001 bytes, the limit is 1000"
    );
}

#[test]
fn imports_are_refused_by_name_and_nothing_runs() {
    let error = evil("wasi").expect_err("it wants the clock");
    let SandboxError::Imports { imports, .. } = &error else { panic!("{error}") };
    assert!(
        imports.iter().any(|name| name.starts_with("wasi:clocks/wall-clock@0.2.")),
        "{imports:?}"
    );
    let text = error.to_string();
    assert!(text.starts_with("admit plugin `wasi`: it imports "), "{text}");
    for name in imports {
        assert!(text.contains(name), "{text}");
    }
    let advice = "; a policy plugin imports nothing: build it as `#![no_std]` with `lakebed-guest`, without clock, random numbers, files or printing";
    assert!(text.ends_with(advice), "{text}");
}

#[test]
fn plugin_of_another_world_is_named_at_admission_and_at_calls() {
    let meter = lakebed_bundle::guest("drift-meter-ajlo").expect("shipped");
    let expected = "admit plugin `mine`: expected world `scorer`, found `drift-meter`";
    assert_eq!(refusal(meter.wasm), expected);
    let plugin = shipped("drift-meter-ajlo", "{}");
    let refused = plugin.score(&super::EDGES).expect_err("no scorer").to_string();
    assert_eq!(refused, expected.replace("mine", "drift-meter-ajlo"));
}

#[test]
fn configuration_is_refused_with_the_plugins_reason() {
    let jis = lakebed_bundle::guest("scorer-ajlo-jis").expect("shipped");
    let refused = |config: &str| {
        SANDBOX.admit(World::Scorer, "jis", jis.wasm, config).expect_err("refused").to_string()
    };
    insta::assert_snapshot!(
        refused(r#"{"hepsilon":1}"#),
        @"call `configure` of plugin `jis`: it reports invalid config: unknown field `hepsilon`, expected `epsilon` at line 1 column 11"
    );
    insta::assert_snapshot!(
        refused(r#"{"epsilon":-1}"#),
        @"call `configure` of plugin `jis`: it reports invalid config: epsilon is -1, expected a number above 0"
    );
    let long = " ".repeat(65_537);
    insta::assert_snapshot!(
        refused(&long),
        @"configure plugin `jis`: a configuration of 65537 bytes, the limit is 65536"
    );
}

#[test]
fn arguments_are_checked_before_an_instance_is_made() {
    let plugin = shipped("scorer-ajlo-jis", "{}");
    let ragged = EdgeColumns { confidence: &[1.0], ..super::EDGES };
    insta::assert_snapshot!(
        plugin.score(&ragged).expect_err("ragged").to_string(),
        @"call `score` of plugin `scorer-ajlo-jis`: argument `confidence` has 1 values, expected 3"
    );
    let infinite = EdgeColumns { cost_ms_mean: &[1.0, f64::INFINITY, 2.0], ..super::EDGES };
    insta::assert_snapshot!(
        plugin.score(&infinite).expect_err("infinite").to_string(),
        @"call `score` of plugin `scorer-ajlo-jis`: argument `cost-ms-mean` has inf at index 1, expected finite values"
    );
}

#[test]
fn limit_above_the_engines_is_refused() {
    let mut limits = Limits::STANDARD.call;
    limits.memory_bytes = (256 << 20) + 1;
    insta::assert_snapshot!(
        SANDBOX.with_call_limits(limits).expect_err("above").to_string(),
        @"set the limits of plugins: a memory limit of 268435457 bytes, expected at most 268435456"
    );
}

#[test]
fn same_bytes_are_compiled_once_and_the_oldest_are_let_go() {
    let mut limits = Limits::STANDARD;
    limits.engine.instance_count = 4;
    limits.engine.compiled_count = 2;
    let sandbox = Sandbox::new(limits).expect("an engine");
    let wasm = |name| lakebed_bundle::guest(name).expect("shipped").wasm;
    let first = sandbox.admit(World::Scorer, "a", wasm("scorer-bytes-saved"), "{}").expect("a");
    sandbox.admit(World::Scorer, "b", wasm("scorer-bytes-saved"), "{}").expect("b");
    assert_eq!(sandbox.host.registry.len(), 1);
    sandbox.admit(World::Scorer, "c", wasm("scorer-ajlo-jis"), "{}").expect("c");
    sandbox.admit(World::CostModel, "d", wasm("cost-model-npv"), "{}").expect("d");
    assert_eq!(sandbox.host.registry.len(), 2);
    first.score(&super::EDGES).expect("an admitted plugin outlives the registry's entry");
}

#[test]
fn instances_beyond_the_pool_are_refused_and_places_come_back() {
    let mut limits = Limits::STANDARD;
    limits.engine.instance_count = 2;
    let sandbox = Sandbox::new(limits).expect("an engine");
    let guest = lakebed_bundle::guest("row-filter-age-off").expect("shipped");
    let config = r#"{"column":"c","period_seconds":1}"#;
    let plugin = sandbox.admit(World::RowFilter, "filter", guest.wasm, config).expect("admitted");
    let first = plugin.row_filter_stream().expect("one");
    let _second = plugin.row_filter_stream().expect("two");
    insta::assert_snapshot!(
        plugin.row_filter_stream().expect_err("three").to_string(),
        @"start plugin `filter`: all 2 instances are in use"
    );
    drop(first);
    plugin.row_filter_stream().expect("a place came back");
}

#[test]
fn shape_of_exports_is_compared_and_not_only_their_names() {
    let error = evil("shape").expect_err("its score takes one list");
    let text = error.to_string();
    let beginning = "admit plugin `shape`: its exports do not fit world `scorer`: ";
    assert!(matches!(error, SandboxError::WrongShape { world: World::Scorer, .. }), "{text}");
    assert!(text.starts_with(beginning) && text.len() > beginning.len(), "{text}");
}

#[test]
fn no_guest_is_entered_without_a_clock_for_its_deadline() {
    // The clock's engine is gone at once, so its thread ends with the first tick.
    let ticker = Ticker::start(wasmtime::Engine::default().weak()).expect("a thread");
    while ticker.is_running() {
        thread::yield_now();
    }
    let host = Host {
        engine: SANDBOX.host.engine.clone(),
        ticker,
        registry: Registry::new(1),
        limits: SANDBOX.host.limits,
    };
    let stopped = Sandbox { host: Arc::new(host), limits: SANDBOX.limits };
    let wasm = lakebed_bundle::guest("scorer-ajlo-jis").expect("shipped").wasm;
    insta::assert_snapshot!(
        stopped.admit(World::Scorer, "jis", wasm, "{}").expect_err("no clock").to_string(),
        @"call `instantiate` of plugin `jis`: the clock of deadlines has stopped"
    );
}

#[test]
fn engine_that_cannot_start_says_why() {
    let mut limits = Limits::STANDARD;
    limits.engine.wasm_stack_bytes = 0;
    let text = Sandbox::new(limits).expect_err("no stack").to_string();
    assert!(text.starts_with("start the sandbox: ") && text.contains("stack"), "{text}");
}
