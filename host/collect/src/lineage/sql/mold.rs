//! Statements that were parsed and planned before, with other constants.
//!
//! A mold is a syntax tree with holes where the plain constants of its text were. Another text with the
//! same rest is read by filling the holes and walking the scopes: names, joins and filters are worked
//! out anew, with the constants as they are now. Only the planner's verdict is kept, for it does not
//! depend on constants where holes are:
//! 1. A constant is a hole where it is an operand of a comparison or a calculation, or a value of the
//!    select list. Ordinals, arguments of functions, intervals, lengths of types and whatever else the
//!    parser or the planner may look into are no holes: they have to be the same.
//! 2. Constants that the reading drops (`LIMIT`) may be any.
//! 3. Which constants of select lists, groupings and orders are equal to which has to be the same, for
//!    the planner compares expressions there.
//! 4. Where only a planner could work out what a column is compared with, the statement is planned.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
};

use datafusion_sql::sqlparser::{
    ast::{
        Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Query, Select,
        SelectItem, Value, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut,
    },
    tokenizer::{Location, Span},
};

use super::{
    depth::Depth,
    lifted::{Constant, Kind, Lifted},
    scope::{Hints, Survey},
};

/// A parsed statement whose constants can be exchanged.
pub(super) struct Mold {
    /// `None` only while it is dropped.
    query: Option<Query>,
    pub(super) hints: Hints,
    pub(super) depth: Depth,
    pub(super) survey: Survey,
    /// For each constant what becomes of it.
    uses: Vec<Use>,
    /// Where holes are, sorted, each with its constant.
    holes: Vec<(Location, usize)>,
}

/// What becomes of a constant.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Use {
    /// It fills a hole; `compared` where its equality with others counts.
    Hole { compared: bool },
    /// It has to be the same.
    Fixed(String),
    /// It may be any.
    Dropped,
}

/// The places of constants in a syntax tree.
#[derive(Default)]
struct Places(BTreeSet<Location>);

impl Places {
    fn of<V: Visit>(tree: &V) -> Self {
        let mut places = Self::default();
        let _ = tree.visit(&mut places);
        places
    }
}

impl Visitor for Places {
    type Break = ();

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
        self.0.insert(value.span.start);
        ControlFlow::Continue(())
    }
}

impl Mold {
    /// Lists where the constants of a statement stand, before it is made fit for the planner.
    pub(super) fn places<V: Visit>(tree: &V) -> BTreeSet<Location> {
        Places::of(tree).0
    }

    /// Makes the mold of a statement from its tree; `parsed` are the places of constants before it was
    /// made fit for the planner. `None` where constants and tree do not fit together.
    pub(super) fn of(
        sql: &str,
        lifted: &Lifted<'_>,
        parsed: &BTreeSet<Location>,
        (query, hints, depth): (Query, Hints, Depth),
    ) -> Option<Self> {
        let places = located(sql, &lifted.constants);
        let mut found = Found::default();
        let _ = Visit::visit(&query, &mut found);
        let (mut uses, mut holes) = (Vec::new(), Vec::new());
        for (index, (constant, places)) in lifted.constants.iter().zip(&places).enumerate() {
            let first = *places.first()?;
            let stays = places.iter().any(|place| found.values.contains_key(place));
            let fits = constant.values.iter().zip(places).all(|((_, text), place)| {
                found.values.get(place).is_some_and(|value| *value == value_of(constant.kind, text))
            });
            let is_operand = if constant.is_list {
                found.lists.iter().any(|list| list == places)
            } else {
                found.operands.contains(&first) && !found.intervals.contains(&first)
            };
            if fits && is_operand {
                uses.push(Use::Hole { compared: found.selected.contains(&first) });
                holes.push((first, index));
            } else if !stays && places.iter().all(|place| parsed.contains(place)) {
                uses.push(Use::Dropped);
            } else if constant.is_list {
                return None;
            } else {
                uses.push(Use::Fixed(constant.values[0].1.to_owned()));
            }
        }
        holes.sort_unstable();
        let survey = Survey::of(&query);
        Some(Self { query: Some(query), hints, depth, survey, uses, holes })
    }

