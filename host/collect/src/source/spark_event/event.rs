//! The events that matter, out of the hundreds of kinds that a log holds.

use std::collections::BTreeMap;

use crate::lineage::spark_plan::{Metric, NodeId, PlanNode, PlanTree};

use super::json::{Json, Malformed};

/// Prefix of the names of SQL events.
const SQL: &str = "org.apache.spark.sql.execution.ui.SparkListener";

/// A plan as an event carries it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LoggedPlan {
    /// The tree.
    pub(super) tree: PlanTree,
    /// The same plan as long text.
    pub(super) description: String,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// The application got its id.
    Application { id: String },
    /// An execution started.
    Start { id: u64, root: Option<u64>, description: String, time: i64, plan: LoggedPlan },
    /// Adaptive execution changed the plan.
    Update { id: u64, plan: LoggedPlan },
    /// The driver counted something for an execution.
    DriverCounts { id: u64, counts: Vec<(u64, u64)> },
    /// An execution ended.
    End { id: u64, time: i64, failed: bool },
    /// A stage ended with these row counts by accumulator.
    StageRows { counts: Vec<(u64, u64)> },
}

/// Returns the event's name without parsing the line: `{"Event":"<name>"`.
pub(super) fn name(line: &str) -> Option<&str> {
    line.strip_prefix("{\"Event\":\"")?.split('"').next()
}

/// Tells whether an event is one of SQL execution.
pub(super) fn is_sql(name: &str) -> bool {
    name.starts_with(SQL)
}

/// Checks a line that nobody reads. Task events are nearly all of a log: of them only the end is
/// looked at, where a cut shows.
pub(super) fn check(name: &str, line: &str) -> bool {
    if name.starts_with("SparkListenerTask") {
        return line.trim_end().ends_with('}');
    }
    let mut json = Json::new(line);
    json.skip().and_then(|()| json.end()).is_ok()
}

/// Reads an event, or `None` when its kind does not matter.
pub(super) fn read(name: &str, line: &str) -> Result<Option<Event>, Malformed> {
    let event = match name.strip_prefix(SQL).unwrap_or(name) {
        "SparkListenerApplicationStart" => application(line)?,
        "SparkListenerStageCompleted" => Some(Event::StageRows { counts: stage_rows(line)? }),
        "SQLExecutionStart" => start(line)?,
        "SQLAdaptiveExecutionUpdate" => {
            let fields = Fields::read(line)?;
            fields.id.map(|id| Event::Update { id, plan: fields.plan })
        }
        "DriverAccumUpdates" => {
            let fields = Fields::read(line)?;
            fields.id.map(|id| Event::DriverCounts { id, counts: fields.counts })
        }
        "SQLExecutionEnd" => {
            let fields = Fields::read(line)?;
            let failed = fields.error_message.is_some_and(|message| !message.is_empty());
            fields.id.zip(fields.time).map(|(id, time)| Event::End { id, time, failed })
        }
        _ => None,
    };
    Ok(event)
}

fn start(line: &str) -> Result<Option<Event>, Malformed> {
    let fields = Fields::read(line)?;
    let (Some(id), Some(time)) = (fields.id, fields.time) else { return Ok(None) };
    let description = fields.description;
    Ok(Some(Event::Start { id, root: fields.root, description, time, plan: fields.plan }))
}

/// The fields of all SQL events together; each event has some of them.
#[derive(Default)]
struct Fields {
    id: Option<u64>,
    root: Option<u64>,
    description: String,
    time: Option<i64>,
    error_message: Option<String>,
    plan: LoggedPlan,
    counts: Vec<(u64, u64)>,
}

impl Fields {
    fn read(line: &str) -> Result<Self, Malformed> {
        let mut fields = Self::default();
        let mut json = Json::new(line);
        json.object(&mut |json, name| {
            match name {
                "executionId" => fields.id = unsigned(json)?,
                "rootExecutionId" => fields.root = unsigned(json)?,
                "time" => fields.time = json.integer()?,
                "description" => fields.description = owned(json)?,
                "errorMessage" => fields.error_message = json.text()?.map(|text| text.into_owned()),
                "physicalPlanDescription" => fields.plan.description = owned(json)?,
                "sparkPlanInfo" => fields.plan.tree = plan_tree(json)?,
                "accumUpdates" => fields.counts = pairs(json)?,
                _ => json.skip()?,
            }
            Ok(())
        })?;
        json.end()?;
        Ok(fields)
    }
}

