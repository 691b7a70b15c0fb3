//! That nobody is passed over: where several tenants have due work, each has its turn.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::job::{Job, JobStatus};

use super::Finding;
use crate::faults::caller::Caller;
use crate::simulation::record::{Call, Kind, Life};
use crate::simulation::story::{JobStep, Story};
use crate::simulation::trace::name;

/// After so long everybody has seen what waits, if the store shows it: looks may be slow, and are made once a second.
const SEEN: Duration = Duration::from_secs(8);
/// So many claims in a row may go to others: more than there are tenants, and more than there are lanes, which are tenants with
/// their types, and these with each of three keys or none.
const TENANTS: usize = 6;
const LANES: usize = 4 * 14;

/// A claim that brought something.
struct Brought<'a> {
    sent: Duration,
    landed: Duration,
    sections: Option<&'a [u32]>,
    takers: BTreeSet<(&'a Domain, &'a str, Option<&'a str>)>,
}

/// The claims of each process, in the order in which they took effect.
fn brought<'a>(story: &Story<'a>) -> BTreeMap<Life, Vec<Brought<'a>>> {
    let mut claims: BTreeMap<Caller, Brought<'a>> = BTreeMap::new();
    for step in story.jobs.values().flatten().filter(|step| step.kind != Kind::Created) {
        let Some((claimed, caller)) = step.claim().zip(step.caller) else { continue };
        let Some(call) = story.calls.get(&caller) else { continue };
        let Call::Claim(sections) = call.call else { continue };
        let claim = claims.entry(caller).or_insert(Brought {
            sent: call.sent,
            landed: step.at,
            sections: sections.as_deref(),
            takers: BTreeSet::new(),
        });
        claim.takers.insert(lane(claimed));
    }
    let mut by_life: BTreeMap<Life, Vec<Brought<'a>>> = BTreeMap::new();
    for (caller, claim) in claims {
        by_life.entry(caller.life).or_default().push(claim);
    }
    by_life.values_mut().for_each(|claims| claims.sort_by_key(|claim| claim.landed));
    by_life
}

fn lane(job: &Job) -> (&Domain, &str, Option<&str>) {
    (&job.domain, &job.input.kind, job.limit_key.as_deref())
}

/// How long a job waited, due from the beginning by any clock, until something became of it.
fn waited<'a>(story: &Story<'a>, steps: &[JobStep<'a>]) -> Option<(&'a Job, Duration, Duration)> {
    let (first, rest) = steps.split_first()?;
    let job = first.after.filter(|job| job.status == JobStatus::Queued)?;
    let is_due = job.run_at <= Story::wall(first.at) && job.expires_at.is_none();
    let until = rest.first().map_or(story.end, |step| step.at);
    is_due.then_some((job, first.at, until))
}

/// While a job waits that a process could have seen and may run, its claims do not all go to other tenants.
pub fn nobody_is_passed_over(story: &Story<'_>) -> Vec<Finding> {
    let brought = brought(story);
    let mut found = Vec::new();
    let waited = story.jobs.values().filter_map(|steps| waited(story, steps));
    // What is limited may have to wait for its own.
    for (job, since, until) in waited.filter(|(job, ..)| !story.is_limited(job)) {
        // Where calls fail again and again, nobody knows when a look at what waits got through.
        let shown = if story.circumstances.is_smooth { since } else { since.max(story.calm) };
        let seen = shown + SEEN + story.circumstances.lag;
        for (life, claims) in &brought {
            let Some(lived) = story.lives.get(life) else { continue };
            let is_right = lived.off_by_ms.iter().all(|(_, off_by_ms)| *off_by_ms == 0);
            if !is_right || !lived.types.contains(&job.input.kind) {
                continue;
            }
            let (mut of_tenant, mut of_lane) = (0, 0);
            for claim in claims.iter().filter(|claim| seen <= claim.sent && claim.landed < until) {
                let could = claim.sections.is_none_or(|sections| sections.contains(&job.section));
                let is_tenants = claim.takers.iter().any(|(domain, ..)| **domain == job.domain);
                let is_lanes = claim.takers.contains(&lane(job));
                of_tenant = if is_tenants { 0 } else { of_tenant + usize::from(could) };
                of_lane = if is_lanes { 0 } else { of_lane + usize::from(could) };
                if of_tenant == TENANTS || of_lane == LANES {
                    let (name, node) = (name(story, job.job_id), &lived.name);
                    let (domain, kind) = (&job.domain, &job.input.kind);
                    let what =
                        format!("{node} passes {name} of type {kind} in {domain} over again and again");
                    found.push((claim.landed, what));
                }
            }
        }
    }
    found
}

/// A job is stored as already claimed only when nothing else is due. What others store a node may hear of late; what it stored
/// itself it knows, where every call is answered at once.
pub fn nobody_jumps_the_queue(story: &Story<'_>) -> Vec<Finding> {
    if !story.circumstances.is_smooth || !story.circumstances.lag.is_zero() {
        return Vec::new();
    }
    let known = |life: &Life| {
        let lived = story.lives.get(life)?;
        let is_right = lived.off_by_ms.iter().all(|(_, off_by_ms)| *off_by_ms == 0);
        (is_right && lived.frozen.is_empty() && lived.cut_off.is_empty()).then_some(lived)
    };
    let mut waiting: BTreeMap<Life, Vec<(&Job, Duration, Duration)>> = BTreeMap::new();
    for steps in story.jobs.values() {
        let Some((job, _, until)) = waited(story, steps).filter(|(job, ..)| !story.is_limited(job)) else {
            continue;
        };
        let Some(caller) = steps.first().and_then(|step| step.caller) else { continue };
        let answered = story.calls.get(&caller).and_then(|call| call.answered);
        if let Some((_, since, _)) = answered {
            waiting.entry(caller.life).or_default().push((job, since, until));
        }
    }
    let mut found = Vec::new();
    for (id, steps) in &story.jobs {
        let first = steps.first().filter(|step| step.kind == Kind::Created && step.claim().is_some());
        let Some((first, caller)) = first.and_then(|step| Some((step, step.caller?))) else { continue };
        let Some((lived, call)) = known(&caller.life).zip(story.calls.get(&caller)) else { continue };
        let before = waiting.get(&caller.life).into_iter().flatten();
        let passed = before.filter(|(job, since, until)| {
            lived.types.contains(&job.input.kind) && *since < call.sent && call.sent < *until
        });
        for (job, ..) in passed {
            let (new, old, node) = (name(story, *id), name(story, job.job_id), &lived.name);
            found.push((first.at, format!("{node} begins with {new} at once while {old} is due")));
        }
    }
    found
}
