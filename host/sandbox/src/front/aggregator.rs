//! The world `aggregator`.

use std::fmt;

use wasmtime::{Store, component::ResourceAny};

use super::{
    live::{Live, Prepared},
    wire::{argument, lend_columns, rows},
};
use crate::{
    ColumnType, OwnedColumn, OwnedValues, OwnedVarBytes, Plugin, SandboxError, World,
    bindings::aggregator::{
        Aggregator,
        exports::lakebed::policy::{
            aggregation::{self, GuestAccumulator},
            columns as wire,
            types::PluginError,
        },
    },
    checked::{self, Flaw},
    columns::Column,
    limits::FOLD_COLUMN_COUNT,
    store::State,
};

/// What a fold over given input types produces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldSignature {
    /// The columns of a partial state.
    pub state: Vec<ColumnType>,
    /// The column of the result.
    pub output: ColumnType,
}

/// Which groups leave an accumulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmitTo {
    /// All; the accumulator is empty afterwards.
    All,
    /// The first so many, which the accumulator forgets: the next group becomes group 0.
    First(u32),
}

/// One instance of an aggregator with one accumulator, for the groups of one partition of one job.
pub struct AggregatorStream {
    /// Gone after the first error.
    running: Option<Running>,
    plugin: Plugin,
    inputs: Vec<ColumnType>,
    signature: FoldSignature,
    group_count: u32,
}

struct Running {
    live: Live<Aggregator>,
    accumulator: ResourceAny,
}

impl Plugin {
    /// Starts an instance of an aggregator with an empty accumulator over columns of these types.
    ///
    /// # Errors
    /// Returns what the plugin failed at: [`SandboxError::Refused`] when it does not fold these.
    pub fn aggregator_stream(
        &self,
        inputs: &[ColumnType],
    ) -> Result<AggregatorStream, SandboxError> {
        let Prepared::Aggregator(prepared) = self.prepared() else {
            return Err(self.of_other_world(World::Aggregator));
        };
        if !(1..=FOLD_COLUMN_COUNT).contains(&inputs.len()) {
            let reason = format!("has {} types, expected 1 to {FOLD_COLUMN_COUNT}", inputs.len());
            return Err(argument(self.label(), "describe-fold", "inputs", reason));
        }
        let types: Vec<wire::ColumnType> = inputs.iter().copied().map(lend_type).collect();
        let mut live = Live::<Aggregator>::start(self, prepared)?;
        let signature = live.call("describe-fold", FOLD_COLUMN_COUNT, |bindings, store| {
            bindings.lakebed_policy_aggregation().call_describe_fold(store, &types)
        })?;
        let signature = FoldSignature {
            state: signature.state.into_iter().map(take_type).collect(),
            output: take_type(signature.output),
        };
        live.check("describe-fold", state_width(signature.state.len()))?;
        let accumulator = live.call("open", 0, |bindings, store| {
            bindings.lakebed_policy_aggregation().call_open(store, &types)
        })?;
        Ok(AggregatorStream {
            running: Some(Running { live, accumulator }),
            plugin: self.clone(),
            inputs: inputs.to_vec(),
            signature,
            group_count: 0,
        })
    }
}

impl AggregatorStream {
    /// Returns the types of what leaves the stream.
    #[must_use]
    pub const fn signature(&self) -> &FoldSignature {
        &self.signature
    }

