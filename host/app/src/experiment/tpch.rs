//! TPC-H tables, shuffled or in their natural order, with the file counts of 2 MB files at scale
//! factor 1.
//!
//! Rows come from the crate `tpchgen`; the shuffle is a Fisher–Yates permutation with a given seed,
//! so that the lake starts without any order that queries could profit from.

use std::{fmt::Display, path::Path, sync::Arc};

use arrow::{
    array::{
        ArrayRef, Date32Array, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray,
        UInt64Array,
    },
    compute::take,
    datatypes::{DataType, Field, Schema},
    error::ArrowError,
};
use lakebed_lake::{DeltaLake, NewTable};
use lakebed_model::{Instant, TableName};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

use crate::{error::Error, pipeline::blocking, progress::Progress};

/// Tables and the files they get at every scale factor.
const TABLES: [(&str, u64); 8] = [
    ("region", 1),
    ("nation", 1),
    ("supplier", 1),
    ("customer", 6),
    ("part", 4),
    ("partsupp", 20),
    ("orders", 30),
    ("lineitem", 100),
];
const SEED: u64 = 0x1a6e_bed0_0000_0001;

/// In which order rows come to lie in the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOrder {
    /// As they are generated: lineitem and orders by order key, the others by their own keys.
    Natural,
    /// Without any pattern; a number stands for each of the permutations.
    Shuffled(u64),
}

/// Writes the eight tables under a folder in shuffled order and adds them to a lake.
///
/// # Errors
/// Fails when a table exists already or cannot be written.
pub async fn write_tables(
    lake: &mut DeltaLake,
    folder: &Path,
    scale_factor: f64,
    now: Instant,
    progress: &Progress,
) -> Result<(), Error> {
    write_tables_in(lake, folder, scale_factor, RowOrder::Shuffled(0), now, progress).await
}

/// Writes the eight tables under a folder and adds them to a lake.
///
/// # Errors
/// Fails when a table exists already or cannot be written.
pub async fn write_tables_in(
    lake: &mut DeltaLake,
    folder: &Path,
    scale_factor: f64,
    order: RowOrder,
    now: Instant,
    progress: &Progress,
) -> Result<(), Error> {
    let bar = progress.bar("writing TPC-H tables", TABLES.len());
    for (number, (name, files)) in (0_u64..).zip(TABLES) {
        bar.set_message(name);
        let (schema, batches) = blocking("generating TPC-H", move || {
            let rows = generate(name, scale_factor)?;
            let schema = rows.schema();
            let batches = match order {
                RowOrder::Natural => cut(&rows, files),
                RowOrder::Shuffled(seed) => {
                    // 16 permutations lie between two seeds: more than there are tables.
                    let seed = SEED.wrapping_add(number).wrapping_add(seed.wrapping_mul(16));
                    shuffled(&rows, files, seed)?
                }
            };
            Ok((schema, batches))
        })
        .await?;
        let new = NewTable {
            name: TableName::new(name),
            location: folder.join(name).to_string_lossy().into_owned(),
            schema,
            ..NewTable::default()
        };
        lake.create_table(new, batches, Some(files), now).await?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Lists where files of equal size begin and end.
fn borders(rows: usize, files: u64) -> impl Iterator<Item = (usize, usize)> {
    let files = usize::try_from(files).unwrap_or(1).clamp(1, rows.max(1));
    (0..files).map(move |file| (rows * file / files, rows * (file + 1) / files))
}

/// Cuts rows into files of equal size as they come.
fn cut(rows: &RecordBatch, files: u64) -> Vec<Vec<RecordBatch>> {
    borders(rows.num_rows(), files).map(|(from, to)| vec![rows.slice(from, to - from)]).collect()
}

/// Cuts rows into files of equal size in an order without any pattern.
fn shuffled(
    rows: &RecordBatch,
    files: u64,
    seed: u64,
) -> Result<Vec<Vec<RecordBatch>>, ArrowError> {
    let count = u64::try_from(rows.num_rows()).unwrap_or(u64::MAX);
    let order = permutation(count, seed);
    borders(rows.num_rows(), files)
        .map(|(from, to)| {
            let picked = UInt64Array::from(order[from..to].to_vec());
            let columns = rows
                .columns()
                .iter()
                .map(|column| take(column, &picked, None))
                .collect::<Result<_, _>>()?;
            Ok(vec![RecordBatch::try_new(rows.schema(), columns)?])
        })
        .collect()
}

/// Fisher–Yates over a SplitMix64 sequence (Steele, Lea, Flood 2014).
fn permutation(count: u64, seed: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..count).collect();
    let mut state = seed;
    for last in (1..order.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let bound = u64::try_from(last).unwrap_or(u64::MAX) + 1;
        let chosen = usize::try_from(mixed % bound).unwrap_or(0);
        order.swap(last, chosen);
    }
    order
}

/// Collects one table's rows column by column.
#[derive(Debug, Default)]
struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    fn add(&mut self, name: &str, data_type: DataType, array: ArrayRef) {
        self.fields.push(Field::new(name, data_type, false));
        self.arrays.push(array);
    }

    fn long(&mut self, name: &str, values: impl Iterator<Item = i64>) {
        self.add(name, DataType::Int64, Arc::new(Int64Array::from_iter_values(values)));
    }

    fn int(&mut self, name: &str, values: impl Iterator<Item = i32>) {
        self.add(name, DataType::Int32, Arc::new(Int32Array::from_iter_values(values)));
    }

    fn date(&mut self, name: &str, values: impl Iterator<Item = i32>) {
        self.add(name, DataType::Date32, Arc::new(Date32Array::from_iter_values(values)));
    }

    fn text<T: Display>(&mut self, name: &str, values: impl Iterator<Item = T>) {
        let values = values.map(|value| value.to_string());
        self.add(name, DataType::Utf8, Arc::new(StringArray::from_iter_values(values)));
    }

    /// Hundredths, as `decimal(15, 2)`.
    fn money(&mut self, name: &str, values: impl Iterator<Item = i64>) -> Result<(), ArrowError> {
        let array = Decimal128Array::from_iter_values(values.map(i128::from))
            .with_precision_and_scale(15, 2)?;
        self.add(name, DataType::Decimal128(15, 2), Arc::new(array));
        Ok(())
    }

    fn finish(self) -> Result<RecordBatch, ArrowError> {
        RecordBatch::try_new(Arc::new(Schema::new(self.fields)), self.arrays)
    }
}

