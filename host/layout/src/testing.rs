//! A lake in memory that fails on request, for tests of whoever drives a lake.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arrow::datatypes::{DataType, Field, Schema};
use async_trait::async_trait;
use lakebed_model::TableName;

use crate::{
    Commit, Executor, ExecutorError, Lake, LakeFault, PutOutcome, RewriteOutput, RewriteTask,
    TableSnapshot,
    action::{Action, AddFile, DeletionVector, Protocol},
    cuts, ddl, sizing, zcube,
};

/// A call of [`Lake`] that a [`FakeLake`] can fail, or die after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// [`Lake::snapshot`]
    Snapshot,
    /// [`Lake::commits_since`]
    CommitsSince,
    /// [`Lake::put_if_absent`] that writes nothing.
    Put,
    /// [`Lake::put_if_absent`] that writes and then reports an error all the same.
    PutAnswerLost,
    /// [`Lake::put_if_absent`] that writes and then says that the version exists.
    PutAnsweredExists,
    /// [`Lake::put_if_absent`] that writes nothing and says that the version exists.
    PutDenied,
    /// [`Lake::put_if_absent`] that is not answered; nothing is written yet.
    PutUnsettled,
}

#[derive(Debug, Default)]
struct State {
    log: Vec<Vec<Action>>,
    /// Files that exist in storage.
    stored: BTreeSet<String>,
    /// Which occurrence of which call fails.
    faults: BTreeMap<Call, BTreeSet<u32>>,
    calls: BTreeMap<Call, u32>,
    /// Commits that slip in before the n-th put.
    rivals: BTreeMap<u32, Vec<Action>>,
    /// Commits that are still on their way.
    late: Vec<Vec<Action>>,
    ids: u32,
}

/// One table in memory.
#[derive(Debug, Default)]
pub struct FakeLake {
    state: Mutex<State>,
}

impl FakeLake {
    /// Makes a table with columns `a`, `b` (bigint), `s` (string), clustered by `cluster_by`.
    #[must_use]
    pub fn new(cluster_by: &[&str], files: Vec<AddFile>) -> Self {
        let lake = Self::default();
        let mut actions = vec![
            Action::Protocol(protocol()),
            Action::Metadata(serde_json::json!({ "id": "fake" })),
            Action::DomainMetadata(ddl::domain(&names(cluster_by))),
        ];
        let mut state = lake.state();
        for file in files {
            state.stored.insert(file.path.clone());
            actions.push(Action::Add(Box::new(file)));
        }
        state.log.push(actions);
        drop(state);
        lake
    }

    /// Fails the n-th (from 1) occurrence of a call.
    pub fn fail(&self, call: Call, occurrence: u32) {
        self.state().faults.entry(call).or_default().insert(occurrence);
    }

    /// Lets another writer commit just before the n-th (from 1) put.
    pub fn rival(&self, before_put: u32, actions: Vec<Action>) {
        self.state().rivals.insert(before_put, actions);
    }

    /// Lets the puts arrive that were not answered.
    pub fn arrive(&self) {
        let mut state = self.state();
        let late = std::mem::take(&mut state.late);
        state.log.extend(late);
    }

    /// Commits files as another writer's append.
    pub fn append(&self, files: Vec<AddFile>) {
        let mut state = self.state();
        state.stored.extend(files.iter().map(|file| file.path.clone()));
        state.log.push(files.into_iter().map(|file| Action::Add(Box::new(file))).collect());
    }

    /// Returns the live files by replaying the log.
    #[must_use]
    pub fn live(&self) -> Vec<AddFile> {
        replay(&self.state().log)
    }

    /// Returns a version's commit info.
    #[must_use]
    pub fn commit_info(&self, version: usize) -> Option<serde_json::Value> {
        let state = self.state();
        state.log.get(version)?.iter().find_map(|action| match action {
            Action::CommitInfo(info) => Some(info.clone()),
            _ => None,
        })
    }

    /// Returns stored files that no live file names.
    #[must_use]
    pub fn unreferenced(&self) -> Vec<String> {
        let state = self.state();
        let named: BTreeSet<String> = state
            .log
            .iter()
            .flatten()
            .filter_map(|action| match action {
                Action::Add(add) => Some(add.path.clone()),
                _ => None,
            })
            .collect();
        state.stored.difference(&named).cloned().collect()
    }

    /// Returns live files that are not stored.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let state = self.state();
        let live = replay(&state.log).into_iter().map(|file| file.path);
        live.filter(|path| !state.stored.contains(path)).collect()
    }

    /// Returns the newest version.
    #[must_use]
    pub fn version(&self) -> u64 {
        u64::try_from(self.state().log.len()).unwrap_or(0).saturating_sub(1)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault(&self, call: Call) -> Option<LakeFault> {
        let mut state = self.state();
        let count = state.calls.entry(call).or_default();
        *count += 1;
        let count = *count;
        state.faults.get(&call).is_some_and(|at| at.contains(&count)).then(|| LakeFault::Storage {
            action: format!("{call:?} {count} of"),
            table: "t".to_owned(),
            location: "memory:///t".to_owned(),
            source: "injected fault".into(),
        })
    }
}

