//! `lakebed graph SOURCE… [--window 7d] [--scorer NAME]`

use clap::Args;
use lakebed_graph::{Edge, Figure, JoinGraph};

use super::{
    Output, Sources,
    output::{Align, parse_summary},
};
use crate::{error::Error, pipeline::Pipeline, view::GraphView};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    sources: Sources,
    /// Score with this plugin instead of the configuration's
    #[arg(long, value_name = "NAME")]
    scorer: Option<String>,
}

pub(super) async fn run(
    pipeline: &Pipeline,
    arguments: Arguments,
    output: &mut Output,
) -> Result<(), Error> {
    let workload =
        pipeline.collect(&arguments.sources.sources, &arguments.sources.options()).await?;
    let rows = pipeline.row_counts(&workload).await?;
    let graph = pipeline.graph(&workload, &rows, arguments.scorer.as_deref()).await?;
    if output.is_json() {
        let scorer = pipeline.plugins.scorer(arguments.scorer.as_deref())?;
        output.document(&GraphView::new(&workload, &graph, scorer.plugin()))?;
    } else {
        output.line(parse_summary(&workload.report))?;
        print(&graph, output)?;
    }
    arguments.sources.check(&workload.report)
}

fn print(graph: &JoinGraph, output: &mut Output) -> Result<(), Error> {
    print_edges(graph, output)?;
    let rows = graph
        .filters()
        .iter()
        .map(|filter| {
            vec![
                format!("{}.{}", filter.table, filter.column),
                filter.operator.as_str().to_owned(),
                filter.frequency.to_string(),
                filter.inferred.to_string(),
            ]
        })
        .collect();
    let header = [
        ("filter", Align::Left),
        ("operator", Align::Left),
        ("statements", Align::Right),
        ("inferred", Align::Right),
    ];
    output.table(&header, rows)?;
    if let Some(degenerate) = graph.degenerate() {
        output
            .line(format!("note: {degenerate}; a score by min-max normalization tells nothing"))?;
    }
    if graph.edges().iter().any(|edge| !edge.stats.assumed.is_empty()) {
        output.line("note: ~ stands before what nothing tells of a join: the mean of the others, or 0 where there are none")?;
    }
    Ok(())
}

pub(super) fn print_edges(graph: &JoinGraph, output: &mut Output) -> Result<(), Error> {
    let rows = graph
        .edges()
        .iter()
        .map(|edge| {
            let strategies: Vec<String> = edge
                .stats
                .strategies
                .iter()
                .map(|(strategy, count)| format!("{} {count}", strategy.as_str()))
                .collect();
            vec![
                edge.stats.key().to_string(),
                edge.stats.frequency.to_string(),
                assumed(edge, Figure::RowsProduct, format!("{:.2e}", edge.stats.rows_product_mean)),
                assumed(edge, Figure::Cost, format!("{:.0}", edge.stats.cost_ms_mean)),
                strategies.join(", "),
                format!("{:.3}", edge.score),
            ]
        })
        .collect();
    let header = [
        ("join", Align::Left),
        ("F", Align::Right),
        ("D (rows²)", Align::Right),
        ("C (ms)", Align::Right),
        ("ran as", Align::Left),
        ("score", Align::Right),
    ];
    output.table(&header, rows)
}

/// Marks a figure that the history does not tell of this join.
fn assumed(edge: &Edge, figure: Figure, text: String) -> String {
    if edge.stats.assumed.contains(&figure) { format!("~{text}") } else { text }
}
