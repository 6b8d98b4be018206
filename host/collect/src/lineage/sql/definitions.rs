//! Views and temporary tables: what a name means because an earlier statement said so.
//!
//! A view means the same to everybody from its definition on. A temporary table or view means
//! something within its session; statements without a session share nothing. A table that a
//! statement creates and fills is none of this: it is stored, with a layout of its own.

use std::{collections::BTreeMap, ops::ControlFlow};

use datafusion_sql::sqlparser::ast::{
    Ident, ObjectName, ObjectType, Query, SetExpr, Statement, TableAlias, TableAliasColumnDef,
    TableFactor, Visit as _, VisitMut as _, Visitor, VisitorMut,
};
use lakebed_model::Instant;

use super::scope::text_of;

/// Definitions that are kept; a history that makes more temporary tables forgets the oldest.
const MAX_DEFINITIONS: usize = 20_000;

/// Tables that definitions may add to one query: views of views double with every level.
const MAX_EXPANSIONS: usize = 100;

/// Where a definition holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// For every later statement.
    Everywhere,
    /// In a session, or within one text.
    Session(String),
}

/// One definition.
#[derive(Debug, Clone)]
struct Definition {
    at: Instant,
    /// Order among definitions of one instant.
    number: u64,
    /// The query, or `None` where the name was dropped.
    query: Option<Query>,
    columns: Vec<Ident>,
}

/// What a statement defines.
#[derive(Debug)]
pub(super) struct Defines {
    name: String,
    columns: Vec<Ident>,
    temporary: bool,
}

/// The definitions of a history.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    by_name: BTreeMap<(Reach, String), Vec<Definition>>,
    count: u64,
}

