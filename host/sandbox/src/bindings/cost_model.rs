//! Bindings of the world `cost-model`, generated from `wit/cost-model.wit`.

wasmtime::component::bindgen!({
    world: "cost-model",
    path: "../../wit",
    ownership: Borrowing { duplicate_if_necessary: true },
});
