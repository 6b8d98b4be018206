//! The events that matter, out of the hundreds of kinds that a log holds.

use std::{borrow::Cow, collections::BTreeMap};

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
    /// Whether the text was left out because it is longer than [`MAX_PLAN_TEXT_BYTES`].
    pub(super) text_over_limit: bool,
}

/// Longer texts of plans are left to the tree, which says nearly the same.
const MAX_PLAN_TEXT_BYTES: usize = 4 << 20;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// The application got its id.
    Application { id: String },
    /// An execution started.
    Start { id: u64, root: Option<u64>, description: String, time: Option<i64>, plan: LoggedPlan },
    /// Adaptive execution changed the plan; [`plan_of_update`] reads it.
    Update { id: u64 },
    /// The driver counted something for an execution.
    DriverCounts { id: u64, counts: Vec<(u64, u64)> },
    /// An execution ended; Spark tells whether it failed since version 3.4.
    End { id: u64, time: Option<i64>, failed: Option<bool> },
    /// A job works for an execution.
    Job { id: u64, execution: u64 },
    /// A job failed.
    JobFailed { id: u64 },
    /// A stage ended with these row counts by accumulator.
    StageRows { counts: Vec<(u64, u64)> },
}

/// How much of an event's line is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interest {
    /// All of it.
    Whole,
    /// Whether it is JSON.
    Form,
    /// Where it ends: task events are nearly all of a log, and a cut shows there.
    End,
}

/// Returns an event's name; `{"Event":"<name>"` is read without parsing the line.
///
/// # Errors
/// Fails when the line is no object with a text as `Event`.
pub(super) fn name(line: &[u8]) -> Result<Cow<'_, str>, Malformed> {
    let quick = line.strip_prefix(b"{\"Event\":\"").and_then(|rest| {
        let end = memchr::memchr2(b'"', b'\\', &rest[..rest.len().min(MAX_NAME_BYTES)])?;
        if rest[end] == b'"' { str::from_utf8(&rest[..end]).ok() } else { None }
    });
    if let Some(name) = quick {
        return Ok(Cow::Borrowed(name));
    }
    let text = String::from_utf8_lossy(line);
    let mut json = Json::new(&text);
    let found = if json.seek("Event")? { json.text()? } else { None };
    match found {
        Some(name) => Ok(Cow::Owned(name.into_owned())),
        None => Err(Malformed { at: 0, expected: "an object with a text as `Event`" }),
    }
}

/// Longer names are read the slow way.
const MAX_NAME_BYTES: usize = 200;

/// Tells whether an event is one of SQL execution.
pub(super) fn is_sql(name: &str) -> bool {
    name.starts_with(SQL)
}

/// Tells whether Spark itself has events of this kind.
pub(super) fn is_sparks(name: &str) -> bool {
    name.starts_with("SparkListener") || name.starts_with("org.apache.spark.")
}

/// Tells what to do with a line by its event's name.
pub(super) fn interest(name: &str) -> Interest {
    match name.strip_prefix(SQL).unwrap_or(name) {
        "SparkListenerApplicationStart"
        | "SparkListenerStageCompleted"
        | "SparkListenerJobStart"
        | "SparkListenerJobEnd"
        | "SQLExecutionStart"
        | "SQLAdaptiveExecutionUpdate"
        | "DriverAccumUpdates"
        | "SQLExecutionEnd" => Interest::Whole,
        task if task.starts_with("SparkListenerTask") => Interest::End,
        _ => Interest::Form,
    }
}

/// Checks that a line is one JSON value.
pub(super) fn check(line: &str) -> Result<(), Malformed> {
    let mut json = Json::new(line);
    json.skip()?;
    json.end()
}