fn generate(table: &str, scale_factor: f64) -> Result<RecordBatch, ArrowError> {
    let mut columns = Columns::default();
    match table {
        "region" => region(&mut columns, scale_factor),
        "nation" => nation(&mut columns, scale_factor),
        "supplier" => supplier(&mut columns, scale_factor)?,
        "customer" => customer(&mut columns, scale_factor)?,
        "part" => part(&mut columns, scale_factor)?,
        "partsupp" => partsupp(&mut columns, scale_factor)?,
        "orders" => orders(&mut columns, scale_factor)?,
        _ => lineitem(&mut columns, scale_factor)?,
    }
    columns.finish()
}

fn region(columns: &mut Columns, scale_factor: f64) {
    let rows: Vec<_> = RegionGenerator::new(scale_factor, 1, 1).iter().collect();
    columns.long("r_regionkey", rows.iter().map(|row| row.r_regionkey));
    columns.text("r_name", rows.iter().map(|row| row.r_name));
    columns.text("r_comment", rows.iter().map(|row| row.r_comment));
}

fn nation(columns: &mut Columns, scale_factor: f64) {
    let rows: Vec<_> = NationGenerator::new(scale_factor, 1, 1).iter().collect();
    columns.long("n_nationkey", rows.iter().map(|row| row.n_nationkey));
    columns.text("n_name", rows.iter().map(|row| row.n_name));
    columns.long("n_regionkey", rows.iter().map(|row| row.n_regionkey));
    columns.text("n_comment", rows.iter().map(|row| row.n_comment));
}

fn supplier(columns: &mut Columns, scale_factor: f64) -> Result<(), ArrowError> {
    let rows: Vec<_> = SupplierGenerator::new(scale_factor, 1, 1).iter().collect();
    columns.long("s_suppkey", rows.iter().map(|row| row.s_suppkey));
    columns.text("s_name", rows.iter().map(|row| &row.s_name));
    columns.text("s_address", rows.iter().map(|row| &row.s_address));
    columns.long("s_nationkey", rows.iter().map(|row| row.s_nationkey));
    columns.text("s_phone", rows.iter().map(|row| &row.s_phone));
    columns.money("s_acctbal", rows.iter().map(|row| row.s_acctbal.into_inner()))?;
    columns.text("s_comment", rows.iter().map(|row| &row.s_comment));
    Ok(())
}

fn customer(columns: &mut Columns, scale_factor: f64) -> Result<(), ArrowError> {
    let rows: Vec<_> = CustomerGenerator::new(scale_factor, 1, 1).iter().collect();
    columns.long("c_custkey", rows.iter().map(|row| row.c_custkey));
    columns.text("c_name", rows.iter().map(|row| &row.c_name));
    columns.text("c_address", rows.iter().map(|row| &row.c_address));
    columns.long("c_nationkey", rows.iter().map(|row| row.c_nationkey));
    columns.text("c_phone", rows.iter().map(|row| &row.c_phone));
    columns.money("c_acctbal", rows.iter().map(|row| row.c_acctbal.into_inner()))?;
    columns.text("c_mktsegment", rows.iter().map(|row| row.c_mktsegment));
    columns.text("c_comment", rows.iter().map(|row| row.c_comment));
    Ok(())
}

fn part(columns: &mut Columns, scale_factor: f64) -> Result<(), ArrowError> {
    let rows: Vec<_> = PartGenerator::new(scale_factor, 1, 1).iter().collect();
    columns.long("p_partkey", rows.iter().map(|row| row.p_partkey));
    columns.text("p_name", rows.iter().map(|row| &row.p_name));
    columns.text("p_mfgr", rows.iter().map(|row| &row.p_mfgr));
    columns.text("p_brand", rows.iter().map(|row| &row.p_brand));
    columns.text("p_type", rows.iter().map(|row| row.p_type));
    columns.int("p_size", rows.iter().map(|row| row.p_size));
    columns.text("p_container", rows.iter().map(|row| row.p_container));
    columns.money("p_retailprice", rows.iter().map(|row| row.p_retailprice.into_inner()))?;
    columns.text("p_comment", rows.iter().map(|row| row.p_comment));
    Ok(())
}

