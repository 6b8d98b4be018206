//! Queries, set operations and select lists.

use datafusion_sql::sqlparser::ast::{
    ExcludeSelectItem, Expr, GroupByExpr, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, SetOperator, SetQuantifier, Statement,
    WildcardAdditionalOptions,
};
use lakebed_model::JoinKind;

use super::{
    MAX_VISITS, Walk,
    name::{key, keys},
    relation::{Frame, Output, Pair, Rows, Value},
};
use crate::lineage::origin::Origin;

impl<'q> Walk<'q, '_> {
    /// Reads a query and returns its columns.
    pub(super) fn query(&mut self, query: &'q Query) -> Rows {
        self.visits += 1;
        if self.visits > MAX_VISITS {
            return Rows::vague();
        }
        let outer = self.env.clone();
        self.define(query);
        let rows = self.set(&query.body, Some(query));
        self.env = outer;
        rows
    }

    /// Puts a query's common tables into reach; each sees those before it.
    pub(super) fn define(&mut self, query: &'q Query) {
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
            let name = key(&cte.alias.name);
            self.env = self.env.with(name, &cte.alias, &cte.query, recursive);
        }
    }

    /// Reads one side of a set operation.
    pub(super) fn set(&mut self, body: &'q SetExpr, tail: Option<&'q Query>) -> Rows {
        match body {
            SetExpr::Select(select) => self.select(select, tail),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                let left = self.set(left, None);
                let right = self.set(right, None);
                self.set_operation(left, *op, *set_quantifier, right)
            }
            SetExpr::Values(values) => {
                let width = values.rows.first().map_or(0, |row| row.content.len());
                for row in &values.rows {
                    for expr in &row.content {
                        self.read(expr);
                    }
                }
                Rows::computed((1..=width).map(|n| format!("column{n}")))
            }
            SetExpr::Table(table) => {
                let parts = [table.schema_name.clone(), table.table_name.clone()];
                self.base(parts.into_iter().flatten().map(|part| part.to_lowercase()).collect())
            }
            SetExpr::Insert(Statement::Insert(insert)) => {
                insert.source.as_ref().map_or_else(Rows::vague, |query| self.query(query))
            }
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                Rows::vague()
            }
        }
    }

    pub(super) fn set_operation(
        &mut self,
        left: Rows,
        operator: SetOperator,
        quantifier: SetQuantifier,
        right: Rows,
    ) -> Rows {
        let by_name = matches!(
            quantifier,
            SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName
        );
        match operator {
            SetOperator::Union if by_name => union_by_name(&left, &right),
            SetOperator::Union => union(&left, &right),
            // The rows are the left side's; the right one only says which of them stay.
            SetOperator::Intersect | SetOperator::Except | SetOperator::Minus => {
                let kind = match operator {
                    SetOperator::Intersect => JoinKind::LeftSemi,
                    _ => JoinKind::LeftAnti,
                };
                let pairs = left.outputs.iter().zip(&right.outputs).map(|(left, right)| Pair {
                    left: left.value.clone(),
                    right: right.value.clone(),
                    hint: None,
                });
                self.emit(pairs.collect(), kind);
                left
            }
        }
    }

    fn select(&mut self, select: &'q Select, tail: Option<&'q Query>) -> Rows {
        let mut frame = Frame { hints: self.hints.of(select), ..Frame::default() };
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { expr, alias } = item {
                frame.aliases.entry(key(alias)).or_insert(expr);
            }
        }
        self.frames.push(frame);
        for table in &select.from {
            self.table_with_joins(table);
        }
        for view in &select.lateral_views {
            self.read(&view.lateral_view);
            let names = view.lateral_col_alias.iter().map(key).collect();
            self.add_computed(keys(&view.lateral_view_name), names);
        }
        for condition in [&select.prewhere, &select.selection].into_iter().flatten() {
            self.condition(condition, None);
        }
        let rows = self.projection(select);
        self.current().aliases_count = true;
        if let GroupByExpr::Expressions(keys, _) = &select.group_by {
            for key in keys {
                self.read(key);
            }
        }
        if let Some(having) = &select.having {
            self.condition(having, None);
        }
        let rest = select
            .qualify
            .iter()
            .chain(select.sort_by.iter().map(|by| &by.expr))
            .chain(&select.cluster_by)
            .chain(&select.distribute_by);
        for expr in rest {
            self.read(expr);
        }
        if let Some(order_by) = tail.and_then(|query| query.order_by.as_ref())
            && let OrderByKind::Expressions(keys) = &order_by.kind
        {
            for key in keys {
                self.read(&key.expr);
            }
        }
        self.close();
        rows
    }

    /// Leaves a frame: its inner joins are known now.
    fn close(&mut self) {
        let pairs = std::mem::take(&mut self.current().pairs);
        self.emit(pairs, JoinKind::Inner);
        self.frames.pop();
    }

    fn projection(&mut self, select: &'q Select) -> Rows {
        let mut rows = Rows::default();
        for item in &select.projection {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let value = self.value(expr);
                    rows.outputs.push(Output { name: name_of(expr), value });
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let value = self.value(expr);
                    rows.outputs.push(Output { name: key(alias), value });
                }
                SelectItem::ExprWithAliases { expr, aliases } => {
                    self.read(expr);
                    rows.outputs.extend(Rows::computed(aliases.iter().map(key)).outputs);
                }
                SelectItem::Wildcard(options) => {
                    let all = self.wildcard(None);
                    self.pick(&mut rows, all, options);
                }
                SelectItem::QualifiedWildcard(kind, options) => {
                    let all = match kind {
                        SelectItemQualifiedWildcardKind::ObjectName(name) => {
                            self.wildcard(Some(&keys(name)))
                        }
                        SelectItemQualifiedWildcardKind::Expr(expr) => {
                            self.read(expr);
                            Rows::vague()
                        }
                    };
                    self.pick(&mut rows, all, options);
                }
            }
        }
        // `FROM t` alone is `SELECT * FROM t`.
        if select.projection.is_empty() {
            let all = self.wildcard(None);
            rows = all;
        }
        rows
    }

    /// Lists the columns of the frame at hand, or of one of its relations.
    fn wildcard(&mut self, qualifier: Option<&[String]>) -> Rows {
        let frame = self.current();
        let mut rows = Rows::default();
        if qualifier.is_none() {
            for (name, value) in &frame.merged {
                rows.outputs.push(Output { name: name.clone(), value: value.clone() });
            }
        }
        for relation in frame.relations.iter().filter(|relation| relation.visible) {
            if qualifier.is_some_and(|qualifier| !relation.answers_to(qualifier)) {
                continue;
            }
            let is_new =
                |output: &&Output| qualifier.is_some() || !frame.merged.contains_key(&output.name);
            rows.outputs.extend(relation.rows.outputs.iter().filter(is_new).cloned());
            rows.open.extend(&relation.rows.open);
            rows.vague |= relation.rows.vague;
        }
        rows
    }

    /// Adds the columns of a wildcard, but for those that its options leave out or replace.
    fn pick(&mut self, rows: &mut Rows, mut all: Rows, options: &'q WildcardAdditionalOptions) {
        let mut hidden: Vec<String> = match &options.opt_exclude {
            Some(ExcludeSelectItem::Single(name)) => keys(name).pop().into_iter().collect(),
            Some(ExcludeSelectItem::Multiple(names)) => {
                names.iter().filter_map(|name| keys(name).pop()).collect()
            }
            None => Vec::new(),
        };
        if let Some(except) = &options.opt_except {
            hidden.push(key(&except.first_element));
            hidden.extend(except.additional_elements.iter().map(key));
        }
        all.outputs.retain(|output| !hidden.contains(&output.name));
        if let Some(replace) = &options.opt_replace {
            for item in &replace.items {
                let name = key(&item.column_name);
                let value = self.value(&item.expr);
                all.outputs.retain(|output| output.name != name);
                all.outputs.push(Output { name, value });
            }
        }
        if let Some(rename) = &options.opt_rename {
            use datafusion_sql::sqlparser::ast::RenameSelectItem::{Multiple, Single};
            let pairs = match rename {
                Single(pair) => std::slice::from_ref(pair),
                Multiple(pairs) => pairs,
            };
            for pair in pairs {
                let old = key(&pair.ident);
                if let Some(output) = all.outputs.iter_mut().find(|output| output.name == old) {
                    output.name = key(&pair.alias);
                }
            }
        }
        rows.outputs.append(&mut all.outputs);
        rows.open.append(&mut all.open);
        rows.vague |= all.vague;
    }
}

