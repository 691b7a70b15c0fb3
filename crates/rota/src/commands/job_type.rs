//! `rota type`: the types of jobs, and what a domain says of them.

use std::time::Duration;

use clap::{Args, Subcommand};
use comfy_table::{Cell, Table};
use rota_client::Page;
use rota_model::job_type::{Bounds, JobTypeSettings, JobTypeView, KeyLimits};
use serde_json::Value;

use super::Context;
use super::job::{BackoffArgs, millis};
use crate::arguments;
use crate::exit::Failure;
use crate::output::table::{self, optional, short, text};
use crate::output::time::span;

const LIST_EXAMPLES: &str = "\
Example:
  rota type list --output json";

const SHOW_EXAMPLES: &str = "\
Example:
  rota type show http";

const PUT_EXAMPLES: &str = r#"What is not named is left to Rota: a type is set as a whole. Under the name of a built-in type the domain narrows what may
be submitted; what the handler asks for is asked for as well. A type that no node runs is taken, and its jobs wait.

A payload is checked when it is submitted. A schema that would refuse jobs which wait in the queue is therefore refused, and
they are named; with --force it is set, and they run all the same.

Examples:
  rota type put invoice --schema '{"type": "object", "required": ["number"]}' --attempts 3 --timeout 30s
  rota type put http --schema @our-hosts.json --backoff 10s
  rota type put invoice --schema @invoice.json --force
  rota type put mail --concurrency 20 --rate 100 --key-concurrency 2 --key-rate 0.5"#;

const DELETE_EXAMPLES: &str = "\
A built-in type of that name means itself again. While jobs of the type wait and no node runs it, it is not deleted; with
--force it is, and they wait on.

Example:
  rota type delete invoice";

#[derive(Debug, Subcommand)]
pub(crate) enum TypeCommand {
    /// List the types of which jobs may be submitted, and the nodes that run them
    #[command(after_help = LIST_EXAMPLES)]
    List,
    /// Show a type: its schema, its defaults, and the nodes that run it
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        #[command(flatten)]
        which: Which,
    },
    /// Define a type of the domain, or replace what the domain says of it
    #[command(after_help = PUT_EXAMPLES)]
    Put(Box<PutArgs>),
    /// Delete what the domain says of a type
    #[command(after_help = DELETE_EXAMPLES)]
    Delete {
        #[command(flatten)]
        which: Which,
        /// Do it although jobs of the type wait that no node runs
        #[arg(long)]
        force: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Which {
    /// Name of the type
    #[arg(value_name = "TYPE")]
    kind: String,
}

#[derive(Args, Debug)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    which: Which,
    /// JSON Schema of the payload: a JSON object, @FILE, or - for the standard input [default: any object]
    #[arg(long, value_name = "JSON")]
    schema: Option<String>,
    /// How often the handler of a job is tried that does not say [default: 5]
    #[arg(long, value_name = "N")]
    attempts: Option<u32>,
    /// How long one attempt may take of a job that does not say [default: as long as it needs]
    #[arg(long, value_name = "SPAN", value_parser = arguments::span)]
    timeout: Option<Duration>,
    #[command(flatten)]
    backoff: BackoffArgs,
    #[command(flatten)]
    limits: LimitArgs,
    /// Do it although jobs that wait, or what timers make, would be refused
    #[arg(long)]
    force: bool,
}

/// How much of it happens at once and per second, in the whole cluster.
#[derive(Args, Debug)]
struct LimitArgs {
    /// How many of its jobs run at once, over all nodes [default: as many as there is room for]
    #[arg(long, value_name = "N")]
    concurrency: Option<u32>,
    /// How many of its jobs start per second, over all nodes; 0.1 for one every ten seconds [default: any number]
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// How many jobs with the same limit key run at once, over all nodes [default: any number]
    #[arg(long, value_name = "N")]
    key_concurrency: Option<u32>,
    /// How many jobs with the same limit key start per second, over all nodes [default: any number]
    #[arg(long, value_name = "N")]
    key_rate: Option<f64>,
}

impl LimitArgs {
    fn per_key(&self) -> Option<KeyLimits> {
        let (concurrency, starts_per_second) = (self.key_concurrency, self.key_rate);
        let is_given = concurrency.is_some() || starts_per_second.is_some();
        is_given.then(|| KeyLimits { concurrency, starts_per_second, ..KeyLimits::default() })
    }
}

pub(crate) async fn run(context: &Context, command: TypeCommand) -> Result<(), Failure> {
    let domain = &context.domain;
    let show = |job_type: &JobTypeView| context.out.document(job_type, listing);
    match command {
        TypeCommand::List => {
            let page = Page { items: context.client()?.job_types(domain).await?, next: None };
            context.out.list(&page, types_table)
        }
        TypeCommand::Show { which } => show(&context.client()?.job_type(domain, &which.kind).await?),
        TypeCommand::Put(args) => {
            let (kind, force) = (args.which.kind.clone(), args.force);
            let settings = args.into_settings(std::io::stdin().lock())?;
            settings.clone().into_type(domain.clone(), kind.clone())?;
            show(&context.client()?.set_job_type(domain, &kind, &settings, force).await?)
        }
        TypeCommand::Delete { which: Which { kind }, force } => {
            context.client()?.delete_job_type(domain, &kind, force).await?;
            context.out.note(&format!("What the domain {domain} said of the type {kind} is deleted."));
            Ok(())
        }
    }
}

