//! How jobs are shown to people: many as a table, one as a listing.

use std::time::Duration;

use comfy_table::{Cell, Table};
use rota_model::job::{HistoryEntry, Job, Scope, Unique, Waiting, WaitingReason};
use rota_model::time::UnixMillis;
use serde_json::{Map, Value};

use crate::output::table::{self, short, text};
use crate::output::time::{date, span, when};

pub(super) fn table(jobs: &[Job], now: UnixMillis) -> Table {
    let names = ["number", "id", "name", "type", "status", "created", "took"];
    table::table(names, jobs.iter().map(|job| row(job, now)))
}

fn row(job: &Job, now: UnixMillis) -> [Cell; 7] {
    [
        text(job.job_number),
        text(job.job_id),
        short(&job.job_name),
        short(&job.input.kind),
        table::status(job.status.as_str()),
        text(when(job.metadata.created_at, now)),
        text(took(job, now).unwrap_or_else(|| "-".to_owned())),
    ]
}

/// Everything that a person asks about one job; what does not apply to it is left out.
pub(super) fn listing(job: &Job, now: UnixMillis) -> Table {
    listed(job, None, now)
}

/// The same of a job that waits, with the reason.
pub(super) fn waiting(job: &Job, why: &Waiting, now: UnixMillis) -> Table {
    listed(job, Some(why), now)
}

fn listed(job: &Job, why: Option<&Waiting>, now: UnixMillis) -> Table {
    let at = |instant: UnixMillis| text(when(instant, now));
    let progress = job.progress.as_ref().map(|progress| match &progress.message {
        Some(message) => format!("{} %, {message}", progress.percent),
        None => format!("{} %", progress.percent),
    });
    let rows = [
        ("number", Some(text(job.job_number))),
        ("id", Some(text(job.job_id))),
        ("name", Some(text(&job.job_name))),
        ("type", Some(text(&job.input.kind))),
        ("status", Some(table::status(job.status.as_str()))),
        ("waits", why.filter(|why| why.reason != WaitingReason::NotWaiting).map(|why| text(&why.detail))),
        ("domain", Some(text(&job.domain))),
        ("priority", Some(text(job.priority))),
        ("attempt", Some(text(format!("{} of {}", job.attempt, job.attempts)))),
        ("lost", (job.lost > 0).then(|| text(job.lost))),
        ("created", Some(at(job.metadata.created_at))),
        ("due", (job.run_at != job.metadata.created_at).then(|| at(job.run_at))),
        ("expires", job.expires_at.map(at)),
        ("timeout", job.timeout_ms.map(|millis| text(span(Duration::from_millis(millis))))),
        ("unique", job.unique.as_ref().map(unique)),
        ("limit key", job.limit_key.as_ref().map(text)),
        ("started", job.started_at.map(at)),
        ("finished", job.finished_at.map(at)),
        ("took", took(job, now).map(text)),
        ("node", job.owner_node.map(text)),
        ("progress", progress.map(text)),
        ("payload", pretty(&job.input.payload)),
        ("result", pretty(&job.result)),
        ("history", history(job)),
    ];
    table::listing(rows.into_iter().filter_map(|(name, value)| Some((name, value?))))
}

/// How long the last run took, or takes so far.
fn took(job: &Job, now: UnixMillis) -> Option<String> {
    let started = job.started_at?;
    Some(match job.finished_at {
        Some(finished) => span(finished.since(started)),
        None => format!("{} so far", span(now.since(started))),
    })
}

fn unique(unique: &Unique) -> Cell {
    let scope = match unique.scope {
        Scope::Queued => "queued",
        Scope::Running => "running",
        Scope::Unfinished => "unfinished",
    };
    let least = unique.for_ms.map(|millis| format!(", {} at least", span(Duration::from_millis(millis))));
    text(format!("{} while {scope}{}", unique.key, least.unwrap_or_default()))
}

/// What happened before, one line each.
fn history(job: &Job) -> Option<Cell> {
    let line = |entry: &HistoryEntry| {
        let event = serde_json::to_value(entry.event).unwrap_or_default();
        let why = reason(&entry.result).map(|why| format!(": {why}")).unwrap_or_default();
        format!("{} {}{why}", date(entry.at), event.as_str().unwrap_or_default())
    };
    let lines: Vec<_> = job.history.iter().map(line).collect();
    (!lines.is_empty()).then(|| text(lines.join("\n")))
}

/// Why a job ended as it did, where its result says so.
pub(super) fn reason(result: &Map<String, Value>) -> Option<String> {
    let said = |field: &str| result.get(field)?.as_str();
    said("error").map(str::to_owned).or_else(|| said("cancelled").map(|why| format!("cancelled {why}")))
}

