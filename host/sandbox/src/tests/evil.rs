//! Each attack ends with an error that names it, and the next guest on the same engine is well.

use std::thread;

use super::{EDGES, assert_close, evil, evil_guest, sandbox, shipped};
use crate::{EdgeColumns, Limits, SandboxError, World};

/// Admits an attack, lets it score, and returns what it failed with.
#[track_caller]
fn attack(name: &str) -> SandboxError {
    let error = evil(name).and_then(|plugin| plugin.score(&EDGES)).expect_err("an attack fails");
    let scores = shipped("scorer-ajlo-jis", "{}").score(&EDGES).expect("the host is alive");
    assert_close(&scores, &[0.0, 0.125, 1.0]);
    error
}

#[test]
fn spin_ends_at_the_deadline_of_calls() {
    insta::assert_snapshot!(
        attack("spin"),
        @"call `score` of plugin `spin`: it did not end within 100 ms"
    );
}

#[test]
fn spin_configure_ends_at_the_deadline_of_starting() {
    insta::assert_snapshot!(
        attack("spin-configure"),
        @"call `configure` of plugin `spin-configure`: it did not end within 100 ms"
    );
}

#[test]
fn trap_reports_its_code_and_its_frames() {
    let error = attack("trap");
    insta::assert_snapshot!(
        error,
        @"call `score` of plugin `trap`: it trapped: wasm `unreachable` instruction executed"
    );
    let SandboxError::Trap { frames, .. } = error else { panic!("{error}") };
    assert!(frames.iter().any(|frame| frame.contains("scoring@0.1.0#score")), "{frames:?}");
}

#[test]
fn recurse_exhausts_the_guests_stack_and_not_the_hosts() {
    // The stack that tokio gives its workers; the test harness would give the same by default.
    let small = thread::Builder::new().stack_size(2 << 20);
    let run = small.spawn(|| attack("recurse")).expect("a thread");
    insta::assert_snapshot!(
        run.join().expect("the thread survives"),
        @"call `score` of plugin `recurse`: it trapped: call stack exhausted"
    );
}

#[test]
fn alloc_stops_at_the_memory_limit() {
    let error = attack("alloc");
    let SandboxError::Memory { function: "score", asked_bytes, limit_bytes, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(limit_bytes, 8 << 20);
    assert!((limit_bytes + 1..limit_bytes + (3 << 20)).contains(&asked_bytes), "{asked_bytes}");
}

#[test]
fn large_arguments_count_as_memory_of_the_guest() {
    let edges = vec![1.0; 500_000];
    let columns = EdgeColumns {
        frequency: &edges,
        rows_product_mean: &edges,
        cost_ms_mean: &edges,
        bytes_mean: &edges,
        confidence: &edges,
    };
    let guest = lakebed_bundle::guest("scorer-bytes-saved").expect("shipped");
    let plugin = sandbox().admit(World::Scorer, "big", guest.wasm, "{}").expect("admitted");
    let error = plugin.score(&columns).expect_err("20 MB do not fit 8 MiB");
    assert!(matches!(error, SandboxError::Memory { .. }), "{error}");
}

#[test]
fn flood_stops_before_the_host_takes_it_in() {
    let mut limits = Limits::STANDARD.call;
    limits.memory_bytes = 64 << 20;
    let roomy = sandbox().with_call_limits(limits).expect("limits");
    let plugin =
        roomy.admit(World::Scorer, "flood", evil_guest("flood").wasm, "{}").expect("admitted");
    insta::assert_snapshot!(
        plugin.score(&EDGES).expect_err("16 MB for 3 scores"),
        @"call `score` of plugin `flood`: it returned more than 65560 bytes"
    );
}

#[test]
fn short_and_long_lists_are_counted() {
    insta::assert_snapshot!(
        attack("short"),
        @"call `score` of plugin `short`: expected 3 values, got 2"
    );
    insta::assert_snapshot!(
        attack("long"),
        @"call `score` of plugin `long`: expected 3 values, got 4"
    );
}

#[test]
fn nan_and_infinite_scores_are_refused_with_their_place() {
    insta::assert_snapshot!(
        attack("nan"),
        @"call `score` of plugin `nan`: expected finite values, got NaN at index 2"
    );
    insta::assert_snapshot!(
        attack("infinite"),
        @"call `score` of plugin `infinite`: expected finite values, got -inf at index 0"
    );
}

#[test]
fn babble_is_not_taken_in() {
    insta::assert_snapshot!(
        attack("babble"),
        @"call `describe` of plugin `babble`: it returned more than 4192 bytes"
    );
}

#[test]
fn escape_reaches_no_terminal_and_no_second_line() {
    let text = attack("escape").to_string();
    let beginning = "call `configure` of plugin `escape`: it reports internal error: \\u{1b}[2Jgone\\n2026-01-01 INFO all is wellé";
    assert!(text.starts_with(beginning), "{text}");
    assert!(text.ends_with("é…") && text.len() < 4_300, "{}", text.len());
    assert!(!text.chars().any(char::is_control));
}

#[test]
fn counter_cannot_count_because_every_call_has_a_fresh_instance() {
    let plugin = evil("counter").expect("admitted");
    for _ in 0..3 {
        assert_eq!(plugin.score(&EDGES), Ok(vec![0.0; 3]));
    }
}

#[test]
fn spinning_neighbours_do_not_keep_others_from_their_results() {
    let spinners: Vec<_> = (0..3).map(|_| thread::spawn(|| attack("spin"))).collect();
    let plugin = shipped("scorer-ajlo-jis", "{}");
    for _ in 0..20 {
        assert_close(&plugin.score(&EDGES).expect("scores"), &[0.0, 0.125, 1.0]);
    }
    for spinner in spinners {
        let error = spinner.join().expect("no panic");
        assert!(matches!(error, SandboxError::Deadline { limit_ms: 100, .. }), "{error}");
    }
}
