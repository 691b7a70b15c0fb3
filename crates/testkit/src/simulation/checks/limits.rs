//! That no more jobs of a type, or of one of its keys, run at once or start per second than may, whichever nodes run them;
//! and that what is free is used.
//!
//! A handler counts while its epoch is the current one: from its beginning until it ends, or until its job is taken from
//! it. A process that is frozen runs its handlers on for all we know; what it does once its job is another's, the epoch
//! fences.

use std::collections::BTreeMap;
use std::time::Duration;

use rota_model::job::{Job, JobStatus};
use rota_model::job_type::Bounds;
use rota_model::limit::LimitName;

use super::Finding;
use crate::simulation::eras::Era;
use crate::simulation::lives::Lived;
use crate::simulation::record::Life;
use crate::simulation::story::{JobStep, Run, Story};
use crate::simulation::trace::name;

/// So much on top of what a rate allows is granted for what was saved up, taken ahead, or used late.
const GRANTED: Duration = Duration::from_secs(2);
/// A process that nothing troubles for this long has heard of a change, and has told others of what it runs.
const HEARD: Duration = Duration::from_secs(8);
/// How long nobody may wait for what is free: longer than it takes to find out that somebody is dead, and to take back
/// what it held.
const USED: Duration = Duration::from_secs(15);
/// After so long a calm everybody who is to work does.
const SETTLED: Duration = Duration::from_secs(32);

/// One run of a handler under its epoch.
struct Ran<'a> {
    job: &'a Job,
    life: Life,
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
    let (life, from, claimed_at) = (run.work.life, (run.nth, run.begun), story.sent(claim));
    Some(Ran { job: claimed, life, from, to, claimed: claimed_at })
}

/// The runs under each limit that there ever was, in the order in which they began.
fn by_limit<'a>(story: &Story<'a>) -> BTreeMap<LimitName, Vec<Ran<'a>>> {
    let mut by_limit: BTreeMap<LimitName, Vec<Ran<'a>>> = BTreeMap::new();
    for run in &story.runs {
        let Some(job) = ran(story, run).map(|ran| ran.job) else { continue };
        for name in story.eras.names(job) {
            by_limit.entry(name).or_default().extend(ran(story, run));
        }
    }
    by_limit
}

/// A limit for as long as it stays as it is, and since when each process knows it.
struct Known<'s, 'a> {
    story: &'s Story<'a>,
    era: Era,
    since: BTreeMap<Life, Option<Duration>>,
}

impl<'s, 'a> Known<'s, 'a> {
    fn new(story: &'s Story<'a>, era: Era) -> Self {
        Self { story, era, since: BTreeMap::new() }
    }

    /// From when on it is to hold: all have heard of it then who can hear.
    fn holds_from(&self) -> Duration {
        if self.era.from.is_zero() { Duration::ZERO } else { self.era.from + HEARD }
    }

    /// Whether what a process does counts at an instant: it knows of the limit, and has told others what it runs.
    fn is_known_to(&mut self, life: Life, at: Duration) -> bool {
        let (story, era) = (self.story, self.era);
        let since = self.since.entry(life).or_insert_with(|| {
            let lived = story.lives.get(&life)?;
            if lived.began >= era.from {
                Some(lived.began)
            } else {
                story.untroubled_for(life, era.from, HEARD)
            }
        });
        since.is_some_and(|since| since <= at)
    }
}

fn said(limit: &LimitName) -> String {
    let LimitName { domain, kind, key } = limit;
    key.as_ref().map_or_else(|| format!("{kind} in {domain}"), |key| format!("{kind} in {domain} for {key}"))
}