fn pretty(fields: &Map<String, Value>) -> Option<Cell> {
    (!fields.is_empty()).then(|| text(serde_json::to_string_pretty(fields).unwrap_or_default()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use rota_model::job::JobStatus;
    use serde_json::json;

    pub(in crate::commands::job) const ID: &str = "018f0000-0000-7000-8000-000000000001";
    const NOW: UnixMillis = UnixMillis(1_893_456_000_000);

    pub(in crate::commands::job) fn job() -> Job {
        serde_json::from_value(json!({
            "jobName": "first job", "jobId": ID, "jobNumber": 17, "status": "SUCCESSFUL",
            "input": {"type": "wait", "payload": {"millis": 200}}, "result": {"waited": {"millis": 201}},
            "runAt": NOW.0 - 3_000, "startedAt": NOW.0 - 2_900, "finishedAt": NOW.0 - 2_697,
            "metadata": {"createdAt": NOW.0 - 3_000, "updatedAt": NOW.0, "updatedBy": ID},
        }))
        .unwrap()
    }

    #[test]
    fn jobs_stand_in_columns() {
        let mut waiting = job();
        (waiting.status, waiting.job_number, waiting.started_at) = (JobStatus::Queued, 18, None);
        let drawn = table(&[waiting, job()], NOW).trim_fmt();
        let expected = "\
NUMBER  ID                                    NAME       TYPE  STATUS      CREATED                         TOOK
18      018f0000-0000-7000-8000-000000000001  first job  wait  QUEUED      2029-12-31T23:59:57Z (3 s ago)  -
17      018f0000-0000-7000-8000-000000000001  first job  wait  SUCCESSFUL  2029-12-31T23:59:57Z (3 s ago)  203 ms";
        assert_eq!(drawn, expected);
    }

    #[test]
    fn one_job_is_listed_with_its_result() {
        let expected = "\
number    17
id        018f0000-0000-7000-8000-000000000001
name      first job
type      wait
status    SUCCESSFUL
domain    default
priority  5
attempt   1 of 1
created   2029-12-31T23:59:57Z (3 s ago)
started   2029-12-31T23:59:57Z (2 s ago)
finished  2029-12-31T23:59:57Z (2 s ago)
took      203 ms
payload   {
            \"millis\": 200
          }
result    {
            \"waited\": {
              \"millis\": 201
            }
          }";
        assert_eq!(listing(&job(), NOW).trim_fmt(), expected);
    }

    #[test]
    fn what_was_asked_of_a_job_and_what_happened_is_shown() {
        let mut queued = job();
        (queued.status, queued.started_at, queued.attempt, queued.attempts) = (JobStatus::Queued, None, 2, 3);
        (queued.timeout_ms, queued.expires_at) = (Some(30_000), Some(NOW.plus(Duration::from_secs(60))));
        queued.unique =
            serde_json::from_value(json!({"key": "k", "while": "queued", "forMs": 600_000})).unwrap();
        queued.history = serde_json::from_value(json!([
            {"at": NOW.0 - 1_000, "event": "RETRY", "epoch": 1, "result": {"error": "no route"}},
            {"at": NOW.0, "event": "LOSE", "epoch": 2},
        ]))
        .unwrap();
        let drawn = listing(&queued, NOW).trim_fmt();
        for line in [
            "attempt   2 of 3",
            "expires   2030-01-01T00:01:00Z (in 1 min)",
            "timeout   30.0 s",
            "unique    k while queued, 10 min 0 s at least",
            "history   2029-12-31T23:59:59Z RETRY: no route\n          2030-01-01T00:00:00Z LOSE",
        ] {
            assert!(drawn.contains(line), "{line} is missing in:\n{drawn}");
        }
    }

    #[test]
    fn a_job_that_waits_says_why() {
        let mut queued = job();
        (queued.status, queued.started_at) = (JobStatus::Queued, None);
        let why: Waiting =
            serde_json::from_value(json!({"reason": "NO_NODE", "detail": "No node that lives runs wait."}))
                .unwrap();
        let drawn = waiting(&queued, &why, NOW).trim_fmt();
        assert!(drawn.contains("status    QUEUED\nwaits     No node that lives runs wait."), "{drawn}");
    }

    #[test]
    fn a_running_job_shows_how_far_it_is() {
        let mut running = job();
        (running.status, running.finished_at) = (JobStatus::Started, None);
        running.progress = serde_json::from_value(json!({"percent": 40.0, "message": "halfway"})).unwrap();
        let drawn = listing(&running, NOW).trim_fmt();
        assert!(
            drawn.contains("took      2.9 s so far") && drawn.contains("progress  40 %, halfway"),
            "{drawn}"
        );
    }
}