    /// Returns the memory that the instance holds, as the engine counts it; 0 after an error.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.running.as_ref().map_or(0, |running| running.live.session.memory_bytes())
    }

    /// Adds rows. `groups` has the group of each row, each below `group_count`, which never falls but
    /// by an emission; `filter` is a bitmap of the rows to take.
    ///
    /// # Errors
    /// Returns [`SandboxError::Argument`] when the arguments do not fit together, which leaves the
    /// stream as it was. After what the plugin fails at, the stream has ended.
    pub fn update(
        &mut self,
        arguments: &[Column<'_>],
        groups: &[u32],
        filter: Option<&[u8]>,
        group_count: u32,
    ) -> Result<(), SandboxError> {
        const FUNCTION: &str = "accumulator.update-batch";
        self.check_rows(FUNCTION, arguments, self.inputs.clone(), groups, group_count)?;
        if let Some(Err(Flaw::Other(found))) =
            filter.map(|bytes| checked::bitmap(bytes, groups.len()))
        {
            let reason = format!("has {found}");
            return Err(argument(self.plugin.label(), FUNCTION, "filter", reason));
        }
        let arguments: Vec<wire::ColumnParam<'_>> = arguments.iter().map(lend).collect();
        self.enter(FUNCTION, 0, |guest, store, accumulator| {
            guest.call_update_batch(store, accumulator, &arguments, groups, filter, group_count)
        })?;
        self.group_count = group_count;
        Ok(())
    }

    /// Adds partial states: one row per state, columns as in [`FoldSignature::state`].
    ///
    /// # Errors
    /// As [`AggregatorStream::update`].
    pub fn merge(
        &mut self,
        state: &[Column<'_>],
        groups: &[u32],
        group_count: u32,
    ) -> Result<(), SandboxError> {
        const FUNCTION: &str = "accumulator.merge-batch";
        self.check_rows(FUNCTION, state, self.signature.state.clone(), groups, group_count)?;
        let state: Vec<wire::ColumnParam<'_>> = state.iter().map(lend).collect();
        self.enter(FUNCTION, 0, |guest, store, accumulator| {
            guest.call_merge_batch(store, accumulator, &state, groups, group_count)
        })?;
        self.group_count = group_count;
        Ok(())
    }

    /// Takes partial states out: one row per group, columns as in [`FoldSignature::state`].
    ///
    /// # Errors
    /// As [`AggregatorStream::update`].
    pub fn state(&mut self, emit: EmitTo) -> Result<Vec<OwnedColumn>, SandboxError> {
        const FUNCTION: &str = "accumulator.state";
        let row_count = self.emitted(FUNCTION, emit)?;
        let output_bytes = self.plugin.limits().output_bytes;
        let columns = self.enter(FUNCTION, output_bytes, |guest, store, accumulator| {
            guest.call_state(store, accumulator, lend_emit(emit))
        })?;
        let columns: Vec<OwnedColumn> = columns.into_iter().map(take).collect();
        self.check(FUNCTION, |signature| {
            if columns.len() != signature.state.len() {
                return Err(Flaw::Other(format!(
                    "{} columns of state, expected {}",
                    columns.len(),
                    signature.state.len()
                )));
            }
            let mut typed = columns.iter().zip(&signature.state);
            typed.try_for_each(|(column, &ty)| checked::column(column, ty, row_count as usize))
        })?;
        self.group_count -= row_count;
        Ok(columns)
    }

    /// Takes results out: one row per group, of type [`FoldSignature::output`].
    ///
    /// # Errors
    /// As [`AggregatorStream::update`].
    pub fn evaluate(&mut self, emit: EmitTo) -> Result<OwnedColumn, SandboxError> {
        const FUNCTION: &str = "accumulator.evaluate";
        let row_count = self.emitted(FUNCTION, emit)?;
        let output_bytes = self.plugin.limits().output_bytes;
        let column = self.enter(FUNCTION, output_bytes, |guest, store, accumulator| {
            guest.call_evaluate(store, accumulator, lend_emit(emit))
        })?;
        let column = take(column);
        self.check(FUNCTION, |signature| {
            checked::column(&column, signature.output, row_count as usize)
        })?;
        self.group_count -= row_count;
        Ok(column)
    }

    /// Calls a method of the accumulator. The instance is put back only when the call succeeds.
    fn enter<R>(
        &mut self,
        function: &'static str,
        output_bytes: usize,
        work: impl FnOnce(
            &GuestAccumulator<'_>,
            &mut Store<State>,
            ResourceAny,
        ) -> wasmtime::Result<Result<R, PluginError>>,
    ) -> Result<R, SandboxError> {
        let Some(mut running) = self.running.take() else {
            return Err(SandboxError::Ended { plugin: self.plugin.label().into(), function });
        };
        let accumulator = running.accumulator;
        let result = running.live.call(function, output_bytes, |bindings, store| {
            let guest = bindings.lakebed_policy_aggregation();
            work(&guest.accumulator(), store, accumulator)
        })?;
        self.running = Some(running);
        Ok(result)
    }

    /// Checks a result; after a flaw the instance is gone.
    fn check(
        &mut self,
        function: &'static str,
        check: impl FnOnce(&FoldSignature) -> Result<(), Flaw>,
    ) -> Result<(), SandboxError> {
        let checked = check(&self.signature);
        let Some(running) = self.running.take() else {
            return Err(SandboxError::Ended { plugin: self.plugin.label().into(), function });
        };
        running.live.check(function, checked)?;
        self.running = Some(running);
        Ok(())
    }

    fn check_rows(
        &self,
        function: &'static str,
        columns: &[Column<'_>],
        expected: Vec<ColumnType>,
        groups: &[u32],
        group_count: u32,
    ) -> Result<(), SandboxError> {
        let label = self.plugin.label();
        let found: Vec<ColumnType> =
            columns.iter().map(|column| column.values.column_type()).collect();
        if found != expected {
            let reason = format!("have the types {}, expected {}", list(&found), list(&expected));
            return Err(argument(label, function, "columns", reason));
        }
        rows(label, function, columns, groups.len())?;
        if group_count < self.group_count {
            let reason = format!("is {group_count}, expected at least {}", self.group_count);
            return Err(argument(label, function, "total-groups", reason));
        }
        // Without a branch per row, so that the compiler makes vectors of it.
        let beyond = groups.iter().fold(false, |any, &group| any | (group >= group_count));
        if !beyond {
            return Ok(());
        }
        let largest = groups.iter().max().copied().unwrap_or_default();
        let reason = format!("has group {largest}, expected all below {group_count}");
        Err(argument(label, function, "groups", reason))
    }

    /// Returns how many groups leave.
    fn emitted(&self, function: &'static str, emit: EmitTo) -> Result<u32, SandboxError> {
        match emit {
            EmitTo::All => Ok(self.group_count),
            EmitTo::First(count) if count <= self.group_count => Ok(count),
            EmitTo::First(count) => {
                let reason = format!("is the first {count}, expected at most {}", self.group_count);
                Err(argument(self.plugin.label(), function, "emit", reason))
            }
        }
    }
}

impl fmt::Debug for AggregatorStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AggregatorStream")
            .field("plugin", &self.plugin)
            .field("inputs", &self.inputs)
            .field("signature", &self.signature)
            .field("group_count", &self.group_count)
            .field("ended", &self.running.is_none())
            .finish()
    }
}