/// Whoever begins is not one too many. Of a limit that came or fell, as soon as it holds: who ran before runs on.
pub fn no_more_run_at_once_than_may(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (limit, runs) in by_limit(story) {
        for era in story.eras.of_limit(&limit, story.end) {
            let Some(most) = era.bounds.concurrency else { continue };
            let mut known = Known::new(story, era);
            let from = known.holds_from();
            let begun = runs.iter().enumerate().filter(|(_, run)| run.from < run.to);
            for (nth, run) in begun.filter(|(_, run)| run.from.1 >= from && run.from.1 < era.to) {
                let is_open = |other: &&Ran<'_>| other.from < other.to && other.to.0 > run.from.0;
                let open = runs.iter().take(nth + 1).filter(is_open);
                let running = open.filter(|other| known.is_known_to(other.life, run.from.1)).count();
                if running > most as usize && known.is_known_to(run.life, run.from.1) {
                    let (job, limit) = (name(story, run.job.job_id), said(&limit));
                    found.push((
                        run.from.1,
                        format!("{job} is the {running}th of {limit} at once; {most} may"),
                    ));
                }
            }
        }
    }
    found
}

/// Over every span, however long. A start counts when its claim is sent: how long that takes is nothing that a limit could
/// know.
pub fn no_more_start_than_may(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (limit, runs) in by_limit(story) {
        for era in story.eras.of_limit(&limit, story.end) {
            let Some(rate) = era.bounds.starts_per_second else { continue };
            let mut known = Known::new(story, era);
            let from = known.holds_from();
            let mut starts: Vec<_> = runs.iter().map(|run| (run.claimed, run)).collect();
            starts.retain(|(at, run)| *at >= from && *at < era.to && known.is_known_to(run.life, *at));
            starts.sort_by_key(|(claimed, _)| *claimed);
            if let Some((first, last)) = too_many(&starts.iter().map(|(at, _)| *at).collect::<Vec<_>>(), rate)
            {
                let Some((at, run)) = starts.get(last) else { continue };
                let (job, limit, count) = (name(story, run.job.job_id), said(&limit), last - first + 1);
                let span = (*at - starts.get(first).map_or(*at, |(at, _)| *at)).as_secs_f64();
                let what =
                    format!("{job} is one of {count} of {limit} within {span:.1}s; {rate} may per second");
                found.push((*at, what));
            }
        }
    }
    found
}

/// The first and the last of some that are more than may start between them, if there are any.
fn too_many(starts: &[Duration], rate: f64) -> Option<(usize, usize)> {
    let granted = rate * GRANTED.as_secs_f64() + 1.0;
    // How far each is ahead of the rate; one that is further ahead than another was, by more than is granted, is too many.
    let ahead = |(nth, at): (usize, &Duration)| nth as f64 - rate * at.as_secs_f64();
    let mut least: Option<(usize, f64)> = None;
    for (nth, at) in starts.iter().enumerate() {
        let this = ahead((nth, at));
        if least.is_none_or(|(_, least)| this < least) {
            least = Some((nth, this));
        }
        if let Some((first, least)) = least
            && this - least + 1.0 > granted
        {
            return Some((first, nth));
        }
    }
    None
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
    if story.eras.is_empty() {
        return Vec::new();
    }
    let by_limit = by_limit(story);
    let mut found = Vec::new();
    for (job, from, to) in story.jobs.values().flat_map(|steps| waits(story, steps)) {
        let limits = story.eras.last(job);
        let is_free = |(name, since, bounds): &(LimitName, Duration, Bounds)| {
            let runs = by_limit.get(name).map_or(&[][..], Vec::as_slice);
            let meanwhile = runs.iter().filter(|run| run.from.1 < to && run.to.1 > from).count();
            let started = runs.iter().filter(|run| (from..to).contains(&run.from.1)).count();
            let may_start = bounds.starts_per_second.map(|rate| rate * (to - from).as_secs_f64() / 2.0);
            *since + HEARD <= from
                && bounds.concurrency.is_none_or(|most| meanwhile < most as usize)
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
    story.eras.last(job).into_iter().any(|(name, _, bounds)| {
        let Some(runs) = by_limit.get(&name) else { return false };
        let lately = story.end.saturating_sub(USED);
        let running = runs.iter().filter(|run| run.to.1 >= lately).count();
        let started = runs.iter().filter(|run| run.from.1 >= lately).count();
        bounds.concurrency.is_some_and(|most| running >= most as usize)
            || bounds
                .starts_per_second
                .is_some_and(|rate| started as f64 + 2.0 >= rate * USED.as_secs_f64() / 2.0)
    })
}
