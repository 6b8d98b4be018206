//! `FROM` clauses: relations and the joins between them.

use std::ops::Range;

use datafusion_sql::sqlparser::ast::{
    Expr, ExprWithAlias, FunctionArg, FunctionArgExpr, Ident, Join, JoinConstraint, JoinOperator,
    PivotValueSource, SetExpr, TableAlias, TableFactor, TableWithJoins,
};
use lakebed_model::JoinKind;

use super::{
    MAX_VISITS, Walk,
    children::{Child, children},
    condition::On,
    name::{key, keys, table_text},
    relation::{Definition, Env, Output, Pair, Relation, Rows, Value},
};
use crate::lineage::{origin::Origin, sql::Dialect};

impl<'q> Walk<'q, '_> {
    /// Reads one element of a `FROM` clause.
    pub(super) fn table_with_joins(&mut self, table: &'q TableWithJoins) {
        let start = self.current().relations.len();
        self.factor(&table.relation, JoinKind::Inner);
        for join in &table.joins {
            self.join(start, join);
        }
    }

    fn join(&mut self, start: usize, join: &'q Join) {
        let (kind, constraint) = kind_of(&join.join_operator);
        let middle = self.current().relations.len();
        if matches!(
            join.join_operator,
            JoinOperator::ArrayJoin | JoinOperator::LeftArrayJoin | JoinOperator::InnerArrayJoin
        ) {
            self.current().relations.push(relation(Vec::new(), Rows::vague()));
            return;
        }
        self.factor(&join.relation, kind);
        let end = self.current().relations.len();
        let on = On { left: start..middle, right: middle..end, kind };
        match constraint {
            Some(JoinConstraint::On(condition)) => self.condition(condition, Some(&on)),
            Some(JoinConstraint::Using(names)) => {
                let names = names.iter().filter_map(|name| keys(name).pop()).collect();
                self.using(names, &on);
            }
            Some(JoinConstraint::Natural) => self.natural(&on),
            Some(JoinConstraint::None) | None => {}
        }
        if let JoinOperator::AsOf { match_condition, .. } = &join.join_operator {
            self.read(match_condition);
        }
        let gone = match (&join.join_operator, kind) {
            (JoinOperator::RightSemi(_) | JoinOperator::RightAnti(_), _) => Some(start..middle),
            (_, JoinKind::LeftSemi | JoinKind::LeftAnti) => Some(middle..end),
            _ => None,
        };
        for index in gone.into_iter().flatten() {
            self.current().relations[index].visible = false;
        }
    }

    /// Equates the columns of one name on both sides and makes them one.
    fn using(&mut self, names: Vec<String>, on: &On) {
        let mut pairs = Vec::new();
        for name in names {
            let left = match self.current().merged.get(&name) {
                Some(merged) => Some(merged.clone()),
                None => self.find_in(&name, on.left.clone()),
            };
            let right = self.find_in(&name, on.right.clone());
            let (Some(left), Some(right)) = (left, right) else {
                let reason = "named in USING, but the tables that have it are not known";
                self.unresolved.insert(name, reason.to_owned());
                continue;
            };
            let merged = match on.kind {
                JoinKind::RightOuter => right.clone(),
                JoinKind::FullOuter => Value {
                    origin: Origin::union(&[left.origin.clone(), right.origin.clone()]),
                    ..left.clone()
                },
                _ => left.clone(),
            };
            self.current().merged.insert(name, merged);
            let hint = self.hint_of(&left).or_else(|| self.hint_of(&right));
            pairs.push(Pair { left, right, hint });
        }
        if on.kind == JoinKind::Inner {
            self.current().pairs.extend(pairs);
        } else {
            self.emit(pairs, on.kind);
        }
    }

    fn natural(&mut self, on: &On) {
        let relations = &self.current().relations;
        let is_open = |range: &Range<usize>| {
            relations[range.clone()].iter().any(|r| !r.rows.open.is_empty() || r.rows.vague)
        };
        if is_open(&on.left) || is_open(&on.right) {
            let reason = "the common columns of tables of unknown schema are not known";
            self.unresolved.insert("NATURAL JOIN".to_owned(), reason.to_owned());
            return;
        }
        let names = |range: &Range<usize>| {
            relations[range.clone()].iter().flat_map(|r| &r.rows.outputs).map(|o| o.name.clone())
        };
        let right: Vec<String> = names(&on.right).collect();
        let mut common: Vec<String> = names(&on.left).filter(|n| right.contains(n)).collect();
        common.sort();
        common.dedup();
        self.using(common, on);
    }

    /// Finds a column among some relations of the frame at hand.
    fn find_in(&mut self, name: &str, range: Range<usize>) -> Option<Value> {
        let depth = self.frames.len() - 1;
        let relations = &self.current().relations[range.clone()];
        let known: Vec<usize> = (0..relations.len())
            .filter(|index| relations[*index].rows.get(name).is_some())
            .map(|index| index + range.start)
            .collect();
        if let [first, ..] = known[..] {
            let output = self.current().relations[first].rows.get(name)?.clone();
            self.scans.read(&output.value.origin);
            return Some(Value { place: Some((depth, first)), ..output.value });
        }
        let open: Vec<usize> =
            range.filter(|index| self.current().relations[*index].rows.open.len() == 1).collect();
        let [only] = open[..] else { return None };
        let scan = self.current().relations[only].rows.open[0];
        Some(Value::of(self.grow(scan, name), (depth, only)))
    }

    /// Adds the relations of a factor to the frame at hand. `kind` is the join's that brings it.
    fn factor(&mut self, factor: &'q TableFactor, kind: JoinKind) {
        match factor {
            TableFactor::Table { name, alias, args, .. } => {
                let parts = keys(name);
                // `IDENTIFIER($name)` and files on a stage: no table whose name the text has.
                let is_named = name.0.iter().all(|part| part.as_ident().is_some())
                    && !parts[0].starts_with('@');
                match args {
                    Some(arguments) => {
                        self.arguments(&arguments.args);
                        self.add_function(parts, alias.as_ref());
                    }
                    None if !is_named => self.add_function(parts, alias.as_ref()),
                    None => self.add_table(parts, alias.as_ref()),
                }
            }
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                let rows = self.derived(*lateral, kind, |walk| walk.query(subquery));
                self.add(alias.as_ref(), Vec::new(), rows);
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let start = self.current().relations.len();
                self.table_with_joins(table_with_joins);
                if let Some(alias) = alias {
                    let mut rows = Rows::default();
                    for part in self.current().relations.drain(start..).filter(|r| r.visible) {
                        rows.outputs.extend(part.rows.outputs);
                        rows.open.extend(part.rows.open);
                        rows.vague |= part.rows.vague;
                    }
                    self.add(Some(alias), Vec::new(), rows);
                }
            }
            TableFactor::Function { name, args, alias, .. } => {
                self.arguments(args);
                self.add_function(keys(name), alias.as_ref());
            }
            TableFactor::TableFunction { expr, alias } => {
                self.read(expr);
                self.add_function(Vec::new(), alias.as_ref());
            }
            TableFactor::UNNEST { alias, array_exprs, with_offset_alias, .. } => {
                for expr in array_exprs {
                    self.read(expr);
                }
                self.add_function(Vec::new(), alias.as_ref());
                let offset = with_offset_alias.as_ref().map_or("offset".to_owned(), key);
                self.last().rows.outputs.extend(Rows::computed([offset]).outputs);
            }
            TableFactor::Pivot {
                table,
                aggregate_functions,
                value_column,
                value_source,
                alias,
                ..
            } => {
                self.factor(table, kind);
                self.pivot(aggregate_functions, value_column, value_source, alias.as_ref());
            }
            TableFactor::Unpivot { table, value, name, columns, alias, .. } => {
                self.factor(table, kind);
                self.unpivot(value, name, columns, alias.as_ref());
            }
            TableFactor::MatchRecognize { table, alias, .. } => {
                self.factor(table, kind);
                let names = self.last().names.clone();
                self.current().relations.pop();
                self.add(alias.as_ref(), names, Rows::vague());
            }
            TableFactor::JsonTable { alias, .. }
            | TableFactor::OpenJsonTable { alias, .. }
            | TableFactor::XmlTable { alias, .. }
            | TableFactor::SemanticView { alias, .. } => {
                self.add_function(Vec::new(), alias.as_ref());
            }
        }
    }

    /// Reads a derived table, which sees its siblings only when it is lateral.
    fn derived(
        &mut self,
        lateral: bool,
        kind: JoinKind,
        read: impl FnOnce(&mut Self) -> Rows,
    ) -> Rows {
        let was_hidden = std::mem::replace(&mut self.current().hidden, !lateral);
        self.correlated.push(Vec::new());
        let rows = read(self);
        let pairs = self.correlated.pop().unwrap_or_default();
        self.current().hidden = was_hidden;
        self.emit(pairs, kind);
        rows
    }

    fn add_table(&mut self, parts: Vec<String>, alias: Option<&'q TableAlias>) {
        if let [name] = &parts[..]
            && let Some((definition, outer)) = self.env.find(name)
        {
            let rows = self.common_table(&definition, outer);
            return self.add(alias, parts, rows);
        }
        // `FROM t, t.items`: the elements of a column.
        if let (Dialect::BigQuery, [first, .., last]) = (self.dialect, &parts[..])
            && self.current().relations.iter().any(|r| r.answers_to(std::slice::from_ref(first)))
            && self.catalog.columns(&table_text(parts.iter().map(String::as_str))).is_none()
        {
            let names = vec![last.clone()];
            return self.add(alias, names, Rows::vague());
        }
        let rows = self.base(parts.clone());
        self.add(alias, parts, rows);
    }

    /// Reads a common table anew, as each use of it is another scan.
    fn common_table(&mut self, definition: &Definition<'q>, outer: Env<'q>) -> Rows {
        if let Some(rows) = &definition.working {
            return rows.clone();
        }
        let names: Vec<String> = definition.alias.columns.iter().map(|c| key(&c.name)).collect();
        // A common table sees none of the tables of the query that uses it.
        let frames = std::mem::take(&mut self.frames);
        let env = std::mem::replace(&mut self.env, outer);
        self.correlated.push(Vec::new());
        let rows = match definition.query.body.as_ref() {
            SetExpr::SetOperation { left, op, set_quantifier, right } if definition.recursive => {
                // What the first branch gives is what the others find under the name.
                self.define(definition.query);
                let first = self.set(left, None).renamed(&names);
                self.env = self.env.with_working(definition, first.clone());
                let later = self.set(right, None);
                self.set_operation(first, *op, *set_quantifier, later)
            }
            _ => self.query(definition.query).renamed(&names),
        };
        self.correlated.pop();
        self.env = env;
        self.frames = frames;
        rows
    }

    /// Adds a base table's scan and returns its columns.
    pub(super) fn base(&mut self, parts: Vec<String>) -> Rows {
        self.visits += 1;
        if self.visits > MAX_VISITS {
            return Rows::vague();
        }
        let name = table_text(parts.iter().map(String::as_str));
        let columns = self.survey.columns(&name, self.catalog);
        let (scan, origins) = self.scans.add(&name, columns.as_deref());
        match origins {
            Some(origins) => {
                let outputs = origins
                    .into_iter()
                    .map(|(name, origin)| Output {
                        name,
                        value: Value { origin, ..Value::default() },
                    })
                    .collect();
                Rows { outputs, base: Some(scan), ..Rows::default() }
            }
            None => Rows { open: vec![scan], base: Some(scan), ..Rows::default() },
        }
    }

    /// Adds a relation under its alias, else under its own name.
    fn add(&mut self, alias: Option<&TableAlias>, names: Vec<String>, rows: Rows) {
        let (names, rows) = match alias {
            None => (names, rows),
            Some(alias) => {
                let columns: Vec<String> = alias.columns.iter().map(|c| key(&c.name)).collect();
                (vec![key(&alias.name)], rows.renamed(&columns))
            }
        };
        let frame = self.current();
        let hint = names.last().and_then(|name| {
            frame.hints.iter().find(|(hinted, _)| hinted == name).map(|(_, strategy)| *strategy)
        });
        frame.relations.push(Relation { hint, ..relation(names, rows) });
    }

    fn add_function(&mut self, names: Vec<String>, alias: Option<&TableAlias>) {
        let columns: Vec<String> =
            alias.map(|a| a.columns.iter().map(|c| key(&c.name)).collect()).unwrap_or_default();
        let names = alias.map_or(names, |alias| vec![key(&alias.name)]);
        self.add_computed(names, columns);
    }

    /// Adds computed columns; without names any may be meant. A single column also answers to the
    /// relation's own name.
    pub(super) fn add_computed(&mut self, names: Vec<String>, columns: Vec<String>) {
        let mut rows = if columns.is_empty() { Rows::vague() } else { Rows::computed(columns) };
        rows.outputs.extend(Rows::computed(names.last().cloned()).outputs);
        self.current().relations.push(relation(names, rows));
    }

    fn last(&mut self) -> &mut Relation {
        self.current().relations.last_mut().expect("the caller has just added a relation")
    }

    /// Turns the last relation: the aggregated and the spread column go, one per value comes.
    fn pivot(
        &mut self,
        aggregates: &'q [ExprWithAlias],
        spread: &'q [Expr],
        source: &'q PivotValueSource,
        alias: Option<&'q TableAlias>,
    ) {
        let mut gone = Vec::new();
        for expr in aggregates.iter().map(|aggregate| &aggregate.expr).chain(spread) {
            self.read(expr);
            gone.extend(names_below(expr));
        }
        let mut made = Vec::new();
        match source {
            PivotValueSource::List(values) => {
                for value in values {
                    made.push(value.alias.as_ref().map_or_else(|| text(&value.expr), key));
                }
            }
            PivotValueSource::Any(_) => {}
            PivotValueSource::Subquery(query) => {
                self.derived(false, JoinKind::Inner, |walk| walk.query(query));
            }
        }
        let Relation { names, mut rows, .. } =
            self.current().relations.pop().expect("the caller has just added a relation");
        rows.outputs.retain(|output| !gone.contains(&output.name));
        let suffixed = |made: &String| {
            let named = aggregates.iter().filter_map(|a| a.alias.as_ref());
            named.map(|alias| format!("{made}_{}", key(alias))).collect::<Vec<_>>()
        };
        let all: Vec<String> = made.iter().flat_map(suffixed).chain(made.clone()).collect();
        rows.outputs.extend(Rows::computed(all).outputs);
        self.add(alias, names, rows);
    }

    /// Turns the last relation: the listed columns become rows of one value column.
    fn unpivot(
        &mut self,
        value: &'q Expr,
        name: &'q Ident,
        columns: &'q [ExprWithAlias],
        alias: Option<&'q TableAlias>,
    ) {
        let values: Vec<Vec<Value>> = columns
            .iter()
            .map(|column| match &column.expr {
                Expr::Tuple(parts) => parts.iter().map(|part| self.value(part)).collect(),
                single => vec![self.value(single)],
            })
            .collect();
        let listed: Vec<String> =
            columns.iter().flat_map(|column| names_in(&column.expr)).collect();
        let Relation { names, mut rows, .. } =
            self.current().relations.pop().expect("the caller has just added a relation");
        rows.outputs.retain(|output| !listed.contains(&output.name));
        for (position, made) in names_in(value).into_iter().enumerate() {
            let branches: Vec<Origin> = values
                .iter()
                .map(|row| row.get(position).map(|v| v.origin.clone()).unwrap_or_default())
                .collect();
            let value = Value { origin: Origin::union(&branches), ..Value::default() };
            rows.outputs.push(Output { name: made, value });
        }
        rows.outputs.extend(Rows::computed([key(name)]).outputs);
        self.add(alias, names, rows);
    }

    pub(super) fn arguments(&mut self, arguments: &'q [FunctionArg]) {
        for argument in arguments {
            let (FunctionArg::Named { arg, .. }
            | FunctionArg::ExprNamed { arg, .. }
            | FunctionArg::Unnamed(arg)) = argument;
            if let FunctionArgExpr::Expr(expr) = arg {
                self.read(expr);
            }
        }
    }
}