fn partsupp(columns: &mut Columns, scale_factor: f64) -> Result<(), ArrowError> {
    let rows: Vec<_> = PartSuppGenerator::new(scale_factor, 1, 1).iter().collect();
    columns.long("ps_partkey", rows.iter().map(|row| row.ps_partkey));
    columns.long("ps_suppkey", rows.iter().map(|row| row.ps_suppkey));
    columns.int("ps_availqty", rows.iter().map(|row| row.ps_availqty));
    columns.money("ps_supplycost", rows.iter().map(|row| row.ps_supplycost.into_inner()))?;
    columns.text("ps_comment", rows.iter().map(|row| row.ps_comment));
    Ok(())
}

fn orders(columns: &mut Columns, scale_factor: f64) -> Result<(), ArrowError> {
    let rows: Vec<_> = OrderGenerator::new(scale_factor, 1, 1).iter().collect();
    columns.long("o_orderkey", rows.iter().map(|row| row.o_orderkey));
    columns.long("o_custkey", rows.iter().map(|row| row.o_custkey));
    columns.text("o_orderstatus", rows.iter().map(|row| row.o_orderstatus));
    columns.money("o_totalprice", rows.iter().map(|row| row.o_totalprice.into_inner()))?;
    columns.date("o_orderdate", rows.iter().map(|row| row.o_orderdate.to_unix_epoch()));
    columns.text("o_orderpriority", rows.iter().map(|row| row.o_orderpriority));
    columns.text("o_clerk", rows.iter().map(|row| &row.o_clerk));
    columns.int("o_shippriority", rows.iter().map(|row| row.o_shippriority));
    columns.text("o_comment", rows.iter().map(|row| row.o_comment));
    Ok(())
}

fn lineitem(columns: &mut Columns, scale_factor: f64) -> Result<(), ArrowError> {
    let rows: Vec<_> = LineItemGenerator::new(scale_factor, 1, 1).iter().collect();
    columns.long("l_orderkey", rows.iter().map(|row| row.l_orderkey));
    columns.long("l_partkey", rows.iter().map(|row| row.l_partkey));
    columns.long("l_suppkey", rows.iter().map(|row| row.l_suppkey));
    columns.int("l_linenumber", rows.iter().map(|row| row.l_linenumber));
    columns.money("l_quantity", rows.iter().map(|row| row.l_quantity * 100))?;
    columns.money("l_extendedprice", rows.iter().map(|row| row.l_extendedprice.into_inner()))?;
    columns.money("l_discount", rows.iter().map(|row| row.l_discount.into_inner()))?;
    columns.money("l_tax", rows.iter().map(|row| row.l_tax.into_inner()))?;
    columns.text("l_returnflag", rows.iter().map(|row| row.l_returnflag));
    columns.text("l_linestatus", rows.iter().map(|row| row.l_linestatus));
    columns.date("l_shipdate", rows.iter().map(|row| row.l_shipdate.to_unix_epoch()));
    columns.date("l_commitdate", rows.iter().map(|row| row.l_commitdate.to_unix_epoch()));
    columns.date("l_receiptdate", rows.iter().map(|row| row.l_receiptdate.to_unix_epoch()));
    columns.text("l_shipinstruct", rows.iter().map(|row| row.l_shipinstruct));
    columns.text("l_shipmode", rows.iter().map(|row| row.l_shipmode));
    columns.text("l_comment", rows.iter().map(|row| row.l_comment));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{borders, cut, generate, permutation};

    #[test]
    fn files_hold_every_row_once_in_order() {
        let rows = generate("orders", 0.001).unwrap();
        let files = cut(&rows, 7);
        assert_eq!(files.len(), 7);
        assert_eq!(files.iter().map(|file| file[0].num_rows()).sum::<usize>(), 1_500);
        assert_eq!(files[1][0], rows.slice(214, 214));
        assert_eq!(borders(2, 6).collect::<Vec<_>>(), [(0, 1), (1, 2)]);
    }

    #[test]
    fn a_permutation_holds_every_number_once() {
        let mut order = permutation(1_000, 7);
        assert_ne!(order, (0..1_000).collect::<Vec<u64>>());
        order.sort_unstable();
        assert_eq!(order, (0..1_000).collect::<Vec<u64>>());
    }

    #[test]
    fn tables_have_the_rows_of_their_scale_factor() {
        let rows = |table| generate(table, 0.001).unwrap().num_rows();
        assert_eq!((rows("region"), rows("nation"), rows("supplier")), (5, 25, 10));
        assert_eq!((rows("customer"), rows("orders"), rows("partsupp")), (150, 1_500, 800));
        assert_eq!(rows("lineitem"), 6_005);
    }
}
