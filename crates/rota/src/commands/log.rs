//! `rota log`: what nodes and handlers said, and what they are saying.
//!
//! - [`view`]: how lines are shown

mod view;

use std::time::Duration;

use clap::{Args, Subcommand};
use rota_client::{Client, LogFilter};
use rota_model::domain::Domain;
use rota_model::ids::{JobId, NodeId};
use rota_model::log::{Level, LogLine};
use rota_model::time::UnixMillis;
use tokio::time::timeout;

use super::paging::{Asked, PagingArgs};
use super::{Context, node};
use crate::arguments::{self, Since};
use crate::exit::Failure;

const LIST_EXAMPLES: &str = r#"Examples:
  rota log list --level warn --since 10m
  rota log list --job 0193e5a0-0000-7000-8000-000000000001
  rota log list --text "disk full" --all --output ndjson
  rota log list --installation --node node_1"#;

const TAIL_EXAMPLES: &str = "\
With --job it ends when the job has ended; otherwise when you end it, with Ctrl-C. In the forms json and ndjson each line
is one document on a line of its own.

Examples:
  rota log tail
  rota log tail --job 0193e5a0-0000-7000-8000-000000000001
  rota log tail --installation --level warn";

/// How long it takes at most until what a job said last is heard.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long a single call waits for the end of a job; there may be many.
const WAIT: Duration = Duration::from_secs(60);

#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Search what nodes and handlers said, the newest first
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Show what they say as they say it
    #[command(after_help = TAIL_EXAMPLES)]
    Tail(TailArgs),
}

/// Which lines are meant.
#[derive(Args, Debug)]
pub(crate) struct FilterArgs {
    /// Only what was said about this job
    #[arg(long, value_name = "ID", conflicts_with = "installation")]
    job: Option<JobId>,
    /// Only what was said on this node; its name takes an administrator
    #[arg(long, value_name = "NAME-OR-ID")]
    node: Option<String>,
    /// Only lines of this level, and of those that matter more
    #[arg(long, value_parser = arguments::level(), ignore_case = true)]
    level: Option<Level>,
    /// Only lines with these words; word* is a beginning. New words are found after about a second
    #[arg(long, value_name = "WORDS")]
    text: Option<String>,
    /// Only what was said after this: 10m ago, RFC 3339 or Unix milliseconds
    #[arg(long, value_name = "SPAN|TIME", value_parser = arguments::since)]
    since: Option<Since>,
    /// The lines of every domain, and those of the nodes about themselves; for administrators
    #[arg(long)]
    installation: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Only what was said before this instant: RFC 3339 or Unix milliseconds
    #[arg(long, value_name = "TIME", value_parser = arguments::instant)]
    before: Option<UnixMillis>,
    #[command(flatten)]
    paging: PagingArgs,
}

#[derive(Args, Debug)]
pub(crate) struct TailArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// With how many of the newest lines to begin; with --since all of those
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=1_000),
        conflicts_with = "since")]
    limit: u32,
}

pub(crate) async fn run(context: &Context, command: LogCommand) -> Result<(), Failure> {
    match command {
        LogCommand::List(args) => list(context, args).await,
        LogCommand::Tail(args) => tail(context, args).await,
    }
}

impl FilterArgs {
    fn domain<'a>(&self, context: &'a Context) -> Option<&'a Domain> {
        (!self.installation).then_some(&context.domain)
    }

    async fn into_filter(self, context: &Context, client: &Client) -> Result<LogFilter, Failure> {
        let node = match self.node {
            Some(node) => Some(id_of(&node, client).await?),
            None => None,
        };
        let after = self.since.map(|since| since.seen_from(context.now()));
        let Self { job, level, text, .. } = self;
        Ok(LogFilter { job, node, level, text, after, ..LogFilter::default() })
    }
}

async fn id_of(node: &str, client: &Client) -> Result<NodeId, Failure> {
    match node.parse() {
        Ok(id) => Ok(id),
        Err(_) => Ok(node::find(client.nodes().await?, node)?.id),
    }
}

async fn list(context: &Context, args: ListArgs) -> Result<(), Failure> {
    let ListArgs { filter, before, paging } = args;
    let client = context.client()?;
    let domain = filter.domain(context);
    let filter = LogFilter { before, ..filter.into_filter(context, &client).await? };
    let ask = async |Asked { limit, cursor }| {
        client.logs(domain, &LogFilter { limit, cursor, ..filter.clone() }).await
    };
    paging.show(context, ask, |page| context.out.list(page, view::table)).await
}

async fn tail(context: &Context, args: TailArgs) -> Result<(), Failure> {
    let client = context.client()?;
    let domain = args.filter.domain(context);
    let filter = args.filter.into_filter(context, &client).await?;
    let limit = (args.limit > 0 && filter.after.is_none()).then_some(args.limit);
    let job = filter.job;
    if let Some(job) = job {
        // Whoever mistyped an id would wait for ever.
        client.job(&context.domain, job).await?;
    }
    let mut tail = client.tail_logs(domain, LogFilter { limit, ..filter }).await?;
    let mut ended = Box::pin(end_of(&client, &context.domain, job));
    loop {
        let line = tokio::select! {
            biased;
            line = tail.next() => line?,
            ended = &mut ended => {
                ended?;
                break;
            }
        };
        show(context, &line)?;
    }
    while let Ok(line) = timeout(LAST_WORDS, tail.next()).await {
        show(context, &line?)?;
    }
    Ok(())
}

/// Until the job has ended; for ever if there is none.
async fn end_of(client: &Client, domain: &Domain, job: Option<JobId>) -> Result<(), Failure> {
    let Some(job) = job else { return std::future::pending().await };
    loop {
        if client.wait_for_job(domain, job, WAIT).await?.status.is_terminal() {
            return Ok(());
        }
    }
}

fn show(context: &Context, line: &LogLine) -> Result<(), Failure> {
    context.out.line(line, view::line)
}
