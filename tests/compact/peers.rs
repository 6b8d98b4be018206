//! Faults that others reported of compaction with iterators, and which test holds each off here.
//!
//! | reported of | fault | held off by |
//! | --- | --- | --- |
//! | Paimon 3393 | the first value loses the order that it won by | `a_first_value_keeps_the_order_that_it_won_by`, and `orders_that_would_be_lost_…` refuses what would |
//! | Sleeper 5819 | names lose their capitals | `columns_fold_in_table_order_…`, `predicate_keeps_the_rows_for_which_it_holds`; Delta allows no names that differ in case only |
//! | ClickHouse 101763, 65815, RocksDB 11256 | time arithmetic wraps | `extreme_negative_and_null_times_…`, `thresholds_outside_a_narrow_column_…`, `a_retention_longer_than_time_keeps_every_row` |
//! | DataFusion 24432 | NaN and −0 depend on order | `floats_have_one_order_whatever_order_they_come_in` |
//! | Sleeper 6230 | order of aggregations changes the schema | `columns_fold_in_table_order_…` |
//! | DuckDB 24081 | combining wraps | one fold does both; `sum_that_does_not_fit_…`, `decimal_totals_keep_within_…` |
//! | Accumulo 59 | labels compared while escaped | `escapes_are_undone_once`, `row_filter_visibility_judges_labels_as_the_native_filter_does` |
//! | DataFusion 22190 | top-n drops groups of nulls | `largest_elements_stay_as_often_as_they_stand` |
//! | cqlite 2049 | the boundary is off by one | `row_goes_when_its_age_is_exactly_the_period`; elements of collections have no age, and such columns are refused |
//! | Delta 3981 | a row deleted meanwhile comes back | `rows_deleted_meanwhile_stay_deleted` |
//! | ClickHouse 18564, 9462 | zero sums vanish | `entries_fold_key_by_key_and_zero_stays`, `a_key_stays_when_its_sum_is_zero` |
//! | Paimon 4065 | filters on values run before the merge of a read | cannot occur: reads merge nothing, they see stored rows |
//! | Paimon 5872 | ties depend on the files | `any_tree_of_compactions_is_one`: ties go by the values |
//! | Gaffer 466 | empty and null labels have no rule | `empty_labels_are_seen_by_all_and_nulls_by_rule` |
//! | ClickHouse 50346 | a partial merge drops a delete marker | cannot occur: every file is an input, and a row that arrives makes the compaction start over (`aggregation_starts_over_when_a_row_arrives`) |
//! | Accumulo 1678 | an option is ignored | `labels_and_settings_that_cannot_be_read_change_nothing` |
//! | Paimon 5065 | ordering columns are mixed from several rows | `any_tree_of_compactions_is_one`: the latest row is kept whole |
//! | ClickHouse 79408 | groups end with a batch | `groups_are_whole_across_batch_boundaries` |
//! | ClickHouse 105647 | output is merged for ever | for filters, `filter_alone_…_a_second_run_commits_nothing`; an aggregation that is run again commits again, and nothing runs it by itself |
//! | ScyllaDB 13800 | several instants in one job | `history_tells_the_chain_and_its_instant` |
//! | Sleeper 7053 | a stalled read hangs for ever | not tried here: time limits are those of the object store's client |

use super::{
    Readings,
    readings::{OLD, YOUNG},
};

#[test]
fn a_retention_longer_than_time_keeps_every_row() {
    for period in ["9223372036854775807", "3155760000000"] {
        let readings = Readings::create(&[&[(1, OLD, 1), (2, -OLD, 2), (3, 0, 3)]], &[]);
        let iterators = format!("ageoff='updated_at','{period}',");
        readings.compact(&["--iterators", &iterators]).succeeded();
        assert_eq!(readings.rows().len(), 3, "{period}");
    }
}

#[test]
fn a_retention_of_nothing_keeps_only_the_future() {
    let readings = Readings::create(&[&[(1, OLD, 1), (2, YOUNG, 2)]], &[]);
    readings.compact(&["--iterators", "ageoff='updated_at','0',"]).succeeded();
    assert_eq!(readings.rows(), [(2, YOUNG, 2)]);
}
