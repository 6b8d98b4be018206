//! The complete list of what the host lends to guests: nothing.

use wasmtime::{
    Engine,
    component::{Component, InstancePre, Linker},
};

use crate::store::State;

/// Names everything that a component imports, functions and types alike.
pub(crate) fn imports(engine: &Engine, component: &Component) -> Vec<String> {
    component.component_type().imports(engine).map(|(name, _)| name.to_owned()).collect()
}

/// Names everything that a component exports.
pub(crate) fn exports(engine: &Engine, component: &Component) -> Vec<String> {
    component.component_type().exports(engine).map(|(name, _)| name.to_owned()).collect()
}

/// Links a component against nothing. Components with imports were refused by name before, so that
/// what they ask for is reported; they would fail here as well.
pub(crate) fn link(engine: &Engine, component: &Component) -> wasmtime::Result<InstancePre<State>> {
    Linker::new(engine).instantiate_pre(component)
}
