//! Statements in random order against a model of the table in memory.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

use crate::support::{Dice, lakebed};

type Row = (i64, Option<i64>);

#[derive(Default)]
struct Model {
    /// Every row with how often the table has it.
    rows: BTreeMap<Row, u64>,
    next: i64,
}

impl Model {
    /// Returns a statement and does to the model what it must do to the table.
    fn step(&mut self, dice: &mut Dice) -> String {
        match dice.roll(10) {
            0..=3 => {
                let values: Vec<String> = (0..=dice.roll(40))
                    .map(|_| {
                        self.next += 1;
                        let g = (dice.roll(5) > 0).then(|| self.next * 7 % 13);
                        *self.rows.entry((self.next, g)).or_default() += 1;
                        format!(
                            "({}, {})",
                            self.next,
                            g.map_or("NULL".to_owned(), |g| g.to_string())
                        )
                    })
                    .collect();
                format!("INSERT INTO t VALUES {}", values.join(", "))
            }
            4 => {
                let g = i64::try_from(dice.roll(13)).unwrap_or(0);
                self.rows.retain(|(_, own), _| *own != Some(g));
                format!("DELETE FROM t WHERE g = {g}")
            }
            5 => {
                let from = i64::try_from(dice.roll(200)).unwrap_or(0);
                self.rows.retain(|(k, g), _| !(*k >= from && *k < from + 20 && g.is_some()));
                format!("DELETE FROM t WHERE k >= {from} AND k < {} AND g IS NOT NULL", from + 20)
            }
            6 => "OPTIMIZE t".to_owned(),
            7 => "OPTIMIZE t FULL".to_owned(),
            8 => [
                "ALTER TABLE t CLUSTER BY (g)",
                "ALTER TABLE t CLUSTER BY (g, k)",
                "ALTER TABLE t CLUSTER BY (k)",
            ][usize::try_from(dice.roll(3)).unwrap_or(0)]
            .to_owned(),
            _ => "ANALYZE TABLE t COMPUTE STATISTICS".to_owned(),
        }
    }
}

#[track_caller]
fn read(lake: &Path, table: &str) -> BTreeMap<Row, u64> {
    let query = format!("SELECT k, g FROM {table}");
    let mut rows: BTreeMap<Row, u64> = BTreeMap::new();
    for row in lakebed(lake, &["--lake", ".", "--json", "sql", &query]).json_lines() {
        *rows.entry((row["k"].as_i64().unwrap(), row["g"].as_i64())).or_default() += 1;
    }
    rows
}

#[track_caller]
fn check(seed: u64, steps: usize, properties: &str) {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path();
    let create = format!("CREATE TABLE t (k BIGINT, g BIGINT) CLUSTER BY (k){properties}");
    lakebed(lake, &["--lake", ".", "sql", &create]).succeeded();
    let (mut model, mut dice) = (Model::default(), Dice(seed));
    let mut versions: BTreeMap<u64, BTreeMap<Row, u64>> = BTreeMap::new();
    let mut done = Vec::new();
    for _ in 0..steps {
        let statement = model.step(&mut dice);
        let run = lakebed(lake, &["--lake", ".", "--json", "sql", &statement]);
        done.push(statement);
        let report: Value = run.json();
        let version = report["version"].as_u64().expect("a version");
        versions.insert(version, model.rows.clone());
        assert_eq!(read(lake, "t"), model.rows, "seed {seed} after {done:#?}");
    }
    for (version, rows) in versions {
        let then = read(lake, &format!("t VERSION AS OF {version}"));
        assert_eq!(then, rows, "seed {seed}, version {version} of {done:#?}");
    }
}

#[test]
fn statements_in_any_order_do_what_the_model_does() {
    for seed in [1, 2, 3] {
        check(seed, 14, "");
    }
}

#[test]
fn statements_in_any_order_do_so_with_deletion_vectors_too() {
    for seed in [4, 5, 6] {
        check(seed, 14, " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')");
    }
}
