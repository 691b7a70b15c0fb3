//! `rota job cancel`, `requeue` and `delete`.

use std::io::{self, BufRead as _, IsTerminal as _};

use clap::Args;
use rota_client::{Client, Error, JobFilter, Page};
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::Job;
use serde_json::json;

use super::list::FilterArgs;
use super::{Context, list, print};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::output::progress::Bar;
use crate::output::time::date;

pub(super) const CANCEL_EXAMPLES: &str = "\
A job that waits never runs; the handler of one that runs is told to stop. It ends as FAILED.

Example:
  rota job cancel 0193e5a0-0000-7000-8000-000000000001";

pub(super) const REQUEUE_EXAMPLES: &str = "\
The job keeps its id; its result so far is kept in its history.

Example:
  rota job requeue 0193e5a0-0000-7000-8000-000000000001";

pub(super) const DELETE_EXAMPLES: &str = "\
What runs is not deleted: cancel it first. `rota job list` with the same filter shows what would go.

Examples:
  rota job delete 0193e5a0-0000-7000-8000-000000000001
  rota job delete --status SUCCESSFUL --older-than 7d --yes
  rota job delete --all --domain test";

/// How many jobs are deleted in one call.
const AT_ONCE: u32 = 10_000;

#[derive(Args, Debug)]
pub(crate) struct Ids {
    /// Ids of the jobs
    #[arg(value_name = "ID", required = true)]
    ids: Vec<JobId>,
}

#[derive(Args, Debug)]
pub(crate) struct DeleteArgs {
    /// Ids of the jobs, where no filter is given
    #[arg(value_name = "ID", conflicts_with_all = ["FilterArgs", "all"])]
    ids: Vec<JobId>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Every job of the domain
    #[arg(long, conflicts_with = "FilterArgs")]
    all: bool,
    /// Do not ask before jobs are deleted by a filter
    #[arg(long)]
    yes: bool,
}

pub(super) async fn cancel(context: &Context, which: Ids) -> Result<(), Failure> {
    let domain = &context.domain;
    let jobs = each(context, which.ids, async |client, id| client.cancel_job(domain, id).await).await?;
    jobs.print(context)
}

pub(super) async fn requeue(context: &Context, which: Ids) -> Result<(), Failure> {
    let domain = &context.domain;
    let jobs = each(context, which.ids, async |client, id| client.requeue_job(domain, id).await).await?;
    jobs.print(context)
}

pub(super) async fn delete(context: &Context, args: DeleteArgs) -> Result<(), Failure> {
    let DeleteArgs { ids, filter, all, yes } = args;
    if !ids.is_empty() {
        let domain = &context.domain;
        let gone = each(context, ids, async |client, id| client.delete_job(domain, id).await).await?;
        say_deleted(context, gone.done.len() as u64)?;
        return gone.verdict();
    }
    let filter = filter.into_filter(context.now());
    if filter == JobFilter::default() && !all {
        let message = "say which: ids, a filter such as --status FAILED, or --all";
        return Err(Failure::refused(message));
    }
    let client = context.client()?;
    if !yes {
        must_be_meant(&what_goes(&filter, &context.domain))?;
    }
    let deleted = delete_matching(context, &client, filter).await?;
    say_deleted(context, deleted)
}

fn say_deleted(context: &Context, deleted: u64) -> Result<(), Failure> {
    let jobs = if deleted == 1 { "job is" } else { "jobs are" };
    context.out.text(&format!("{deleted} {jobs} deleted."), &json!({"deleted": deleted}))
}

