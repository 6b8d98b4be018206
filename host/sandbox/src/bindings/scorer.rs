//! Bindings of the world `scorer`, generated from `wit/scorer.wit`.

wasmtime::component::bindgen!({
    world: "scorer",
    path: "../../wit",
    ownership: Borrowing { duplicate_if_necessary: true },
});
