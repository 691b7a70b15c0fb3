//! `rota timer`: when a schedule is due. These commands ask the calendar that is built into the program: no Rota needs to run,
//! and nothing is saved.

mod instant;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use comfy_table::Table;
use jiff::Timestamp;
use rota_calendar::expression::shortened;
use rota_calendar::{Calendar, Zone};
use rota_model::check::{FieldError, Invalid};
use rota_model::timer::preview::{MAX_PREVIEW, Occurrence, USUAL_PREVIEW};
use rota_model::timer::{DstGap, DstOverlap, MAX_EXECUTIONS, Schedule};
use serde_json::json;

use super::Context;
use crate::exit::{self, Failure};
use crate::output;
use crate::output::table::{self, text};

const EXPRESSIONS: &str = "\
Schedules:
  '30 2 * * *'             minute, hour, day of month, month, day of week
  '*/15 9-17 * * MON-FRI'  steps, ranges, names; lists too: '0 9 1,15 * *'
  '0 9 L * *'              the last day of the month; 15W, LW, 5#2 and 5L too
  '*/10 * * * * *'         six fields begin with the second
  @daily, '@every 90s', '@at 2030-01-31T08:00'";

const PREVIEW_EXAMPLES: &str = "\
No Rota needs to run, and nothing is saved.

Examples:
  rota timer preview '30 2 * * *' --zone Europe/Berlin --from 2026-10-24 --count 5
  rota timer preview '0 9 * * 1-5' --zone America/New_York --output ndjson
  rota timer preview '30 2 * * *' --zone Europe/Berlin --from 2027-03-27 --dst-gap skip";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  rota timer explain '0 9 * * 1-5' --zone Europe/Berlin";

#[derive(Debug, Subcommand)]
pub(crate) enum TimerCommand {
    /// List the next instants of a schedule, and say which of them a change of the clocks touched
    #[command(after_help = format!("{EXPRESSIONS}\n\n{PREVIEW_EXAMPLES}"))]
    Preview(PreviewArgs),
    /// Tell in plain words when a schedule is due
    #[command(after_help = format!("{EXPRESSIONS}\n\n{EXPLAIN_EXAMPLES}"))]
    Explain(ScheduleArgs),
}

/// A schedule.
#[derive(Args, Debug)]
pub(crate) struct ScheduleArgs {
    /// When it is due
    #[arg(value_name = "CRON")]
    cron: String,
    /// The time zone whose local time is meant
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    zone: String,
    /// What becomes of a local time that the clocks jump over: due right after, or left out
    #[arg(long, value_name = "POLICY", default_value = DstGap::Next.as_str(), value_parser = gap())]
    dst_gap: DstGap,
    /// What becomes of a local time that the clocks show twice: due the first time, the second, or both
    #[arg(long, value_name = "POLICY", default_value = DstOverlap::First.as_str(), value_parser = overlap())]
    dst_overlap: DstOverlap,
    /// Nothing is due before this: a date or time in the zone, RFC 3339 or Unix milliseconds
    #[arg(long, value_name = "TIME")]
    start: Option<String>,
    /// Nothing is due at this time or after it
    #[arg(long, value_name = "TIME")]
    stop: Option<String>,
    /// How many instants may fire
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_EXECUTIONS)))]
    max_executions: Option<u32>,
}

#[derive(Args, Debug)]
pub(crate) struct PreviewArgs {
    #[command(flatten)]
    schedule: ScheduleArgs,
    /// The first instant that may be listed: a date or time in the zone, RFC 3339 or Unix milliseconds [default: now]
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// How many instants to list
    #[arg(long, value_name = "N", default_value_t = USUAL_PREVIEW,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PREVIEW)))]
    count: u32,
}

fn gap() -> impl TypedValueParser<Value = DstGap> {
    words(DstGap::ALL, DstGap::as_str)
}

fn overlap() -> impl TypedValueParser<Value = DstOverlap> {
    words(DstOverlap::ALL, DstOverlap::as_str)
}

fn words<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    word: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let named = move |name: String| all.iter().copied().find(|one| word(*one) == name);
    PossibleValuesParser::new(all.iter().map(|one| word(*one)))
        .try_map(move |name| named(name).ok_or("is no such policy"))
}

pub(crate) fn run(context: &Context, command: TimerCommand) -> Result<(), Failure> {
    match command {
        TimerCommand::Preview(args) => preview(context, args),
        TimerCommand::Explain(args) => explain(context, args),
    }
}

fn preview(context: &Context, args: PreviewArgs) -> Result<(), Failure> {
    let zone = zone(&args.schedule.zone)?;
    let from = args.from.as_deref().map(|from| instant("--from", from, &zone)).transpose()?;
    let calendar = calendar(args.schedule, &zone)?;
    let from = from.unwrap_or_else(|| context.now().to_date());
    let occurrences = calendar.preview(from, args.count);
    if let Some(why) = calendar.why_never(from) {
        output::warn(&why);
    }
    if context.out.takes_one_at_a_time() {
        return occurrences.iter().try_for_each(|one| context.out.line(one, |_, _| String::new()));
    }
    context.out.document(&occurrences, |occurrences| occurrences_table(occurrences))
}

fn explain(context: &Context, args: ScheduleArgs) -> Result<(), Failure> {
    let (cron, zone) = (args.cron.clone(), zone(&args.zone)?);
    let explanation = calendar(args, &zone)?.explain(context.now().to_date());
    let document = json!({"cron": cron, "zone": zone.name(), "explanation": explanation});
    context.out.text(&explanation, &document)
}

fn zone(name: &str) -> Result<Zone, Failure> {
    Zone::named(name).map_err(|unknown| Failure::refused(format!("--zone: {unknown}")))
}

fn calendar(args: ScheduleArgs, zone: &Zone) -> Result<Calendar, Failure> {
    let mut schedule = Schedule::new(args.cron);
    schedule.time_zone = zone.name().to_owned();
    schedule.dst_gap = args.dst_gap;
    schedule.dst_overlap = args.dst_overlap;
    schedule.start_time = args.start.map(|start| instant("--start", &start, zone)).transpose()?;
    schedule.stop_time = args.stop.map(|stop| instant("--stop", &stop, zone)).transpose()?;
    schedule.max_executions = args.max_executions;
    Calendar::of(&schedule).map_err(|invalid| refused(&schedule.cron, invalid))
}

fn instant(flag: &str, given: &str, zone: &Zone) -> Result<Timestamp, Failure> {
    instant::instant(given, zone).map_err(|refused| Failure::refused(format!("{flag}: {refused}")))
}

/// On a command line a flag is the place.
fn refused(cron: &str, Invalid(errors): Invalid) -> Failure {
    let flag = |pointer: &str| match pointer {
        "/schedule/cron" => format!("'{}'", shortened(cron.trim())),
        "/schedule/time_zone" => "--zone".to_owned(),
        "/schedule/start_time" => "--start".to_owned(),
        "/schedule/stop_time" => "--stop".to_owned(),
        other => other.to_owned(),
    };
    let errors: Vec<_> = errors
        .into_iter()
        .map(|FieldError { pointer, detail }| FieldError { pointer: flag(&pointer), detail })
        .collect();
    Failure::refused(format!("this schedule is refused:\n  {}", exit::details(&errors, "\n  ")))
}

fn occurrences_table(occurrences: &[Occurrence]) -> Table {
    let rows = occurrences.iter().map(|occurrence| {
        let note = occurrence.note.as_deref().unwrap_or_default();
        [text(&occurrence.local), text(occurrence.at), text(&occurrence.zone), text(note)]
    });
    table::table(["local", "utc", "zone", "note"], rows)
}
