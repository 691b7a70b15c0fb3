//! Which jobs a node takes, and how it stops.

use std::collections::BTreeMap;
use std::time::Duration;

use rota_model::job::{Job, JobStatus};
use rota_store::seam::{Version, Written};

use super::Finding;
use crate::simulation::record::{Answer, Life};
use crate::simulation::story::{JobStep, Story};
use crate::simulation::trace::name;

/// For as long as this before it stops nothing may have disturbed a node.
const SETTLED: Duration = Duration::from_secs(5);
/// How long it may take to stop.
const TO_STOP: Duration = Duration::from_secs(20);

fn claims<'s, 'a>(story: &'s Story<'a>) -> impl Iterator<Item = (Life, &'s JobStep<'a>, &'a Job)> {
    story.jobs.values().flatten().filter_map(|step| {
        let claimed = step.claim()?;
        Some((*story.incarnations.get(&claimed.owner?)?, step, claimed))
    })
}

pub fn nodes_claim_only_their_types(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (life, step, claimed) in claims(story) {
        let Some(lived) = story.lives.get(&life) else { continue };
        if !lived.types.contains(&claimed.input.kind) {
            let (job, node, kind) = (name(story, claimed.job_id), &lived.name, &claimed.input.kind);
            found
                .push((step.at, format!("{job} of type {kind} is claimed by {node}, which does not run it")));
        }
    }
    found
}

/// When a process learned that it is to rest, and that it is not.
fn learned(story: &Story<'_>, life: Life) -> Vec<(Duration, bool)> {
    let Some(lived) = story.lives.get(&life) else { return Vec::new() };
    let steps = story.states.get(&lived.node).into_iter().flatten();
    let rests: BTreeMap<u64, bool> =
        steps.filter_map(|step| Some((step.version.0, step.after?.wanted.is_some()))).collect();
    let rests = |version: &Version| rests.get(&version.0).copied();
    let mut learned = Vec::new();
    for reading in story.readings.get(&(life, lived.node)).into_iter().flatten() {
        let version = reading.found.flatten();
        learned.extend(version.as_ref().and_then(rests).map(|rests| (reading.answered, rests)));
    }
    let own = story.calls.iter().filter(|(caller, _)| caller.life == life);
    for (_, at, answer) in own.filter_map(|(_, call)| call.answered) {
        let Answer::Written(written) = answer else { continue };
        let versions = written.iter().filter_map(|written| match written {
            Written::Applied(version) => rests(version),
            Written::Conflict | Written::Exists | Written::Missing => None,
        });
        learned.extend(versions.map(|rests| (at, rests)));
    }
    learned.sort_by_key(|(at, _)| *at);
    learned
}

/// A node that has read that it is paused or draining claims nothing until it reads otherwise.
pub fn who_rests_claims_nothing(story: &Story<'_>) -> Vec<Finding> {
    let learned: BTreeMap<Life, _> = story.lives.keys().map(|life| (*life, learned(story, *life))).collect();
    let mut found = Vec::new();
    for (life, step, claimed) in claims(story) {
        let sent = story.sent(step);
        let Some(learned) = learned.get(&life) else { continue };
        let mut before = learned.iter().rev().skip_while(|(at, _)| *at >= sent);
        let last = before.next();
        // What is learned in the very instant of the claim may come too late for it, or just in time.
        let meanwhile = learned.iter().any(|(at, rests)| *at == sent && !rests);
        if last.is_some_and(|(_, rests)| *rests) && !meanwhile {
            let (job, node) = (name(story, claimed.job_id), &story.lives[&life].name);
            found.push((step.at, format!("{job} is claimed by {node}, which knows that it is to rest")));
        }
    }
    found
}

/// A node that is stopped while its store answers stops soon, and holds nothing then.
pub fn who_stops_leaves_nothing(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (life, lived) in &story.lives {
        let Some(asked) = lived.to_stop else { continue };
        let ended = lived.ended.unwrap_or(story.end);
        let was_settled = lived.joined.is_some_and(|joined| joined + SETTLED <= asked);
        let undisturbed = {
            let mut until = lived.clone();
            (until.to_stop, until.ended) = (None, None);
            let calm = story.circumstances.is_smooth || asked >= story.calm + Duration::from_secs(25);
            calm && !until.is_troubled(asked.saturating_sub(SETTLED), ended)
        };
        if !was_settled || !undisturbed {
            continue;
        }
        if ended.saturating_sub(asked) > TO_STOP {
            found.push((asked, format!("{} does not stop", lived.name)));
            continue;
        }
        for steps in story.jobs.values().filter(|_| lived.ended.is_some()) {
            let Some(job) = steps.iter().rfind(|step| step.at <= ended).and_then(|step| step.after) else {
                continue;
            };
            let owner = job.owner.filter(|_| job.status == JobStatus::Started);
            if owner.and_then(|owner| story.incarnations.get(&owner)) == Some(life) {
                let what = format!("{} stopped and left {} STARTED", lived.name, name(story, job.job_id));
                found.push((ended, what));
            }
        }
    }
    found
}
