//! Who is condemned and when, what becomes of it, how soon others take over.

use std::time::Duration;

use rota_model::ids::Incarnation;
use rota_model::node::NodeStatus;

use super::Finding;
use crate::simulation::record::Life;
use crate::simulation::story::{Reading, StateStep, Story};
use crate::simulation::trace::name;

/// How many reads without a change make a node dead.
const READS: usize = 7;
/// How long they take at least.
const WATCH: Duration = Duration::from_secs(6);
/// No two of them lie further apart.
const GAP: Duration = Duration::from_millis(2_000);
/// Timers are exact to the millisecond.
const TICK: Duration = Duration::from_millis(2);
/// How soon the jobs of the dead are taken over.
pub const TAKE_OVER: Duration = Duration::from_secs(10);
/// For as long as this a node must have been able to beat.
const ABLE: Duration = Duration::from_secs(10);

/// One who was declared dead by another.
pub struct Condemned<'s, 'a> {
    pub step: &'s StateStep<'a>,
    pub by: Life,
    pub incarnation: Incarnation,
}

pub fn condemned<'s, 'a>(story: &'s Story<'a>) -> Vec<Condemned<'s, 'a>> {
    let mut all = Vec::new();
    for (node, steps) in &story.states {
        for step in steps {
            let Some((before, after)) = step.before.zip(step.after) else { continue };
            let dies = before.status != NodeStatus::Terminated && after.status == NodeStatus::Terminated;
            let Some(by) = step.caller.map(|caller| caller.life).filter(|_| dies) else { continue };
            let is_other = story.lives.get(&by).is_some_and(|lived| lived.node != *node);
            if let Some(incarnation) = before.incarnation.filter(|_| is_other) {
                all.push(Condemned { step, by, incarnation });
            }
        }
    }
    all
}

fn who(story: &Story<'_>, life: Life) -> String {
    story.lives.get(&life).map_or_else(|| format!("life {life}"), |lived| lived.name.clone())
}

/// Seven reads in a row, one soon after the other, found the version that was replaced.
pub fn the_dead_were_watched(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for Condemned { step, by, .. } in condemned(story) {
        let node = step.before.map(|before| before.id);
        let Some(call) = step.caller.and_then(|caller| story.calls.get(&caller)) else { continue };
        let readings = node.and_then(|node| story.readings.get(&(by, node))).map_or(&[][..], Vec::as_slice);
        // What other tasks of the process read for other reasons makes nobody dead, and their failures save nobody.
        let counts = |reading: &&Reading| reading.nth < call.nth && reading.task == call.task;
        let watched: Vec<&Reading> = readings.iter().filter(counts).collect();
        let seen = run_of(&watched, step.replaced.map(|version| version.0));
        let took = match (seen.first(), seen.last()) {
            (Some(first), Some(last)) => last.answered.saturating_sub(first.answered),
            _ => Duration::ZERO,
        };
        if seen.len() < READS || took + TICK < WATCH {
            let (victim, watcher) = (step.before.map_or("", |before| &before.name), who(story, by));
            let (reads, took) = (seen.len(), took.as_secs_f64());
            found.push((
                step.at,
                format!("{victim} is condemned by {watcher} after {reads} reads in {took:.3}s"),
            ));
        }
    }
    found
}

/// The last of the readings that found one version, without a failure, a change or a gap between them.
fn run_of<'r>(readings: &[&'r Reading], version: Option<u64>) -> Vec<&'r Reading> {
    let mut seen: Vec<&Reading> = Vec::new();
    for reading in readings.iter().rev() {
        let is_same = reading.found.is_some_and(|found| found.map(|version| version.0) == version);
        let is_near = seen.last().is_none_or(|next| {
            let apart = |a: Duration, b: Duration| a.saturating_sub(b) > GAP + TICK;
            !(apart(next.answered, reading.answered) && apart(next.sent, reading.sent))
        });
        if !is_same || !is_near {
            break;
        }
        seen.push(reading);
    }
    seen.reverse();
    seen
}

pub fn nobody_able_is_condemned(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for Condemned { step, by, incarnation } in condemned(story) {
        let Some(life) = story.incarnations.get(&incarnation) else { continue };
        let from = step.at.saturating_sub(ABLE);
        // An incarnation that was entered by a join that failed never lived.
        let has_joined =
            story.lives.get(life).and_then(|lived| lived.joined).is_some_and(|joined| joined <= from);
        let knew = story.beats.get(&incarnation).and_then(|beats| beats.first()).map(|beat| beat.known);
        let was_able =
            has_joined && knew.is_some_and(|knew| knew <= from) && story.is_untroubled(*life, from, step.at);
        if was_able {
            let (victim, watcher) = (who(story, *life), who(story, by));
            found.push((step.at, format!("{victim} is condemned by {watcher} although nothing kept it")));
        }
    }
    found
}

