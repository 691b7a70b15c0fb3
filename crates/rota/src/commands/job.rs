//! `rota job`: submit jobs, look at them, wait for their end, change them.
//!
//! - [`submit`], [`mod@file`]: one job from its flags, many from a file
//! - [`count`]: the queue in numbers
//! - [`list`]: lists, and the filter they share with deleting
//! - [`changes`]: cancel, requeue, delete
//! - [`view`]: how they are shown

mod changes;
mod count;
mod file;
mod list;
mod submit;
mod view;

use std::time::Duration;

use clap::Subcommand;
use rota_client::Client;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{Job, JobStatus};

pub(super) use submit::{BackoffArgs, millis};

use super::Context;
use crate::arguments;
use crate::exit::{Exit, Failure};
use crate::output::time::span;

const SHOW_EXAMPLES: &str = "\
Example:
  rota job show 0193e5a0-0000-7000-8000-000000000001 --output json";

const WAIT_EXAMPLES: &str = "\
Examples:
  rota job wait 0193e5a0-0000-7000-8000-000000000001
  rota job wait 0193e5a0-0000-7000-8000-000000000001 --timeout 10m";

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Submit a job, or many from a file; when the command returns, they are on disk
    #[command(after_help = submit::EXAMPLES)]
    Submit(Box<submit::SubmitArgs>),
    /// List jobs, the newest first
    #[command(after_help = list::EXAMPLES)]
    List(list::ListArgs),
    /// Count jobs by type and status
    #[command(after_help = count::EXAMPLES)]
    Count,
    /// Show a job, and why it waits if it does
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        /// Id of the job
        id: JobId,
    },
    /// Wait until a job has ended; exit with 1 if it failed, or has not ended in time
    #[command(after_help = WAIT_EXAMPLES)]
    Wait {
        /// Id of the job
        id: JobId,
        /// How long to wait at most
        #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = arguments::span)]
        timeout: Duration,
    },
    /// End jobs that wait or run
    #[command(after_help = changes::CANCEL_EXAMPLES)]
    Cancel {
        #[command(flatten)]
        which: changes::Ids,
    },
    /// Run jobs once more that have ended
    #[command(after_help = changes::REQUEUE_EXAMPLES)]
    Requeue {
        #[command(flatten)]
        which: changes::Ids,
    },
    /// Delete jobs that do not run, by id or by filter
    #[command(after_help = changes::DELETE_EXAMPLES)]
    Delete(changes::DeleteArgs),
}

pub(crate) async fn run(context: &Context, command: JobCommand) -> Result<(), Failure> {
    match command {
        JobCommand::Submit(args) => submit::run(context, *args).await,
        JobCommand::List(args) => list::run(context, args).await,
        JobCommand::Count => count::run(context).await,
        JobCommand::Show { id } => show(context, id).await,
        JobCommand::Wait { id, timeout } => wait(context, &context.client()?, id, timeout).await,
        JobCommand::Cancel { which } => changes::cancel(context, which).await,
        JobCommand::Requeue { which } => changes::requeue(context, which).await,
        JobCommand::Delete(args) => changes::delete(context, args).await,
    }
}

/// Where somebody reads it, a job that waits comes with the reason; a program gets the document as it is.
async fn show(context: &Context, id: JobId) -> Result<(), Failure> {
    let client = context.client()?;
    let job = client.job(&context.domain, id).await?;
    if job.status != JobStatus::Queued || !context.out.is_table() {
        return print(context, &job);
    }
    let why = client.why_job_waits(&context.domain, id).await?;
    context.out.document(&job, |job| view::waiting(job, &why, context.now()))
}

/// Prints the job as it is in the end, and fails if it did or if it has not ended.
async fn wait(context: &Context, client: &Client, id: JobId, timeout: Duration) -> Result<(), Failure> {
    let job = client.wait_for_job(&context.domain, id, timeout).await?;
    print(context, &job)?;
    match verdict(&job, &context.domain, timeout) {
        None => Ok(()),
        Some(sentence) => Err(Failure::new(Exit::Failed, sentence)),
    }
}

/// What is wrong with how a job stands when the waiting is over.
fn verdict(job: &Job, domain: &Domain, timeout: Duration) -> Option<String> {
    let (id, status) = (job.job_id, job.status.as_str());
    match job.status {
        JobStatus::Successful => None,
        JobStatus::Failed | JobStatus::Error => {
            let why = view::reason(&job.result).map(|why| format!(": {why}"));
            Some(format!("job {id} is {status}{}", why.unwrap_or_default()))
        }
        JobStatus::Queued | JobStatus::Started => {
            let domain =
                if *domain == Domain::default() { String::new() } else { format!(" --domain {domain}") };
            let waited = span(timeout);
            Some(format!(
                "job {id} is still {status} after {waited}: `rota job wait {id}{domain}` goes on waiting"
            ))
        }
    }
}

fn print(context: &Context, job: &Job) -> Result<(), Failure> {
    context.out.document(job, |job| view::listing(job, context.now()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn verdict_on(status: JobStatus, result: &serde_json::Value, domain: &str) -> Option<String> {
        let mut job = view::tests::job();
        job.status = status;
        job.result = result.as_object().cloned().unwrap();
        verdict(&job, &domain.parse().unwrap(), Duration::from_secs(60))
    }

    #[test]
    fn a_failed_job_says_why() {
        let id = view::tests::ID;
        assert_eq!(verdict_on(JobStatus::Successful, &json!({}), "default"), None);
        let failed = verdict_on(JobStatus::Failed, &json!({"error": "no route"}), "default");
        assert_eq!(failed, Some(format!("job {id} is FAILED: no route")));
        let stopped = verdict_on(JobStatus::Failed, &json!({"cancelled": "by a person"}), "default");
        assert_eq!(stopped, Some(format!("job {id} is FAILED: cancelled by a person")));
        let silent = verdict_on(JobStatus::Error, &json!({}), "default");
        assert_eq!(silent, Some(format!("job {id} is ERROR")));
    }

    #[test]
    fn who_waited_long_enough_is_told_how_to_go_on() {
        let id = view::tests::ID;
        let queued = verdict_on(JobStatus::Queued, &json!({}), "other").unwrap();
        let expected = format!(
            "job {id} is still QUEUED after 1 min 0 s: `rota job wait {id} --domain other` goes on waiting"
        );
        assert_eq!(queued, expected);
    }
}
