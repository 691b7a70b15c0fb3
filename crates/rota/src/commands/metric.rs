//! `rota metric`: what nodes measured.

use clap::{Args, Subcommand};
use comfy_table::{Cell, Table};
use rota_client::MetricFilter;
use rota_model::ids::NodeId;
use rota_model::metric::{MetricsBucket, Sample};
use rota_model::time::UnixMillis;

use super::Context;
use super::paging::{Asked, PagingArgs};
use crate::arguments::{self, Since};
use crate::exit::Failure;
use crate::output::table::{self, optional, text};
use crate::output::time::date;

const LIST_EXAMPLES: &str = "\
Latencies are in microseconds. Metrics of a bucket are stored about a second after it is over.

Examples:
  rota metric list --name queueWait --since 10m
  rota metric list --name jobsProcessed --since 1h --all --output ndjson";

#[derive(Debug, Subcommand)]
pub(crate) enum MetricCommand {
    /// List what nodes measured, in buckets of five seconds, the oldest first
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only this metric, such as jobsProcessed, queueWait or storeWriteLatency
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only what was measured after this: 10m ago, RFC 3339 or Unix milliseconds
    #[arg(long, value_name = "SPAN|TIME", default_value = "1m", value_parser = arguments::since)]
    since: Since,
    /// Only what was measured before this instant: RFC 3339 or Unix milliseconds
    #[arg(long, value_name = "TIME", value_parser = arguments::instant)]
    before: Option<UnixMillis>,
    #[command(flatten)]
    paging: PagingArgs,
}

pub(crate) async fn run(context: &Context, command: MetricCommand) -> Result<(), Failure> {
    let MetricCommand::List(args) = command;
    list(context, args).await
}

async fn list(context: &Context, args: ListArgs) -> Result<(), Failure> {
    let ListArgs { name, since, before, paging } = args;
    let client = context.client()?;
    let from = Some(since.seen_from(context.now()));
    let ask = async |Asked { limit, cursor }| {
        let filter = MetricFilter { from, to: before, name: name.clone(), limit, cursor };
        client.metrics(&filter).await
    };
    paging.show(context, ask, |page| context.out.list(page, metrics_table)).await
}

/// One line for each metric of each node in each bucket.
fn metrics_table(buckets: &[MetricsBucket]) -> Table {
    let rows = buckets.iter().flat_map(|bucket| {
        let of = |(name, by_node): (&String, _)| rows(bucket, name.clone(), by_node);
        bucket.metrics.iter().flat_map(of).collect::<Vec<_>>()
    });
    table::table(["bucket", "metric", "node", "value", "units", "count", "p50", "p99", "max"], rows)
}

fn rows(
    bucket: &MetricsBucket,
    name: String,
    by_node: &std::collections::BTreeMap<NodeId, Sample>,
) -> Vec<[Cell; 9]> {
    let row = |(node, sample): (&NodeId, &Sample)| {
        [
            text(date(bucket.bucket_start.0)),
            text(&name),
            text(node),
            text(sample.value),
            text(&sample.units),
            optional(sample.count),
            optional(sample.p50),
            optional(sample.p99),
            optional(sample.max),
        ]
    };
    by_node.iter().map(row).collect()
}