/// Whoever was declared dead writes nothing more under that incarnation, and claims nothing once it knows.
pub fn the_condemned_write_no_more(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for Condemned { step, incarnation, .. } in condemned(story) {
        let Some(node) = step.before.map(|before| before.id) else { continue };
        let mut later = story.states.get(&node).into_iter().flatten().filter(|later| later.nth > step.nth);
        let lives = later.find(|later| {
            let after = later.after.filter(|after| after.status != NodeStatus::Terminated);
            after.is_some_and(|after| after.incarnation == Some(incarnation))
        });
        if let Some(lives) = lives {
            let victim = step.before.map_or("", |before| &before.name);
            found.push((lives.at, format!("{victim} goes on under an incarnation that was condemned")));
        }
        let Some(life) = story.incarnations.get(&incarnation) else { continue };
        let readings = story.readings.get(&(*life, node)).into_iter().flatten();
        let mut saw =
            readings.filter(|reading| reading.nth > step.nth && reading.found == Some(Some(step.version)));
        let Some(known) = saw.next().map(|reading| reading.answered) else { continue };
        let claims = story.jobs.iter().flat_map(|(id, steps)| steps.iter().map(move |step| (id, step)));
        for (id, claim) in
            claims.filter(|(_, step)| step.claim().is_some_and(|job| job.owner == Some(incarnation)))
        {
            if story.sent(claim) > known {
                found.push((claim.at, format!("{} is claimed by a condemned incarnation", name(story, *id))));
            }
        }
    }
    found
}

/// A job whose holder is gone, and how long it took until it was taken from it, once all was calm.
pub struct TakenOver {
    pub job: rota_model::ids::JobId,
    pub from: Duration,
    pub took: Duration,
}

pub fn taken_over(story: &Story<'_>) -> Vec<TakenOver> {
    let settled = settled(story);
    let mut all = Vec::new();
    for (id, steps) in &story.jobs {
        for claim in steps {
            let Some(claimed) = claim.claim() else { continue };
            let Some(owner) = claimed.owner else { continue };
            let Some(gone) = gone(story, owner) else { continue };
            let over = steps.iter().find(|step| step.nth > claim.nth && step.ends_claim(claimed.epoch));
            let until = over.map_or(story.end, |over| over.at);
            let Some(watched) = watched_since(story, gone.max(settled)) else { continue };
            let from = claim.at.max(gone).max(settled).max(watched);
            if until > from {
                all.push(TakenOver { job: *id, from, took: until - from });
            }
        }
    }
    all
}

/// When an incarnation was no more: its process was, or went on under another.
fn gone(story: &Story<'_>, incarnation: Incarnation) -> Option<Duration> {
    let life = story.incarnations.get(&incarnation)?;
    let lived = story.lives.get(life)?;
    let states = story.states.get(&lived.node).into_iter().flatten();
    let mut later =
        states.skip_while(|step| step.after.is_none_or(|after| after.incarnation != Some(incarnation)));
    let replaced = later.find(|step| {
        step.after.is_some_and(|after| after.incarnation.is_some_and(|other| other != incarnation))
    });
    let replaced = replaced.map(|step| step.at);
    lived.over().into_iter().chain(replaced).min()
}

/// When the last call was answered that was sent before all became calm: until then a node may be kept waiting.
fn settled(story: &Story<'_>) -> Duration {
    let before = story.calls.values().filter(|call| call.sent < story.calm);
    before.filter_map(|call| call.answered).map(|(_, at, _)| at).max().unwrap_or_default().max(story.calm)
}

/// From an instant on, when there was first a node that had joined, and was not about to leave.
fn watched_since(story: &Story<'_>, from: Duration) -> Option<Duration> {
    let stays = |until: Option<Duration>| until.is_none_or(|until| until > from);
    let there = |lived: &&crate::simulation::lives::Lived| stays(lived.over()) && stays(lived.to_stop);
    story.lives.values().filter(there).filter_map(|lived| lived.joined).min().map(|joined| joined.max(from))
}

pub fn others_take_over_in_time(story: &Story<'_>) -> Vec<Finding> {
    let most = TAKE_OVER + story.circumstances.lag + Duration::from_secs(1);
    let late = taken_over(story).into_iter().filter(|taken| taken.took > most);
    late.map(|taken| {
        let took = taken.took.as_secs_f64();
        (taken.from, format!("{} is not taken over for {took:.3}s", name(story, taken.job)))
    })
    .collect()
}
