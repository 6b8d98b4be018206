//! Bindings of the world `aggregator`, generated from `wit/aggregator.wit`.

wasmtime::component::bindgen!({
    world: "aggregator",
    path: "../../wit",
    ownership: Borrowing { duplicate_if_necessary: true },
});
