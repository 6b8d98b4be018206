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
#[test]
fn zz_measure() {
    use std::time::Instant;
    let s = Sandbox::new(Limits::STANDARD).unwrap();
    for g in lakebed_bundle::guests() {
        let c = if g.name == "row-filter-age-off" { r#"{"column":"c","period_seconds":1}"# } else { "{}" };
        let t = Instant::now();
        let p = s.admit(World::parse(g.world).unwrap(), g.name, g.wasm, c).unwrap();
        let cold = t.elapsed();
        let t = Instant::now();
        for _ in 0..100 { s.admit(World::parse(g.world).unwrap(), g.name, g.wasm, c).unwrap(); }
        eprintln!("{} {} cold {:?} warm admit {:?}", g.name, g.wasm.len(), cold, t.elapsed() / 100);
        if g.world == "scorer" {
            let t = Instant::now();
            for _ in 0..1000 { p.score(&EDGES).unwrap(); }
            eprintln!("   score {:?}", t.elapsed() / 1000);
        }
        if g.world == "row-filter" {
            let mut st = p.row_filter_stream().unwrap();
            let v: Vec<i64> = (0..8192).collect();
            let b = crate::Batch { row_count: 8192, columns: &[crate::Column { values: crate::ColumnValues::S64(&v), validity: None }] };
            let t = Instant::now();
            for _ in 0..10000 { st.select(5000, &b).unwrap(); }
            eprintln!("   select {} ns/row", t.elapsed().as_nanos() as f64 / 8192e4);
        }
        if g.world == "aggregator" {
            let mut st = p.aggregator_stream(&[crate::ColumnType::S64]).unwrap();
            let v: Vec<i64> = (0..8192).collect();
            let gr: Vec<u32> = (0..8192).map(|x| x % 1000).collect();
            let c = crate::Column { values: crate::ColumnValues::S64(&v), validity: None };
            let t = Instant::now();
            for _ in 0..1000 { st.update(&[c], &gr, None, 1000).unwrap(); }
            eprintln!("   update {} ns/row", t.elapsed().as_nanos() as f64 / 8192e3);
        }
    }
}
