//! What each kind of operator makes of the columns below it.

use crate::lineage::origin::Origin;

use super::{
    node::PlanNode,
    output::{Column, Output, Scope, concatenated, first},
    text::{self, Attribute, alias, attribute, labeled_list, list_from, split_top},
    walk::Walker,
};

/// Operators that give what they get, in other places, orders or numbers.
const PASS_ON: [&str; 59] = [
    "AQEShuffleRead",
    "AdaptiveSparkPlan",
    "AppendColumns",
    "AppendData",
    "BringBackToHost",
    "BroadcastExchange",
    "BroadcastQueryStage",
    "Coalesce",
    "CoalesceBatches",
    "CollectLimit",
    "CollectMetrics",
    "CollectTail",
    "ColumnarBroadcastExchange",
    "ColumnarCoalesce",
    "ColumnarCollectLimit",
    "ColumnarExchange",
    "ColumnarInputAdapter",
    "ColumnarToRow",
    "CustomShuffleReader",
    "EventTimeWatermark",
    "Exchange",
    "GlobalLimit",
    "HostColumnarToGpu",
    "InputAdapter",
    "InputIterator",
    "Limit",
    "LocalLimit",
    "LocalTopK",
    "MergeRows",
    "OverwriteByExpression",
    "OverwritePartitionsDynamic",
    "Repartition",
    "ReplaceData",
    "ResizeBatches",
    "ResultQueryStage",
    "ResultStage",
    "ReusedSubquery",
    "RowToColumnar",
    "RowToVeloxColumnar",
    "Sample",
    "ShuffleCoalesce",
    "ShuffleExchange",
    "ShuffleExchangeSink",
    "ShuffleExchangeSource",
    "ShuffleMapStage",
    "ShuffleQueryStage",
    "ShuffledExchange",
    "SinkPlaceHolder",
    "Sort",
    "Subquery",
    "SubqueryAlias",
    "SubqueryBroadcast",
    "TableCacheQueryStage",
    "TopK",
    "TopN",
    "WholeStageCodegen",
    "WindowGroupLimit",
    "WriteDelta",
    "WriteFiles",
];

/// Those of them that also leave the rows as they are and where they are.
const SAME_ROWS: [&str; 6] = [
    "ColumnarInputAdapter",
    "ColumnarToRow",
    "InputAdapter",
    "InputIterator",
    "RowToColumnar",
    "WholeStageCodegen",
];

/// Operators whose columns are new: values that functions of a program make.
const MAKE_NEW: [&str; 12] = [
    "SerializeFromObject",
    "DeserializeToObject",
    "MapElements",
    "MapPartitions",
    "MapGroups",
    "CoGroup",
    "FlatMapGroupsInPandas",
    "FlatMapCoGroupsInPandas",
    "MapInPandas",
    "MapInArrow",
    "PythonMapInArrow",
    "FlatMapGroupsInPandasWithState",
];

/// The field of a cached table's scan that lists the columns of the cached relation.
pub(super) const RELATION: &str = "Relation";

