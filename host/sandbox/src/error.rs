//! What can go wrong, and how it is said.

use std::fmt;

use crate::World;

/// Why a plugin was not admitted, or a call gave no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SandboxError {
    /// The engine does not start with these limits on this machine.
    #[error("start the sandbox: {reason}")]
    Engine {
        /// What the engine says.
        reason: String,
    },
    /// A tenant's memory limit is above what the engine was built for.
    #[error(
        "set the limits of plugins: a memory limit of {limit_bytes} bytes, expected at most {engine_bytes}"
    )]
    LimitAboveEngine {
        /// The limit asked for.
        limit_bytes: usize,
        /// The largest that the engine allows.
        engine_bytes: usize,
    },
    /// The bytes are no component.
    #[error("admit plugin `{plugin}`: expected a WebAssembly component, found {found}")]
    NotComponent {
        /// The plugin.
        plugin: String,
        /// What the bytes are.
        found: NotComponent,
    },
    /// The bytes are a component that does not validate or uses what the engine does not offer.
    #[error("admit plugin `{plugin}`: the component cannot be compiled: {reason}")]
    Invalid {
        /// The plugin.
        plugin: String,
        /// What the compiler says.
        reason: String,
    },
    /// The component is larger than allowed.
    #[error("admit plugin `{plugin}`: it has {size_bytes} bytes, the limit is {limit_bytes}")]
    TooLarge {
        /// The plugin.
        plugin: String,
        /// Its size.
        size_bytes: usize,
        /// The largest size allowed.
        limit_bytes: usize,
    },
    /// The component asks for something.
    #[error(
        "admit plugin `{plugin}`: it imports {}; a policy plugin imports nothing: build it as `#![no_std]` with `lakebed-guest`, without clock, random numbers, files or printing",
        .imports.join(", ")
    )]
    Imports {
        /// The plugin.
        plugin: String,
        /// Everything it imports.
        imports: Vec<String>,
    },
    /// The component is of another kind.
    #[error("admit plugin `{plugin}`: expected world `{wanted}`, found {}", found_worlds(.found, .exports))]
    WrongWorld {
        /// The plugin.
        plugin: String,
        /// The world it should have.
        wanted: World,
        /// The worlds it has.
        found: Vec<World>,
        /// Everything it exports.
        exports: Vec<String>,
    },
    /// The component exports the names of the world, with other types.
    #[error("admit plugin `{plugin}`: its exports do not fit world `{world}`: {reason}")]
    WrongShape {
        /// The plugin.
        plugin: String,
        /// The world.
        world: World,
        /// What does not fit.
        reason: String,
    },
    /// What the plugin says about itself is not acceptable.
    #[error("admit plugin `{plugin}`: the {field} it gives itself {reason}")]
    Description {
        /// The plugin.
        plugin: String,
        /// The field of the description.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The configuration is longer than allowed.
    #[error(
        "configure plugin `{plugin}`: a configuration of {size_bytes} bytes, the limit is {limit_bytes}"
    )]
    ConfigTooLong {
        /// The plugin.
        plugin: String,
        /// Its size.
        size_bytes: usize,
        /// The largest size allowed.
        limit_bytes: usize,
    },
    /// The caller's own lists do not fit together.
    #[error("call `{function}` of plugin `{plugin}`: argument `{argument}` {reason}")]
    Argument {
        /// The plugin.
        plugin: String,
        /// The function.
        function: &'static str,
        /// The argument.
        argument: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The plugin reported a failure of its own.
    #[error("call `{function}` of plugin `{plugin}`: it reports {kind}: {message}")]
    Refused {
        /// The plugin.
        plugin: String,
        /// The function.
        function: &'static str,
        /// The kind of failure.
        kind: RefusalKind,
        /// The plugin's text, cut and with control characters escaped.
        message: String,
    },
    /// The guest crashed.
    #[error("call `{function}` of plugin `{plugin}`: it trapped: {trap}")]
    Trap {
        /// The plugin.
        plugin: String,
        /// The function.
        function: &'static str,
        /// What the trap is called.
        trap: String,
        /// The guest's functions on the stack, innermost first, as the compiler named them.
        frames: Vec<String>,
    },
    /// The guest did not end in time.
    #[error("call `{function}` of plugin `{plugin}`: it did not end within {limit_ms} ms")]
    Deadline {
        /// The plugin.
        plugin: String,
        /// The function.
        function: &'static str,
        /// The time it had.
        limit_ms: u64,
    },
    /// The guest wanted more memory than allowed.
    #[error(
        "call `{function}` of plugin `{plugin}`: it asked for {asked_bytes} bytes of memory, the limit is {limit_bytes}"
    )]
    Memory {
        /// The plugin.
        plugin: String,
        /// The function.
        function: &'static str,
        /// The memory it would have had.
        asked_bytes: usize,
        /// The most it may have.
        limit_bytes: usize,
    },
    /// The guest returned more than allowed.
    #[error("call `{function}` of plugin `{plugin}`: it returned more than {limit_bytes} bytes")]
    Output {
        /// The plugin.
        plugin: String,
        /// The function.
        function: &'static str,
        /// The most it may return.
        limit_bytes: usize,
    },
    /// A result has the wrong number of values.
    #[error("call `{function}` of plugin `{plugin}`: expected {expected} values, got {got}")]
    Length {
        /// The plugin.
        plugin: String,
        /// The function.
        function: &'static str,
        /// How many were right.
        expected: usize,
        /// How many came.
        got: usize,
    },
    /// A result has a NaN or an infinity.
    #[error(
        "call `{function}` of plugin `{plugin}`: expected finite values, got {value} at index {index}"
    )]
    NotFinite {
        /// The plugin.
        plugin: String,
        /// The function.
        function: &'static str,
        /// Where.
        index: usize,
        /// `NaN`, `inf` or `-inf`.
        value: String,
    },
    /// A result breaks another rule of its type.
    #[error("call `{function}` of plugin `{plugin}`: it gave {reason}")]
    BadResult {
        /// The plugin.
        plugin: String,
        /// The function.
        function: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// All places for instances are taken.
    #[error("start plugin `{plugin}`: all {limit_count} instances are in use")]
    Busy {
        /// The plugin.
        plugin: String,
        /// How many there are.
        limit_count: u32,
    },
    /// The thread that ends calls at their deadline is gone, so no call may begin.
    #[error("call `{function}` of plugin `{plugin}`: the clock of deadlines has stopped")]
    ClockStopped {
        /// The plugin.
        plugin: String,
        /// The function.
        function: &'static str,
    },
    /// The stream's instance went with an earlier error.
    #[error("call `{function}` of plugin `{plugin}`: the stream ended with an earlier error")]
    Ended {
        /// The plugin.
        plugin: String,
        /// The function.
        function: &'static str,
    },
}

