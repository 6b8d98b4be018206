//! Instances of any world: made, described, configured, called.

use std::sync::Arc;

use wasmtime::{Store, component::InstancePre};

use crate::{
    CallLimits, RefusalKind, SandboxError, World,
    bindings::{
        aggregator::{Aggregator, AggregatorPre},
        cost_model::{CostModel, CostModelPre},
        drift_meter::{DriftMeter, DriftMeterPre},
        row_filter::{RowFilter, RowFilterPre},
        scorer::{Scorer, ScorerPre},
    },
    checked,
    engine::Host,
    limits::{DOC_BYTES, NAME_BYTES, SLACK_BYTES, VERSION_BYTES},
    store::{Call, Session, State},
};

const INSTANTIATE: &str = "instantiate";

/// What a plugin says about itself.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) doc: String,
}

/// A failure that a plugin reports, as it came.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) kind: RefusalKind,
    pub(crate) message: String,
}

/// What the bindings of all worlds can do.
pub(crate) trait Bound: Sized {
    /// A component with its exports found, ready to be instantiated.
    type Pre;

    fn prepare(linked: InstancePre<State>) -> wasmtime::Result<Self::Pre>;
    fn instantiate(prepared: &Self::Pre, store: &mut Store<State>) -> wasmtime::Result<Self>;
    fn describe(&self, store: &mut Store<State>) -> wasmtime::Result<Description>;
    fn configure(
        &self,
        store: &mut Store<State>,
        config: &str,
    ) -> wasmtime::Result<Result<(), Refusal>>;
}

/// Implements [`Bound`] for the bindings of a world, and the conversion of its error.
macro_rules! bound {
    ($module:ident, $world:ident, $prepared:ident) => {
        impl From<crate::bindings::$module::exports::lakebed::policy::types::PluginError>
            for Refusal
        {
            fn from(
                error: crate::bindings::$module::exports::lakebed::policy::types::PluginError,
            ) -> Self {
                use crate::bindings::$module::exports::lakebed::policy::types::PluginError;
                let (kind, message) = match error {
                    PluginError::InvalidConfig(text) => (RefusalKind::InvalidConfig, text),
                    PluginError::InvalidInput(text) => (RefusalKind::InvalidInput, text),
                    PluginError::Unsupported(text) => (RefusalKind::Unsupported, text),
                    PluginError::Internal(text) => (RefusalKind::Internal, text),
                };
                Self { kind, message }
            }
        }

        impl Bound for $world {
            type Pre = $prepared<State>;

            fn prepare(linked: InstancePre<State>) -> wasmtime::Result<Self::Pre> {
                $prepared::new(linked)
            }

            fn instantiate(
                prepared: &Self::Pre,
                store: &mut Store<State>,
            ) -> wasmtime::Result<Self> {
                prepared.instantiate(store)
            }

            fn describe(&self, store: &mut Store<State>) -> wasmtime::Result<Description> {
                let found = self.lakebed_policy_metadata().call_describe(store)?;
                Ok(Description { name: found.name, version: found.version, doc: found.doc })
            }

            fn configure(
                &self,
                store: &mut Store<State>,
                config: &str,
            ) -> wasmtime::Result<Result<(), Refusal>> {
                let result = self.lakebed_policy_metadata().call_configure(store, config)?;
                Ok(result.map_err(Into::into))
            }
        }
    };
}

bound!(scorer, Scorer, ScorerPre);
bound!(cost_model, CostModel, CostModelPre);
bound!(drift_meter, DriftMeter, DriftMeterPre);
bound!(row_filter, RowFilter, RowFilterPre);
bound!(aggregator, Aggregator, AggregatorPre);

/// A component that is ready to be instantiated as its world.
pub(crate) enum Prepared {
    Scorer(ScorerPre<State>),
    CostModel(CostModelPre<State>),
    DriftMeter(DriftMeterPre<State>),
    RowFilter(RowFilterPre<State>),
    Aggregator(AggregatorPre<State>),
}

impl Prepared {
    pub(crate) fn new(world: World, linked: InstancePre<State>) -> wasmtime::Result<Self> {
        Ok(match world {
            World::Scorer => Self::Scorer(Scorer::prepare(linked)?),
            World::CostModel => Self::CostModel(CostModel::prepare(linked)?),
            World::DriftMeter => Self::DriftMeter(DriftMeter::prepare(linked)?),
            World::RowFilter => Self::RowFilter(RowFilter::prepare(linked)?),
            World::Aggregator => Self::Aggregator(Aggregator::prepare(linked)?),
        })
    }

