//! Runs an iterator chain over a scan, as a stream the engine can sort further.

use std::{
    fmt,
    num::NonZeroUsize,
    sync::{Arc, Mutex, PoisonError},
};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::{
    catalog::streaming::StreamingTable,
    error::{DataFusionError, Result},
    execution::{SendableRecordBatchStream, TaskContext},
    physical_plan::{stream::RecordBatchStreamAdapter, streaming::PartitionStream},
    prelude::SessionContext,
};
use futures::{StreamExt, stream};
use lakebed_compact::{Chain, ChainRun, CompactError, FoldedBatches, Plugins};
use lakebed_layout::{IteratorTask, StepReport};
use lakebed_model::Instant;

use crate::condition::WithSql;

/// Rows of a batch that an aggregation gives out.
const BATCH_ROWS: NonZeroUsize = NonZeroUsize::new(8_192).expect("8192 is not zero");

/// What a chain did, filled in when its stream ends.
#[derive(Debug, Default, Clone)]
pub(crate) struct ChainCounts {
    pub(crate) rows_in: u64,
    pub(crate) steps: Vec<StepReport>,
}

/// Turns a scan's rows into the rows a chain lets through.
pub(crate) fn run(
    input: SendableRecordBatchStream,
    task: &IteratorTask,
    plugins: &dyn Plugins,
    context: &SessionContext,
) -> Result<(StreamingTable, Arc<Mutex<ChainCounts>>)> {
    let schema = input.schema();
    let now = Instant::from_epoch_ms(task.now_epoch_ms);
    let started = Chain::validate(&task.chain(), &schema, &task.row_keys)
        .and_then(|chain| chain.bind(now, &WithSql { plugins, context }))
        .and_then(|bound| bound.start(BATCH_ROWS))
        .map_err(external)?;
    let counts = Arc::new(Mutex::new(ChainCounts::default()));
    let state =
        State { input, run: Some(started), folded: None, rows_in: 0, counts: Arc::clone(&counts) };
    let batches = stream::try_unfold(state, |mut state| async move {
        let next = state.next().await?;
        Ok(next.map(|batch| (batch, state)))
    });
    let batches = RecordBatchStreamAdapter::new(Arc::clone(&schema), batches);
    let once =
        OneStream { schema: Arc::clone(&schema), stream: Mutex::new(Some(Box::pin(batches))) };
    Ok((StreamingTable::try_new(schema, vec![Arc::new(once)])?, counts))
}

struct State {
    input: SendableRecordBatchStream,
    run: Option<ChainRun>,
    folded: Option<FoldedBatches>,
    rows_in: u64,
    counts: Arc<Mutex<ChainCounts>>,
}

impl State {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(run) = &mut self.run {
            match self.input.next().await {
                Some(batch) => {
                    let batch = batch?;
                    self.rows_in += u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
                    if let Some(kept) = run.push(&batch).map_err(external)? {
                        return Ok(Some(kept));
                    }
                }
                None => self.finish()?,
            }
        }
        self.folded.as_mut().and_then(Iterator::next).transpose().map_err(external)
    }

    fn finish(&mut self) -> Result<()> {
        let Some(run) = self.run.take() else { return Ok(()) };
        for warning in run.warnings() {
            tracing::warn!(%warning, "iterators");
        }
        let folded = run.finish().map_err(external)?;
        let steps = folded
            .counts()
            .iter()
            .map(|step| StepReport {
                name: step.name.clone(),
                rows_in: step.rows_in,
                rows_out: step.rows_out,
                null_rows_dropped: step.null_rows_dropped,
            })
            .collect();
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) =
            ChainCounts { rows_in: self.rows_in, steps };
        self.folded = Some(folded);
        Ok(())
    }
}

/// A partition that can be read once.
struct OneStream {
    schema: SchemaRef,
    stream: Mutex<Option<SendableRecordBatchStream>>,
}

impl fmt::Debug for OneStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneStream").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl PartitionStream for OneStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let taken = self.stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.unwrap_or_else(|| {
            let error = DataFusionError::Internal("iterators were run twice".to_owned());
            let schema = Arc::clone(&self.schema);
            Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter([Err(error)])))
        })
    }
}

fn external(error: CompactError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
