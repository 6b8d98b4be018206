//! Bindings of the world `drift-meter`, generated from `wit/drift-meter.wit`.

wasmtime::component::bindgen!({
    world: "drift-meter",
    path: "../../wit",
    ownership: Borrowing { duplicate_if_necessary: true },
});