    /// Tells whether the constants that have to be the same are; if so, gives which of those that are
    /// compared with one another are equal.
    pub(super) fn pattern(&self, constants: &[Constant<'_>]) -> Option<Vec<usize>> {
        if constants.len() != self.uses.len() {
            return None;
        }
        let mut seen: BTreeMap<(u8, Vec<&str>), usize> = BTreeMap::new();
        let mut pattern = Vec::new();
        for (constant, found) in constants.iter().zip(&self.uses) {
            match found {
                Use::Fixed(text) if constant.values[0].1 != text => return None,
                Use::Hole { compared: true } => {
                    let next = seen.len();
                    let values = constant.values.iter().map(|(_, text)| *text).collect();
                    pattern.push(*seen.entry((constant.kind as u8, values)).or_insert(next));
                }
                _ => {}
            }
        }
        Some(pattern)
    }

    /// Fills the holes with other constants.
    pub(super) fn fill(&mut self, constants: &[Constant<'_>]) {
        let mut fill = Fill { holes: &self.holes, constants };
        if let Some(query) = &mut self.query {
            let _ = VisitMut::visit(query, &mut fill);
        }
    }

    /// The statement with what its holes were last filled with.
    pub(super) const fn query(&self) -> &Query {
        self.query.as_ref().expect("the query is taken when the mold is dropped")
    }
}

/// A tree is dropped level by level, on a stack as large as it was read on.
impl Drop for Mold {
    fn drop(&mut self) {
        let query = self.query.take();
        self.depth.with_stack(|| drop(query));
    }
}

/// The places of constants as the parser counts them: lines and characters from 1.
fn located(sql: &str, constants: &[Constant<'_>]) -> Vec<Vec<Location>> {
    let (mut line, mut column, mut read) = (1, 1, 0);
    let mut place = |at: usize| {
        for c in sql[read..at].chars() {
            (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        read = at;
        Location { line, column }
    };
    constants
        .iter()
        .map(|constant| constant.values.iter().map(|(at, _)| place(*at)).collect())
        .collect()
}

fn value_of(kind: Kind, text: &str) -> Value {
    match kind {
        Kind::Integer | Kind::Decimal => Value::Number(text.to_owned(), false),
        Kind::Single => Value::SingleQuotedString(text.to_owned()),
        Kind::Double => Value::DoubleQuotedString(text.to_owned()),
    }
}

/// What a tree tells of its constants.
#[derive(Default)]
struct Found {
    values: BTreeMap<Location, Value>,
    /// Those that nothing but comparisons and calculations look into.
    operands: BTreeSet<Location>,
    /// Those below an interval, or right among the arguments of a function.
    intervals: BTreeSet<Location>,
    /// Those in select lists, groupings and orders.
    selected: BTreeSet<Location>,
    /// Lists that consist of constants.
    lists: Vec<Vec<Location>>,
}

impl Found {
    fn operand(&mut self, mut expr: &Expr) {
        loop {
            match expr {
                Expr::Nested(inner)
                | Expr::UnaryOp { expr: inner, .. }
                | Expr::Cast { expr: inner, .. } => expr = inner,
                Expr::Value(value) => {
                    self.operands.insert(value.span.start);
                    return;
                }
                Expr::TypedString(typed) => {
                    self.operands.insert(typed.value.span.start);
                    return;
                }
                _ => return,
            }
        }
    }

    fn select<V: Visit>(&mut self, part: &V) {
        self.selected.append(&mut Places::of(part).0);
    }
}

impl Visitor for Found {
    type Break = ();

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
        self.values.insert(value.span.start, value.value.clone());
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.select(&query.order_by);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.select(&select.projection);
        self.select(&select.group_by);
        self.select(&select.having);
        self.select(&select.qualify);
        self.select(&select.named_window);
        self.select(&select.distinct);
        for item in &select.projection {
            // A value without a name of its own names its column.
            if let SelectItem::ExprWithAlias { expr, .. } = item {
                self.operand(expr);
            }
        }
        if let GroupByExpr::Expressions(keys, _) = &select.group_by {
            for key in keys {
                self.intervals.append(&mut direct(key));
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::BinaryOp { left, right, .. } => {
                self.operand(left);
                self.operand(right);
            }
            Expr::Between { expr, low, high, .. } => {
                for part in [expr, low, high] {
                    self.operand(part);
                }
            }
            Expr::InList { list, .. } => {
                for part in list {
                    self.operand(part);
                }
                let places = list.iter().map(|part| match part {
                    Expr::Value(value) => Some(value.span.start),
                    _ => None,
                });
                self.lists.extend(places.collect::<Option<Vec<_>>>());
            }
            Expr::Like { pattern, .. } | Expr::ILike { pattern, .. } => self.operand(pattern),
            Expr::Case { conditions, else_result, operand, .. } => {
                for when in conditions {
                    self.operand(&when.condition);
                    self.operand(&when.result);
                }
                for part in [else_result, operand].into_iter().flatten() {
                    self.operand(part);
                }
            }
            Expr::Interval(interval) => {
                self.intervals.append(&mut Places::of(&interval.value).0);
            }
            Expr::Function(function) => {
                if let FunctionArguments::List(list) = &function.args {
                    for argument in &list.args {
                        let (FunctionArg::Named { arg, .. }
                        | FunctionArg::ExprNamed { arg, .. }
                        | FunctionArg::Unnamed(arg)) = argument;
                        if let FunctionArgExpr::Expr(expr) = arg {
                            self.intervals.append(&mut direct(expr));
                        }
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The place of an expression that is nothing but a constant.
fn direct(expr: &Expr) -> BTreeSet<Location> {
    let mut found = Found::default();
    found.operand(expr);
    found.operands
}

/// Puts constants into the holes.
struct Fill<'m, 't> {
    holes: &'m [(Location, usize)],
    constants: &'m [Constant<'t>],
}

impl<'t> Fill<'_, 't> {
    fn constant(&self, place: Location) -> Option<&Constant<'t>> {
        let hole = self.holes.binary_search_by_key(&place, |(place, _)| *place).ok()?;
        Some(&self.constants[self.holes[hole].1])
    }
}

impl VisitorMut for Fill<'_, '_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::InList { list, .. } = expr else { return ControlFlow::Continue(()) };
        let place = match list.first() {
            Some(Expr::Value(first)) => first.span.start,
            _ => return ControlFlow::Continue(()),
        };
        if let Some(constant) = self.constant(place).filter(|constant| constant.is_list) {
            // All carry the place of the first, by which the list is found again.
            let span = Span { start: place, end: place };
            list.clear();
            list.extend(constant.values.iter().map(|(_, text)| {
                Expr::Value(ValueWithSpan { value: value_of(constant.kind, text), span })
            }));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        let Some(constant) = self.constant(value.span.start) else {
            return ControlFlow::Continue(());
        };
        if constant.is_list {
            return ControlFlow::Continue(());
        }
        if let Value::Number(held, _)
        | Value::SingleQuotedString(held)
        | Value::DoubleQuotedString(held) = &mut value.value
        {
            held.clear();
            held.push_str(constant.values[0].1);
        }
        ControlFlow::Continue(())
    }
}