/// What bytes are that are no component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotComponent {
    /// A core module.
    CoreModule,
    /// A component in the text format.
    Text,
    /// Machine code that a WebAssembly engine has written.
    Precompiled,
    /// Something else.
    Unknown,
}

impl fmt::Display for NotComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CoreModule => {
                "a core module: build it for wasm32-wasip2, or wrap it with `wasm-tools component new`"
            }
            Self::Text => "the text format: translate it with `wasm-tools parse`",
            Self::Precompiled => "machine code: give the component it was made from",
            Self::Unknown => "bytes of no known format",
        })
    }
}

/// The kinds of failure that a plugin can report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// The configuration cannot be used.
    InvalidConfig,
    /// The arguments or the data cannot be worked on.
    InvalidInput,
    /// The plugin does not do this.
    Unsupported,
    /// The plugin's own fault.
    Internal,
}

impl fmt::Display for RefusalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidConfig => "invalid config",
            Self::InvalidInput => "invalid input",
            Self::Unsupported => "unsupported",
            Self::Internal => "internal error",
        })
    }
}

fn found_worlds(found: &[World], exports: &[String]) -> String {
    let quoted: Vec<String> = found.iter().map(|world| format!("`{world}`")).collect();
    match (quoted.is_empty(), exports.is_empty()) {
        (false, _) => quoted.join(" and "),
        (true, false) => format!("none, but the exports {}", exports.join(", ")),
        (true, true) => "no exports".into(),
    }
}
