//! The ledger of timers (seed 000, `executions-{domain}`): what became of each due instant.
//!
//! A record's id is derived from timer, instant and cause (rule 12), and the create decides: whoever records an instant
//! that is recorded already is told so, reads that record and goes on after its end (rule 11). So the recorder writes
//! here, the web service shows one domain's ledger, and the scheduler has just the two looks that it needs to finish
//! what somebody else began. [`crate::access`] alone makes the three.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rota_model::domain::Domain;
use rota_model::execution::{Cause, Execution, Outcome};
use rota_model::ids::{ExecutionId, JobId, TimerId};
use rota_model::time::UnixMillis;
use serde_json::json;

use crate::StoreError;
use crate::collection::{Collection, EXECUTIONS};
use crate::cursor::Cursor;
use crate::query::{Filter, Order, Query};
use crate::repository::{Created, Kept, Repository, Saved, Versioned};
use crate::seam::Key;
use crate::timers::TimerKey;

impl Kept for Execution {
    const COLLECTION: &'static Collection = &EXECUTIONS;
}

const NEWEST_FIRST: Order = Order { fields: &["due"], descending: true };

/// The recorder's side: it writes and does not read. The version that a write needs comes from whoever read.
#[derive(Clone)]
pub struct ExecutionWriter {
    executions: Repository<Execution>,
}

impl ExecutionWriter {
    pub(crate) fn new(executions: Repository<Execution>) -> Self {
        Self { executions }
    }

    /// Records an instant, unless somebody did. Then theirs counts, and [`ExecutionReader::get`] shows it.
    pub async fn record(
        &self,
        domain: &Domain,
        execution: Execution,
    ) -> Result<Created<Execution>, StoreError> {
        self.executions.create(Key::in_domain(&EXECUTIONS, domain, execution.id()), execution).await
    }

    /// Writes what became known of an instant, if nobody wrote since it was read.
    pub async fn save(&self, before: &Versioned<Execution>, after: &Execution) -> Result<Saved, StoreError> {
        self.executions.save(before, after).await
    }

    /// Hides a record, if nobody wrote since it was read. Its instant stays taken until it is purged.
    pub async fn delete(
        &self,
        execution: &Versioned<Execution>,
        at: UnixMillis,
    ) -> Result<Saved, StoreError> {
        self.executions.delete(execution, at).await
    }
}

/// What a list of executions is narrowed to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionFilter {
    pub timer: Option<TimerId>,
    pub outcome: Option<Outcome>,
    /// A run of instants counts by its first.
    pub due_after: Option<UnixMillis>,
    pub due_before: Option<UnixMillis>,
}

/// The web service's side: the ledger of one domain, to be looked at.
#[derive(Clone)]
pub struct ExecutionsOfDomain {
    executions: Repository<Execution>,
    domain: Domain,
}

impl ExecutionsOfDomain {
    pub(crate) fn new(executions: Repository<Execution>, domain: Domain) -> Self {
        Self { executions, domain }
    }

    pub async fn get(&self, id: ExecutionId) -> Result<Option<Versioned<Execution>>, StoreError> {
        self.executions.get(Key::in_domain(&EXECUTIONS, &self.domain, id)).await
    }

    /// Executions of the domain, newest first.
    pub async fn list(
        &self,
        filter: &ExecutionFilter,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<Execution>, Option<Cursor>), StoreError> {
        let mut query = self.query(filter.timer).limit(limit).after(after);
        query.filters.extend(filter.outcome.map(|outcome| Filter::Is("outcome", json!(outcome))));
        let (after, before) = (filter.due_after, filter.due_before);
        query.filters.extend(after.map(|at| Filter::AtLeast("due", at.0.saturating_add(1))));
        query.filters.extend(before.map(|at| Filter::AtMost("due", at.0.saturating_sub(1))));
        let (executions, next) = self.executions.find(query).await?;
        Ok((executions.into_iter().map(|execution| execution.document).collect(), next))
    }

    /// How many records have each outcome, of one timer or of all; those without one wait for the end of the one
    /// before. A run of instants is one record.
    pub async fn totals(&self, timer: Option<TimerId>) -> Result<BTreeMap<Option<Outcome>, u64>, StoreError> {
        self.executions.totals(self.query(timer), "outcome").await
    }

    fn query(&self, timer: Option<TimerId>) -> Query {
        let mut query = Query::new(&EXECUTIONS, NEWEST_FIRST).in_domain(&self.domain);
        query.filters.extend(timer.map(|timer| Filter::Is("timer_uuid", json!(timer))));
        query
    }
}

/// The scheduler's side, narrow on purpose. Seed 000 lets the web service alone read the ledger, for people. But an
/// instant that is recorded already has to be adopted (rule 11), and a job that was settled just before a crash has an
/// execution that does not know it yet (rule 15); whoever finishes these must see the record, and nothing beyond it.
#[derive(Clone)]
pub struct ExecutionReader {
    executions: Repository<Execution>,
}

impl ExecutionReader {
    pub(crate) fn new(executions: Repository<Execution>) -> Self {
        Self { executions }
    }

    /// The record that begins at an instant. If there is none although recording it was told that there is, somebody
    /// deleted it: the instant was dealt with all the same.
    pub async fn get(
        &self,
        timer: &TimerKey,
        due: Timestamp,
        cause: &Cause,
    ) -> Result<Option<Versioned<Execution>>, StoreError> {
        let id = ExecutionId::of(timer.uuid, due, cause);
        self.executions.get(Key::in_domain(&EXECUTIONS, &timer.domain, id)).await
    }

    /// The execution that made a job, if it was a timer that made it. It is searched for: one that was written a moment
    /// ago may not be found yet.
    pub async fn of_job(
        &self,
        domain: &Domain,
        job: JobId,
    ) -> Result<Option<Versioned<Execution>>, StoreError> {
        let query = Query::new(&EXECUTIONS, Order::BY_ID)
            .in_domain(domain)
            .filter(Filter::Is("job_id", json!(job)))
            .limit(1);
        let (found, _) = self.executions.find(query).await?;
        Ok(found.into_iter().next())
    }
}
