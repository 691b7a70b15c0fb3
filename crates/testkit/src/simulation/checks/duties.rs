//! Which jobs a node takes, how it stops, and that it does not go round in circles.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rota_model::job::{Job, JobStatus};
use rota_store::seam::Written;

use super::Finding;
use crate::faults::caller::Caller;
use crate::simulation::record::{Answer, Call, Entry, Event, Life, Task, What};
use crate::simulation::story::{JobStep, Story};
use crate::simulation::trace::name;

/// For as long as this before it stops nothing may have disturbed a node: it waits five seconds for an answer that does not
/// come, and then looks anew for what is its own.
const SETTLED: Duration = Duration::from_secs(8);
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

/// No process runs more jobs at a time than it said it would.
pub fn slots_are_kept(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (life, lived) in &story.lives {
        let states = story.states.get(&lived.node).into_iter().flatten();
        let Some(slots) = states.filter_map(|step| step.after?.capacity).next_back() else { continue };
        let mut changes = BTreeMap::new();
        for run in story.runs.iter().filter(|run| run.work.life == *life) {
            changes.insert(run.nth, (run.begun, run.work.job, true));
            changes.extend(run.ended.map(|(nth, at, _)| (nth, (at, run.work.job, false))));
        }
        let mut running = BTreeSet::new();
        for (at, job, begins) in changes.into_values() {
            if !begins {
                running.remove(&job);
            } else if running.insert(job) && running.len() > slots as usize {
                let (count, name) = (running.len(), &lived.name);
                found.push((at, format!("{name} runs {count} jobs at once, and has {slots} slots")));
            }
        }
    }
    found
}

/// The tasks of a process that hear what people want of it: those of its own that deal with states of nodes alone. What a
/// person's request reads, or a search for orphaned jobs, is not heard.
fn listening(story: &Story<'_>, life: Life) -> BTreeSet<Task> {
    let (mut about_states, mut about_others) = (BTreeSet::new(), BTreeSet::new());
    for (_, call) in story.calls.range(Caller { life, call: 0 }..=Caller { life, call: u64::MAX }) {
        let is_about_states = match call.call {
            Call::ReadStates(_) | Call::Other(_, "state") => true,
            Call::Write(targets) => targets.iter().all(|target| target.collection == "state"),
            Call::Claim(_) | Call::Other(..) => false,
        };
        let tasks = if is_about_states { &mut about_states } else { &mut about_others };
        tasks.insert(call.task);
    }
    about_others.insert(Task::Request);
    about_states.difference(&about_others).copied().collect()
}

/// When a process learned that it is to rest, and that it is not, by its place in the record.
fn learned(story: &Story<'_>, life: Life) -> Vec<(usize, Duration, bool)> {
    let Some(lived) = story.lives.get(&life) else { return Vec::new() };
    let listening = listening(story, life);
    let steps = story.states.get(&lived.node).into_iter().flatten();
    let rests: BTreeMap<u64, bool> =
        steps.filter_map(|step| Some((step.version.0, step.after?.wanted.is_some()))).collect();
    let readings = story.readings.get(&(life, lived.node)).into_iter().flatten();
    let heard = readings.filter(|reading| listening.contains(&reading.task));
    let heard = heard.filter_map(|reading| Some((reading.nth, reading.answered, reading.found??)));
    let mut learned: Vec<_> =
        heard.filter_map(|(nth, at, version)| Some((nth, at, *rests.get(&version.0)?))).collect();
    let own = story.calls.range(Caller { life, call: 0 }..=Caller { life, call: u64::MAX });
    for (nth, at, answer) in
        own.filter(|(_, call)| listening.contains(&call.task)).filter_map(|(_, call)| call.answered)
    {
        let Answer::Written(written) = answer else { continue };
        let versions = written.iter().filter_map(|written| match written {
            Written::Applied(version) => rests.get(&version.0),
            Written::Conflict | Written::Exists | Written::Missing => None,
        });
        learned.extend(versions.map(|rests| (nth, at, *rests)));
    }
    learned.sort_by_key(|(nth, ..)| *nth);
    learned
}

/// A node that has read that it is paused or draining claims nothing until it reads otherwise.
pub fn who_rests_claims_nothing(story: &Story<'_>) -> Vec<Finding> {
    let learned: BTreeMap<Life, _> = story.lives.keys().map(|life| (*life, learned(story, *life))).collect();
    let mut found = Vec::new();
    for (life, step, claimed) in claims(story) {
        let sent = story.sent(step);
        let Some(learned) = learned.get(&life) else { continue };
        let mut before = learned.iter().rev().skip_while(|(_, at, _)| *at >= sent);
        let last = before.next();
        // What is learned in the very instant of the claim may come too late for it, or just in time.
        let meanwhile = learned.iter().any(|(_, at, rests)| *at == sent && !rests);
        if let Some((_, since, true)) = last
            && !meanwhile
        {
            let (job, node, since) =
                (name(story, claimed.job_id), &story.lives[&life].name, since.as_secs_f64());
            found.push((
                step.at,
                format!("{job} is claimed by {node}, which knows since {since:.3}s that it is to rest"),
            ));
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

/// Whoever finds nothing to do waits a moment before it looks again.
pub fn nobody_goes_round_in_circles(story: &Story<'_>) -> Vec<Finding> {
    let overflows = |entry: &&Entry| matches!(entry.what, What::World(Event::Overflows));
    let found = story.entries.iter().find(overflows);
    found.map(|entry| (entry.at, "time stands still, so much happens".to_owned())).into_iter().collect()
}