#[async_trait]
impl Lake for FakeLake {
    async fn snapshot(&self, _table: &TableName) -> Result<TableSnapshot, LakeFault> {
        if let Some(fault) = self.fault(Call::Snapshot) {
            return Err(fault);
        }
        let state = self.state();
        let mut taken = snapshot(&[], replay(&state.log));
        taken.version = u64::try_from(state.log.len()).unwrap_or(0).saturating_sub(1);
        let newest = |name: &str| {
            state.log.iter().flatten().rev().find_map(|action| match action {
                Action::DomainMetadata(domain) if domain.domain == name => Some(domain.clone()),
                _ => None,
            })
        };
        taken.clustering = newest(ddl::DOMAIN);
        taken.cuts_domain = newest(cuts::DOMAIN);
        Ok(taken)
    }

    async fn commits_since(
        &self,
        _table: &TableName,
        version: u64,
    ) -> Result<Vec<Commit>, LakeFault> {
        if let Some(fault) = self.fault(Call::CommitsSince) {
            return Err(fault);
        }
        let state = self.state();
        Ok(state
            .log
            .iter()
            .zip(0u64..)
            .filter(|(_, v)| *v > version)
            .map(|(actions, version)| Commit { version, actions: actions.clone() })
            .collect())
    }

    async fn put_if_absent(
        &self,
        _table: &TableName,
        version: u64,
        actions: &[Action],
    ) -> Result<PutOutcome, LakeFault> {
        let put = self.fault(Call::Put);
        {
            let mut state = self.state();
            let count = state.calls.get(&Call::Put).copied().unwrap_or(0);
            if let Some(rival) = state.rivals.remove(&count) {
                state.log.push(rival);
            }
        }
        if let Some(fault) = put {
            return Err(fault);
        }
        if self.fault(Call::PutDenied).is_some() {
            return Ok(PutOutcome::Exists);
        }
        if let Some(fault) = self.fault(Call::PutUnsettled) {
            self.state().late.push(actions.to_vec());
            return Err(LakeFault::Unsettled {
                version,
                table: "t".to_owned(),
                location: "memory:///t".to_owned(),
                source: fault.into(),
            });
        }
        let lost = self.fault(Call::PutAnswerLost);
        let denied = self.fault(Call::PutAnsweredExists).is_some();
        let mut state = self.state();
        if u64::try_from(state.log.len()).unwrap_or(0) != version {
            return Ok(PutOutcome::Exists);
        }
        state.log.push(actions.to_vec());
        drop(state);
        let outcome = if denied { PutOutcome::Exists } else { PutOutcome::Committed };
        lost.map_or(Ok(outcome), Err)
    }

    async fn discard(&self, _table: &TableName, paths: &[String]) {
        let mut state = self.state();
        for path in paths {
            state.stored.remove(path);
        }
    }

    async fn pause(&self, _attempt: u32) {}

    fn monotonic_ms(&self) -> u64 {
        0
    }

    fn unique_id(&self) -> String {
        let mut state = self.state();
        state.ids += 1;
        format!("id-{}", state.ids)
    }
}

/// Keeps row counts, live bytes and the ranges of whole-number keys.
///
/// The files of a task share the range of the first key among them evenly, as sorted rows would.
#[async_trait]
impl Executor for FakeLake {
    async fn rewrite(&self, task: &RewriteTask) -> Result<RewriteOutput, ExecutorError> {
        let rows: u64 = task.inputs.iter().filter_map(|input| input.live_rows).sum();
        let mut state = self.state();
        let read: BTreeSet<&str> = task.inputs.iter().map(|input| input.path.as_str()).collect();
        let inputs: Vec<AddFile> =
            replay(&state.log).into_iter().filter(|f| read.contains(f.path.as_str())).collect();
        let bytes: u64 = inputs.iter().map(sizing::live_bytes).sum();
        let count = task.target_files.max(1);
        let mut adds = Vec::new();
        for part in 0..count {
            let name = match part {
                0 => format!("{}.parquet", task.file_prefix),
                part => format!("{}-{part}.parquet", task.file_prefix),
            };
            let mut file = plain_file(&name, portion(bytes, part, count));
            file.stats = Some(fake_stats(&inputs, &task.order.keys(), part, count, rows));
            file.tags = Some(task.tags.iter().map(|(k, v)| (k.clone(), Some(v.clone()))).collect());
            file.clustering_provider.clone_from(&task.clustering_provider);
            file.data_change = task.data_change;
            state.stored.insert(file.path.clone());
            adds.push(file);
        }
        Ok(RewriteOutput { adds, rows_in: rows, rows_out: rows, steps: Vec::new() })
    }
}

/// Divides a whole into parts that sum up to it.
const fn portion(whole: u64, part: u64, count: u64) -> u64 {
    whole / count + if part < whole % count { 1 } else { 0 }
}

