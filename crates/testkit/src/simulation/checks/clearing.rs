//! That what is kept no longer goes, and nothing else: no job that has not ended, or lately, or that keeps others away; no line
//! and no bucket before its time.
//!
//! How old something is, a node tells by the clock that it started with: it may be as far off as that clock was.

use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::job::{Job, JobStatus};
use rota_model::keep::Keep;
use rota_model::log::Log;
use rota_model::time::UnixMillis;
use rota_store::collection::{LOGS, Retention};

use super::Finding;
use crate::faults::caller::Caller;
use crate::simulation::attic::METRICS_KEPT;
use crate::simulation::record::{Change, Document, Kind, Task, What};
use crate::simulation::story::{JobStep, Story};
use crate::simulation::trace::name;

/// For so long everybody who is up at the end was up, and more than a round takes.
const CLEARED: Duration = Duration::from_secs(70);

/// Whether a node did something of its own accord, and not for a person.
fn is_own(story: &Story<'_>, caller: Option<Caller>) -> bool {
    let call = caller.and_then(|caller| story.calls.get(&caller));
    call.is_some_and(|call| call.task != Task::Request)
}

/// The latest that it can be for the node that made a call.
fn latest(story: &Story<'_>, caller: Option<Caller>, at: Duration) -> UnixMillis {
    let lived = caller.and_then(|caller| story.lives.get(&caller.life));
    let ahead_ms = lived.map_or(0, |lived| lived.most_ahead_ms(at)).max(0);
    UnixMillis(Story::wall(at).0 + ahead_ms)
}

fn ended(job: &Job) -> UnixMillis {
    job.finished_at.unwrap_or(job.metadata.updated_at)
}

fn kept_jobs(story: &Story<'_>, domain: &Domain) -> Option<Keep> {
    story.tenants.get(domain).and_then(|tenant| tenant.keep_jobs)
}

/// What there is to be said against the going of a job.
fn is_too_early(story: &Story<'_>, step: &JobStep<'_>) -> Option<&'static str> {
    let job = step.before?;
    let now = latest(story, step.caller, step.at);
    let before = kept_jobs(story, &job.domain).and_then(|kept| kept.before(now));
    match before {
        None => Some("though its tenant keeps jobs for ever"),
        _ if !job.status.is_terminal() => Some("though it has not ended"),
        Some(before) if ended(job) >= before => Some("before its time"),
        _ if job.is_in_scope(now) => Some("though it keeps others away"),
        Some(_) => None,
    }
}

/// Whatever goes by itself has ended for as long as its tenant keeps it, and keeps nobody away.
pub fn only_jobs_that_are_over_go(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (id, steps) in &story.jobs {
        let gone = steps.iter().filter(|step| step.kind == Kind::Deleted && is_own(story, step.caller));
        for (step, why) in gone.filter_map(|step| Some((step, is_too_early(story, step)?))) {
            found.push((step.at, format!("{} goes {why}", name(story, *id))));
        }
    }
    found
}

fn kept_lines(story: &Story<'_>, line: &Log) -> Keep {
    let by_default = match LOGS.kept {
        Retention::ForEver => Keep::Forever,
        Retention::For { span, .. } => Keep::For(span),
    };
    let tenant = line.domain.as_ref().and_then(|domain| story.tenants.get(domain));
    tenant.and_then(|tenant| tenant.keep_logs).unwrap_or(by_default)
}

/// When something that goes came to be, and how long it is kept.
fn made_and_kept(story: &Story<'_>, change: &Change) -> Option<(UnixMillis, Keep)> {
    if change.kind != Kind::Deleted {
        return None;
    }
    match &change.document {
        Document::Line { before: Some(line), .. } => {
            Some((line.metadata.created_at, kept_lines(story, line)))
        }
        Document::Bucket { before: Some(bucket), .. } => Some((bucket.bucket_start.0, METRICS_KEPT)),
        _ => None,
    }
}

/// Lines and buckets go when they are old enough, and not sooner.
pub fn only_what_is_old_goes(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for entry in story.entries {
        let What::Landed(caller, change) = &entry.what else { continue };
        let Some((made, kept)) = made_and_kept(story, change) else { continue };
        let is_old = kept.before(latest(story, *caller, entry.at)).is_some_and(|before| made < before);
        if !is_old {
            let age = Story::wall(entry.at).since(made).as_secs();
            found.push((entry.at, format!("a line or bucket goes that is {age}s old, and kept: {kept}")));
        }
    }
    found
}

/// What was over before anybody lived, and nobody touched since, is gone when all was calm for long enough.
pub fn what_is_over_goes(story: &Story<'_>) -> Vec<Finding> {
    if story.tenants.is_empty() || story.end < story.calm + CLEARED {
        return Vec::new();
    }
    let is_over = |job: &&Job| {
        let before = kept_jobs(story, &job.domain).and_then(|kept| kept.before(Story::wall(Duration::ZERO)));
        let farthest = story.lives.values().flat_map(|lived| &lived.off_by_ms).map(|(_, off)| -off).max();
        let before = before.map(|before| UnixMillis(before.0 - farthest.unwrap_or(0).max(0)));
        job.status == JobStatus::Successful && before.is_some_and(|before| ended(job) < before)
    };
    let steps = story.jobs.values().filter_map(|steps| match steps.as_slice() {
        [only] => only.after,
        _ => None,
    });
    let left = steps.filter(is_over).filter(|job| job.unique.is_none());
    left.map(|job| (story.end, format!("{} is over, and is still there", name(story, job.job_id)))).collect()
}
