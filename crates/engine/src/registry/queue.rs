//! Which jobs are in the way of a change: those that wait, and would be refused or left alone by it. The queue is gone
//! through in pages, and the thread is given up between them; whoever submits or claims meanwhile waits for no more.

use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::submission::MAX_PRIORITY;
use rota_store::StoreError;
use serde_json::Value;
use tokio::task::yield_now;

use super::TypeRegistry;
use crate::patience::persevere;
use crate::schema::Schema;

/// How many jobs are looked at in one go.
const PAGE: usize = 500;
/// How much checking is done in one go.
pub(crate) const TURN: u64 = 500_000;
/// How many jobs are named.
const NAMED: usize = 20;

/// Jobs that wait and are in the way of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InTheWay {
    /// How many; about, where jobs come and go meanwhile.
    pub count: u64,
    /// The first of them.
    pub ids: Vec<JobId>,
}

impl TypeRegistry {
    /// The jobs of a type that wait and do not fit a schema; all that wait, if there is none.
    pub(super) async fn in_the_way(
        &self,
        domain: &Domain,
        kind: &str,
        schema: Option<&Schema>,
    ) -> Result<InTheWay, StoreError> {
        let mut found = InTheWay::default();
        for priority in (0..=MAX_PRIORITY).rev().map(Some).chain([None]) {
            let mut after = None;
            loop {
                let page = |_| self.jobs.queued(domain, kind, priority, PAGE, after.clone());
                let (jobs, next) = persevere("look through the queue", page).await?;
                let mut spent = 0;
                for job in jobs {
                    let payload = Value::Object(job.input.payload);
                    spent += schema.map_or(1, |schema| schema.effort(&payload));
                    if spent > TURN {
                        yield_now().await;
                        spent = 0;
                    }
                    if schema.is_none_or(|schema| !schema.fits(&payload)) {
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
}

impl InTheWay {
    fn add(&mut self, id: JobId) {
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