fn application(line: &str) -> Result<Option<Event>, Malformed> {
    let mut id = None;
    Json::new(line).object(&mut |json, name| {
        if name == "App ID" {
            id = json.text()?.map(|text| text.into_owned());
            return Ok(());
        }
        json.skip()
    })?;
    Ok(id.map(|id| Event::Application { id }))
}

/// Operators below operators beyond this are not read, so that no plan exhausts the stack.
const MAX_DEPTH: usize = 300;

fn plan_tree(json: &mut Json<'_>) -> Result<PlanTree, Malformed> {
    let mut tree = PlanTree::default();
    plan_node(json, &mut tree, None, 0)?;
    Ok(tree)
}

/// Reads an operator and what is below it. Anything but an object is no operator.
fn plan_node(
    json: &mut Json<'_>,
    tree: &mut PlanTree,
    parent: Option<NodeId>,
    depth: usize,
) -> Result<(), Malformed> {
    if !json.is_object() {
        return json.skip();
    }
    if depth > MAX_DEPTH {
        tree.is_cut = true;
        return json.skip();
    }
    let id = tree.add(parent, PlanNode::default());
    json.object(&mut |json, name| {
        match name {
            "nodeName" => tree.node_mut(id).name = owned(json)?,
            "simpleString" => tree.node_mut(id).text = owned(json)?,
            "children" if json.is_array() => {
                json.array(&mut |json| plan_node(json, tree, Some(id), depth + 1))?;
            }
            "metadata" if json.is_object() => tree.node_mut(id).fields = texts(json)?,
            "metrics" if json.is_array() => json.array(&mut |json| {
                let metric = metric(json)?;
                tree.node_mut(id).metrics.extend(metric);
                Ok(())
            })?,
            _ => json.skip()?,
        }
        Ok(())
    })
}

fn metric(json: &mut Json<'_>) -> Result<Option<Metric>, Malformed> {
    let (mut name, mut id) = (String::new(), None);
    json.object(&mut |json, member| {
        match member {
            "name" => name = owned(json)?,
            "accumulatorId" => id = unsigned(json)?,
            _ => json.skip()?,
        }
        Ok(())
    })?;
    Ok(id.map(|id| Metric { name, id }))
}

fn texts(json: &mut Json<'_>) -> Result<BTreeMap<String, String>, Malformed> {
    let mut texts = BTreeMap::new();
    json.object(&mut |json, name| {
        texts.insert(name.to_owned(), owned(json)?);
        Ok(())
    })?;
    Ok(texts)
}

/// Reads `[[id, value], …]`.
fn pairs(json: &mut Json<'_>) -> Result<Vec<(u64, u64)>, Malformed> {
    let mut pairs = Vec::new();
    json.array(&mut |json| {
        let mut pair = Vec::with_capacity(2);
        json.array(&mut |json| {
            pair.push(unsigned(json)?);
            Ok(())
        })?;
        if let [Some(id), Some(value)] = pair[..] {
            pairs.push((id, value));
        }
        Ok(())
    })?;
    Ok(pairs)
}

/// Reads the final values of a stage's accumulators that some plan may ask for.
fn stage_rows(line: &str) -> Result<Vec<(u64, u64)>, Malformed> {
    let mut counts = Vec::new();
    let mut json = Json::new(line);
    json.object(&mut |json, name| {
        if name != "Stage Info" {
            return json.skip();
        }
        json.object(&mut |json, name| {
            if name != "Accumulables" {
                return json.skip();
            }
            json.array(&mut |json| {
                counts.extend(row_count(json)?);
                Ok(())
            })
        })
    })?;
    json.end()?;
    Ok(counts)
}

/// Counts of tasks that scans and joins have: rows, what was spilled and, with Photon, files.
fn is_asked_for(name: &str) -> bool {
    let count = ["rows", "spill", "files", "bytes read", "bytes pruned"];
    !name.starts_with("internal.") && count.iter().any(|part| name.contains(part))
}

