//! Every number that bounds a guest.

/// The limits of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// What is fixed when the sandbox starts.
    pub engine: EngineLimits,
    /// What can differ between tenants.
    pub call: CallLimits,
}

/// Limits that the engine is built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineLimits {
    /// How many instances can be alive at once, over all plugins. Each reserves 4 GiB of addresses,
    /// not of memory.
    pub instance_count: u32,
    /// The largest memory that any [`CallLimits::memory_bytes`] may allow.
    pub memory_bytes: usize,
    /// Stack of a guest, on the thread that calls it. The thread needs some more for the host.
    pub wasm_stack_bytes: usize,
    /// How many compiled components are kept for the next admission of the same bytes.
    pub compiled_count: usize,
}

/// Limits of one plugin's instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// Size of a component. It bounds compilation, which cannot be interrupted: about a second per
    /// MiB on one core.
    pub component_bytes: usize,
    /// Memory of an instance: the sum of its linear memories and tables.
    pub memory_bytes: usize,
    /// Wall-clock time for each of instantiation, `describe` and `configure`.
    pub init_deadline_ms: u64,
    /// Wall-clock time for any other call, a batch of rows included.
    pub call_deadline_ms: u64,
    /// Bytes that a call may return where the arguments do not say how many are right: the columns
    /// that leave an aggregator. All other calls may return what is right and 64 KiB more.
    pub output_bytes: usize,
    /// Length of a configuration.
    pub config_bytes: usize,
}

impl Limits {
    /// The limits of a host that serves itself: generous to honest plugins of its size, and bounded.
    pub const STANDARD: Self = Self {
        engine: EngineLimits {
            instance_count: 64,
            memory_bytes: 256 << 20,
            wasm_stack_bytes: 256 << 10,
            compiled_count: 64,
        },
        call: CallLimits {
            component_bytes: 1 << 20,
            memory_bytes: 64 << 20,
            init_deadline_ms: 500,
            call_deadline_ms: 2_000,
            output_bytes: 64 << 20,
            config_bytes: 64 << 10,
        },
    };
}

/// What a call may return beyond its right answer: the text of an error.
pub(crate) const SLACK_BYTES: usize = 64 << 10;
/// Bytes that are kept of a plugin's own error text.
pub(crate) const MESSAGE_BYTES: usize = 4096;
/// Length of a plugin's name.
pub(crate) const NAME_BYTES: usize = 64;
/// Length of a plugin's version.
pub(crate) const VERSION_BYTES: usize = 32;
/// Length of a plugin's documentation.
pub(crate) const DOC_BYTES: usize = 4096;
/// How many columns a row filter may ask for.
pub(crate) const FILTER_COLUMN_COUNT: usize = 64;
/// Length of a column's name.
pub(crate) const COLUMN_NAME_BYTES: usize = 255;
/// How many columns a fold may take, and how many its partial state may have.
pub(crate) const FOLD_COLUMN_COUNT: usize = 16;
/// Entries of a table; a guest's table holds its function pointers.
pub(crate) const TABLE_ELEMENT_COUNT: usize = 20_000;
/// What an entry of a table counts for in the memory of an instance.
pub(crate) const TABLE_ELEMENT_BYTES: usize = 8;
/// Handles to resources alive at once in an instance; an aggregator has one.
pub(crate) const HANDLE_COUNT: usize = 64;
/// Core instances of a component: one for a guest without `std`, three for one with.
pub(crate) const CORE_INSTANCE_COUNT: u32 = 6;
/// Linear memories of a component.
pub(crate) const MEMORY_COUNT: u32 = 1;
/// Tables of a component.
pub(crate) const TABLE_COUNT: u32 = 3;
/// The host's own bookkeeping for an instance.
pub(crate) const INSTANCE_BYTES: usize = 1 << 20;
/// Memory of an ended instance that stays with its place for the next one, zeroed.
pub(crate) const RESIDENT_BYTES: usize = 1 << 20;
/// How often the clock of deadlines ticks; a deadline is met within two ticks.
pub(crate) const TICK_MS: u64 = 5;
/// Frames of a trap's backtrace.
pub(crate) const FRAME_COUNT: usize = 16;
