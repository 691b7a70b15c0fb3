//! What costs an attempt, what ends a job, and that no result is forgotten.

use std::collections::BTreeSet;
use std::time::Duration;

use rota_model::job::lifecycle::MAX_LOST;
use rota_model::job::{Job, JobStatus};
use rota_model::time::UnixMillis;

use super::Finding;
use super::leases::LEASE;
use crate::simulation::record::{Ending, What, Wish};
use crate::simulation::story::{JobStep, Run, Story};
use crate::simulation::trace::name;

/// Whether a handler failed, so that it may be tried again.
fn failed(run: &Run) -> bool {
    matches!(run.ended, Some((_, _, Ending::Failed | Ending::Panicked | Ending::FailedForGood)))
}

/// Whether a handler had taken as long as it may.
fn timed_out(run: &Run, job: &Job, at: Duration) -> bool {
    let until = run.ended.map_or(at, |(_, ended, _)| ended.min(at));
    job.timeout_ms.is_some_and(|limit| until.saturating_sub(run.begun) >= Duration::from_millis(limit))
}

/// An attempt is over only where a handler failed or took too long: the death of a node costs none.
pub fn only_failures_cost_attempts(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (id, steps) in &story.jobs {
        for step in steps {
            let Some((before, after)) = step.before.zip(step.after) else { continue };
            if after.attempt <= before.attempt {
                continue;
            }
            let is_one_more = after.attempt == before.attempt + 1;
            let mut runs = story.runs_of(*id, before.epoch).filter(|run| run.nth < step.nth);
            if !is_one_more || !runs.any(|run| failed(run) || timed_out(run, before, step.at)) {
                let (from, to) = (before.attempt, after.attempt);
                let what = format!("{} goes from attempt {from} to {to} without a failure", name(story, *id));
                found.push((step.at, what));
            }
        }
    }
    found
}

pub fn every_bad_end_has_its_reason(story: &Story<'_>) -> Vec<Finding> {
    let mut cancels = BTreeSet::new();
    for (nth, entry) in story.entries.iter().enumerate() {
        if let What::Asked(.., Wish::Cancel(job)) = &entry.what {
            cancels.insert((*job, nth));
        }
    }
    let mut found = Vec::new();
    for (id, steps) in &story.jobs {
        for step in steps {
            let Some((before, after)) = step.before.zip(step.after) else { continue };
            if before.status.is_terminal() {
                continue;
            }
            let has_reason = match after.status {
                JobStatus::Failed if after.result.contains_key("cancelled") => {
                    cancels.range((*id, 0)..(*id, step.nth)).next().is_some()
                }
                JobStatus::Failed => is_out_of_attempts(story, step, before),
                JobStatus::Error => may_be_given_up(story, step, before, after),
                JobStatus::Queued | JobStatus::Started | JobStatus::Successful => true,
            };
            if !has_reason {
                let what = format!("{} ends as {} without a reason", name(story, *id), after.status.as_str());
                found.push((step.at, what));
            }
        }
    }
    found
}

fn is_out_of_attempts(story: &Story<'_>, step: &JobStep<'_>, before: &Job) -> bool {
    let was_last = before.attempt >= before.attempts;
    let for_good = |run: &Run| matches!(run.ended, Some((_, _, Ending::FailedForGood)));
    let mut runs = story.runs_of(before.job_id, before.epoch).filter(|run| run.nth < step.nth);
    runs.any(|run| for_good(run) || (was_last && failed(run)))
}

fn may_be_given_up(story: &Story<'_>, step: &JobStep<'_>, before: &Job, after: &Job) -> bool {
    let was_last = before.attempt >= before.attempts;
    let mut runs = story.runs_of(before.job_id, before.epoch).filter(|run| run.nth < step.nth);
    let took_too_long = was_last && runs.any(|run| timed_out(run, before, step.at));
    let lived = step.caller.and_then(|caller| story.lives.get(&caller.life));
    let ahead_ms = lived.map_or(0, |lived| lived.most_ahead_ms(step.at));
    let latest = Story::wall(step.at).0 + ahead_ms;
    // Whoever has begun once does not expire.
    let has_begun = story.runs.iter().any(|run| run.work.job == before.job_id && run.nth < step.nth);
    let is_expired = !has_begun && before.expires_at.is_some_and(|at| at.0 <= latest);
    took_too_long || is_expired || after.lost >= MAX_LOST
}

/// A job that no handler began with before it expired is begun with by none, however often it was claimed and given back.
pub fn nothing_begins_too_late(story: &Story<'_>) -> Vec<Finding> {
    let (mut found, mut begun) = (Vec::new(), BTreeSet::new());
    for run in &story.runs {
        let is_first = begun.insert(run.work.job);
        let Some((_, claimed)) = story.claim(run.work.job, run.work.epoch).filter(|_| is_first) else {
            continue;
        };
        let ahead_ms = story.lives.get(&run.work.life).map_or(0, |lived| lived.least_ahead_ms(run.begun));
        if claimed.is_expired(UnixMillis(Story::wall(run.begun).0 + ahead_ms)) {
            found.push((run.begun, format!("{} begins after it expired", name(story, run.work.job))));
        }
    }
    found
}

/// A handler that ended well does not run again, unless its node was kept from writing that down.
pub fn no_result_is_forgotten(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for run in &story.runs {
        let Some((_, ended, Ending::Succeeded)) = run.ended else { continue };
        let (id, epoch) = (run.work.job, run.work.epoch);
        let Some((_, claimed)) = story.claim(id, epoch) else { continue };
        let Some(steps) = story.jobs.get(&id) else { continue };
        let over = steps.iter().find(|step| step.ends_claim(epoch));
        let Some(over) = over.filter(|over| over.at >= ended) else { continue };
        let Some(after) = over.after.filter(|after| after.status == JobStatus::Queued) else { continue };
        let lived = story.lives.get(&run.work.life);
        // Who finished only after its time was up did not finish in time.
        let was_kept = timed_out(run, claimed, ended)
            || lived.is_none_or(|lived| lived.is_troubled(ended, over.at))
            || claimed.owner.is_none_or(|owner| story.loses_lease(owner, ended, over.at, LEASE));
        if !was_kept && after.epoch == epoch {
            let at = over.at.as_secs_f64();
            let what =
                format!("{} ended well under epoch {epoch} and is queued again at {at:.3}s", name(story, id));
            found.push((ended, what));
        }
    }
    found
}