fn row_count(json: &mut Json<'_>) -> Result<Option<(u64, u64)>, Malformed> {
    let (mut id, mut is_wanted, mut value) = (None, false, None);
    json.object(&mut |json, name| {
        match name {
            "ID" => id = unsigned(json)?,
            "Name" => is_wanted = json.text()?.is_some_and(|name| is_asked_for(&name)),
            "Value" => value = unsigned(json)?,
            _ => json.skip()?,
        }
        Ok(())
    })?;
    Ok(id.zip(value).filter(|_| is_wanted))
}

fn unsigned(json: &mut Json<'_>) -> Result<Option<u64>, Malformed> {
    Ok(json.integer()?.and_then(|value| u64::try_from(value).ok()))
}

fn owned(json: &mut Json<'_>) -> Result<String, Malformed> {
    Ok(json.text()?.unwrap_or_default().into_owned())
}

#[cfg(test)]
mod tests {
    use super::{Event, name, read};

    #[track_caller]
    fn check(line: &str, expected: Option<Event>) {
        assert_eq!(read(name(line).unwrap(), line), Ok(expected));
    }

    #[test]
    fn an_end_with_a_message_is_a_failure() {
        let line = |message: &str| {
            format!(
                "{{\"Event\":\"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd\",\
                 \"executionId\":7,\"time\":12{message}}}"
            )
        };
        let end = |failed| Some(Event::End { id: 7, time: 12, failed });
        check(&line(""), end(false));
        check(&line(",\"errorMessage\":\"\""), end(false));
        check(&line(",\"errorMessage\":\"boom\""), end(true));
    }

    #[test]
    fn counts_of_a_stage_are_read_and_other_accumulators_left() {
        check(
            r#"{"Event":"SparkListenerStageCompleted","Stage Info":{"Stage ID":1,"Accumulables":[
                {"ID":5,"Name":"number of output rows","Value":"42","Internal":true},
                {"ID":6,"Name":"scan time","Value":"9"},
                {"ID":7,"Name":"spill size","Value":"1024"},
                {"ID":8,"Name":"internal.metrics.x","Value":[1]}]}}"#,
            Some(Event::StageRows { counts: vec![(5, 42), (7, 1024)] }),
        );
    }

    #[test]
    fn counts_of_the_driver_are_pairs() {
        check(
            r#"{"Event":"org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates","executionId":9,"accumUpdates":[[187,1],[191,-1],[188,10]]}"#,
            Some(Event::DriverCounts { id: 9, counts: vec![(187, 1), (188, 10)] }),
        );
    }

    #[test]
    fn a_plan_that_is_null_or_has_holes_is_read_as_far_as_it_goes() {
        let line = |plan: &str| {
            format!(
                "{{\"Event\":\"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart\",\
                 \"executionId\":3,\"time\":1,\"sparkPlanInfo\":{plan}}}"
            )
        };
        let operators = |plan: &str| {
            let line = line(plan);
            match read(name(&line).unwrap(), &line) {
                Ok(Some(Event::Start { plan, .. })) => plan.tree.len(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(operators("null"), 0);
        assert_eq!(operators("[]"), 0);
        assert_eq!(operators(r#"{"nodeName":"A","children":null,"metadata":null,"metrics":1}"#), 1);
        assert_eq!(operators(r#"{"nodeName":"A","children":[null,{"nodeName":"B"}]}"#), 2);
    }

    #[test]
    fn a_plan_that_is_too_deep_is_cut_and_says_so() {
        let plan = format!("{}{}", r#"{"children":["#.repeat(2_000), "]}".repeat(2_000));
        let line = format!(
            "{{\"Event\":\"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart\",\
             \"executionId\":3,\"time\":1,\"sparkPlanInfo\":{plan}}}"
        );
        let Ok(Some(Event::Start { plan, .. })) = read(name(&line).unwrap(), &line) else {
            panic!("no start");
        };
        assert!(plan.tree.is_cut && plan.tree.len() == 301);
    }

    #[test]
    fn events_that_do_not_matter_are_not_parsed() {
        check(r#"{"Event":"SparkListenerTaskEnd", broken"#, None);
    }
}