/// Reads an event, or `None` when it does not matter.
pub(super) fn read(name: &str, line: &str) -> Result<Option<Event>, Malformed> {
    match name.strip_prefix(SQL).unwrap_or(name) {
        "SparkListenerApplicationStart" => application(line),
        "SparkListenerStageCompleted" => Ok(Some(Event::StageRows { counts: stage_rows(line)? })),
        "SparkListenerJobStart" => job(line),
        "SparkListenerJobEnd" => failed_job(line),
        "SQLExecutionStart" => {
            let Fields { id, root, description, time, plan, .. } = Fields::read(line)?;
            Ok(id.map(|id| Event::Start { id, root, description, time, plan }))
        }
        "SQLAdaptiveExecutionUpdate" => {
            check(line)?;
            let mut json = Json::new(line);
            let id = if json.seek("executionId")? { unsigned(&mut json)? } else { None };
            Ok(id.map(|id| Event::Update { id }))
        }
        "DriverAccumUpdates" => {
            let fields = Fields::read(line)?;
            Ok(fields.id.map(|id| Event::DriverCounts { id, counts: fields.counts }))
        }
        "SQLExecutionEnd" => {
            let fields = Fields::read(line)?;
            let failed = fields.error_message.map(|message| !message.is_empty());
            Ok(fields.id.map(|id| Event::End { id, time: fields.time, failed }))
        }
        _ => Ok(None),
    }
}

