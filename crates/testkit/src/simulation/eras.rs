//! What types limited, and since when: limits come, change and go while jobs run.
//!
//! A change holds once everybody has heard of it. A process that lives hears soon, unless something keeps it from that; one
//! that starts later finds it there. What is set before anybody lives holds from the beginning.

use std::collections::BTreeMap;
use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::job::Job;
use rota_model::job_type::{Bounds, JobType, TypeLimits};
use rota_model::limit::LimitName;

/// The limits of each type, with the instants from which on they were so.
#[derive(Default)]
pub struct Eras(BTreeMap<(Domain, String), Vec<(Duration, TypeLimits)>>);

/// How long one limit stayed as it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Era {
    pub from: Duration,
    pub to: Duration,
    pub bounds: Bounds,
}

impl Eras {
    /// A type was written.
    pub fn note(&mut self, at: Duration, before: Option<&JobType>, after: Option<&JobType>) {
        let Some(known) = after.or(before) else { return };
        let Some(domain) = known.domain.clone() else { return };
        let limits = after.map(JobType::limits).unwrap_or_default();
        let eras = self.0.entry((domain, known.kind.clone())).or_default();
        if eras.is_empty() && !at.is_zero() {
            eras.push((Duration::ZERO, TypeLimits::default()));
        }
        eras.push((at, limits));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn of(&self, job: &Job) -> &[(Duration, TypeLimits)] {
        self.0.get(&(job.domain.clone(), job.input.kind.clone())).map_or(&[], Vec::as_slice)
    }

    /// The limits that a job was under at any time.
    pub fn names(&self, job: &Job) -> Vec<LimitName> {
        let under = |(_, limits): &(Duration, TypeLimits)| {
            let key = job.limit_key.as_deref();
            limits.of(&job.domain, &job.input.kind, key).map(|(name, _)| name).collect::<Vec<_>>()
        };
        let mut names: Vec<_> = self.of(job).iter().flat_map(under).collect();
        names.sort();
        names.dedup();
        names
    }

    /// How a limit changed over time, up to the end.
    pub fn of_limit(&self, name: &LimitName, end: Duration) -> Vec<Era> {
        let known = self.0.get(&(name.domain.clone(), name.kind.clone())).map_or(&[][..], Vec::as_slice);
        let mut eras: Vec<Era> = Vec::new();
        for (from, limits) in known {
            let bounds = limits.bounds(name);
            match eras.last_mut() {
                Some(last) if last.bounds == bounds => {}
                last => {
                    last.into_iter().for_each(|last| last.to = *from);
                    eras.push(Era { from: *from, to: end, bounds });
                }
            }
        }
        eras
    }

    /// Whether something limited a job at any time.
    pub fn ever_limit(&self, job: &Job) -> bool {
        self.of(job).iter().any(|(_, limits)| limits.apply_to(job.limit_key.is_some()))
    }

    /// The limits that a job is under at the end, and since when they are as they are.
    pub fn last(&self, job: &Job) -> Vec<(LimitName, Duration, Bounds)> {
        let Some((since, limits)) = self.of(job).last() else { return Vec::new() };
        let key = job.limit_key.as_deref();
        limits.of(&job.domain, &job.input.kind, key).map(|(name, bounds)| (name, *since, bounds)).collect()
    }

    /// How often a limit changed while somebody lived.
    pub fn changes(&self) -> u64 {
        let changes = |eras: &Vec<(Duration, TypeLimits)>| {
            eras.iter().zip(eras.iter().skip(1)).filter(|((_, one), (_, next))| one != next).count() as u64
        };
        self.0.values().map(changes).sum()
    }
}
