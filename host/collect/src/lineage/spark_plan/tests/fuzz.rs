//! Plans that nobody printed: the reader must end, and say nothing that is not in them.

use std::time::{Duration, Instant};

use crate::{
    ColumnType,
    lineage::{
        predicate::filters,
        spark_plan::{PlanNode, PlanTree, pushed, read, read_first},
    },
};

/// Numbers that look random and are the same in every run (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).unwrap()
    }
}

/// Seconds to try: LAKEBED_FUZZ_SECONDS=300 for longer.
#[expect(clippy::disallowed_methods, reason = "a test is told how long it may take")]
fn for_a_while(mut once: impl FnMut(&mut Dice)) {
    let seconds = std::env::var("LAKEBED_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(1));
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    while Instant::now() < end {
        for _ in 0..16 {
            once(&mut dice);
        }
    }
}

/// What plans are made of, and what breaks them.
const PIECES: [&str; 48] = [
    "\n",
    "\n+- ",
    "\n:- ",
    "\n:  +- ",
    "\n   +- ",
    "(",
    ")",
    "[",
    "]",
    ", ",
    ",",
    "#1",
    "#2L",
    "a#1",
    "b#22L",
    " AS ",
    "SortMergeJoin ",
    "BroadcastHashJoin [a#1], [b#2], Inner",
    "Project [",
    "FileScan parquet db.t[a#1,b#2] ",
    "Union",
    "Filter (",
    "HashAggregate(keys=[a#1], functions=[",
    "ReusedExchange [a#1], Exchange x, [plan_id=4]",
    "Exchange x, [plan_id=4]",
    "... 3 more fields",
    "== Final Plan ==",
    "== Initial Plan ==",
    "== Physical Plan ==\n",
    "\n\n(1) Filter\n",
    "\nOutput [2]: [a#1, b#2]",
    "\nLeft keys [1]: [",
    "\n===== Subqueries =====\n",
    "Subquery:1 Hosting operator id = 1 Hosting Expression = Subquery subquery#1\n",
    " (1)",
    "InMemoryTableScan [a#1]",
    "InMemoryRelation [a#1], StorageLevel",
    "Expand [[a#1, null], [",
    "cast(",
    " as int)",
    "é",
    "\u{10ffff}",
    "'",
    "`",
    "AdaptiveSparkPlan",
    "PushedFilters: [EqualTo(a,",
    "{",
    "}",
];

fn text(dice: &mut Dice, pieces: &[&str]) -> String {
    let seeds = [include_str!("seed_formatted.txt"), include_str!("seed_extended.txt"), ""];
    let mut text = seeds[dice.below(seeds.len())].to_owned();
    for _ in 0..dice.below(24) {
        let at = floor(&text, dice.below(text.len() + 1));
        match dice.below(4) {
            0 => {
                let end = floor(&text, (at + dice.below(40)).min(text.len()));
                text.replace_range(at..end.max(at), "");
            }
            1 => {
                let end = floor(&text, (at + dice.below(200)).min(text.len())).max(at);
                let copy = text[at..end].to_owned();
                let to = floor(&text, dice.below(text.len() + 1));
                text.insert_str(to, &copy);
            }
            _ => text.insert_str(at, pieces[dice.below(pieces.len())]),
        }
    }
    text
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[test]
fn any_long_text_is_read_to_its_end() {
    for_a_while(|dice| {
        let description = text(dice, &PIECES);
        let lineage = read(&PlanTree::default(), &description);
        let _ = read_first(&description);
        for join in &lineage.joins {
            let columns = join.join.pairs.iter().flat_map(|(left, right)| [left, right]);
            for column in columns {
                // A name is one of the text, never made up of a cut.
                assert!(!column.starts_with("... "), "{column}: {description}");
                let last = column.rsplit('.').next().unwrap();
                assert!(description.contains(last), "{column}: {description}");
            }
        }
    });
}

#[test]
fn any_tree_is_read_with_any_text() {
    for_a_while(|dice| {
        let description = text(dice, &PIECES);
        let lines: Vec<&str> = description.lines().collect();
        let mut tree = PlanTree::default();
        let mut parent = None;
        for _ in 0..dice.below(12) {
            let line = lines.get(dice.below(lines.len())).copied().unwrap_or("Union");
            let line = line.trim_start_matches([' ', ':', '+', '-', '*']);
            let name = line.split(['(', '[', ' ']).next().unwrap_or_default();
            let node =
                PlanNode { name: name.to_owned(), text: line.to_owned(), ..PlanNode::default() };
            let id = tree.add(parent, node);
            if dice.below(3) > 0 {
                parent = Some(id);
            }
        }
        let _ = read(&tree, &description);
    });
}

#[test]
fn any_filters_are_read_to_their_end() {
    const FILTERS: [&str; 24] = [
        "EqualTo(",
        "And(",
        "Or(",
        "Not(",
        "In(",
        "IsNotNull(",
        "LessThan(",
        "StringStartsWith(",
        "a",
        "b",
        ",",
        ", ",
        ")",
        "(",
        "[",
        "]",
        "5",
        "1994-01-01",
        "x y",
        "null",
        "`",
        "*",
        "é",
        "Unknown(",
    ];
    let types = [("a".to_owned(), ColumnType::Integer), ("b".to_owned(), ColumnType::Text)];
    for_a_while(|dice| {
        let count = dice.below(60);
        let list: String = (0..count).map(|_| FILTERS[dice.below(FILTERS.len())]).collect();
        let predicates = pushed::read_list(&format!("[{list}]"), &types);
        let _ = filters(&lakebed_model::TableName::new("t"), predicates);
    });
}
