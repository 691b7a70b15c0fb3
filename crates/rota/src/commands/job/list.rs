//! `rota job list`, and the filter that lists and deletes share.

use std::time::Duration;

use clap::Args;
use rota_client::{JobFilter, Page};
use rota_model::job::{Job, JobStatus};
use rota_model::time::UnixMillis;

use super::{Context, view};
use crate::arguments;
use crate::commands::paging::{Asked, PagingArgs};
use crate::exit::Failure;

pub(super) const EXAMPLES: &str = r#"Examples:
  rota job list --status FAILED --text "disk full"
  rota job list --type wait --older-than 7d
  rota job list --text "night*" --all --output ndjson"#;

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
    #[command(flatten)]
    paging: PagingArgs,
}

pub(super) async fn run(context: &Context, args: ListArgs) -> Result<(), Failure> {
    let ListArgs { filter, paging } = args;
    let client = context.client()?;
    let filter = filter.into_filter(context.now());
    let ask = async |Asked { limit, cursor }| {
        client.jobs(&context.domain, &JobFilter { limit, cursor, ..filter.clone() }).await
    };
    paging.show(context, ask, |page| print(context, page)).await
}

pub(super) fn print(context: &Context, page: &Page<Job>) -> Result<(), Failure> {
    context.out.list(page, |jobs| view::table(jobs, context.now()))
}
