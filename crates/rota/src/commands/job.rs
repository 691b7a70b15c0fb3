//! `rota job`: submit jobs, look at them, wait for their end. How they are shown stands in [`view`].

mod view;

use std::time::Duration;

use clap::{Args, Subcommand};
use rota_client::{Client, JobFilter, Page};
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::submission::MAX_PRIORITY;
use rota_model::job::{Job, JobStatus, NewJob};
use rota_model::time::UnixMillis;

use super::Context;
use crate::exit::{Exit, Failure};
use crate::output::time::span;
use crate::{arguments, output};

/// How many jobs a page holds when all are wanted.
const LARGEST_PAGE: u32 = 1_000;

const SUBMIT_EXAMPLES: &str = r#"Examples:
  rota job submit wait --payload '{"millis": 200}' --wait
  rota job submit wait --payload @payload.json --name "nightly" --priority 9
  echo '{"millis": 200}' | rota job submit wait --payload -
  rota job submit wait --run-at 2030-01-31T08:00:00Z --idempotency-key order-4711"#;

const LIST_EXAMPLES: &str = r#"Examples:
  rota job list --status FAILED --text "disk full"
  rota job list --text "night*" --all --output ndjson"#;

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Submit a job; when the command returns, the job is on disk
    #[command(after_help = SUBMIT_EXAMPLES)]
    Submit(SubmitArgs),
    /// Show a job
    Show {
        /// Id of the job
        id: JobId,
        #[command(flatten)]
        patience: Patience,
    },
    /// List jobs, the newest first
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
}

#[derive(Args, Debug)]
pub(crate) struct SubmitArgs {
    /// Type of the job, which says what is done
    #[arg(value_name = "TYPE")]
    kind: String,
    /// Payload: a JSON object, @FILE, or - for the standard input
    #[arg(long, value_name = "JSON", default_value = "{}")]
    payload: String,
    /// Name of the job [default: its type]
    #[arg(long)]
    name: Option<String>,
    /// Urgency from 0 to 9, 9 the most urgent [default: 5]
    #[arg(long, value_name = "0-9", value_parser = clap::value_parser!(u8).range(0..=i64::from(MAX_PRIORITY)))]
    priority: Option<u8>,
    /// Not before this instant: RFC 3339 or Unix milliseconds [default: at once]
    #[arg(long, value_name = "TIME", value_parser = arguments::instant)]
    run_at: Option<UnixMillis>,
    /// Your name for this submission: the same name again finds the same job [default: a random one]
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    patience: Patience,
}

#[derive(Args, Debug)]
pub(crate) struct Patience {
    /// Wait until the job has ended; exit with 1 if it failed
    #[arg(long)]
    wait: bool,
    /// How long to wait at most
    #[arg(long, value_name = "SPAN", default_value = "60s", requires = "wait", value_parser = arguments::span)]
    timeout: Duration,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only jobs of this status
    #[arg(long, value_parser = arguments::status(), ignore_case = true)]
    status: Option<JobStatus>,
    /// Only jobs of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only jobs of this name
    #[arg(long)]
    name: Option<String>,
    /// Only jobs with these words in their name or error; word* is a beginning. New words are found after about a second
    #[arg(long, value_name = "WORDS")]
    text: Option<String>,
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

pub(crate) async fn run(context: &Context, command: JobCommand) -> Result<(), Failure> {
    match command {
        JobCommand::Submit(args) => submit(context, args).await,
        JobCommand::Show { id, patience } => show(context, id, &patience).await,
        JobCommand::List(args) if args.all => list_all(context, args.into_filter()).await,
        JobCommand::List(args) => list(context, args.into_filter()).await,
    }
}

async fn submit(context: &Context, args: SubmitArgs) -> Result<(), Failure> {
    let SubmitArgs { kind, payload, name, priority, run_at, idempotency_key, patience } = args;
    let payload = arguments::payload(&payload, std::io::stdin().lock())?;
    let new = NewJob { priority, run_at, ..NewJob::new(name.unwrap_or_else(|| kind.clone()), kind, payload) };
    new.check()?;
    let client = context.client()?;
    // With a key of its own, a submission whose answer was lost can be repeated and still makes one job.
    let key = idempotency_key.unwrap_or_else(|| random_key(context));
    let job = client.submit_job(&context.domain, &new, Some(&key)).await?;
    if !patience.wait {
        return print(context, &job);
    }
    context.out.note(&format!("Job {} is submitted as {}.", job.job_number, job.job_id));
    wait(context, &client, job.job_id, patience.timeout).await
}

fn random_key(context: &Context) -> String {
    uuid::Builder::from_random_bytes(context.surroundings.random_bytes()).into_uuid().to_string()
}

async fn show(context: &Context, id: JobId, patience: &Patience) -> Result<(), Failure> {
    let client = context.client()?;
    if patience.wait {
        return wait(context, &client, id, patience.timeout).await;
    }
    print(context, &client.job(&context.domain, id).await?)
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
            let why = ["error", "cancelled"].iter().find_map(|field| job.result.get(*field)?.as_str());
            Some(why.map_or_else(
                || format!("job {id} is {status}"),
                |why| format!("job {id} is {status}: {why}"),
            ))
        }
        JobStatus::Queued | JobStatus::Started => {
            let domain =
                if *domain == Domain::default() { String::new() } else { format!(" --domain {domain}") };
            let waited = span(timeout);
            Some(format!(
                "job {id} is still {status} after {waited}: `rota job show {id} --wait{domain}` goes on waiting"
            ))
        }
    }
}

fn print(context: &Context, job: &Job) -> Result<(), Failure> {
    context.out.document(job, |job| view::listing(job, context.now()))
}

impl ListArgs {
    fn into_filter(self) -> JobFilter {
        JobFilter {
            status: self.status,
            kind: self.kind,
            name: self.name,
            text: self.text,
            limit: Some(if self.all { LARGEST_PAGE } else { self.limit }),
            cursor: self.cursor,
            ..JobFilter::default()
        }
    }
}

async fn list(context: &Context, filter: JobFilter) -> Result<(), Failure> {
    let page = context.client()?.jobs(&context.domain, &filter).await?;
    print_page(context, &page)?;
    if let Some(next) = &page.next {
        output::warn(&format!("There are more: --cursor {next} shows the next page, --all every job."));
    }
    Ok(())
}

async fn list_all(context: &Context, mut filter: JobFilter) -> Result<(), Failure> {
    let client = context.client()?;
    let mut gathered = Page { items: Vec::new(), next: None };
    loop {
        let page = client.jobs(&context.domain, &filter).await?;
        filter.cursor.clone_from(&page.next);
        if context.out.takes_one_at_a_time() {
            print_page(context, &page)?;
        } else {
            gathered.items.extend(page.items);
        }
        if filter.cursor.is_none() {
            break;
        }
    }
    print_page(context, &gathered)
}

fn print_page(context: &Context, page: &Page<Job>) -> Result<(), Failure> {
    context.out.list(page, |jobs| view::table(jobs, context.now()))
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
        let silent = verdict_on(JobStatus::Error, &json!({}), "default");
        assert_eq!(silent, Some(format!("job {id} is ERROR")));
    }

    #[test]
    fn who_waited_long_enough_is_told_how_to_go_on() {
        let id = view::tests::ID;
        let queued = verdict_on(JobStatus::Queued, &json!({}), "other").unwrap();
        let expected = format!(
            "job {id} is still QUEUED after 1 min 0 s: `rota job show {id} --wait --domain other` goes on waiting"
        );
        assert_eq!(queued, expected);
    }
}