impl PutArgs {
    fn into_settings(self, stdin: impl std::io::Read) -> Result<JobTypeSettings, Failure> {
        let schema = self.schema.map(|given| arguments::schema(&given, stdin)).transpose()?;
        Ok(JobTypeSettings {
            schema,
            attempts: self.attempts,
            backoff: self.backoff.backoff(),
            timeout_ms: self.timeout.map(millis),
            concurrency: self.limits.concurrency,
            starts_per_second: self.limits.rate,
            per_key: self.limits.per_key(),
        })
    }
}

fn types_table(types: &[JobTypeView]) -> Table {
    let head = ["type", "defined by", "schema", "attempts", "timeout", "limits", "run by"];
    table::table(head, types.iter().map(row))
}

fn row(view: &JobTypeView) -> [Cell; 7] {
    let job_type = &view.job_type;
    [
        text(&job_type.kind),
        text(defined_by(view)),
        text(if job_type.schema.is_some() { "yes" } else { "-" }),
        optional(job_type.attempts),
        optional(timeout(view)),
        optional(limits(view, "; ")),
        short(&run_by(view, ", ")),
    ]
}

fn listing(view: &JobTypeView) -> Table {
    let job_type = &view.job_type;
    let backoff = job_type.backoff.as_ref().map(|backoff| {
        let [delay, most] =
            [backoff.delay_ms, backoff.max_delay_ms].map(|ms| span(Duration::from_millis(ms)));
        format!("{delay}, {} times longer each time, {most} at most", backoff.factor)
    });
    let mut rows = vec![
        ("type", text(&job_type.kind)),
        ("defined by", text(defined_by(view))),
        ("run by", text(run_by(view, "\n"))),
        ("attempts", optional(job_type.attempts)),
        ("timeout", optional(timeout(view))),
        ("backoff", optional(backoff)),
        ("limits", optional(limits(view, "\n"))),
        ("schema", optional(job_type.schema.as_ref().map(pretty))),
    ];
    if let Some(schema) = &view.handler_schema {
        rows.push(("handler's schema", text(pretty(schema))));
    }
    table::listing(rows)
}

fn defined_by(view: &JobTypeView) -> String {
    match &view.job_type.domain {
        Some(domain) => format!("domain {domain}"),
        None => "Rota".to_owned(),
    }
}

fn timeout(view: &JobTypeView) -> Option<String> {
    view.job_type.timeout_ms.map(|ms| span(Duration::from_millis(ms)))
}

/// What it limits, in words; none if nothing.
fn limits(view: &JobTypeView, separator: &str) -> Option<String> {
    let limits = view.job_type.limits();
    let said = |Bounds { concurrency, starts_per_second }: Bounds, of: &str| {
        let at_once = concurrency.map(|count| format!("{count} at once{of}"));
        let rate = starts_per_second.map(|rate| format!("{rate} per second{of}"));
        [at_once, rate].into_iter().flatten()
    };
    let all: Vec<String> = said(limits.whole, "").chain(said(limits.per_key, " of each key")).collect();
    (!all.is_empty()).then(|| all.join(separator))
}

fn run_by(view: &JobTypeView, separator: &str) -> String {
    if view.run_by.is_empty() { "nobody: its jobs wait".to_owned() } else { view.run_by.join(separator) }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;
    use serde_json::json;

    #[test]
    fn every_flag_has_its_place_in_the_settings() {
        let line = "rota type put t --schema {\"type\":\"object\"} --attempts 3 --timeout 30s --backoff 5s \
                    --concurrency 20 --rate 100 --key-concurrency 2 --key-rate 0.5";
        let Command::Type(TypeCommand::Put(args)) = Cli::try_parse_from(line.split(' ')).unwrap().command
        else {
            panic!("{line}")
        };
        let settings = args.into_settings(std::io::empty()).unwrap();
        assert_eq!(
            serde_json::to_value(settings).unwrap(),
            json!({
                "schema": {"type": "object"}, "attempts": 3, "timeoutMs": 30_000,
                "backoff": {"delayMs": 5_000, "factor": 2, "maxDelayMs": 3_600_000},
                "concurrency": 20, "startsPerSecond": 100.0,
                "perKey": {"concurrency": 2, "startsPerSecond": 0.5},
            })
        );
    }

    #[test]
    fn limits_are_said_in_words() {
        let limited = json!({
            "domain": "default", "type": "t", "builtIn": false,
            "concurrency": 20, "startsPerSecond": 0.5, "perKey": {"concurrency": 2}
        });
        let view: JobTypeView = serde_json::from_value(limited).unwrap();
        assert_eq!(limits(&view, "; ").unwrap(), "20 at once; 0.5 per second; 2 at once of each key");
        let free: JobTypeView = serde_json::from_value(json!({"type": "t", "builtIn": true})).unwrap();
        assert_eq!(limits(&free, "; "), None);
    }

    #[test]
    fn a_type_that_nobody_runs_says_so() {
        let view = json!({"domain": "default", "type": "t", "schema": {}, "builtIn": false, "runBy": []});
        let view: JobTypeView = serde_json::from_value(view).unwrap();
        let shown = listing(&view).trim_fmt();
        assert!(shown.contains("nobody: its jobs wait") && shown.contains("domain default"), "{shown}");
        assert!(types_table(&[view]).trim_fmt().contains("nobody: its jobs wait"));
    }
}
