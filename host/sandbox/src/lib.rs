//! Runs policy plugins: WebAssembly components that import nothing, under limits.
//!
//! A [`Sandbox`] admits the bytes of a component as a [`Plugin`] of one [`World`]: it compiles them,
//! refuses any import by name, checks the exports against the world, asks the plugin who it is and
//! lets it check its configuration. A plugin is then called with plain slices and answers with plain
//! vectors, whose length and finiteness are checked.
//!
//! Isolation: every call of a scorer, cost model or drift meter gets a fresh instance, so a result is a
//! function of arguments and configuration. A [`RowFilterStream`] or [`AggregatorStream`] has one
//! instance for its whole life, and belongs to one partition of one job. After any error the instance
//! is gone; the host and all other instances go on. Nothing is shared between instances but compiled
//! code, which does not change.
//!
//! Every number that bounds a guest is in [`Limits`]. Calls run on the caller's thread and use up to
//! [`EngineLimits::wasm_stack_bytes`] of its stack; they must not run on a thread that an async runtime
//! needs for other work.
//!
//! What is absent: the sandbox knows no stage and no Arrow, reads no file, and keeps no compiled code
//! on disk. Compilation itself is bounded only by the component's size.
//!
//! Tracing: `debug` per admitted plugin (`plugin`, `world`, `digest`, `size_bytes`); `warn` per fault of
//! a guest (`error`, whose text names plugin and function), and when the pool of instances cannot be reserved.

mod bindings;
mod checked;
mod columns;
mod engine;
mod error;
mod front;
mod inspect;
mod limits;
mod linker;
mod plugin;
mod registry;
mod store;
mod world;

pub use columns::{
    Batch, Column, ColumnType, ColumnValues, OwnedColumn, OwnedValues, OwnedVarBytes,
};
pub use engine::Sandbox;
pub use error::{NotComponent, RefusalKind, SandboxError};
pub use front::{
    AggregatorStream, CandidateColumns, EdgeColumns, EmitTo, FoldSignature, PricingSettings,
    Reading, RowFilterStream,
};
pub use inspect::Inspection;
pub use limits::{CallLimits, EngineLimits, Limits};
pub use plugin::Plugin;
pub use world::World;

#[cfg(test)]
mod tests;
