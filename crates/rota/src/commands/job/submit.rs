//! `rota job submit`: one job, from its flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rota_model::Extra;
use rota_model::backoff::Backoff;
use rota_model::job::submission::MAX_PRIORITY;
use rota_model::job::{NewJob, Scope, Unique};
use rota_model::time::UnixMillis;

use super::{Context, file, print, wait};
use crate::arguments::{self, When};
use crate::exit::Failure;
use crate::output;

pub(super) const EXAMPLES: &str = concat!(
    "A file holds one job per line, in the form that `POST …/jobs` takes. Lines that are refused are named, and the ",
    "others are taken; the command then exits with 2. A line without an idempotencyKey gets one that follows from the ",
    "file up to there. So the same command again, after an interruption or with more lines at the end of the file, goes ",
    "on without making any job twice; to make the jobs once more, say so with --again.\n\n",
    r#"Examples:
  rota job submit wait --payload '{"millis": 200}' --wait
  rota job submit wait --payload @payload.json --name "nightly" --priority 9
  echo '{"millis": 200}' | rota job submit wait --payload -
  rota job submit noop --run-at 2030-01-31T08:00:00Z --idempotency-key order-4711
  rota job submit noop --run-at +10m --expires +1h --attempts 3 --timeout 30s --backoff 5s
  rota job submit noop --unique invoice-4711 --unique-while unfinished --unique-for 10m
  rota job submit http --payload @call.json --limit-key customer-7
  rota job submit --file jobs.ndjson
  rota job submit --file jobs.ndjson --again 2030-02"#
);

#[derive(Args, Debug)]
pub(crate) struct SubmitArgs {
    /// Type of the job, which says what is done
    #[arg(value_name = "TYPE", required_unless_present = "file")]
    kind: Option<String>,
    /// Payload: a JSON object, @FILE, or - for the standard input
    #[arg(long, value_name = "JSON", default_value = "{}")]
    payload: String,
    /// Name of the job [default: its type]
    #[arg(long)]
    name: Option<String>,
    /// Wait until the job has ended, for 60s or as long as you say; exit with 1 if it failed
    #[arg(long, value_name = "SPAN", num_args = 0..=1, require_equals = true, default_missing_value = "60s",
        value_parser = arguments::span)]
    wait: Option<Duration>,
    /// Urgency from 0 to 9, 9 the most urgent [default: 5]
    #[arg(long, value_name = "0-9", value_parser = clap::value_parser!(u8).range(0..=i64::from(MAX_PRIORITY)))]
    priority: Option<u8>,
    /// Your name for this submission: the same name again finds the same job [default: a random one]
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    life: LifeArgs,
    #[command(flatten)]
    backoff: BackoffArgs,
    #[command(flatten)]
    unique: UniqueArgs,
    /// Share the limits that its type sets for each key with other jobs of this key
    #[arg(long, value_name = "KEY")]
    limit_key: Option<String>,
    /// Submit the jobs in this file, one JSON object per line; - for the standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kind", "payload", "name", "wait", "priority",
        "idempotency_key", "limit_key", "LifeArgs", "BackoffArgs", "UniqueArgs"])]
    file: Option<PathBuf>,
    /// Make the jobs of a file again that was sent before, under this name for the repetition
    #[arg(long, value_name = "NAME", requires = "file", conflicts_with = "kind",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    again: Option<String>,
    /// How long to go on sending a file while Rota does not answer
    #[arg(long, value_name = "SPAN", requires = "file", conflicts_with = "kind", default_value = "60s",
        value_parser = arguments::span)]
    retry_for: Duration,
}

/// When it runs, how often and how long.
#[derive(Args, Debug)]
pub(crate) struct LifeArgs {
    /// Not before this instant: RFC 3339, Unix milliseconds, or +10m from now [default: at once]
    #[arg(long, value_name = "TIME", value_parser = arguments::when)]
    run_at: Option<When>,
    /// Give it up if no node has taken it by this instant [default: never]
    #[arg(long, value_name = "TIME", value_parser = arguments::when)]
    expires: Option<When>,
    /// How often its handler is tried [default: 5]
    #[arg(long, value_name = "N")]
    attempts: Option<u32>,
    /// How long one attempt may take [default: as long as it needs]
    #[arg(long, value_name = "SPAN", value_parser = arguments::span)]
    timeout: Option<Duration>,
}

/// How long to wait between attempts.
#[derive(Args, Debug)]
pub(crate) struct BackoffArgs {
    /// How long to wait before the second attempt [default: 1s]
    #[arg(long, value_name = "SPAN", value_parser = arguments::span)]
    backoff: Option<Duration>,
    /// How many times longer each further wait is [default: 2]
    #[arg(long, value_name = "N")]
    backoff_factor: Option<u32>,
    /// How long to wait between two attempts at most [default: 1h]
    #[arg(long, value_name = "SPAN", value_parser = arguments::span)]
    backoff_max: Option<Duration>,
}

/// What keeps others like it away.
#[derive(Args, Debug)]
pub(crate) struct UniqueArgs {
    /// Make no job while another one with this key is there
    #[arg(long = "unique", value_name = "KEY")]
    key: Option<String>,
    /// How long the other is in the way: until a node takes it, until its first attempt is over, or until it has
    /// ended
    #[arg(long = "unique-while", requires = "key", value_name = "SCOPE", default_value = "unfinished",
        value_parser = arguments::scope())]
    scope: Scope,
    /// And in any case for this long after it was submitted
    #[arg(long = "unique-for", requires = "key", value_name = "SPAN", value_parser = arguments::span)]
    span: Option<Duration>,
}