/// Reads the plan of a line that was an [`Event::Update`].
pub(super) fn plan_of_update(line: &str) -> Option<LoggedPlan> {
    Fields::read(line).ok().map(|fields| fields.plan)
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
                "physicalPlanDescription" => {
                    let text = json.text_within(MAX_PLAN_TEXT_BYTES)?;
                    fields.plan.text_over_limit = text.is_none();
                    fields.plan.description = text.unwrap_or_default().into_owned();
                }
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

/// An application that is tried again keeps its id, and its executions start at 0 again.
fn application(line: &str) -> Result<Option<Event>, Malformed> {
    let (mut id, mut attempt) = (None, None);
    Json::new(line).object(&mut |json, name| {
        match name {
            "App ID" => id = json.text()?.map(|text| text.into_owned()),
            "App Attempt ID" => attempt = json.text()?.map(|text| text.into_owned()),
            _ => json.skip()?,
        }
        Ok(())
    })?;
    Ok(id.map(|id| Event::Application {
        id: match attempt {
            Some(attempt) => format!("{id}/{attempt}"),
            None => id,
        },
    }))
}

/// Reads which execution a job works for. Its properties hold the whole configuration, so they are
/// searched for the one that matters.
fn job(line: &str) -> Result<Option<Event>, Malformed> {
    const EXECUTION: &str = "\"spark.sql.execution.id\":\"";
    check(line)?;
    let mut json = Json::new(line);
    let id = if json.seek("Job ID")? { unsigned(&mut json)? } else { None };
    let after = memchr::memmem::find(line.as_bytes(), EXECUTION.as_bytes());
    let execution = after.and_then(|at| line[at + EXECUTION.len()..].split('"').next());
    let execution = execution.and_then(|text| text.parse().ok());
    Ok(id.zip(execution).map(|(id, execution)| Event::Job { id, execution }))
}

/// Reads which job failed. Adaptive execution cancels jobs that turn out not to be needed.
fn failed_job(line: &str) -> Result<Option<Event>, Malformed> {
    let (mut id, mut failed, mut cancelled) = (None, false, false);
    let mut json = Json::new(line);
    json.object(&mut |json, name| match name {
        "Job ID" => unsigned(json).map(|value| id = value),
        "Job Result" if json.is_object() => json.object(&mut |json, name| {
            match name {
                "Result" => failed = json.text()?.as_deref() == Some("JobFailed"),
                "Exception" if json.is_object() => json.object(&mut |json, name| match name {
                    "Message" => {
                        let message = json.text()?.unwrap_or_default();
                        cancelled = message.contains("cancelled");
                        Ok(())
                    }
                    _ => json.skip(),
                })?,
                _ => json.skip()?,
            }
            Ok(())
        }),
        _ => json.skip(),
    })?;
    json.end()?;
    Ok(id.filter(|_| failed && !cancelled).map(|id| Event::JobFailed { id }))
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
    use super::{Event, Interest, interest, name, read};

    #[track_caller]
    fn check(line: &str, expected: Option<Event>) {
        assert_eq!(read(&name(line.as_bytes()).unwrap(), line), Ok(expected));
    }

    #[test]
    fn an_end_with_a_message_is_a_failure() {
        let line = |message: &str| {
            format!(
                "{{\"Event\":\"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd\",\
                 \"executionId\":7,\"time\":12{message}}}"
            )
        };
        let end = |failed| Some(Event::End { id: 7, time: Some(12), failed });
        check(&line(""), end(None));
        check(&line(",\"errorMessage\":\"\""), end(Some(false)));
        check(&line(",\"errorMessage\":\"boom\""), end(Some(true)));
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
            match read(&name(line.as_bytes()).unwrap(), &line) {
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
        let Ok(Some(Event::Start { plan, .. })) = read(&name(line.as_bytes()).unwrap(), &line)
        else {
            panic!("no start");
        };
        assert!(plan.tree.is_cut && plan.tree.len() == 301);
    }

    #[test]
    fn events_that_do_not_matter_are_not_parsed() {
        let line = r#"{"Event":"SparkListenerTaskEnd", broken"#;
        check(line, None);
        assert_eq!(interest("SparkListenerTaskEnd"), Interest::End);
        assert_eq!(interest("SparkListenerTaskGettingResult"), Interest::End);
        assert_eq!(interest("SparkListenerJobEnd"), Interest::Whole);
        assert_eq!(interest("SparkListenerStageSubmitted"), Interest::Form);
    }

    #[test]
    fn an_event_has_its_name_wherever_it_stands() {
        let named = |line: &[u8]| name(line).map(std::borrow::Cow::into_owned).ok();
        assert_eq!(named(br#"{"Event":"A","x":1}"#).as_deref(), Some("A"));
        assert_eq!(named(br#"{"x":[1],"Event":"A"}"#).as_deref(), Some("A"));
        assert_eq!(named(br#" { "Event" : "A" }"#).as_deref(), Some("A"));
        assert_eq!(named(b"{\"x\":\"\xff\",\"Event\":\"A\"}").as_deref(), Some("A"));
        for line in ["7", "\"x\"", "[1]", "null", r#"{"Event":null}"#, r#"{"Event":7}"#, "{}", "x"]
        {
            assert_eq!(named(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn a_plan_that_is_null_is_no_plan() {
        let line = r#"{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart","executionId":3,"sparkPlanInfo":null,"time":1}"#;
        let Ok(Some(Event::Start { plan, .. })) = read(&name(line.as_bytes()).unwrap(), line)
        else {
            panic!("a start")
        };
        assert_eq!(plan, super::LoggedPlan::default());
    }

    #[test]
    fn jobs_tell_their_execution_and_whether_they_failed() {
        check(
            r#"{"Event":"SparkListenerJobStart","Job ID":4,"Properties":{"a":"b","spark.sql.execution.id":"17"}}"#,
            Some(Event::Job { id: 4, execution: 17 }),
        );
        check(r#"{"Event":"SparkListenerJobStart","Job ID":4,"Properties":{}}"#, None);
        let end = |result: &str| {
            format!(r#"{{"Event":"SparkListenerJobEnd","Job ID":4,"Job Result":{result}}}"#)
        };
        check(&end(r#"{"Result":"JobSucceeded"}"#), None);
        check(
            &end(r#"{"Result":"JobFailed","Exception":{"Message":"boom"}}"#),
            Some(Event::JobFailed { id: 4 }),
        );
        check(
            &end(r#"{"Result":"JobFailed","Exception":{"Message":"Job 4 cancelled because"}}"#),
            None,
        );
    }

    #[test]
    fn an_attempt_is_part_of_the_applications_id() {
        check(
            r#"{"Event":"SparkListenerApplicationStart","App ID":"app_1","User":"u"}"#,
            Some(Event::Application { id: "app_1".to_owned() }),
        );
        check(
            r#"{"Event":"SparkListenerApplicationStart","App ID":"app_1","App Attempt ID":"2"}"#,
            Some(Event::Application { id: "app_1/2".to_owned() }),
        );
    }
}
