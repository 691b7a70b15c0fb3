//! Handlers act only while their node may: for six seconds after it sent the last beat that was acknowledged, and never
//! once somebody else holds their job. A process that was frozen may find itself in the middle of an act when it thaws, and
//! in that instant alone nothing can stop it.

use std::time::Duration;

use rota_model::ids::JobId;

use super::Finding;
use crate::simulation::lives::Lived;
use crate::simulation::record::Life;
use crate::simulation::story::{Run, Story};
use crate::simulation::trace::name;

pub const LEASE: Duration = Duration::from_secs(6);
/// What is granted on top of it.
const SLACK: Duration = Duration::from_millis(500);

/// What a handler did, and when, unless it was just thawing.
fn acts<'s>(story: &'s Story<'_>, run: &'s Run) -> impl Iterator<Item = (usize, Duration)> + 's {
    let lived = story.lives.get(&run.work.life);
    run.acts.iter().copied().filter(move |(_, at)| lived.is_none_or(|lived| !lived.thaws_at(*at)))
}

/// How old the lease of a job's holder is at an instant.
fn age(story: &Story<'_>, job: JobId, epoch: u64, at: Duration) -> Option<Duration> {
    let (_, claimed) = story.claim(job, epoch)?;
    let sent = story.last_beat(claimed.owner?, at).unwrap_or_default();
    Some(at.saturating_sub(sent))
}

pub fn handlers_stop_with_their_lease(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for run in &story.runs {
        let (job, epoch) = (run.work.job, run.work.epoch);
        let late = acts(story, run).find_map(|(_, at)| {
            let age = age(story, job, epoch, at).filter(|age| *age > LEASE + SLACK)?;
            Some((at, age))
        });
        if let Some((at, age)) = late {
            let age = age.as_secs_f64();
            found.push((at, format!("{} acts {age:.3}s after its node's last beat", name(story, job))));
        }
    }
    found
}

/// To begin is a decision: there is no excuse for a process that just thawed.
pub fn nothing_begins_without_a_lease(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for run in &story.runs {
        let (job, epoch) = (run.work.job, run.work.epoch);
        if let Some(age) = age(story, job, epoch, run.begun).filter(|age| *age > LEASE + SLACK) {
            let age = age.as_secs_f64();
            found.push((
                run.begun,
                format!("{} begins {age:.3}s after its node's last beat", name(story, job)),
            ));
        }
    }
    found
}

/// Whoever takes a job over takes it from one that has stopped. Where a person cancels a job and requeues it at once, its
/// handler may be about to stop when the next one begins: that person took it from nobody.
pub fn handlers_stop_before_others_begin(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for run in &story.runs {
        let steps = story.jobs.get(&run.work.job).map_or(&[][..], Vec::as_slice);
        let over = steps.iter().find(|step| step.ends_claim(run.work.epoch)).and_then(|step| step.after);
        if over.is_some_and(|job| job.result.contains_key("cancelled")) {
            continue;
        }
        let mut claims =
            steps.iter().filter(|step| step.claim().is_some_and(|job| job.epoch > run.work.epoch));
        let Some(next) = claims.next() else { continue };
        if let Some((_, at)) = acts(story, run).find(|(_, at)| *at > next.at) {
            let since = next.at.as_secs_f64();
            let (job, epoch) = (name(story, run.work.job), run.work.epoch);
            found.push((at, format!("{job} acts under epoch {epoch}, claimed by another at {since:.3}s")));
        }
    }
    found
}

/// A process that crashed or has ended does nothing.
pub fn the_dead_do_nothing(story: &Story<'_>) -> Vec<Finding> {
    let over = |life: Life| story.lives.get(&life).and_then(Lived::over);
    let mut found = Vec::new();
    for run in &story.runs {
        let Some(over) = over(run.work.life) else { continue };
        if let Some((_, at)) = run.acts.iter().find(|(_, at)| *at > over) {
            let (job, over) = (name(story, run.work.job), over.as_secs_f64());
            found.push((*at, format!("{job} acts in a process that was gone at {over:.3}s")));
        }
    }
    found
}
