//! Bindings of the world `row-filter`, generated from `wit/row-filter.wit`.

wasmtime::component::bindgen!({
    world: "row-filter",
    path: "../../wit",
    ownership: Borrowing { duplicate_if_necessary: true },
});