fn fake_stats(inputs: &[AddFile], keys: &[String], part: u64, count: u64, rows: u64) -> String {
    let mut stats = serde_json::json!({ "numRecords": portion(rows, part, count) });
    for (position, key) in keys.iter().enumerate() {
        let bounds: Option<Vec<(i64, i64)>> = inputs.iter().map(|f| fake_range(f, key)).collect();
        let bounds = bounds.unwrap_or_default();
        let low = bounds.iter().map(|(low, _)| *low).min();
        let high = bounds.iter().map(|(_, high)| *high).max();
        let (Some(low), Some(high)) = (low, high) else { continue };
        let cut = |at: u64| {
            let share = i128::from(high - low) * i128::from(at) / i128::from(count);
            low + i64::try_from(share).unwrap_or(0)
        };
        let (low, high) = if position == 0 { (cut(part), cut(part + 1)) } else { (low, high) };
        stats["minValues"][key.as_str()] = low.into();
        stats["maxValues"][key.as_str()] = high.into();
    }
    stats.to_string()
}

fn fake_range(file: &AddFile, key: &str) -> Option<(i64, i64)> {
    let stats: serde_json::Value = serde_json::from_str(file.stats.as_deref()?).ok()?;
    Some((stats["minValues"][key].as_i64()?, stats["maxValues"][key].as_i64()?))
}

fn replay(log: &[Vec<Action>]) -> Vec<AddFile> {
    let mut live: BTreeMap<String, AddFile> = BTreeMap::new();
    for actions in log {
        for action in actions {
            if let Action::Remove(remove) = action {
                live.remove(&remove.path);
            }
        }
        for action in actions {
            if let Action::Add(add) = action {
                live.insert(add.path.clone(), (**add).clone());
            }
        }
    }
    live.into_values().collect()
}

fn names(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|column| (*column).to_owned()).collect()
}

fn protocol() -> Protocol {
    Protocol {
        min_reader_version: 1,
        min_writer_version: 7,
        reader_features: None,
        writer_features: Some(names(&["clustering", "domainMetadata"])),
    }
}

/// Builds a snapshot of a table `t` with columns `a`, `b` (bigint) and `s` (string).
#[must_use]
pub fn snapshot(cluster_by: &[&str], files: Vec<AddFile>) -> TableSnapshot {
    TableSnapshot {
        table: TableName::new("t"),
        location: "memory:///t".to_owned(),
        version: 0,
        schema: Arc::new(Schema::new(vec![
            Field::new("a", DataType::Int64, true),
            Field::new("b", DataType::Int64, true),
            Field::new("s", DataType::Utf8, true),
        ])),
        protocol: protocol(),
        metadata: serde_json::json!({"id": "t"}),
        properties: BTreeMap::new(),
        partition_columns: Vec::new(),
        clustering: Some(ddl::domain(&names(cluster_by))),
        cuts_domain: None,
        in_commit_timestamp: None,
        row_id_high_water_mark: None,
        clock_ms: 0,
        files,
    }
}

/// Builds a field that column mapping calls `col-ID` in files.
#[must_use]
pub fn mapped_field(name: &str, data_type: DataType, id: i32) -> Field {
    let metadata = [
        ("delta.columnMapping.id".to_owned(), id.to_string()),
        ("delta.columnMapping.physicalName".to_owned(), format!("col-{id}")),
    ];
    Field::new(name, data_type, true).with_metadata(metadata.into())
}

/// Builds a file that nobody clustered, with 100 rows.
#[must_use]
pub fn plain_file(path: &str, size: u64) -> AddFile {
    AddFile {
        path: path.to_owned(),
        partition_values: BTreeMap::new(),
        size,
        modification_time: 0,
        data_change: true,
        stats: Some("{\"numRecords\":100}".to_owned()),
        tags: None,
        deletion_vector: None,
        base_row_id: None,
        default_row_commit_version: None,
        clustering_provider: None,
    }
}

/// Builds a file of a cube.
#[must_use]
pub fn clustered_file(path: &str, size: u64, cube: &str, cluster_by: &[&str]) -> AddFile {
    let tags = zcube::tags(cube, &names(cluster_by));
    AddFile {
        tags: Some(tags.into_iter().map(|(k, v)| (k, Some(v))).collect()),
        clustering_provider: Some(zcube::PROVIDER.to_owned()),
        ..plain_file(path, size)
    }
}

/// Gives a file of 100 rows ranges of whole-number columns: name, smallest and largest value.
#[must_use]
pub fn with_ranges(mut file: AddFile, ranges: &[(&str, i64, i64)]) -> AddFile {
    let mut stats = serde_json::json!({ "numRecords": 100, "minValues": {}, "maxValues": {} });
    for (column, low, high) in ranges {
        stats["minValues"][*column] = (*low).into();
        stats["maxValues"][*column] = (*high).into();
    }
    file.stats = Some(stats.to_string());
    file
}

/// Hides some of a file's 100 rows behind a deletion vector.
#[must_use]
pub fn with_deletions(mut file: AddFile, cardinality: i64) -> AddFile {
    file.deletion_vector = Some(DeletionVector {
        storage_type: "u".into(),
        path_or_inline_dv: "x".into(),
        offset: Some(1),
        size_in_bytes: 1,
        cardinality,
    });
    file
}
