//! What a query tells before its scopes are walked, whatever its constants are.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    rc::Rc,
};

use datafusion_sql::sqlparser::ast::{
    Expr, Ident, Join, JoinConstraint, JoinOperator, Query, Select, SelectItem, SetExpr,
    TableFactor, Visit as _, Visitor,
};

use super::{super::types, name::key};
use crate::{Catalog, ColumnType};

/// Columns of a table with their types.
type Columns = Rc<[(String, ColumnType)]>;

/// What holds for a query and all others that differ from it in constants only.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Survey {
    /// Types of columns of unknown tables, by the column's name.
    pub(in super::super) guesses: BTreeMap<String, ColumnType>,
    /// All names that columns may have here; `None` where columns count that nobody names.
    pub(super) mentions: Option<BTreeSet<String>>,
    /// What the catalog said of the tables that were asked for, as far as it has a part here.
    columns: RefCell<BTreeMap<String, Option<Columns>>>,
}

impl Survey {
    /// Surveys a query.
    pub(in super::super) fn of(query: &Query) -> Self {
        let mut mentions = Mentions::default();
        let flow = query.visit(&mut mentions);
        Self {
            guesses: types::guess(query),
            mentions: flow.is_continue().then_some(mentions.names),
            columns: RefCell::default(),
        }
    }

    /// Tells whether a column of a table can have a part in the query.
    fn may_read(&self, column: &str) -> bool {
        self.mentions.as_ref().is_none_or(|names| names.contains(column))
    }

    /// Returns the columns of a table that can have a part in the query, in lower case; `None` where
    /// the catalog does not know the table. A catalog answers the same for the whole of a run.
    pub(super) fn columns(&self, table: &str, catalog: &dyn Catalog) -> Option<Columns> {
        if let Some(known) = self.columns.borrow().get(table) {
            return known.clone();
        }
        let columns = catalog.columns(&table.to_lowercase()).map(|mut columns| {
            for (column, _) in &mut columns {
                if column.chars().any(char::is_uppercase) {
                    *column = column.to_lowercase();
                }
            }
            columns.retain(|(column, _)| self.may_read(column));
            Rc::from(columns)
        });
        self.columns.borrow_mut().insert(table.to_owned(), columns.clone());
        columns
    }
}

/// Collects names; breaks where all columns of a table count.
#[derive(Default)]
struct Mentions {
    names: BTreeSet<String>,
}

impl Mentions {
    fn add(&mut self, name: &Ident) {
        let name = key(name);
        if !self.names.contains(&name) {
            self.names.insert(name);
        }
    }

    fn joins(&mut self, joins: &[Join]) -> ControlFlow<()> {
        for join in joins {
            match constraint_of(&join.join_operator) {
                Some(JoinConstraint::Using(columns)) => {
                    for part in columns.iter().flat_map(|column| &column.0) {
                        match part.as_ident() {
                            Some(name) => self.add(name),
                            None => return ControlFlow::Break(()),
                        }
                    }
                }
                Some(JoinConstraint::On(_) | JoinConstraint::None) => {}
                // Columns of the same name are compared.
                Some(JoinConstraint::Natural) | None => return ControlFlow::Break(()),
            }
        }
        ControlFlow::Continue(())
    }
}

/// The constraint of a join that states its columns as text.
fn constraint_of(operator: &JoinOperator) -> Option<&JoinConstraint> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::CrossJoin(constraint)
        | JoinOperator::StraightJoin(constraint)
        | JoinOperator::AsOf { constraint, .. }
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::Semi(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::RightSemi(constraint)
        | JoinOperator::Anti(constraint)
        | JoinOperator::LeftAnti(constraint)
        | JoinOperator::RightAnti(constraint) => Some(constraint),
        _ => None,
    }
}

impl Visitor for Mentions {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let mut open = vec![&*query.body];
        while let Some(body) = open.pop() {
            match body {
                SetExpr::SetOperation { left, right, .. } => open.extend([&**left, &**right]),
                SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => {}
                _ => return ControlFlow::Break(()),
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let is_named = |item: &SelectItem| {
            matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
        };
        if select.projection.is_empty()
            || !select.projection.iter().all(is_named)
            || !select.lateral_views.is_empty()
        {
            return ControlFlow::Break(());
        }
        select.from.iter().try_for_each(|table| self.joins(&table.joins))
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { alias, .. } => match alias {
                Some(alias) if !alias.columns.is_empty() => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            },
            TableFactor::Derived { .. } => ControlFlow::Continue(()),
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.joins(&table_with_joins.joins)
            }
            _ => ControlFlow::Break(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => self.add(name),
            Expr::CompoundIdentifier(parts) => parts.iter().for_each(|part| self.add(part)),
            Expr::Wildcard(_) | Expr::QualifiedWildcard(..) | Expr::MatchAgainst { .. } => {
                return ControlFlow::Break(());
            }
            Expr::Function(function) if function.name.0.len() == 1 => {
                let is_columns = |name: &Ident| name.value.eq_ignore_ascii_case("columns");
                if function.name.0[0].as_ident().is_some_and(is_columns) {
                    return ControlFlow::Break(());
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::Survey;
    use crate::lineage::sql::{Dialect, rewrite};

    #[track_caller]
    fn check(sql: &str, expected: Option<&str>) {
        let statement = rewrite::parse(sql, Dialect::DuckDb).unwrap().remove(0);
        let mentions = Survey::of(&rewrite::query_of(statement).unwrap()).mentions;
        let shown = mentions.map(|names| names.into_iter().collect::<Vec<_>>().join(" "));
        assert_eq!(shown.as_deref(), expected, "{sql}");
    }

    #[test]
    fn names_of_columns_are_found_wherever_they_stand() {
        check(
            "WITH c AS (SELECT A FROM t) SELECT c.x, count(*) FROM c JOIN d USING (k) JOIN (e \
             JOIN f USING (l)) ON d.m.n = 1 WHERE EXISTS (SELECT 1 FROM g WHERE h = 2) \
             GROUP BY i HAVING sum(j) > 0 ORDER BY o",
            Some("a c d h i j k l m n o x"),
        );
    }

    #[test]
    fn where_columns_count_that_nobody_names_all_do() {
        for sql in [
            "SELECT * FROM t",
            "SELECT 1 FROM (SELECT t.* FROM t) u",
            "SELECT 1 FROM a NATURAL JOIN b",
            "SELECT 1 FROM t AS u(a, b)",
            "FROM t",
            "SELECT COLUMNS('x') FROM t",
            "SELECT a FROM t UNION ALL TABLE u",
        ] {
            check(sql, None);
        }
    }
}