/// The name of a column without alias.
fn name_of(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => key(name),
        Expr::CompoundIdentifier(parts) => parts.last().map(key).unwrap_or_default(),
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => name_of(inner),
        Expr::Function(function) => keys(&function.name).pop().unwrap_or_default(),
        _ => String::new(),
    }
}

fn union(left: &Rows, right: &Rows) -> Rows {
    let outputs = left
        .outputs
        .iter()
        .enumerate()
        .map(|(position, output)| {
            let other = right.outputs.get(position).map(|output| &output.value);
            Output { name: output.name.clone(), value: united(Some(&output.value), other) }
        })
        .collect();
    let vague = !left.open.is_empty() || !right.open.is_empty() || left.vague || right.vague;
    Rows { outputs, vague, ..Rows::default() }
}

fn union_by_name(left: &Rows, right: &Rows) -> Rows {
    let mut outputs: Vec<Output> = left
        .outputs
        .iter()
        .map(|output| {
            let other = right.get(&output.name).map(|output| &output.value);
            Output { name: output.name.clone(), value: united(Some(&output.value), other) }
        })
        .collect();
    for output in right.outputs.iter().filter(|output| left.get(&output.name).is_none()) {
        let value = united(None, Some(&output.value));
        outputs.push(Output { name: output.name.clone(), value });
    }
    let vague = !left.open.is_empty() || !right.open.is_empty() || left.vague || right.vague;
    Rows { outputs, vague, ..Rows::default() }
}

fn united(left: Option<&Value>, right: Option<&Value>) -> Value {
    let origin = |value: Option<&Value>| value.map(|value| value.origin.clone());
    let branches = [origin(left), origin(right)];
    let origin = Origin::union(&branches.map(Option::unwrap_or_default));
    Value { origin, ..Value::default() }
}
