//! Whatever was acknowledged comes to its end, and nothing is left behind.

use std::collections::BTreeSet;
use std::time::Duration;

use rota_model::ids::JobId;
use rota_model::job::JobStatus;

use super::{Finding, limits};
use crate::simulation::record::{Accepted, Kind, Reply, What, Wish};
use crate::simulation::story::{JobStep, Run, Story};
use crate::simulation::trace::name;

/// How long before the end something must have happened for somebody to have had the time to notice.
const NOTICED: Duration = Duration::from_secs(14);

/// None vanishes, unless a person asked for it.
pub fn acknowledged_jobs_are_there(story: &Story<'_>) -> Vec<Finding> {
    let mut wishes: Vec<(usize, &Wish)> = Vec::new();
    let mut known: BTreeSet<JobId> = BTreeSet::new();
    for (nth, entry) in story.entries.iter().enumerate() {
        match &entry.what {
            What::Asked(.., wish) => wishes.push((nth, wish)),
            What::Told(_, Reply::Submitted(answers)) => {
                known.extend(answers.iter().filter_map(Accepted::job));
            }
            _ => {}
        }
    }
    let was_asked = |step: &JobStep<'_>, id: JobId| {
        wishes.iter().take_while(|(nth, _)| *nth < step.nth).any(|(_, wish)| match wish {
            Wish::Delete(job) => *job == id,
            Wish::DeleteMatching(domain) => step.before.is_some_and(|job| job.domain == *domain),
            _ => false,
        })
    };
    let mut found = Vec::new();
    for id in known {
        let last = story.jobs.get(&id).and_then(|steps| steps.last());
        let is_there = last.is_some_and(|step| step.after.is_some());
        let mut steps = story.jobs.get(&id).into_iter().flatten();
        let was_deleted = steps.any(|step| step.kind == Kind::Deleted && was_asked(step, id));
        if !is_there && !was_deleted {
            let at = last.map_or(story.end, |step| step.at);
            found.push((at, format!("{} was acknowledged and is not there", name(story, id))));
        }
    }
    found
}

/// At the end nothing is STARTED but what its living holder is running.
pub fn no_claim_is_orphaned(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (job, step) in story.left().filter(|(job, _)| job.status == JobStatus::Started) {
        if step.at + NOTICED + story.circumstances.lag > story.end {
            continue;
        }
        let life = job.owner.and_then(|owner| story.incarnations.get(&owner));
        let is_up = life.and_then(|life| story.lives.get(life)).is_some_and(|life| life.is_up(story.end));
        let mut runs = story.runs_of(job.job_id, job.epoch);
        // What is under way when the run closes is dropped at its very end.
        let is_run = runs.any(|run| run.ended.is_none_or(|(_, at, _)| at >= story.end));
        if !is_up || !is_run {
            let who = if is_up { "whose holder does not run it" } else { "whose holder is gone" };
            found.push((step.at, format!("{} is left STARTED, {who}", name(story, job.job_id))));
        }
    }
    found
}

/// At the end nothing waits that is due, unless all who run it have their hands full.
pub fn due_jobs_do_not_wait(story: &Story<'_>) -> Vec<Finding> {
    let long_ago = story.end.saturating_sub(NOTICED + story.circumstances.lag);
    let waits = story.left().filter(|(job, step)| {
        job.status == JobStatus::Queued && job.run_at <= Story::wall(long_ago) && step.at <= long_ago
    });
    waits
        .filter(|(job, _)| somebody_is_free(story, &job.input.kind) && !limits::is_held_up(story, job))
        .map(|(job, step)| (step.at, format!("{} is due and waits since then", name(story, job.job_id))))
        .collect()
}

/// Whether a node that runs a type had a slot free when the run closed.
fn somebody_is_free(story: &Story<'_>, kind: &str) -> bool {
    story.lives.iter().filter(|(_, lived)| lived.is_up(story.end)).any(|(life, lived)| {
        let state = story.states.get(&lived.node).and_then(|steps| steps.last()).and_then(|step| step.after);
        let capacity = state.and_then(|state| state.capacity).unwrap_or(u32::MAX);
        let is_open = |run: &&Run| run.ended.is_none_or(|(_, at, _)| at >= story.end);
        let running = story.runs.iter().filter(|run| run.work.life == *life).filter(is_open).count();
        lived.types.iter().any(|known| known == kind) && running < capacity as usize
    })
}