lend_columns!(
    crate::bindings::aggregator::exports::lakebed::policy::columns,
    ValuesParam,
    VarBytesParam,
    ColumnParam
);

fn state_width(width: usize) -> Result<(), Flaw> {
    if (1..=FOLD_COLUMN_COUNT).contains(&width) {
        Ok(())
    } else {
        Err(Flaw::Other(format!("{width} columns of state, expected 1 to {FOLD_COLUMN_COUNT}")))
    }
}

fn list(types: &[ColumnType]) -> String {
    let names: Vec<&str> = types.iter().map(|column_type| column_type.as_str()).collect();
    format!("({})", names.join(", "))
}

const fn lend_emit(emit: EmitTo) -> aggregation::EmitTo {
    match emit {
        EmitTo::All => aggregation::EmitTo::All,
        EmitTo::First(count) => aggregation::EmitTo::First(count),
    }
}

const fn lend_type(column_type: ColumnType) -> wire::ColumnType {
    match column_type {
        ColumnType::S64 => wire::ColumnType::S64,
        ColumnType::S32 => wire::ColumnType::S32,
        ColumnType::F64 => wire::ColumnType::F64,
        ColumnType::F32 => wire::ColumnType::F32,
        ColumnType::U8 => wire::ColumnType::U8,
        ColumnType::Bits => wire::ColumnType::Bits,
        ColumnType::Text => wire::ColumnType::Text,
        ColumnType::Binary => wire::ColumnType::Binary,
    }
}

const fn take_type(column_type: wire::ColumnType) -> ColumnType {
    match column_type {
        wire::ColumnType::S64 => ColumnType::S64,
        wire::ColumnType::S32 => ColumnType::S32,
        wire::ColumnType::F64 => ColumnType::F64,
        wire::ColumnType::F32 => ColumnType::F32,
        wire::ColumnType::U8 => ColumnType::U8,
        wire::ColumnType::Bits => ColumnType::Bits,
        wire::ColumnType::Text => ColumnType::Text,
        wire::ColumnType::Binary => ColumnType::Binary,
    }
}

fn take(column: wire::ColumnResult) -> OwnedColumn {
    let var_bytes =
        |bytes: wire::VarBytesResult| OwnedVarBytes { offsets: bytes.offsets, data: bytes.data };
    let values = match column.values {
        wire::ValuesResult::S64(values) => OwnedValues::S64(values),
        wire::ValuesResult::S32(values) => OwnedValues::S32(values),
        wire::ValuesResult::F64(values) => OwnedValues::F64(values),
        wire::ValuesResult::F32(values) => OwnedValues::F32(values),
        wire::ValuesResult::U8(values) => OwnedValues::U8(values),
        wire::ValuesResult::Bits(bytes) => OwnedValues::Bits(bytes),
        wire::ValuesResult::Text(bytes) => OwnedValues::Text(var_bytes(bytes)),
        wire::ValuesResult::Binary(bytes) => OwnedValues::Binary(var_bytes(bytes)),
    };
    OwnedColumn { values, validity: column.validity }
}
