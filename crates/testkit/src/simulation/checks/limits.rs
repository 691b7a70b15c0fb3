//! That no more jobs of a type, or of one of its keys, run at once or start per second than may, whichever nodes run them;
//! and that what is free is used.
//!
//! A handler counts while its epoch is the current one: from its beginning until it ends, or until its job is taken from
//! it. A process that is frozen runs its handlers on for all we know; what it does once its job is another's, the epoch
//! fences.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::job::{Job, JobStatus};
use rota_model::job_type::{Bounds, TypeLimits};

use super::Finding;
use crate::simulation::lives::Lived;
use crate::simulation::record::Life;
use crate::simulation::story::{JobStep, Run, Story};
use crate::simulation::trace::name;

/// Starts are counted over this span; so much on top of it is granted for what was saved up, taken ahead, or used late.
const SPAN: Duration = Duration::from_secs(10);
const GRANTED: Duration = Duration::from_secs(3);
/// How long nobody may wait for what is free: longer than it takes to find out that somebody is dead, and to take back
/// what it held.
const USED: Duration = Duration::from_secs(15);
/// After so long a calm everybody who is to work does.
const SETTLED: Duration = Duration::from_secs(32);

/// What a limit is for: a type of a domain, or one key of it.
type Name<'a> = (&'a Domain, &'a str, Option<&'a str>);

/// The limits that a job is under.
fn limits_of<'a>(story: &Story<'_>, job: &'a Job) -> Vec<(Name<'a>, Bounds)> {
    let of = story.limits.get(&(job.domain.clone(), job.input.kind.clone())).copied();
    let TypeLimits { whole, per_key } = of.unwrap_or_default();
    let (domain, kind) = (&job.domain, job.input.kind.as_str());
    let key = job.limit_key.as_deref();
    let all = [(Some((domain, kind, None)), whole), (key.map(|key| (domain, kind, Some(key))), per_key)];
    let limited = all.into_iter().filter_map(|(name, bounds)| Some((name?, bounds)));
    limited.filter(|(_, bounds)| !bounds.is_none()).collect()
}

/// One run of a handler under its epoch.
struct Ran<'a> {
    job: &'a Job,
    /// Where in the record it began, and ended or lost its job; and when.
    from: (usize, Duration),
    to: (usize, Duration),
    /// When the claim was sent by which it came to be.
    claimed: Duration,
}

fn ran<'a>(story: &Story<'a>, run: &Run) -> Option<Ran<'a>> {
    let (job, epoch) = (run.work.job, run.work.epoch);
    let (claim, claimed) = story.claim(job, epoch)?;
    let steps = story.jobs.get(&job).map_or(&[][..], Vec::as_slice);
    let over = steps.iter().find(|step| step.ends_claim(epoch)).map(|step| (step.nth, step.at));
    let ended = run.ended.map(|(nth, at, _)| (nth, at));
    let to = over.into_iter().chain(ended).min().unwrap_or((usize::MAX, story.end));
    Some(Ran { job: claimed, from: (run.nth, run.begun), to, claimed: story.sent(claim) })
}

/// The runs under each limit, in the order in which they began.
fn by_limit<'a>(story: &Story<'a>) -> BTreeMap<Name<'a>, (Bounds, Vec<Ran<'a>>)> {
    let mut by_limit: BTreeMap<Name<'a>, (Bounds, Vec<Ran<'a>>)> = BTreeMap::new();
    for run in &story.runs {
        let Some(job) = ran(story, run).map(|ran| ran.job) else { continue };
        for (name, bounds) in limits_of(story, job) {
            let runs = &mut by_limit.entry(name).or_insert_with(|| (bounds, Vec::new())).1;
            runs.extend(ran(story, run));
        }
    }
    by_limit
}

fn said((domain, kind, key): Name<'_>) -> String {
    key.map_or_else(|| format!("{kind} in {domain}"), |key| format!("{kind} in {domain} for {key}"))
}

pub fn no_more_run_at_once_than_may(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (limit, (bounds, runs)) in by_limit(story) {
        let Some(most) = bounds.concurrency else { continue };
        let mut ends = BTreeSet::new();
        for run in runs.iter().filter(|run| run.from < run.to) {
            ends = ends.split_off(&run.from.0);
            ends.insert(run.to.0);
            // Those that never end share one place.
            let endless = runs.iter().filter(|other| other.to.0 == usize::MAX && other.from <= run.from);
            let running = ends.len() + endless.count().saturating_sub(1);
            if running > most as usize {
                let (job, limit) = (name(story, run.job.job_id), said(limit));
                found.push((run.from.1, format!("{job} is the {running}th of {limit} at once; {most} may")));
            }
        }
    }
    found
}

