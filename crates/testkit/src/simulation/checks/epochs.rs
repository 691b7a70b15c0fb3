//! Epochs grow, each belongs to one incarnation, and results to theirs.

use std::collections::{BTreeMap, BTreeSet};

use rota_model::job::{JobEvent, JobStatus};
use serde_json::Value;

use super::Finding;
use crate::simulation::record::{What, Wish};
use crate::simulation::story::Story;
use crate::simulation::trace::name;

pub fn epochs_never_fall(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (id, steps) in &story.jobs {
        for step in steps {
            if let Some((before, after)) = step.before.zip(step.after)
                && after.epoch < before.epoch
            {
                let what =
                    format!("{} falls from epoch {} to {}", name(story, *id), before.epoch, after.epoch);
                found.push((step.at, what));
            }
        }
    }
    found
}

pub fn an_epoch_is_claimed_once(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (id, steps) in &story.jobs {
        let mut seen = BTreeSet::new();
        for (step, claimed) in steps.iter().filter_map(|step| Some((step, step.claim()?))) {
            if !seen.insert(claimed.epoch) {
                let what = format!("{} is claimed under epoch {} again", name(story, *id), claimed.epoch);
                found.push((step.at, what));
            }
        }
    }
    found
}

/// At most one handler begins for each epoch of a job, in the life whose incarnation claimed it.
pub fn a_handler_begins_once(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut begun = BTreeMap::new();
    for run in &story.runs {
        let (job, epoch) = (run.work.job, run.work.epoch);
        if begun.insert((job, epoch), run.work.life).is_some() {
            let what = format!("{} begins under epoch {epoch} once more", name(story, job));
            found.push((run.begun, what));
        }
        let claimed = story.claim(job, epoch).filter(|(step, _)| step.nth < run.nth);
        let claimer = claimed.and_then(|(_, claimed)| story.incarnations.get(&claimed.owner?));
        if claimer != Some(&run.work.life) {
            let what = format!("{} begins under epoch {epoch} where it was not claimed", name(story, job));
            found.push((run.begun, what));
        }
    }
    found
}

/// A job that ended well has the result of a handler that ended well, under its last epoch.
pub fn a_result_is_of_the_last_epoch(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (id, steps) in &story.jobs {
        for step in steps {
            let Some(after) = step.after.filter(|after| after.status == JobStatus::Successful) else {
                continue;
            };
            if after.result.get("epoch").and_then(Value::as_u64) != Some(after.epoch) {
                let what = format!(
                    "{} is SUCCESSFUL at epoch {} with the result {}",
                    name(story, *id),
                    after.epoch,
                    Value::Object(after.result.clone())
                );
                found.push((step.at, what));
            }
        }
    }
    found
}

pub fn only_a_requeue_leads_out(story: &Story<'_>) -> Vec<Finding> {
    let mut asked = BTreeSet::new();
    let mut found = Vec::new();
    for (nth, entry) in story.entries.iter().enumerate() {
        if let What::Asked(.., Wish::Requeue(job)) = &entry.what {
            asked.insert((*job, nth));
        }
    }
    for (id, steps) in &story.jobs {
        for step in steps {
            let Some((before, after)) = step.before.zip(step.after) else { continue };
            if !before.status.is_terminal() || (after.status == before.status && after.epoch == before.epoch)
            {
                continue;
            }
            let remembers = after.history.last().is_some_and(|last| last.event == JobEvent::Requeue);
            let was_asked = asked.range((*id, 0)..(*id, step.nth)).next().is_some();
            let is_next = after.status == JobStatus::Queued && after.epoch == before.epoch + 1;
            if !(remembers && was_asked && is_next) {
                let (from, to) = (before.status.as_str(), after.status.as_str());
                found.push((step.at, format!("{} goes from {from} to {to}", name(story, *id))));
            }
        }
    }
    found
}