fn relation(names: Vec<String>, rows: Rows) -> Relation {
    Relation { names, rows, visible: true, hint: None }
}

/// The names of all columns in an expression.
fn names_below(expr: &Expr) -> Vec<String> {
    let mut names = names_in(expr);
    for child in children(expr) {
        if let Child::Expr(child) = child {
            names.extend(names_below(child));
        }
    }
    names
}

fn names_in(expr: &Expr) -> Vec<String> {
    match expr {
        Expr::Identifier(name) => vec![key(name)],
        Expr::CompoundIdentifier(parts) => parts.last().map(key).into_iter().collect(),
        Expr::Tuple(parts) => parts.iter().flat_map(names_in).collect(),
        Expr::Nested(inner) => names_in(inner),
        _ => Vec::new(),
    }
}

/// The name of a pivoted column, which is its value as text.
fn text(value: &Expr) -> String {
    value.to_string().trim_matches(['\'', '"']).to_lowercase()
}

/// Says how a join treats its sides and what it states; a right semi join is told apart by the
/// caller.
fn kind_of(operator: &JoinOperator) -> (JoinKind, Option<&JoinConstraint>) {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::CrossJoin(constraint)
        | JoinOperator::StraightJoin(constraint)
        | JoinOperator::AsOf { constraint, .. } => (JoinKind::Inner, Some(constraint)),
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            (JoinKind::LeftOuter, Some(constraint))
        }
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
            (JoinKind::RightOuter, Some(constraint))
        }
        JoinOperator::FullOuter(constraint) => (JoinKind::FullOuter, Some(constraint)),
        JoinOperator::Semi(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::RightSemi(constraint) => (JoinKind::LeftSemi, Some(constraint)),
        JoinOperator::Anti(constraint)
        | JoinOperator::LeftAnti(constraint)
        | JoinOperator::RightAnti(constraint) => (JoinKind::LeftAnti, Some(constraint)),
        JoinOperator::OuterApply => (JoinKind::LeftOuter, None),
        JoinOperator::CrossApply
        | JoinOperator::ArrayJoin
        | JoinOperator::LeftArrayJoin
        | JoinOperator::InnerArrayJoin => (JoinKind::Inner, None),
    }
}
