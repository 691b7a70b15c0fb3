//! `rota job list`, and the filter that lists and deletes share.

use std::time::Duration;

use clap::Args;
use rota_client::{JobFilter, Page};
use rota_model::job::{Job, JobStatus};
use rota_model::time::UnixMillis;

use super::{Context, view};
use crate::exit::Failure;
use crate::{arguments, output};

pub(super) const EXAMPLES: &str = r#"Examples:
  rota job list --status FAILED --text "disk full"
  rota job list --type wait --older-than 7d
  rota job list --text "night*" --all --output ndjson"#;

/// How many jobs a page holds when all are wanted.
const LARGEST_PAGE: u32 = 1_000;

/// Which jobs are meant.
#[derive(Args, Debug)]
pub(crate) struct FilterArgs {
    /// Only jobs of this status
    #[arg(long, value_parser = arguments::status(), ignore_case = true)]
    status: Option<JobStatus>,
    /// Only jobs of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only jobs of this name
    #[arg(long)]
    name: Option<String>,
    /// Only jobs in this section of the queue
    #[arg(long, value_name = "N")]
    section: Option<u32>,
    /// Only jobs with these words in their name or error; word* is a beginning. New words are found after about a second
    #[arg(long, value_name = "WORDS")]
    text: Option<String>,
    /// Only jobs created after this instant: RFC 3339 or Unix milliseconds
    #[arg(long, value_name = "TIME", value_parser = arguments::instant)]
    created_after: Option<UnixMillis>,
    /// Only jobs created before this instant
    #[arg(long, value_name = "TIME", value_parser = arguments::instant)]
    created_before: Option<UnixMillis>,
    /// Only jobs created longer ago than this
    #[arg(long, value_name = "SPAN", value_parser = arguments::span, conflicts_with = "created_before")]
    older_than: Option<Duration>,
}

impl FilterArgs {
    pub(super) fn into_filter(self, now: UnixMillis) -> JobFilter {
        let long_ago = |span: Duration| {
            let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
            UnixMillis(now.0.saturating_sub(millis))
        };
        JobFilter {
            status: self.status,
            kind: self.kind,
            name: self.name,
            section: self.section,
            text: self.text,
            created_after: self.created_after,
            created_before: self.created_before.or(self.older_than.map(long_ago)),
            ..JobFilter::default()
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// Go on where another page ended
    #[arg(long)]
    cursor: Option<String>,
    /// Every job, page after page
    #[arg(long, conflicts_with_all = ["limit", "cursor"])]
    all: bool,
}

pub(super) async fn run(context: &Context, args: ListArgs) -> Result<(), Failure> {
    let ListArgs { filter, limit, cursor, all } = args;
    let limit = Some(if all { LARGEST_PAGE } else { limit });
    let filter = JobFilter { limit, cursor, ..filter.into_filter(context.now()) };
    if all { every_page(context, filter).await } else { one_page(context, &filter).await }
}

async fn one_page(context: &Context, filter: &JobFilter) -> Result<(), Failure> {
    let page = context.client()?.jobs(&context.domain, filter).await?;
    print(context, &page)?;
    if let Some(next) = &page.next {
        output::warn(&format!("There are more: --cursor {next} shows the next page, --all every job."));
    }
    Ok(())
}

async fn every_page(context: &Context, mut filter: JobFilter) -> Result<(), Failure> {
    let client = context.client()?;
    let mut gathered = Page { items: Vec::new(), next: None };
    loop {
        let page = client.jobs(&context.domain, &filter).await?;
        filter.cursor.clone_from(&page.next);
        if context.out.takes_one_at_a_time() {
            print(context, &page)?;
        } else {
            gathered.items.extend(page.items);
        }
        if filter.cursor.is_none() {
            break;
        }
    }
    print(context, &gathered)
}

pub(super) fn print(context: &Context, page: &Page<Job>) -> Result<(), Failure> {
    context.out.list(page, |jobs| view::table(jobs, context.now()))
}