impl Defines {
    /// Says what a statement defines as a query; stored tables are not.
    pub(super) fn of(statement: &Statement) -> Option<Self> {
        match statement {
            Statement::CreateView(view) if !view.materialized => Some(Self {
                name: text_of(&view.name),
                columns: view.columns.iter().map(|column| column.name.clone()).collect(),
                temporary: view.temporary,
            }),
            Statement::CreateTable(table)
                if table.query.is_some() && (table.temporary || is_temporary(&table.name)) =>
            {
                let columns = table.columns.iter().map(|column| column.name.clone()).collect();
                Some(Self { name: text_of(&table.name), columns, temporary: true })
            }
            Statement::Cache { table_name, query: Some(_), .. } => {
                Some(Self { name: text_of(table_name), columns: Vec::new(), temporary: true })
            }
            Statement::Query(query) => match query.body.as_ref() {
                SetExpr::Select(select) => {
                    let into = select.into.as_ref()?;
                    let temporary = into.temporary || is_temporary(&into.name);
                    temporary.then(|| Self {
                        name: text_of(&into.name),
                        columns: Vec::new(),
                        temporary: true,
                    })
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// Redshift and others mark temporary tables by their name.
fn is_temporary(name: &ObjectName) -> bool {
    text_of(name).starts_with('#')
}

impl Definitions {
    /// Counts the definitions so far.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Tells whether a name means a definition.
    pub(super) fn has(&self, name: &str, session: &str, at: Instant) -> bool {
        !self.by_name.is_empty() && self.find(name, session, at).is_some()
    }

    /// Forgets all definitions of a session that has ended.
    pub(super) fn forget(&mut self, session: &str) {
        let session = Reach::Session(session.to_owned());
        self.by_name.retain(|(reach, _), _| *reach != session);
    }

    /// Keeps a definition; its query has other definitions put in already.
    pub(super) fn add(&mut self, defines: Defines, query: Query, session: &str, at: Instant) {
        let Defines { name, columns, temporary } = defines;
        let reach = if temporary { Reach::Session(session.to_owned()) } else { Reach::Everywhere };
        self.put(reach, name, Some(query), columns, at);
    }

    /// Forgets what a statement drops, from its time on.
    pub(super) fn drop_by(&mut self, statement: &Statement, session: &str, at: Instant) {
        let Statement::Drop { object_type: ObjectType::Table | ObjectType::View, names, .. } =
            statement
        else {
            return;
        };
        for name in names.iter().map(text_of) {
            for reach in [Reach::Session(session.to_owned()), Reach::Everywhere] {
                if self.by_name.contains_key(&(reach.clone(), name.clone())) {
                    self.put(reach, name.clone(), None, Vec::new(), at);
                    break;
                }
            }
        }
    }

    fn put(
        &mut self,
        reach: Reach,
        name: String,
        query: Option<Query>,
        columns: Vec<Ident>,
        at: Instant,
    ) {
        if self.by_name.len() >= MAX_DEFINITIONS {
            let oldest = self
                .by_name
                .iter()
                .min_by_key(|(_, versions)| versions.last().map_or(0, |last| last.number))
                .map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                self.by_name.remove(&oldest);
            }
        }
        self.count += 1;
        let definition = Definition { at, number: self.count, query, columns };
        self.by_name.entry((reach, name)).or_default().push(definition);
    }

    /// Finds what a name means to a session at a time: the newest definition until then.
    fn find(&self, name: &str, session: &str, at: Instant) -> Option<&Definition> {
        let newest = |reach: Reach, name: &str| {
            self.by_name
                .get(&(reach, name.to_owned()))?
                .iter()
                .filter(|definition| definition.at <= at)
                .max_by_key(|definition| (definition.at, definition.number))
        };
        let session = Reach::Session(session.to_owned());
        let found = newest(session, name).or_else(|| newest(Reach::Everywhere, name));
        let found = found.or_else(|| {
            // A view may be named with more or fewer qualifiers than where it was defined.
            let mut alike = self.by_name.keys().filter(|(reach, known)| {
                *reach == Reach::Everywhere && (ends_with(known, name) || ends_with(name, known))
            });
            match (alike.next(), alike.next()) {
                (Some((reach, only)), None) => newest(reach.clone(), only),
                _ => None,
            }
        });
        found.filter(|definition| definition.query.is_some())
    }

    /// Puts definitions in the place of the names that mean them; tells whether there were any.
    pub(super) fn expand(&self, query: &mut Query, session: &str, at: Instant) -> bool {
        if self.by_name.is_empty() {
            return false;
        }
        let mut expand =
            Expand { definitions: self, session, at, hidden: Vec::new(), expansions: 0 };
        let _ = query.visit(&mut expand);
        expand.expansions > 0
    }
}

/// Tells whether a dotted name ends with another.
fn ends_with(long: &str, short: &str) -> bool {
    long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

struct Expand<'d> {
    definitions: &'d Definitions,
    session: &'d str,
    at: Instant,
    /// Names of common tables in reach, one list per open query.
    hidden: Vec<Vec<String>>,
    /// Tables that definitions have added.
    expansions: usize,
}

impl VisitorMut for Expand<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let names = query
            .with
            .iter()
            .flat_map(|with| &with.cte_tables)
            .map(|cte| text_of(&vec![cte.alias.name.clone()].into()))
            .collect();
        self.hidden.push(names);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.hidden.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let text = text_of(name);
        let hidden: Vec<&String> = self.hidden.iter().flatten().collect();
        if hidden.contains(&&text) {
            return ControlFlow::Continue(());
        }
        let Some(definition) = self.definitions.find(&text, self.session, self.at) else {
            return ControlFlow::Continue(());
        };
        let Some(view) = &definition.query else { return ControlFlow::Continue(()) };
        // A common table of the using query must not be taken for a table of the view.
        let tables = tables_of(view);
        let added = self.expansions + tables.len().max(1);
        if added > MAX_EXPANSIONS || tables.iter().any(|table| hidden.contains(&table)) {
            return ControlFlow::Continue(());
        }
        let last = name.0.last().and_then(|part| part.as_ident().cloned());
        let mut alias = alias.take().unwrap_or_else(|| TableAlias {
            explicit: true,
            name: last.unwrap_or_else(|| Ident::new("view")),
            columns: Vec::new(),
            at: None,
        });
        if alias.columns.is_empty() {
            let column = |name: &Ident| TableAliasColumnDef { name: name.clone(), data_type: None };
            alias.columns = definition.columns.iter().map(column).collect();
        }
        self.expansions = added;
        *factor = TableFactor::Derived {
            lateral: false,
            subquery: Box::new(view.clone()),
            alias: Some(alias),
            sample: None,
        };
        ControlFlow::Continue(())
    }
}

/// Lists the tables that a query names without qualifier.
fn tables_of(query: &Query) -> Vec<String> {
    struct Tables(Vec<String>);
    impl Visitor for Tables {
        type Break = ();
        fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
            self.0.push(text_of(name));
            ControlFlow::Continue(())
        }
    }
    let mut tables = Tables(Vec::new());
    let _ = query.visit(&mut tables);
    tables.0
}
