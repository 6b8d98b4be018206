//! The formulas of the shipped plugins: worked examples, and twins written here from the documents.

use std::num::NonZeroU32;

use super::{EDGES, assert_close, shipped};
use crate::{CandidateColumns, EdgeColumns, PricingSettings, RefusalKind, SandboxError};

/// splitmix64, for inputs that are many but the same every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn list(&mut self, count: usize, most: u32) -> Vec<f64> {
        let draw = |_| {
            let below = self.next() % (u64::from(most) + 1);
            f64::from(u32::try_from(below).expect("below a u32"))
        };
        (0..count).map(draw).collect()
    }
}

#[test]
fn scorer_ajlo_jis_gives_one_eighth_to_the_balanced_edge_and_zero_to_the_weakest() {
    let scores = shipped("scorer-ajlo-jis", "{}").score(&EDGES).expect("scores");
    assert_close(&scores, &[0.0, 0.125, 1.0]);
}

#[test]
fn scorer_ajlo_jis_gives_zero_to_all_where_edges_are_equal_or_alone() {
    let plugin = shipped("scorer-ajlo-jis", "{}");
    let alone = EdgeColumns {
        frequency: &[7.0],
        rows_product_mean: &[1e12],
        cost_ms_mean: &[250.0],
        bytes_mean: &[1.0],
        confidence: &[1.0],
    };
    assert_eq!(plugin.score(&alone), Ok(vec![0.0]));
    let equal_cost = EdgeColumns { cost_ms_mean: &[50.0, 50.0, 50.0], ..EDGES };
    assert_eq!(plugin.score(&equal_cost), Ok(vec![0.0, 0.0, 0.0]));
    let none = EdgeColumns {
        frequency: &[],
        rows_product_mean: &[],
        cost_ms_mean: &[],
        bytes_mean: &[],
        confidence: &[],
    };
    assert_eq!(plugin.score(&none), Ok(vec![]));
}

#[test]
fn scorer_ajlo_jis_agrees_with_a_native_twin() {
    fn scaled(values: &[f64], epsilon: f64) -> Vec<f64> {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        values.iter().map(|value| (value - low) / (high - low + epsilon)).collect()
    }
    let mut numbers = Numbers(7);
    for (config, epsilon) in [("{}", 1e-9), (r#"{"epsilon":0.5}"#, 0.5)] {
        let plugin = shipped("scorer-ajlo-jis", config);
        for count in [2, 9, 40] {
            let frequency = numbers.list(count, 50);
            let rows = numbers.list(count, u32::MAX);
            let cost = numbers.list(count, 10_000);
            let edges = EdgeColumns {
                frequency: &frequency,
                rows_product_mean: &rows,
                cost_ms_mean: &cost,
                bytes_mean: &cost,
                confidence: &cost,
            };
            let logarithms: Vec<f64> = rows.iter().map(|rows| (rows + 1.0).log10()).collect();
            let factors = [&frequency, &logarithms, &cost].map(|values| scaled(values, epsilon));
            let expected: Vec<f64> = (0..count)
                .map(|edge| factors.iter().map(|factor| factor[edge]).product())
                .collect();
            assert_close(&plugin.score(&edges).expect("scores"), &expected);
        }
    }
}

#[test]
fn scorer_bytes_saved_is_the_ratio_to_the_largest_product() {
    let plugin = shipped("scorer-bytes-saved", "{}");
    let edges = EdgeColumns {
        frequency: &[10.0, 5.0, 1.0],
        bytes_mean: &[100.0, 100.0, 50.0],
        confidence: &[1.0, 0.5, 1.0],
        ..EDGES
    };
    assert_close(&plugin.score(&edges).expect("scores"), &[1.0, 0.25, 0.05]);
    let nothing_read = EdgeColumns { bytes_mean: &[0.0, 0.0, 0.0], ..edges };
    assert_eq!(plugin.score(&nothing_read), Ok(vec![0.0, 0.0, 0.0]));
    let in_bytes = shipped("scorer-bytes-saved", r#"{"scale":"bytes"}"#);
    assert_close(&in_bytes.score(&edges).expect("scores"), &[1000.0, 250.0, 50.0]);
}

#[track_caller]
fn check_npv(saves: f64, horizon: u32, rate: f64, expected: f64) {
    let candidates = CandidateColumns {
        saves_bytes_per_window: &[saves],
        rewrite_bytes: &[500.0],
        storage_bytes: &[50.0],
    };
    let horizon_windows = NonZeroU32::new(horizon).expect("a horizon of a test is positive");
    let settings = PricingSettings { horizon_windows, discount_rate: rate };
    let values = shipped("cost-model-npv", "{}").net_present_value(&candidates, settings);
    assert_close(&values.expect("values"), &[expected]);
}

#[test]
fn cost_model_npv_discounts_savings_and_subtracts_costs() {
    // 100 · (1 − 1.1⁻¹⁰) / 0.1 = 614.45671057…
    check_npv(100.0, 10, 0.1, 64.456_710_57);
    // One window at 25 %: 100 / 1.25 = 80.
    check_npv(100.0, 1, 0.25, -470.0);
    // Without discount the factor is the horizon.
    check_npv(100.0, 10, 0.0, 450.0);
    check_npv(-3.0, 10, 0.0, -580.0);
    // Near 0 the factor is H · (1 − r · (H + 1) / 2): 10 · (1 − 5.5e-12).
    check_npv(1e12, 10, 1e-12, 1e13 - 55.0 - 550.0);
}

#[test]
fn drift_meter_ajlo_is_the_mean_relative_change() {
    let plugin = shipped("drift-meter-ajlo", "{}");
    let reading = plugin.measure(&[1.0, 0.5, 0.0], &[1.0, 0.4, 0.2]).expect("a reading");
    assert_close(&reading.parts, &[0.0, 0.2, 1.0]);
    assert_close(&[reading.distance], &[0.4]);
    let nothing = plugin.measure(&[], &[]).expect("a reading");
    assert_eq!((nothing.distance, nothing.parts.len()), (0.0, 0));
    let absent = plugin.measure(&[0.0, 2.0], &[0.0, 2.0]).expect("a reading");
    assert_eq!((absent.distance, absent.parts), (0.0, vec![0.0, 0.0]));
}

#[test]
fn drift_meter_weighted_counts_every_edge_by_its_score() {
    let plugin = shipped("drift-meter-weighted", "{}");
    let reading = plugin.measure(&[100.0, 50.0, 0.0], &[100.0, 40.0, 2.0]).expect("a reading");
    assert_close(&reading.parts, &[0.0, 10.0 / 152.0, 2.0 / 152.0]);
    assert_close(&[reading.distance], &[12.0 / 152.0]);
    let other = plugin.measure(&[3.0, 0.0], &[0.0, 1.0]).expect("a reading");
    assert_close(&[other.distance], &[1.0]);
    let nothing = plugin.measure(&[0.0], &[0.0]).expect("a reading");
    assert_eq!((nothing.distance, nothing.parts), (0.0, vec![0.0]));
}

#[test]
fn drift_meter_ajlo_refuses_negative_scores_in_its_own_words() {
    let refused = shipped("drift-meter-ajlo", "{}").measure(&[1.0, -0.5], &[1.0, 0.5]);
    let expected = SandboxError::Refused {
        plugin: "drift-meter-ajlo".into(),
        function: "measure",
        kind: RefusalKind::InvalidInput,
        message: "edge 1 has scores -0.5 and 0.5, expected none below 0".into(),
    };
    assert_eq!(refused, Err(expected));
}
