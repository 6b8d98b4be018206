//! Every hostile scorer on one pipeline, one after the other: the pipeline goes on.

use lakebed::{config::Config, pipeline::Pipeline, progress::Progress};
use lakebed_collect::CollectOptions;

use crate::support::{project, runtime};

/// A scorer that only counts its own calls lies about nothing.
const HARMLESS: [&str; 1] = ["counter"];

#[test]
fn no_hostile_scorer_ends_the_host_or_changes_another_score() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = runtime(Pipeline::new(Config::default(), Progress::hidden())).unwrap();
    runtime(async {
        let logs = [project("examples/logs/w1")];
        let workload = pipeline.collect(&logs, &CollectOptions::default()).await.unwrap();
        let rows = pipeline.row_counts(&workload).await.unwrap();
        let honest = pipeline.graph(&workload, &rows, None).await.unwrap();
        let scorers = lakebed_bundle::evil().iter().filter(|guest| guest.world == "scorer");
        let mut met = 0;
        for guest in scorers.filter(|guest| !HARMLESS.contains(&guest.name)) {
            let path = folder.path().join(format!("{}.wasm", guest.name));
            std::fs::write(&path, guest.wasm).unwrap();
            let path = path.to_string_lossy().into_owned();
            let error = pipeline.graph(&workload, &rows, Some(&path)).await.expect_err(guest.name);
            let (remedy, help) = error.remedy();
            assert_eq!(remedy.exit_code(), 3, "{}: {error}", guest.name);
            assert!(help.starts_with("mend the plugin"), "{}: {help}", guest.name);
            let again = pipeline.graph(&workload, &rows, None).await.unwrap();
            let scores = |graph: &lakebed_graph::JoinGraph| -> Vec<u64> {
                graph.edges().iter().map(|edge| edge.score.to_bits()).collect()
            };
            assert_eq!(scores(&again), scores(&honest), "{}", guest.name);
            met += 1;
        }
        assert!(met > 10, "{met} attacks");
    });
}
