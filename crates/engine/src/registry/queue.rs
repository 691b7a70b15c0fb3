//! What is in the way of a change: jobs that wait, and timers that are going to make some, which would be refused or left
//! alone by it. Queue and timers are gone through in pages, and the thread is given up between them; whoever submits or
//! claims meanwhile waits for no more.

use rota_model::domain::Domain;
use rota_model::ids::{JobId, TimerId};
use rota_model::job::submission::MAX_PRIORITY;
use rota_model::timer::{Timer, TimerStatus};
use rota_store::timers::TimerFilter;
use rota_store::{StoreError, Versioned};
use serde_json::{Value, json};
use tokio::task::yield_now;

use super::TypeRegistry;
use crate::patience::persevere;
use crate::schema::Schema;

/// How many jobs or timers are looked at in one go.
const PAGE: usize = 500;
/// How much checking is done in one go.
pub(crate) const TURN: u64 = 500_000;
/// How many jobs, and how many timers, are named.
const NAMED: usize = 20;

/// What is in the way of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InTheWay {
    /// Jobs that wait.
    pub jobs: Several<JobId>,
    /// Timers with instants to come, paused ones too.
    pub timers: Several<TimerId>,
}

/// Some of a kind, of which not all are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Several<T> {
    /// How many; about, where they come and go meanwhile.
    pub count: u64,
    /// The first of them.
    pub ids: Vec<T>,
}

impl InTheWay {
    pub fn is_empty(&self) -> bool {
        self.jobs.count == 0 && self.timers.count == 0
    }
}

/// Goes through payloads with one schema, and gives the thread up when that was much.
struct Sieve<'a> {
    schema: Option<&'a Schema>,
    spent: u64,
}

impl Sieve<'_> {
    /// Whether a payload is in the way: it does not fit, or there is no schema that it could fit.
    async fn catches(&mut self, payload: &Value) -> bool {
        self.spent += self.schema.map_or(1, |schema| schema.effort(payload));
        if self.spent > TURN {
            yield_now().await;
            self.spent = 0;
        }
        self.schema.is_none_or(|schema| !schema.fits(payload))
    }
}

impl TypeRegistry {
    /// The jobs and timers of a type that do not fit a schema; all of them, if there is none.
    pub(super) async fn in_the_way(
        &self,
        domain: &Domain,
        kind: &str,
        schema: Option<&Schema>,
    ) -> Result<InTheWay, StoreError> {
        let mut sieve = Sieve { schema, spent: 0 };
        Ok(InTheWay {
            jobs: self.jobs_in_the_way(domain, kind, &mut sieve).await?,
            timers: self.timers_in_the_way(domain, kind, &mut sieve).await?,
        })
    }

    async fn jobs_in_the_way(
        &self,
        domain: &Domain,
        kind: &str,
        sieve: &mut Sieve<'_>,
    ) -> Result<Several<JobId>, StoreError> {
        let mut found = Several::default();
        for priority in (0..=MAX_PRIORITY).rev().map(Some).chain([None]) {
            let mut after = None;
            loop {
                let page = |_| self.jobs.queued(domain, kind, priority, PAGE, after.clone());
                let (jobs, next) = persevere("look through the queue", page).await?;
                for job in jobs {
                    if sieve.catches(&Value::Object(job.input.payload)).await {
                        found.add(job.job_id);
                    }
                }
                yield_now().await;
                match next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
        }
        Ok(found)
    }

    async fn timers_in_the_way(
        &self,
        domain: &Domain,
        kind: &str,
        sieve: &mut Sieve<'_>,
    ) -> Result<Several<TimerId>, StoreError> {
        let timers = self.service.timers(domain);
        let filter = TimerFilter { kind: Some(kind.to_owned()), ..TimerFilter::default() };
        let (mut found, mut after) = (Several::default(), None);
        loop {
            let page = |_| timers.list(&filter, PAGE, after.clone());
            let (listed, next) = persevere("look through the timers", page).await?;
            for timer in listed.iter().filter(|timer| timer.document.status != TimerStatus::Completed) {
                if sieve.catches(&payload_of(timer)).await {
                    found.add(timer.timer_key()?.uuid);
                }
            }
            yield_now().await;
            match next {
                Some(next) => after = Some(next),
                None => return Ok(found),
            }
        }
    }
}

/// What the jobs of a timer are made with.
fn payload_of(timer: &Versioned<Timer>) -> Value {
    timer.document.task.payload.clone().unwrap_or_else(|| json!({}))
}

impl<T> Default for Several<T> {
    fn default() -> Self {
        Self { count: 0, ids: Vec::new() }
    }
}

impl<T: PartialEq> Several<T> {
    fn add(&mut self, id: T) {
        // One that is put back while the queue is gone through is come upon again.
        if self.ids.contains(&id) {
            return;
        }
        self.count += 1;
        if self.ids.len() < NAMED {
            self.ids.push(id);
        }
    }
}