    /// Makes an instance, asks it who it is, configures it, and drops it.
    pub(crate) fn try_out(
        &self,
        host: &Arc<Host>,
        label: &Arc<str>,
        limits: CallLimits,
        config: &str,
    ) -> Result<Description, SandboxError> {
        let session = Session::new(host, label, limits);
        match self {
            Self::Scorer(prepared) => describe::<Scorer>(session, prepared, config),
            Self::CostModel(prepared) => describe::<CostModel>(session, prepared, config),
            Self::DriftMeter(prepared) => describe::<DriftMeter>(session, prepared, config),
            Self::RowFilter(prepared) => describe::<RowFilter>(session, prepared, config),
            Self::Aggregator(prepared) => describe::<Aggregator>(session, prepared, config),
        }
        .map_err(|error| match error {
            // The engine compares the types of the exports when it makes the first instance.
            SandboxError::BadResult { plugin, function: INSTANTIATE, reason } => {
                SandboxError::WrongShape { plugin, world: self.world(), reason }
            }
            other => other,
        })
    }

    const fn world(&self) -> World {
        match self {
            Self::Scorer(_) => World::Scorer,
            Self::CostModel(_) => World::CostModel,
            Self::DriftMeter(_) => World::DriftMeter,
            Self::RowFilter(_) => World::RowFilter,
            Self::Aggregator(_) => World::Aggregator,
        }
    }
}

fn describe<B: Bound>(
    session: Session,
    prepared: &B::Pre,
    config: &str,
) -> Result<Description, SandboxError> {
    let mut live = Live::<B>::instantiate(session, prepared)?;
    let call = Call {
        function: "describe",
        output_bytes: NAME_BYTES + VERSION_BYTES + DOC_BYTES,
        deadline_ms: live.session.limits().init_deadline_ms,
    };
    let Live { session, bindings } = &mut live;
    let described = session.call(call, |store| bindings.describe(store));
    let description = described.inspect_err(warn)?;
    live.configure(config)?;
    Ok(description)
}

/// An instance and its store.
pub(crate) struct Live<B> {
    pub(crate) session: Session,
    bindings: B,
}

impl<B: Bound> Live<B> {
    /// Makes an instance of an admitted plugin and configures it.
    pub(crate) fn start(plugin: &crate::Plugin, prepared: &B::Pre) -> Result<Self, SandboxError> {
        let session = Session::new(plugin.host(), plugin.shared_label(), plugin.limits());
        let mut live = Self::instantiate(session, prepared)?;
        live.configure(plugin.config())?;
        Ok(live)
    }

    fn instantiate(mut session: Session, prepared: &B::Pre) -> Result<Self, SandboxError> {
        let call = Call {
            function: INSTANTIATE,
            output_bytes: SLACK_BYTES,
            deadline_ms: session.limits().init_deadline_ms,
        };
        let bindings =
            session.call(call, |store| B::instantiate(prepared, store)).inspect_err(warn)?;
        Ok(Self { session, bindings })
    }

    fn configure(&mut self, config: &str) -> Result<(), SandboxError> {
        let deadline_ms = self.session.limits().init_deadline_ms;
        let call = Call { function: "configure", output_bytes: SLACK_BYTES, deadline_ms };
        self.run(call, |bindings, store| bindings.configure(store, config))
    }

    /// Calls a function that returns `output_bytes` when all is right, or an error.
    pub(crate) fn call<R, E: Into<Refusal>>(
        &mut self,
        function: &'static str,
        output_bytes: usize,
        work: impl FnOnce(&B, &mut Store<State>) -> wasmtime::Result<Result<R, E>>,
    ) -> Result<R, SandboxError> {
        let deadline_ms = self.session.limits().call_deadline_ms;
        let output_bytes = output_bytes.saturating_add(SLACK_BYTES);
        self.run(Call { function, output_bytes, deadline_ms }, work)
    }

    fn run<R, E: Into<Refusal>>(
        &mut self,
        call: Call,
        work: impl FnOnce(&B, &mut Store<State>) -> wasmtime::Result<Result<R, E>>,
    ) -> Result<R, SandboxError> {
        let Self { session, bindings } = self;
        let answered = session.call(call, |store| work(bindings, store));
        let result = answered.and_then(|answer| {
            answer.map_err(|error| {
                let Refusal { kind, message } = error.into();
                SandboxError::Refused {
                    plugin: session.plugin().into(),
                    function: call.function,
                    kind,
                    message: checked::message(&message),
                }
            })
        });
        result.inspect_err(warn)
    }

    /// Turns a failed check of a result into an error.
    pub(crate) fn check(
        &self,
        function: &'static str,
        checked: Result<(), checked::Flaw>,
    ) -> Result<(), SandboxError> {
        checked.map_err(|flaw| self.session.flaw(function, flaw)).inspect_err(warn)
    }
}

fn warn(error: &SandboxError) {
    tracing::warn!(%error, "plugin failed");
}