impl Walker<'_> {
    /// Reads an operator that neither scans nor joins.
    pub(super) fn visit_operator(&mut self, node: &PlanNode, inputs: Vec<Output>) -> Output {
        let operator = node.operator();
        match operator {
            "Project" | "ProjectAst" => self.visit_project(node, inputs),
            "Filter" => self.visit_filter(node, inputs),
            "TakeOrderedAndProject" => self.visit_top(node, inputs),
            "ReusedExchange" | "InMemoryTableScan" => self.visit_renamed(node, inputs),
            "Union" | "ColumnarUnion" => self.visit_union(inputs),
            "Expand" => self.visit_expand(node, &inputs),
            "Generate" => self.visit_generate(node, inputs),
            "Window" | "RunningWindow" | "WindowInPandas" | "ArrowWindowPython" => {
                self.visit_window(node, inputs)
            }
            _ if operator.contains("EvalPython") => self.visit_window(node, inputs),
            "AggregateInPandas" | "ArrowAggregatePython" => self.visit_results(node, &inputs),
            _ if is_aggregate(operator) => self.visit_aggregate(node, &inputs),
            _ if MAKE_NEW.contains(&operator) || inputs.is_empty() => self.visit_made(node),
            _ => self.visit_other(operator, inputs),
        }
    }

    /// Passes on what an operator gets that is known to, or that nobody knows; says so.
    fn visit_other(&mut self, operator: &str, inputs: Vec<Output>) -> Output {
        // Commands read the result of their input as well.
        let is_command = operator == "Execute" || operator.ends_with("Command");
        let is_known = is_command || PASS_ON.contains(&operator);
        if !is_known {
            let taken = if inputs.len() == 1 { " and taken to pass its input on" } else { "" };
            self.losses.insert(format!("operator {} is not known{taken}", word(operator)));
        }
        if inputs.len() == 1 {
            let output = first(inputs);
            let scan = output.scan.filter(|_| SAME_ROWS.contains(&operator));
            return Output { scan, ..output };
        }
        concatenated(inputs)
    }

    /// Reads an operator that makes its columns: rows from nowhere, or from a program.
    fn visit_made(&mut self, node: &PlanNode) -> Output {
        let lists = lists_of(arguments(node));
        let (items, whole) = self.list(node, &["Output"], lists.last().cloned());
        let names = items.iter().filter_map(|item| match alias(item) {
            Some((_, name)) => Some(name),
            None => attribute(item),
        });
        let names: Vec<Attribute> = names.collect();
        let columns: Vec<Column> =
            names.into_iter().map(|name| self.bind(name, Some(Origin::derived()))).collect();
        let exact = whole && columns.len() == items.len();
        Output { columns, exact, scan: None }
    }

    fn visit_project(&mut self, node: &PlanNode, inputs: Vec<Output>) -> Output {
        let lists = lists_of(arguments(node));
        // Some engines print what the operator gives and then how.
        let (given, made) = match lists.as_slice() {
            [given, made] => (Some(given.clone()), Some(made.clone())),
            [only] => (None, Some(only.clone())),
            _ => (None, None),
        };
        let scope = Scope::new(&inputs);
        let (items, whole) = self.list(node, &["Output"], made);
        // Conditions above speak of the scan's columns as long as none has a new name.
        let renames = items.iter().any(|item| alias(item).is_some());
        let scan = first(inputs).scan.filter(|_| !renames);
        let mut output = self.define(&items, &scope);
        output.exact &= whole;
        if let Some(given) = given {
            let (items, whole) = self.list(node, &[], Some(given));
            let scope = Scope::new([&output]);
            output = Output { exact: whole, ..self.define(&items, &scope) };
        }
        Output { scan, ..output }
    }

    fn visit_filter(&mut self, node: &PlanNode, inputs: Vec<Output>) -> Output {
        let output = first(inputs);
        let condition = node
            .fields
            .get("Condition")
            .map(String::as_str)
            .or_else(|| node.text.split_once(' ').map(|(_, condition)| condition));
        if let (Some(scan), Some(condition)) = (output.scan, condition) {
            self.add_condition(scan, condition);
        }
        output
    }

    fn visit_top(&mut self, node: &PlanNode, inputs: Vec<Output>) -> Output {
        let listed = labeled_list(&node.text, "output=")
            .or_else(|| node.fields.get("Arguments").and_then(|text| lists_of(text).pop()));
        let (items, whole) = self.list(node, &["Output"], listed);
        if items.is_empty() {
            return Output { scan: None, ..first(inputs) };
        }
        let output = self.define(&items, &Scope::new(&inputs));
        Output { exact: output.exact && whole, ..output }
    }

    /// Group keys keep their ids; what the functions give is computed.
    fn visit_aggregate(&mut self, node: &PlanNode, inputs: &[Output]) -> Output {
        let scope = Scope::new(inputs);
        let listed = labeled_list(&node.text, "keys=");
        let (keys, _) = self.list(node, &["Keys"], listed);
        let grouped = self.define(&keys, &scope);
        let (buffers, _) = self.list(node, &["Aggregate Attributes"], None);
        for buffer in buffers.iter().filter_map(|item| attribute(item)) {
            self.bind(buffer, Some(Origin::derived()));
        }
        let results = labeled_list(&node.text, "output=");
        let (results, whole) = self.list(node, &["Results", "output="], results);
        if !results.is_empty() {
            let scope = Scope::new([&grouped].into_iter().chain(inputs));
            let output = self.define(&results, &scope);
            return Output { exact: output.exact && whole, ..output };
        }
        // A final aggregate may reorder and rename its keys without saying so in this text; a
        // partial one gives keys first and buffers after them.
        let functions = node.fields.get("Functions").unwrap_or(&node.text);
        let is_partial =
            functions.contains("functions=[partial_") || functions.contains("[partial_");
        Output { exact: is_partial, scan: None, ..grouped }
    }

    /// Reads an aggregate by a program: its last list has the keys and the results.
    fn visit_results(&mut self, node: &PlanNode, inputs: &[Output]) -> Output {
        let (items, whole) = self.list(node, &["Output"], lists_of(arguments(node)).pop());
        let output = self.define(&items, &Scope::new(inputs));
        Output { exact: output.exact && whole, ..output }
    }

    /// Binds the ids that an operator lists anew to the columns of its child.
    fn visit_renamed(&mut self, node: &PlanNode, inputs: Vec<Output>) -> Output {
        let listed = list_from(&node.text, 0).map(|(items, _)| items);
        let (items, whole) = self.list(node, &["Output"], listed);
        let attributes: Vec<Attribute> = items.iter().filter_map(|item| attribute(item)).collect();
        if attributes.len() != items.len() {
            self.losses.insert("the columns of a reused result could not be told apart".to_owned());
        }
        let mut child = first(inputs);
        if let Some(relation) = node.fields.get(RELATION).and_then(|text| text::whole_list(text)) {
            let (relation, _) = self.list(node, &[], Some(relation));
            child = self.visit_relation(&relation, &child);
        }
        let mut alike = child.columns.iter().zip(&attributes);
        // A cached table may be read in part and in another order, an exchange may not.
        let by_position = child.exact
            && child.columns.len() == attributes.len()
            && attributes.len() == items.len()
            && (node.is_reuse() || alike.all(|(a, b)| a.attribute.name == b.name));
        let mut columns = Vec::with_capacity(attributes.len());
        for (position, attribute) in attributes.into_iter().enumerate() {
            let same = child.columns.iter().find(|other| other.attribute.id == attribute.id);
            let same = same.or_else(|| match by_position {
                true => child.columns.get(position),
                false => only_named(&child.columns, &attribute.name),
            });
            let origin = same.and_then(|same| same.origin.clone());
            columns.push(self.bind(attribute, origin));
        }
        Output { columns, exact: whole, scan: None }
    }

    /// The relation of a cached table lists its columns, those of the plan below by position.
    pub(super) fn visit_relation(&mut self, items: &[String], child: &Output) -> Output {
        let attributes = items.iter().filter_map(|item| attribute(item));
        let exact = child.exact && child.columns.len() == items.len();
        let columns: Vec<Column> = attributes
            .enumerate()
            .map(|(position, attribute)| {
                let same = if exact { child.columns.get(position) } else { None };
                let origin = same.and_then(|same| same.origin.clone());
                self.bind(attribute, origin)
            })
            .collect();
        Output { exact, columns, scan: None }
    }

    /// The ids of a union are those of its first branch.
    fn visit_union(&mut self, inputs: Vec<Output>) -> Output {
        let Some(width) = inputs.first().map(|output| output.columns.len()) else {
            return Output::default();
        };
        let aligned = inputs.iter().all(|branch| branch.exact && branch.columns.len() == width);
        if !aligned {
            self.losses.insert("the columns of a union's branches are not all shown".to_owned());
        }
        let mut columns = Vec::with_capacity(width);
        for position in 0..width {
            let branches = inputs.iter().map(|branch| {
                branch.columns.get(position).and_then(|column| column.origin.clone())
            });
            let branches: Option<Vec<Origin>> = branches.collect();
            let origin = branches.filter(|_| aligned).map(|branches| Origin::union(&branches));
            let attribute = inputs[0].columns[position].attribute.clone();
            if origin.is_none() {
                self.forget(attribute.id);
            }
            columns.push(self.bind(attribute, origin));
        }
        Output { columns, exact: aligned, scan: None }
    }

    /// `Expand [[a#1, null, 0], [a#1, b#2, 1]], [a#7, b#8, gid#9]`: a column is what its rows are,
    /// apart from the nulls of rolled-up keys.
    fn visit_expand(&mut self, node: &PlanNode, inputs: &[Output]) -> Output {
        let text = arguments(node);
        let Some((rows, after)) = list_from(text, 0) else { return Output::default() };
        let Some((names, _)) = list_from(text, after) else { return Output::default() };
        let rows: Vec<Vec<&str>> =
            rows.iter().filter_map(|row| list_from(row, 0).map(|(items, _)| items)).collect();
        let (names, whole) = self.list(node, &[], Some(names));
        let scope = Scope::new(inputs);
        let attributes: Vec<Attribute> = names.iter().filter_map(|item| attribute(item)).collect();
        let mut columns = Vec::with_capacity(attributes.len());
        for (position, attribute) in attributes.into_iter().enumerate() {
            let values: Vec<&str> = rows
                .iter()
                .filter_map(|row| row.get(position).copied())
                .filter(|value| *value != "null")
                .collect();
            let origins: Option<Vec<Origin>> =
                values.iter().map(|value| self.resolve(value, &scope)).collect();
            // Rows that are cut do not show all that a column can be.
            let is_cut = rows
                .iter()
                .any(|row| row.get(position).is_none_or(|value| text::omitted(value).is_some()));
            let origin = origins.filter(|_| !is_cut).map(|origins| Origin::union(&origins));
            columns.push(self.bind(attribute, origin));
        }
        Output { columns, exact: whole, scan: None }
    }

    /// `Generate explode(xs#1), [a#2], false, [x#3]`: the required columns, then the generated ones.
    fn visit_generate(&mut self, node: &PlanNode, inputs: Vec<Output>) -> Output {
        let lists = lists_of(arguments(node));
        let scope = Scope::new(&inputs);
        let mut output = match lists.as_slice() {
            [required, _] => {
                let (items, whole) = self.list(node, &[], Some(required.clone()));
                Output { exact: whole, ..self.define(&items, &scope) }
            }
            _ => Output { exact: false, scan: None, ..first(inputs) },
        };
        if let Some(generated) = lists.last() {
            let (items, whole) = self.list(node, &[], Some(generated.clone()));
            for attribute in items.iter().filter_map(|item| attribute(item)) {
                output.columns.push(self.bind(attribute, Some(Origin::derived())));
            }
            output.exact &= whole;
        }
        output
    }

    /// The columns of the input, then those that the operator adds.
    fn visit_window(&mut self, node: &PlanNode, inputs: Vec<Output>) -> Output {
        let scope = Scope::new(&inputs);
        let mut output = Output { scan: None, ..first(inputs) };
        let lists = lists_of(arguments(node));
        // `BatchEvalPython [f(a#1)], [pythonUDF0#5]` names its results in the second list.
        let added =
            if node.operator().contains("EvalPython") { lists.get(1) } else { lists.first() };
        let (items, whole) = self.list(node, &[], added.cloned());
        for item in &items {
            let name = match alias(item) {
                Some((_, name)) => Some(name),
                None => attribute(item).filter(|attribute| scope.get(attribute.id).is_none()),
            };
            match name {
                Some(name) => output.columns.push(self.bind(name, Some(Origin::derived()))),
                None => output.exact = false,
            }
        }
        output.exact &= whole;
        output
    }

    /// Binds the aliases of a list and returns the list's columns.
    fn define(&mut self, items: &[String], scope: &Scope) -> Output {
        let mut columns = Vec::with_capacity(items.len());
        for item in items {
            if let Some((expression, name)) = alias(item) {
                let origin = self.resolve(expression, scope);
                columns.push(self.bind(name, origin));
            } else if let Some(attribute) = attribute(item) {
                let origin = self.resolve(item, scope);
                columns.push(self.bind(attribute, origin));
            }
        }
        let exact = columns.len() == items.len();
        Output { columns, exact, scan: None }
    }
}

/// The one column of a name; `None` where several have it.
fn only_named<'c>(columns: &'c [Column], name: &str) -> Option<&'c Column> {
    let mut named = columns.iter().filter(|column| column.attribute.name == name);
    let only = named.next()?;
    named.next().is_none().then_some(only)
}

/// An operator's arguments, from the long text or behind its name.
fn arguments(node: &PlanNode) -> &str {
    let in_text = || node.text.split_once([' ', '(']).map_or("", |(_, arguments)| arguments);
    node.fields.get("Arguments").map_or_else(in_text, String::as_str)
}

/// The arguments that are lists.
fn lists_of(arguments: &str) -> Vec<Vec<&str>> {
    split_top(arguments)
        .into_iter()
        .filter(|part| part.starts_with('['))
        .filter_map(text::whole_list)
        .collect()
}

/// `HashAggregate`, `SortAggregate`, `GroupingAgg`, `RegularHashAggregate`.
fn is_aggregate(operator: &str) -> bool {
    operator.ends_with("Aggregate") || operator.ends_with("Agg")
}

/// A name of letters and digits, no longer than names of operators are.
fn word(operator: &str) -> String {
    operator.chars().filter(char::is_ascii_alphanumeric).take(40).collect()
}
