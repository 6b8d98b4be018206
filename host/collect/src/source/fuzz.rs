//! Properties that are tried for a while rather than a number of times.

use std::time::{Duration, Instant};

use proptest::{
    strategy::Strategy,
    test_runner::{Config, TestCaseResult, TestRunner},
};

/// Says for how many seconds each property is tried.
const VARIABLE: &str = "LAKEBED_FUZZ_SECONDS";
/// Cases that are tried at least, and between two looks at the clock.
const CASES: u32 = 64;

/// Tries a property on random values; a case that fails is shown at its smallest.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "a test is told how long it may take")]
pub(crate) fn run<S: Strategy>(values: &S, property: impl Fn(S::Value) -> TestCaseResult) {
    let seconds = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let started = Instant::now();
    loop {
        let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
        if let Err(failure) = TestRunner::new(config).run(values, &property) {
            panic!("{failure}");
        }
        if started.elapsed() >= Duration::from_secs(seconds) {
            return;
        }
    }
}
