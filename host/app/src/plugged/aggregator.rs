//! An aggregator guest as a [`FoldFactory`].

use arrow::{
    array::ArrayRef,
    datatypes::{DataType, Field},
};
use lakebed_compact::{CompactError, FoldFactory, GroupFold};
use lakebed_sandbox::{AggregatorStream, EmitTo, Plugin};

use super::{
    arrow_columns::{GuestColumns, from_guest, guest_type},
    refused,
};

/// Opens folds in the sandbox, one instance per column and run.
#[derive(Debug)]
pub struct PluggedFold {
    plugin: Plugin,
}

impl PluggedFold {
    /// Wraps a plugin of the world `aggregator`.
    #[must_use]
    pub const fn new(plugin: Plugin) -> Self {
        Self { plugin }
    }
}

impl FoldFactory for PluggedFold {
    fn name(&self) -> &str {
        self.plugin.name()
    }

    fn open(&self, column: &Field) -> Result<Box<dyn GroupFold>, CompactError> {
        let name = self.plugin.name();
        let (input, _) = guest_type(column.data_type()).map_err(|error| refused(name, error))?;
        let stream =
            self.plugin.aggregator_stream(&[input]).map_err(|error| refused(name, error))?;
        Ok(Box::new(Folding {
            stream,
            plugin: name.to_owned(),
            data_type: column.data_type().clone(),
        }))
    }
}

struct Folding {
    stream: AggregatorStream,
    plugin: String,
    data_type: DataType,
}

impl GroupFold for Folding {
    fn update(
        &mut self,
        values: &ArrayRef,
        groups: &[u32],
        total_groups: usize,
    ) -> Result<(), CompactError> {
        let columns = GuestColumns::new(std::slice::from_ref(values))
            .map_err(|error| refused(&self.plugin, error))?;
        let total = u32::try_from(total_groups).unwrap_or(u32::MAX);
        self.stream
            .update(&columns.lend(), groups, None, total)
            .map_err(|error| refused(&self.plugin, error))
    }

    fn evaluate(&mut self) -> Result<ArrayRef, CompactError> {
        let result =
            self.stream.evaluate(EmitTo::All).map_err(|error| refused(&self.plugin, error))?;
        from_guest(result, &self.data_type).map_err(|error| refused(&self.plugin, error))
    }

    fn size_bytes(&self) -> usize {
        self.stream.size_bytes()
    }
}
