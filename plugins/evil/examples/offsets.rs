//! An aggregator that returns text whose offsets lie outside of its data.
#![no_std]

extern crate alloc;

use alloc::{vec, vec::Vec};

use lakebed_guest::{
    Bits, Column, ColumnType, NoSettings, Plugin, PluginError, Values, VarBytes,
    aggregator::{Accumulator, Aggregator, EmitTo, Signature},
};

#[derive(Debug)]
struct Attack;

impl Plugin for Attack {
    const NAME: &'static str = "offsets";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DOC: &'static str = "An attack.";
    type Settings = NoSettings;

    fn configure(_: NoSettings) -> Result<Self, PluginError> {
        Ok(Self)
    }
}

impl Aggregator for Attack {
    type Accumulator = Groups;

    fn describe_fold(&self, _: &[ColumnType]) -> Result<Signature, PluginError> {
        Ok(Signature { state: vec![ColumnType::S64], output: ColumnType::Text })
    }

    fn open(&self, _: &[ColumnType]) -> Result<Groups, PluginError> {
        Ok(Groups(0))
    }
}

#[derive(Debug)]
struct Groups(usize);

impl Accumulator for Groups {
    fn update(
        &mut self,
        _: &[Column],
        _: &[u32],
        _: Option<Bits<'_>>,
        total_groups: usize,
    ) -> Result<(), PluginError> {
        self.0 = total_groups;
        Ok(())
    }

    fn merge(&mut self, _: &[Column], _: &[u32], total_groups: usize) -> Result<(), PluginError> {
        self.0 = total_groups;
        Ok(())
    }

    fn state(&mut self, _: EmitTo) -> Result<Vec<Column>, PluginError> {
        Ok(vec![])
    }

    fn evaluate(&mut self, _: EmitTo) -> Result<Column, PluginError> {
        let mut offsets = vec![0; self.0];
        offsets.push(1 << 20);
        let text = VarBytes { offsets, data: b"short".to_vec() };
        Ok(Column { values: Values::Text(text), validity: None })
    }

    fn size(&self) -> usize {
        usize::MAX
    }
}

lakebed_guest::export_aggregator!(Attack);