/// Over every span. A start counts when its claim is sent: how long that takes is nothing that a limit could know.
pub fn no_more_start_than_may(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (limit, (bounds, runs)) in by_limit(story) {
        let Some(rate) = bounds.starts_per_second else { continue };
        let most = rate * (SPAN + GRANTED).as_secs_f64() + 1.0;
        let most = (1..usize::MAX).find(|count| *count as f64 >= most).unwrap_or(usize::MAX);
        let mut starts: Vec<_> = runs.iter().map(|run| (run.claimed, run)).collect();
        starts.sort_by_key(|(claimed, _)| *claimed);
        for (nth, (first, _)) in starts.iter().enumerate() {
            let Some((last, run)) = starts.get(nth + most) else { break };
            if *last - *first < SPAN {
                let (job, limit) = (name(story, run.job.job_id), said(limit));
                let what =
                    format!("{job} is one of {} of {limit} within {SPAN:?}; {rate} may per second", most + 1);
                found.push((*last, what));
                break;
            }
        }
    }
    found
}

/// When a job waited that was due: between two of its changes, or up to the end.
fn waits<'a>(story: &Story<'a>, steps: &[JobStep<'a>]) -> Vec<(&'a Job, Duration, Duration)> {
    let ends = steps.iter().skip(1).map(|step| step.at).chain([story.end]);
    let queued = steps.iter().zip(ends).filter_map(|(step, to)| {
        let job = step.after.filter(|job| job.status == JobStatus::Queued)?;
        let due = job.run_at.since(Story::wall(Duration::ZERO));
        Some((job, step.at.max(due).max(story.calm + SETTLED), to))
    });
    queued.filter(|(_, from, to)| *to > *from + USED + story.circumstances.lag).collect()
}

/// Once all is calm, nobody waits for slots and starts that are free, while a node has room for it.
pub fn free_slots_are_used(story: &Story<'_>) -> Vec<Finding> {
    if story.limits.is_empty() {
        return Vec::new();
    }
    let by_limit = by_limit(story);
    let mut found = Vec::new();
    for (job, from, to) in story.jobs.values().flat_map(|steps| waits(story, steps)) {
        let limits = limits_of(story, job);
        let is_free = |(name, bounds): &(Name<'_>, Bounds)| {
            let none = (*bounds, Vec::new());
            let (_, runs) = by_limit.get(name).unwrap_or(&none);
            let meanwhile = runs.iter().filter(|run| run.from.1 < to && run.to.1 > from).count();
            let started = runs.iter().filter(|run| (from..to).contains(&run.from.1)).count();
            let may_start = bounds.starts_per_second.map(|rate| rate * (to - from).as_secs_f64() / 2.0);
            bounds.concurrency.is_none_or(|most| meanwhile < most as usize)
                && may_start.is_none_or(|most| started as f64 + 1.0 < most)
        };
        if !limits.is_empty() && limits.iter().all(is_free) && somebody_has_room(story, job, from, to) {
            let waited = (to - from).as_secs_f64();
            found.push((to, format!("{} waits for {waited:.1}s for what is free", name(story, job.job_id))));
        }
    }
    found
}

/// Whether a node that runs a job's type was up all the time, at work, and had a slot free.
fn somebody_has_room(story: &Story<'_>, job: &Job, from: Duration, to: Duration) -> bool {
    let has_room = |(life, lived): (&Life, &Lived)| {
        let mut states = story.states.get(&lived.node).into_iter().flatten().filter_map(|step| step.after);
        let capacity = states.clone().filter_map(|state| state.capacity).next_back().unwrap_or(0);
        let runs = story.runs.iter().filter(|run| run.work.life == *life && run.begun < to);
        let meanwhile = runs.filter(|run| run.ended.is_none_or(|(_, at, _)| at > from)).count();
        lived.types.contains(&job.input.kind)
            && lived.is_up(from)
            && lived.is_up(to)
            && !lived.is_troubled(from, to)
            && meanwhile < capacity as usize
            && states.next_back().is_some_and(|state| state.wanted.is_none())
    };
    story.lives.iter().any(has_room)
}

/// Whether a job that waits at the end has to: as many run as may, or start.
pub fn is_held_up(story: &Story<'_>, job: &Job) -> bool {
    let by_limit = by_limit(story);
    limits_of(story, job).into_iter().any(|(name, bounds)| {
        let Some((_, runs)) = by_limit.get(&name) else { return false };
        let lately = story.end.saturating_sub(USED);
        let running = runs.iter().filter(|run| run.to.1 >= lately).count();
        let started = runs.iter().filter(|run| run.from.1 >= lately).count();
        bounds.concurrency.is_some_and(|most| running >= most as usize)
            || bounds
                .starts_per_second
                .is_some_and(|rate| started as f64 + 2.0 >= rate * USED.as_secs_f64() / 2.0)
    })
}
