//! `rota metric`: what nodes measured.

use clap::{Args, Subcommand};
use comfy_table::{Cell, Table};
use rota_client::{MetricFilter, Page};
use rota_model::ids::NodeId;
use rota_model::metric::{MetricsBucket, Sample};
use rota_model::time::UnixMillis;

use super::Context;
use crate::arguments::{self, Since};
use crate::exit::Failure;
use crate::output;
use crate::output::table::{self, optional, text};
use crate::output::time::date;

const LIST_EXAMPLES: &str = "\
Latencies are in microseconds. Metrics of a bucket are stored about a second after it is over.

Examples:
  rota metric list --name queueWait --since 10m
  rota metric list --name jobsProcessed --since 1h --all --output ndjson";

/// How many buckets a page holds when all are wanted.
const LARGEST_PAGE: u32 = 1_000;

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
    /// How many buckets at most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// Go on where another page ended
    #[arg(long)]
    cursor: Option<String>,
    /// Every bucket, page after page
    #[arg(long, conflicts_with_all = ["limit", "cursor"])]
    all: bool,
}

pub(crate) async fn run(context: &Context, command: MetricCommand) -> Result<(), Failure> {
    let MetricCommand::List(args) = command;
    list(context, args).await
}

async fn list(context: &Context, args: ListArgs) -> Result<(), Failure> {
    let ListArgs { name, since, before, limit, cursor, all } = args;
    let client = context.client()?;
    let limit = Some(if all { LARGEST_PAGE } else { limit });
    let from = Some(since.seen_from(context.now()));
    let mut filter = MetricFilter { from, to: before, name, limit, cursor };
    let mut gathered = Page { items: Vec::new(), next: None };
    loop {
        let page = client.metrics(&filter).await?;
        if !all {
            context.out.list(&page, metrics_table)?;
            if let Some(next) = &page.next {
                let more =
                    format!("There are more: --cursor {next} shows the next page, --all every bucket.");
                output::warn(&more);
            }
            return Ok(());
        }
        filter.cursor.clone_from(&page.next);
        if context.out.takes_one_at_a_time() {
            context.out.list(&page, metrics_table)?;
        } else {
            gathered.items.extend(page.items);
        }
        if filter.cursor.is_none() {
            return context.out.list(&gathered, metrics_table);
        }
    }
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