pub(super) async fn run(context: &Context, args: SubmitArgs) -> Result<(), Failure> {
    if let Some(path) = &args.file {
        return file::submit(context, path, args.again.as_deref(), args.retry_for).await;
    }
    let patience = args.wait;
    let key = args.idempotency_key.clone();
    let new = args.into_job(context, std::io::stdin().lock())?;
    new.check()?;
    let client = context.client()?;
    // With a key of its own, a submission whose answer was lost can be repeated and still makes one job.
    let key = key.unwrap_or_else(|| random_key(context));
    let submitted = client.submit_job_or_find_twin(&context.domain, &new, Some(&key)).await;
    if submitted.as_ref().is_err_and(rota_client::Error::is_passing) {
        output::warn(&format!("To try again without making it twice, add {}", repeat_with(&new, &key)));
    }
    let submitted = submitted?;
    let job = &submitted.job;
    if submitted.is_twin {
        output::warn(&format!(
            "Job {} is there already as {}: nothing was made.",
            job.job_number, job.job_id
        ));
    }
    let Some(patience) = patience else { return print(context, job) };
    if !submitted.is_twin {
        context.out.note(&format!("Job {} is submitted as {}.", job.job_number, job.job_id));
    }
    wait(context, &client, job.job_id, patience).await
}

/// The flags by which a submission is the same once more: a time from now is another one by then.
fn repeat_with(job: &NewJob, key: &str) -> String {
    let mut flags = format!("--idempotency-key {key}");
    for (flag, at) in [("--run-at", job.run_at), ("--expires", job.expires_at)] {
        if let Some(UnixMillis(at)) = at {
            flags.push_str(&format!(" {flag} {at}"));
        }
    }
    flags
}

fn random_key(context: &Context) -> String {
    uuid::Builder::from_random_bytes(context.surroundings.random_bytes()).into_uuid().to_string()
}

impl SubmitArgs {
    fn into_job(self, context: &Context, stdin: impl std::io::Read) -> Result<NewJob, Failure> {
        let now = context.now();
        let kind = self.kind.unwrap_or_default();
        let payload = arguments::payload(&self.payload, stdin)?;
        Ok(NewJob {
            priority: self.priority,
            run_at: self.life.run_at.map(|when| when.seen_from(now)),
            expires_at: self.life.expires.map(|when| when.seen_from(now)),
            attempts: self.life.attempts,
            timeout_ms: self.life.timeout.map(millis),
            backoff: self.backoff.backoff(),
            unique: self.unique.into_unique(),
            limit_key: self.limit_key,
            ..NewJob::new(self.name.unwrap_or_else(|| kind.clone()), kind, payload)
        })
    }
}

impl BackoffArgs {
    /// What is not said of a backoff is as it would be without one.
    pub(crate) fn backoff(&self) -> Option<Backoff> {
        if self.backoff.is_none() && self.backoff_factor.is_none() && self.backoff_max.is_none() {
            return None;
        }
        let usual = Backoff::default();
        Some(Backoff {
            delay_ms: self.backoff.map_or(usual.delay_ms, millis),
            factor: self.backoff_factor.unwrap_or(usual.factor),
            max_delay_ms: self.backoff_max.map_or(usual.max_delay_ms, millis),
            extra: Extra::new(),
        })
    }
}

impl UniqueArgs {
    fn into_unique(self) -> Option<Unique> {
        let (scope, for_ms) = (self.scope, self.span.map(millis));
        self.key.map(|key| Unique { key, scope, for_ms })
    }
}

pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use crate::commands::job::JobCommand;
    use clap::Parser as _;
    use serde_json::{Value, json};

    fn job(line: &str) -> Value {
        let cli = Cli::try_parse_from(format!("rota job submit {line}").split(' ')).unwrap();
        let context = Context::new(cli.everywhere).unwrap();
        let Command::Job(JobCommand::Submit(args)) = cli.command else { panic!("{line}") };
        serde_json::to_value(args.into_job(&context, std::io::empty()).unwrap()).unwrap()
    }

    #[test]
    fn every_flag_has_its_place_in_the_job() {
        assert_eq!(
            job("noop"),
            json!({"jobName": "noop", "input": {"type": "noop", "payload": {}}}),
            "what is not said is left to Rota"
        );
        let all = "noop --name n --priority 9 --run-at 1000 --expires 2000 --attempts 3 --timeout 30s --backoff 5s \
                   --backoff-factor 3 --backoff-max 1m --unique k --unique-while queued --unique-for 10m \
                   --limit-key customer-7";
        let all = job(&all.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(
            all,
            json!({
                "jobName": "n", "input": {"type": "noop", "payload": {}}, "priority": 9, "runAt": 1_000,
                "attempts": 3, "backoff": {"delayMs": 5_000, "factor": 3, "maxDelayMs": 60_000},
                "timeoutMs": 30_000, "expiresAt": 2_000,
                "unique": {"key": "k", "while": "queued", "forMs": 600_000}, "limitKey": "customer-7",
            })
        );
        let constant = job("noop --backoff-factor 1");
        assert_eq!(constant["backoff"], json!({"delayMs": 1_000, "factor": 1, "maxDelayMs": 3_600_000}));
    }
}
