//! Shipped and hostile guests in a real sandbox.

mod admission;
mod evil;
mod formulas;
mod rows;

use std::sync::LazyLock;

use crate::{EdgeColumns, Limits, Plugin, Sandbox, SandboxError, World};

/// One engine for all tests, as in a host.
static SANDBOX: LazyLock<Sandbox> =
    LazyLock::new(|| Sandbox::new(Limits::STANDARD).expect("the engine starts on a test machine"));

/// Returns the shared sandbox with a short deadline, so that attacks on it end soon.
fn sandbox() -> Sandbox {
    let mut limits = Limits::STANDARD.call;
    limits.call_deadline_ms = 100;
    limits.init_deadline_ms = 100;
    limits.memory_bytes = 8 << 20;
    SANDBOX.with_call_limits(limits).expect("8 MiB are below the engine's limit")
}

fn shipped(name: &str, config: &str) -> Plugin {
    let guest = lakebed_bundle::guest(name).expect("the bundle has the guest");
    let world = World::parse(guest.world).expect("the bundle names a world");
    SANDBOX.admit(world, guest.name, guest.wasm, config).expect("a shipped guest is admitted")
}

fn evil_guest(name: &str) -> &'static lakebed_bundle::Guest {
    let mut guests = lakebed_bundle::evil().iter();
    guests.find(|guest| guest.name == name).expect("the bundle has the attack")
}

fn evil(name: &str) -> Result<Plugin, SandboxError> {
    let guest = evil_guest(name);
    let world = World::parse(guest.world).expect("the bundle names a world");
    sandbox().admit(world, name, guest.wasm, "{}")
}

/// Three edges: the weakest, the middle and the strongest in every statistic.
const EDGES: EdgeColumns<'static> = EdgeColumns {
    frequency: &[0.0, 5.0, 10.0],
    rows_product_mean: &[0.0, 9.0, 99.0],
    cost_ms_mean: &[0.0, 50.0, 100.0],
    bytes_mean: &[100.0, 100.0, 100.0],
    confidence: &[1.0, 1.0, 1.0],
};

#[track_caller]
fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{found:?} {expected:?}");
    for (found, expected) in found.iter().zip(expected) {
        let scale = expected.abs().max(1.0);
        assert!((found - expected).abs() <= 1e-7 * scale, "found {found}, expected {expected}");
    }
}
