//! One engine, and the thread that makes its clock tick.

use std::{
    convert::Infallible,
    fmt,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use wasmtime::{
    Config, Engine, EngineWeak, OptLevel, PoolingAllocationConfig, WasmBacktraceDetails,
};

use crate::{
    CallLimits, EngineLimits, Limits, SandboxError,
    limits::{
        CORE_INSTANCE_COUNT, FRAME_COUNT, INSTANCE_BYTES, MEMORY_COUNT, RESIDENT_BYTES,
        TABLE_COUNT, TABLE_ELEMENT_COUNT, TICK_MS,
    },
    registry::Registry,
};

/// Where plugins run. Cheap to clone; clones share the engine and the compiled components.
#[derive(Clone)]
pub struct Sandbox {
    pub(crate) host: Arc<Host>,
    pub(crate) limits: CallLimits,
}

/// What all plugins of an engine share.
pub(crate) struct Host {
    pub(crate) engine: Engine,
    pub(crate) ticker: Ticker,
    pub(crate) registry: Registry,
    pub(crate) limits: EngineLimits,
}

impl Sandbox {
    /// Starts an engine and its clock.
    ///
    /// # Errors
    /// Returns [`SandboxError::Engine`] when this machine cannot run it, and
    /// [`SandboxError::LimitAboveEngine`] when the limits contradict one another.
    pub fn new(limits: Limits) -> Result<Self, SandboxError> {
        let refused = |reason: String| SandboxError::Engine { reason };
        let engine = build(&limits.engine).map_err(|error| refused(format!("{error:#}")))?;
        let ticker = Ticker::start(engine.weak()).map_err(|error| refused(error.to_string()))?;
        let registry = Registry::new(limits.engine.compiled_count);
        let host = Arc::new(Host { engine, ticker, registry, limits: limits.engine });
        Self { host, limits: limits.call }.with_call_limits(limits.call)
    }

    /// Returns a sandbox on the same engine whose plugins have other limits, for another tenant.
    ///
    /// # Errors
    /// Returns [`SandboxError::LimitAboveEngine`] when the engine has no room for such plugins.
    pub fn with_call_limits(&self, limits: CallLimits) -> Result<Self, SandboxError> {
        let engine_bytes = self.host.limits.memory_bytes;
        if limits.memory_bytes > engine_bytes {
            return Err(SandboxError::LimitAboveEngine {
                limit_bytes: limits.memory_bytes,
                engine_bytes,
            });
        }
        Ok(Self { host: Arc::clone(&self.host), limits })
    }

    /// Returns the limits of this sandbox's plugins.
    #[must_use]
    pub const fn call_limits(&self) -> &CallLimits {
        &self.limits
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox")
            .field("engine_limits", &self.host.limits)
            .field("call_limits", &self.limits)
            .field("ticks", &self.host.ticker.beats.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}

/// Builds the engine with places for instances reserved ahead; where the machine does not grant the
/// addresses (a container with a small limit), places are made on demand.
fn build(limits: &EngineLimits) -> wasmtime::Result<Engine> {
    let mut config = configure(limits);
    config.allocation_strategy(pool(limits));
    Engine::new(&config).or_else(|error| {
        tracing::warn!(%error, "no pool of instances reserved; they are made on demand");
        Engine::new(&configure(limits))
    })
}

fn configure(limits: &EngineLimits) -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .concurrency_support(false)
        .epoch_interruption(true)
        .max_wasm_stack(limits.wasm_stack_bytes)
        .cranelift_opt_level(OptLevel::Speed)
        .memory_init_cow(true)
        // Registering unwind tables gets slow with many modules, and nothing unwinds through a guest.
        .native_unwind_info(false)
        .wasm_backtrace_max_frames(NonZeroUsize::new(FRAME_COUNT))
        .wasm_backtrace_details(WasmBacktraceDetails::Disable);
    // SIMD is deterministic and what kernels need. Everything else that a pure function over columns
    // can do without is off: relaxed SIMD differs between processors, the rest is surface.
    config
        .wasm_simd(true)
        .wasm_relaxed_simd(false)
        .wasm_threads(false)
        .wasm_memory64(false)
        .wasm_gc(false)
        .wasm_function_references(false)
        .wasm_exceptions(false)
        .wasm_tail_call(false);
    config
}

fn pool(limits: &EngineLimits) -> PoolingAllocationConfig {
    let instances = limits.instance_count;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        .total_core_instances(instances.saturating_mul(CORE_INSTANCE_COUNT))
        .total_memories(instances)
        .total_tables(instances.saturating_mul(TABLE_COUNT))
        .max_core_instances_per_component(CORE_INSTANCE_COUNT)
        .max_memories_per_component(MEMORY_COUNT)
        .max_tables_per_component(TABLE_COUNT)
        .max_memory_size(limits.memory_bytes)
        .table_elements(TABLE_ELEMENT_COUNT)
        .max_component_instance_size(INSTANCE_BYTES)
        .linear_memory_keep_resident(RESIDENT_BYTES)
        .max_unused_warm_slots(instances);
    pool
}

/// A thread of its own that advances the engine's epoch. It is no task of an async runtime, because a
/// guest that spins on a runtime's thread would starve it, and with it every deadline.
pub(crate) struct Ticker {
    beats: Arc<AtomicU64>,
    thread: JoinHandle<()>,
    /// Dropped with the ticker, which ends the thread.
    _stop: Sender<Infallible>,
}

impl Ticker {
    pub(crate) fn start(engine: EngineWeak) -> std::io::Result<Self> {
        let beats = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&beats);
        let (stop, stopped) = mpsc::channel::<Infallible>();
        let tick = Duration::from_millis(TICK_MS);
        let thread = thread::Builder::new().name("sandbox-clock".into()).spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(tick) {
                let Some(engine) = engine.upgrade() else { break };
                engine.increment_epoch();
                counter.fetch_add(1, Ordering::Relaxed);
            }
        })?;
        Ok(Self { beats, thread, _stop: stop })
    }

    /// Tells whether deadlines are kept.
    pub(crate) fn is_running(&self) -> bool {
        !self.thread.is_finished()
    }

    /// Returns how many ticks last at least as long.
    pub(crate) const fn ticks(deadline_ms: u64) -> u64 {
        // The first tick may come at once, so it does not count.
        deadline_ms.div_ceil(TICK_MS).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::Ticker;

    #[test]
    fn deadline_is_rounded_up_and_the_first_tick_is_free() {
        assert_eq!([0, 1, 5, 6, 100].map(Ticker::ticks), [1, 2, 2, 3, 21]);
    }
}
