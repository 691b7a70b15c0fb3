//! Of twins only one is in scope, at every instant, and the key names it.
//!
//! A scope that lasts for a span is measured by the wall clocks of nodes. Where these jump it ends at different times for
//! different nodes, and only what the status says is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{Job, Unique};

use super::Finding;
use crate::simulation::record::{Document, What};
use crate::simulation::story::Story;
use crate::simulation::trace::name;

type Twins = (Domain, String);

/// What is in scope, and what the keys say, walking through the record.
struct Walk<'a> {
    clocks_are_right: bool,
    jobs: BTreeMap<Twins, BTreeMap<JobId, &'a Job>>,
    keys: BTreeMap<Twins, JobId>,
}

impl<'a> Walk<'a> {
    fn new(story: &Story<'a>) -> Self {
        let clocks_are_right =
            story.lives.values().all(|lived| lived.off_by_ms.iter().all(|(_, off)| *off == 0));
        Self { clocks_are_right, jobs: BTreeMap::new(), keys: BTreeMap::new() }
    }

    /// Takes in what landed; says whose twins it concerns.
    fn take(&mut self, document: &'a Document) -> Option<Twins> {
        match document {
            Document::Job { id, before, after } => {
                let job = after.as_deref().or(before.as_deref())?;
                let twins = (job.domain.clone(), job.unique.as_ref()?.key.clone());
                let jobs = self.jobs.entry(twins.clone()).or_default();
                match after {
                    Some(after) => jobs.insert(*id, after),
                    None => jobs.remove(id),
                };
                Some(twins)
            }
            Document::Key { before, after } => {
                let key = after.as_deref().or(before.as_deref())?;
                let twins = (key.domain.clone(), key.key.clone());
                match after {
                    Some(after) => self.keys.insert(twins.clone(), after.job_id),
                    None => self.keys.remove(&twins),
                };
                Some(twins)
            }
            _ => None,
        }
    }

    fn in_scope(&self, twins: &Twins, at: Duration) -> BTreeSet<JobId> {
        let jobs = self.jobs.get(twins).into_iter().flatten();
        jobs.filter(|(_, job)| self.is_in_scope(job, at)).map(|(id, _)| *id).collect()
    }

    fn is_in_scope(&self, job: &Job, at: Duration) -> bool {
        if self.clocks_are_right {
            return job.is_in_scope(Story::wall(at));
        }
        let unique = job.unique.clone().map(|unique| Unique { for_ms: None, ..unique });
        Job { unique, ..job.clone() }.is_in_scope(Story::wall(at))
    }
}

pub fn twins_are_kept_away(story: &Story<'_>) -> Vec<Finding> {
    let mut walk = Walk::new(story);
    let (mut found, mut told) = (Vec::new(), BTreeSet::new());
    for entry in story.entries {
        let What::Landed(_, change) = &entry.what else { continue };
        let Some(twins) = walk.take(&change.document) else { continue };
        let in_scope = walk.in_scope(&twins, entry.at);
        if in_scope.len() > 1 && told.insert(in_scope.clone()) {
            let names: Vec<_> = in_scope.iter().map(|id| name(story, *id)).collect();
            found.push((entry.at, format!("{} of {} are in scope at once", names.join(" and "), twins.1)));
        }
    }
    found
}

pub fn a_key_names_the_one_in_scope(story: &Story<'_>) -> Vec<Finding> {
    let mut walk = Walk::new(story);
    let (mut found, mut told) = (Vec::new(), BTreeSet::new());
    for entry in story.entries {
        let What::Landed(_, change) = &entry.what else { continue };
        let Some(twins) = walk.take(&change.document) else { continue };
        for id in walk.in_scope(&twins, entry.at) {
            if walk.keys.get(&twins) != Some(&id) && told.insert(id) {
                let (job, key) = (name(story, id), &twins.1);
                found.push((entry.at, format!("{job} is in scope of {key}, which does not name it")));
            }
        }
    }
    found
}