/// Call after call, so that none takes long.
async fn delete_matching(context: &Context, client: &Client, filter: JobFilter) -> Result<u64, Failure> {
    let all = filter == JobFilter::default();
    let filter = JobFilter { limit: Some(AT_ONCE), ..filter };
    let bar = Bar::begin("Deleting", "jobs");
    let mut deleted = 0;
    loop {
        let done = if all {
            client.delete_all_jobs(&context.domain, filter.limit).await
        } else {
            client.delete_jobs(&context.domain, &filter).await
        };
        let done = done.map_err(|error| {
            let failure = Failure::from(error);
            let so_far = if deleted == 0 { String::new() } else { format!("; {deleted} jobs are deleted") };
            Failure::new(failure.exit, failure.message + &so_far)
        })?;
        deleted += done.deleted;
        bar.so_far(deleted);
        if !done.more {
            return Ok(deleted);
        }
    }
}

/// Asks whoever sits at a terminal; a script must have said so before.
fn must_be_meant(what: &str) -> Result<(), Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::refused(format!("this deletes {what}: add --yes if that is what you want")));
    }
    output::prompt(&format!("This deletes {what}. Go on? [y/N] "));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    if read.is_ok() && ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    Err(Failure::refused("nothing is deleted"))
}

fn what_goes(filter: &JobFilter, domain: &Domain) -> String {
    let narrowed: Vec<String> = [
        filter.status.map(|status| format!("status {}", status.as_str())),
        filter.kind.as_ref().map(|kind| format!("type {kind}")),
        filter.name.as_ref().map(|name| format!("name '{name}'")),
        filter.section.map(|section| format!("section {section}")),
        filter.text.as_ref().map(|words| format!("words '{words}'")),
        filter.created_after.map(|at| format!("created after {}", date(at))),
        filter.created_before.map(|at| format!("created before {}", date(at))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let which = if narrowed.is_empty() { String::new() } else { format!(" with {}", narrowed.join(", ")) };
    format!("every job of the domain {domain}{which}, but for those that run")
}

/// What became of several jobs.
struct Changed<T> {
    done: Vec<T>,
    asked: usize,
    /// How the first that did not succeed ended.
    failed: Option<Exit>,
}

/// Changes one job after the other. One that cannot be changed is told, and in nobody's way.
async fn each<T>(
    context: &Context,
    ids: Vec<JobId>,
    change: impl AsyncFn(&Client, JobId) -> Result<T, Error>,
) -> Result<Changed<T>, Failure> {
    let client = context.client()?;
    let mut changed = Changed { done: Vec::new(), asked: ids.len(), failed: None };
    for id in ids {
        match change(&client, id).await.map_err(Failure::from) {
            Ok(done) => changed.done.push(done),
            Err(failure) if changed.asked == 1 => return Err(failure),
            Err(failure) => {
                output::warn(&format!("job {id}: {}", failure.message));
                changed.failed = changed.failed.or(Some(failure.exit));
            }
        }
    }
    Ok(changed)
}

impl<T> Changed<T> {
    fn verdict(&self) -> Result<(), Failure> {
        let Some(exit) = self.failed else { return Ok(()) };
        let (left, asked) = (self.asked - self.done.len(), self.asked);
        Err(Failure::new(exit, format!("{left} of {asked} jobs are as they were")))
    }
}

impl Changed<Job> {
    /// One job is shown whole, several as a list.
    fn print(self, context: &Context) -> Result<(), Failure> {
        let verdict = self.verdict();
        match self.done.as_slice() {
            [job] if self.asked == 1 => print(context, job)?,
            [] => {}
            _ => list::print(context, &Page { items: self.done, next: None })?,
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_model::job::JobStatus;
    use rota_model::time::UnixMillis;

    #[test]
    fn what_would_go_is_told_in_words() {
        let filter = JobFilter {
            status: Some(JobStatus::Failed),
            text: Some("disk full".to_owned()),
            created_before: Some(UnixMillis(0)),
            ..JobFilter::default()
        };
        assert_eq!(
            what_goes(&filter, &Domain::default()),
            "every job of the domain default with status FAILED, words 'disk full', created before \
             1970-01-01T00:00:00Z, but for those that run"
        );
        assert_eq!(
            what_goes(&JobFilter::default(), &Domain::default()),
            "every job of the domain default, but for those that run"
        );
    }
}
