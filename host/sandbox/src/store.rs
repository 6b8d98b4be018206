//! One store per instance, its limits, and the one way to call into it.

use std::{fmt, sync::Arc};

use wasmtime::{Error, PoolConcurrencyLimitError, ResourceLimiter, Store, Trap, WasmBacktrace};

use crate::{
    CallLimits, SandboxError,
    checked::Flaw,
    engine::{Host, Ticker},
    limits::{HANDLE_COUNT, TABLE_ELEMENT_BYTES},
};

/// What the engine keeps for an instance.
pub(crate) struct State {
    limiter: Limiter,
}

/// Adds up what an instance holds in all its memories and tables.
#[derive(Debug)]
struct Limiter {
    used_bytes: usize,
    limit_bytes: usize,
}

impl Limiter {
    fn grow(&mut self, current_bytes: usize, desired_bytes: usize) -> Result<(), MemoryExceeded> {
        let asked_bytes =
            self.used_bytes.saturating_sub(current_bytes).saturating_add(desired_bytes);
        if asked_bytes > self.limit_bytes {
            return Err(MemoryExceeded { asked_bytes, limit_bytes: self.limit_bytes });
        }
        self.used_bytes = asked_bytes;
        Ok(())
    }
}

/// An error and not `Ok(false)`, so that the report says what happened and not that a guest, finding
/// no memory, ran into `unreachable`.
impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.grow(current, desired)?;
        Ok(maximum.is_none_or(|maximum| desired <= maximum))
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let bytes = |elements: usize| elements.saturating_mul(TABLE_ELEMENT_BYTES);
        self.grow(bytes(current), bytes(desired))?;
        Ok(maximum.is_none_or(|maximum| desired <= maximum))
    }
}

/// Crosses the engine from the limiter to [`Session::call`].
#[derive(Debug)]
struct MemoryExceeded {
    asked_bytes: usize,
    limit_bytes: usize,
}

impl fmt::Display for MemoryExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of memory, the limit is {}", self.asked_bytes, self.limit_bytes)
    }
}

impl std::error::Error for MemoryExceeded {}

/// A store and what is needed to call into it.
pub(crate) struct Session {
    store: Store<State>,
    host: Arc<Host>,
    plugin: Arc<str>,
    limits: CallLimits,
}

/// A call that is to be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    /// The function, as `wit/` names it.
    pub(crate) function: &'static str,
    /// The most it may return.
    pub(crate) output_bytes: usize,
    /// The time it has.
    pub(crate) deadline_ms: u64,
}

impl Session {
    pub(crate) fn new(host: &Arc<Host>, plugin: &Arc<str>, limits: CallLimits) -> Self {
        let limiter = Limiter { used_bytes: 0, limit_bytes: limits.memory_bytes };
        let mut store = Store::new(&host.engine, State { limiter });
        store.limiter(|state| &mut state.limiter);
        store.set_max_component_handles(HANDLE_COUNT);
        Self { store, host: Arc::clone(host), plugin: Arc::clone(plugin), limits }
    }

    pub(crate) const fn limits(&self) -> &CallLimits {
        &self.limits
    }

    pub(crate) fn plugin(&self) -> &str {
        &self.plugin
    }

    /// Returns the memory that the instance holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.store.data().limiter.used_bytes
    }

    /// Runs `work`, which enters the guest, under the call's limits.
    ///
    /// After an error the store must not be used again; the engine would refuse it.
    pub(crate) fn call<R>(
        &mut self,
        call: Call,
        work: impl FnOnce(&mut Store<State>) -> wasmtime::Result<R>,
    ) -> Result<R, SandboxError> {
        if !self.host.ticker.is_running() {
            return Err(SandboxError::ClockStopped {
                plugin: self.plugin().into(),
                function: call.function,
            });
        }
        self.store.set_epoch_deadline(Ticker::ticks(call.deadline_ms));
        self.store.set_hostcall_fuel(call.output_bytes);
        work(&mut self.store).map_err(|error| self.fault(call, &error))
    }

    /// Says what an error of the engine means.
    fn fault(&self, call: Call, error: &Error) -> SandboxError {
        let plugin = self.plugin().to_owned();
        let function = call.function;
        if let Some(exceeded) = error.downcast_ref::<MemoryExceeded>() {
            let MemoryExceeded { asked_bytes, limit_bytes } = *exceeded;
            return SandboxError::Memory { plugin, function, asked_bytes, limit_bytes };
        }
        if error.is::<PoolConcurrencyLimitError>() {
            let limit_count = self.host.limits.instance_count;
            return SandboxError::Busy { plugin, limit_count };
        }
        match error.downcast_ref::<Trap>() {
            Some(Trap::Interrupt) => {
                SandboxError::Deadline { plugin, function, limit_ms: call.deadline_ms }
            }
            Some(trap) => SandboxError::Trap {
                plugin,
                function,
                trap: trap.to_string().trim_start_matches("wasm trap: ").to_owned(),
                frames: frames(error),
            },
            None => {
                let reason = error.root_cause().to_string();
                // The engine keeps the type of this error to itself; a test holds the text.
                if reason.contains("fuel allocated for hostcalls") {
                    return SandboxError::Output {
                        plugin,
                        function,
                        limit_bytes: call.output_bytes,
                    };
                }
                SandboxError::BadResult { plugin, function, reason }
            }
        }
    }

    /// Says what is wrong with a result.
    pub(crate) fn flaw(&self, function: &'static str, flaw: Flaw) -> SandboxError {
        let plugin = self.plugin().to_owned();
        match flaw {
            Flaw::Length { expected, got } => {
                SandboxError::Length { plugin, function, expected, got }
            }
            Flaw::NotFinite { index, value } => {
                SandboxError::NotFinite { plugin, function, index, value: value.to_string() }
            }
            Flaw::Other(reason) => SandboxError::BadResult { plugin, function, reason },
        }
    }
}

/// Names the guest's functions on the stack of a trap, innermost first.
fn frames(error: &Error) -> Vec<String> {
    error.downcast_ref::<WasmBacktrace>().map_or_else(Vec::new, |backtrace| {
        let name = |frame: &wasmtime::FrameInfo| {
            frame
                .func_name()
                .map_or_else(|| format!("function {}", frame.func_index()), ToOwned::to_owned)
        };
        backtrace.frames().iter().map(name).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::Limiter;

    #[test]
    fn limiter_adds_up_all_memories_and_tables() {
        let mut limiter = Limiter { used_bytes: 0, limit_bytes: 100 };
        assert!(limiter.grow(0, 60).is_ok());
        assert!(limiter.grow(0, 30).is_ok());
        assert!(limiter.grow(60, 70).is_ok());
        let error = limiter.grow(30, 31).expect_err("70 + 31 exceeds 100");
        assert_eq!((error.asked_bytes, error.limit_bytes), (101, 100));
        assert_eq!(limiter.used_bytes, 100);
    }
}
