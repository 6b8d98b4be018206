//! The world `aggregator`: what becomes of the rows of a group?

#![no_std]

extern crate alloc;

use alloc::{format, vec::Vec};
use core::{cell::RefCell, marker::PhantomData};

use self::bindings::exports::lakebed::policy::{aggregation, columns, types};
use lakebed_guest_core::{Bits, Column, ColumnType, Install, Plugin, PluginError, kernels};

#[doc(hidden)]
pub use lakebed_guest_core::__install;

#[doc(hidden)]
pub mod bindings {
    wit_bindgen::generate!({
        world: "aggregator",
        path: "../../../wit",
        pub_export_macro: true,
        default_bindings_module: "lakebed_guest_aggregator::bindings",
    });
}

/// Which groups leave an accumulator.
pub use self::aggregation::EmitTo;

/// What a fold over given input types produces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The columns of a partial state.
    pub state: Vec<ColumnType>,
    /// The column of the result.
    pub output: ColumnType,
}

/// Folds the rows of groups.
pub trait Aggregator: Plugin {
    /// The running values of many groups.
    type Accumulator: Accumulator;

    /// Tells what a fold over columns of these types produces.
    ///
    /// # Errors
    /// Returns [`PluginError::Unsupported`] when the plugin does not fold these.
    fn describe_fold(&self, inputs: &[ColumnType]) -> Result<Signature, PluginError>;

    /// Opens an empty accumulator over columns of these types.
    ///
    /// # Errors
    /// Returns [`PluginError::Unsupported`] when the plugin does not fold these.
    fn open(&self, inputs: &[ColumnType]) -> Result<Self::Accumulator, PluginError>;
}

/// Running values of many groups. Every column has one row per entry of `groups`, and every group
/// is below `total_groups`: both are checked before.
pub trait Accumulator: 'static {
    /// Adds the rows whose bit in `filter` is set, or all.
    ///
    /// # Errors
    /// Returns [`PluginError::InvalidInput`] when a value cannot be taken up.
    fn update(
        &mut self,
        arguments: &[Column],
        groups: &[u32],
        filter: Option<Bits<'_>>,
        total_groups: usize,
    ) -> Result<(), PluginError>;

    /// Adds partial states.
    ///
    /// # Errors
    /// Returns [`PluginError::InvalidInput`] when a state cannot be taken up.
    fn merge(
        &mut self,
        state: &[Column],
        groups: &[u32],
        total_groups: usize,
    ) -> Result<(), PluginError>;

    /// Takes partial states out, one row per group.
    ///
    /// # Errors
    /// Returns [`PluginError::InvalidInput`] when a state does not fit its columns.
    fn state(&mut self, emit: EmitTo) -> Result<Vec<Column>, PluginError>;

    /// Takes results out, one row per group.
    ///
    /// # Errors
    /// Returns [`PluginError::InvalidInput`] when a result does not fit its type.
    fn evaluate(&mut self, emit: EmitTo) -> Result<Column, PluginError>;

    /// Estimates the bytes in use.
    fn size(&self) -> usize;
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Component<P>(PhantomData<P>);

lakebed_guest_core::__shared!(self::bindings::exports::lakebed::policy);
lakebed_guest_core::__columns!(self::bindings::exports::lakebed::policy::columns);

impl<P: Aggregator + Install> aggregation::Guest for Component<P> {
    type Accumulator = Running<P::Accumulator>;

    fn describe_fold(
        inputs: Vec<columns::ColumnType>,
    ) -> Result<aggregation::Signature, types::PluginError> {
        let signature = P::with(|plugin| plugin.describe_fold(&from_wire(&inputs)))?;
        Ok(aggregation::Signature {
            state: signature.state.into_iter().map(to_wire).collect(),
            output: to_wire(signature.output),
        })
    }

