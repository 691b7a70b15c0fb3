//! What people were told is so.

use std::collections::{BTreeMap, BTreeSet};

use rota_model::ids::JobId;
use rota_model::job::JobStatus;

use super::Finding;
use crate::simulation::record::{Accepted, Document, Kind, Reply, What};
use crate::simulation::story::Story;
use crate::simulation::trace::name;
use crate::simulation::work::Script;

/// An acknowledgement names a job that was created before.
pub fn what_is_acknowledged_exists(story: &Story<'_>) -> Vec<Finding> {
    let (mut created, mut found) = (BTreeSet::new(), Vec::new());
    for entry in story.entries {
        match &entry.what {
            What::Landed(_, change) => {
                if let Document::Job { id, .. } = &change.document {
                    created.insert(*id);
                }
            }
            What::Told(_, Reply::Submitted(answers)) => {
                for job in answers.iter().filter_map(Accepted::job).filter(|job| !created.contains(job)) {
                    found.push((entry.at, format!("job {job} is acknowledged and was never created")));
                }
            }
            _ => {}
        }
    }
    found
}

/// Whatever was lost or repeated on the way.
pub fn a_submission_makes_one_job(story: &Story<'_>) -> Vec<Finding> {
    let mut first: BTreeMap<u64, JobId> = BTreeMap::new();
    let mut found = Vec::new();
    for (id, steps) in &story.jobs {
        let Some(job) = steps.first().and_then(|step| step.after) else { continue };
        let Some(script) = Script::of(&job.input.payload) else { continue };
        if first.insert(script.serial, *id).is_some() {
            let at = steps.first().map_or(story.end, |step| step.at);
            found.push((at, format!("submission {} made another job, {id}", script.serial)));
        }
    }
    found
}

pub fn numbers_are_unique(story: &Story<'_>) -> Vec<Finding> {
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for (id, steps) in &story.jobs {
        let Some((step, job)) = steps.first().and_then(|step| Some((step, step.after?))) else { continue };
        if !seen.insert(job.job_number) {
            found.push((step.at, format!("{} has the number of another job", name(story, *id))));
        }
    }
    found
}

/// What is deleted is hidden, for longer than any run takes.
pub fn what_is_deleted_stays_away(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (id, steps) in &story.jobs {
        let mut is_deleted = false;
        for step in steps {
            if is_deleted && step.after.is_some() {
                found.push((step.at, format!("{} was deleted and is there again", name(story, *id))));
            }
            if step.kind == Kind::Purged {
                found.push((step.at, format!("{} is purged within the hour", name(story, *id))));
            }
            is_deleted = is_deleted || step.kind == Kind::Deleted;
        }
    }
    found
}

pub fn nothing_running_is_deleted(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (id, steps) in &story.jobs {
        let deletes = steps.iter().filter(|step| step.kind == Kind::Deleted);
        for step in deletes.filter(|step| step.before.is_some_and(|job| job.status == JobStatus::Started)) {
            found.push((step.at, format!("{} is deleted while it runs", name(story, *id))));
        }
    }
    found
}