    fn open(
        inputs: Vec<columns::ColumnType>,
    ) -> Result<aggregation::Accumulator, types::PluginError> {
        let opened = P::with(|plugin| plugin.open(&from_wire(&inputs)))?;
        Ok(aggregation::Accumulator::new(Running(RefCell::new(opened))))
    }
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Running<A>(RefCell<A>);

impl<A: Accumulator> aggregation::GuestAccumulator for Running<A> {
    fn update_batch(
        &self,
        arguments: Vec<columns::Column>,
        groups: Vec<u32>,
        filter: Option<Vec<u8>>,
        total_groups: u32,
    ) -> Result<(), types::PluginError> {
        let arguments = checked(arguments, &groups, total_groups)?;
        let filter = match &filter {
            None => None,
            Some(bytes) => Some(Bits::new(bytes, groups.len()).ok_or_else(|| {
                PluginError::InvalidInput(format!("the filter is not for {} rows", groups.len()))
            })?),
        };
        Ok(self.0.borrow_mut().update(&arguments, &groups, filter, total_groups as usize)?)
    }

    fn merge_batch(
        &self,
        state: Vec<columns::Column>,
        groups: Vec<u32>,
        total_groups: u32,
    ) -> Result<(), types::PluginError> {
        let state = checked(state, &groups, total_groups)?;
        Ok(self.0.borrow_mut().merge(&state, &groups, total_groups as usize)?)
    }

    fn state(&self, emit: EmitTo) -> Result<Vec<columns::Column>, types::PluginError> {
        let state = self.0.borrow_mut().state(emit)?;
        Ok(state.into_iter().map(Into::into).collect())
    }

    fn evaluate(&self, emit: EmitTo) -> Result<columns::Column, types::PluginError> {
        Ok(self.0.borrow_mut().evaluate(emit)?.into())
    }

    fn size(&self) -> u64 {
        self.0.borrow().size() as u64
    }
}

/// Checks that every column has a row per group, and every group is one.
fn checked(
    columns: Vec<columns::Column>,
    groups: &[u32],
    total_groups: u32,
) -> Result<Vec<Column>, PluginError> {
    let columns: Vec<Column> = columns.into_iter().map(Into::into).collect();
    columns.iter().try_for_each(|column| column.check(groups.len()))?;
    match kernels::largest(groups) {
        Some(group) if group >= total_groups => Err(PluginError::InvalidInput(format!(
            "group {group} is not below the {total_groups} groups announced"
        ))),
        _ => Ok(columns),
    }
}

fn from_wire(types: &[columns::ColumnType]) -> Vec<ColumnType> {
    let convert = |wire: &columns::ColumnType| match wire {
        columns::ColumnType::S64 => ColumnType::S64,
        columns::ColumnType::S32 => ColumnType::S32,
        columns::ColumnType::F64 => ColumnType::F64,
        columns::ColumnType::F32 => ColumnType::F32,
        columns::ColumnType::U8 => ColumnType::U8,
        columns::ColumnType::Bits => ColumnType::Bits,
        columns::ColumnType::Text => ColumnType::Text,
        columns::ColumnType::Binary => ColumnType::Binary,
    };
    types.iter().map(convert).collect()
}

fn to_wire(column_type: ColumnType) -> columns::ColumnType {
    match column_type {
        ColumnType::S64 => columns::ColumnType::S64,
        ColumnType::S32 => columns::ColumnType::S32,
        ColumnType::F64 => columns::ColumnType::F64,
        ColumnType::F32 => columns::ColumnType::F32,
        ColumnType::U8 => columns::ColumnType::U8,
        ColumnType::Bits => columns::ColumnType::Bits,
        ColumnType::Text => columns::ColumnType::Text,
        ColumnType::Binary => columns::ColumnType::Binary,
    }
}

/// Makes an [`Aggregator`] the component's aggregator.
#[macro_export]
macro_rules! export_aggregator {
    ($plugin:ident) => {
        $crate::__install!($plugin);
        const _: () = {
            type Exported = $crate::Component<$plugin>;
    $crate::bindings::export!(Exported with_types_in $crate::bindings);
        };
    };
}
