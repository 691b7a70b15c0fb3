//! The queue, in the words of those who use it; [`filter`]: what a list of it is narrowed to; [`queued`]: what waits of a
//! type.

mod changed;
mod filter;
mod queued;

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_model::domain::Domain;
use rota_model::ids::{ClaimToken, JobId, NodeId};
use rota_model::job::{Holder, Job, JobCounts, JobStatus};
use rota_model::time::UnixMillis;
use serde_json::{Value, json};

pub use self::filter::JobFilter;
use crate::StoreError;
use crate::collection::{Collection, JOBS};
use crate::cursor::Cursor;
use crate::hints::Changes;
use crate::limits;
use crate::query::{Filter, Order, Query};
use crate::repository::{Created, Kept, Repository, Saved, Versioned, decode, encode};
use crate::seam::{Claim, Document, Fields, Key, Store, Version, Write};
use crate::sequences;

impl Kept for Job {
    const COLLECTION: &'static Collection = &JOBS;

    fn changed(before: &Self, after: &Self) -> Option<Fields> {
        changed::fields(before, after)
    }
}

const DUE_FIRST: Order = Order { fields: &["runAt", "jobNumber"], descending: false };
const OLDEST_FIRST: Order = Order { fields: &["metadata.createdAt", "jobNumber"], descending: false };
const EXPIRING_FIRST: Order = Order { fields: &["expiresAt"], descending: false };

const BY_OWNER: Order = Order { fields: &["owner"], descending: false };
const BY_LANE: Order = Order { fields: &["lane", "runAt", "jobNumber"], descending: false };

/// Some of the lanes in which jobs wait, and when the first in each is due. Jobs that older versions stored have no lane.
#[derive(Clone, Debug)]
pub struct LanePage {
    pub lanes: Vec<(Option<String>, UnixMillis)>,
    /// Behind which lane there are more, if there may be.
    pub next: Option<String>,
}

/// How many jobs a claim takes at most from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    pub lane: Option<String>,
    /// Of these types alone.
    pub types: Vec<String>,
    pub limit: usize,
}

/// A job whose document cannot be decoded, or not be written any more.
#[derive(Clone, Debug)]
pub struct Unreadable {
    pub key: Key,
    pub version: Version,
    /// The node that holds it, if that can be read.
    pub holder: Option<NodeId>,
    pub error: StoreError,
}

/// A page of jobs that somebody holds.
#[derive(Clone, Debug, Default)]
pub struct Held {
    pub jobs: Vec<Versioned<Job>>,
    pub unreadable: Vec<Unreadable>,
    pub next: Option<Cursor>,
}

impl Held {
    fn of(documents: Vec<Document>, next: Option<Cursor>) -> Self {
        let mut held = Self { next, ..Self::default() };
        for document in documents {
            let (key, version) = (document.key.clone(), document.version);
            let holder = document.body.get("ownerNode").and_then(|node| node.as_str()?.parse().ok());
            match decode(document) {
                Ok(job) => held.jobs.push(job),
                Err(error) => held.unreadable.push(Unreadable { key, version, holder, error }),
            }
        }
        held
    }
}

#[derive(Clone)]
pub struct Jobs {
    jobs: Repository<Job>,
}

impl Jobs {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { jobs: Repository::new(store) }
    }

    /// Stores a new job. On return it is durable.
    pub async fn create(&self, job: Job) -> Result<Created<Job>, StoreError> {
        self.jobs.create(key(&job), job).await
    }

    /// Stores a new job of which the caller keeps its own. None if the id was taken.
    pub async fn create_as(&self, job: &Job) -> Result<Option<Version>, StoreError> {
        self.jobs.create_as(key(job), job).await
    }

    /// Stores new jobs, each on its own, and says of each what [`Jobs::create_as`] would. On return they are durable.
    pub async fn create_all(&self, jobs: &[Job]) -> Result<Vec<Option<Version>>, StoreError> {
        self.jobs.create_all(jobs.iter().map(|job| (key(job), job))).await
    }

    /// Whether any store takes a new job.
    pub fn check_new(job: &Job) -> Result<(), StoreError> {
        limits::check_writes(&[Write::Create { key: key(job), body: encode(job)? }])
    }

    /// A job of this domain; another domain's job is not there.
    pub async fn get(&self, domain: &Domain, id: JobId) -> Result<Option<Versioned<Job>>, StoreError> {
        let found = self.jobs.get(Key::new(&JOBS, id)).await?;
        Ok(found.filter(|job| job.document.domain == *domain))
    }

    /// A job of whatever domain, for those who run it.
    pub async fn get_any(&self, id: JobId) -> Result<Option<Versioned<Job>>, StoreError> {
        self.jobs.get(Key::new(&JOBS, id)).await
    }

    /// Those of the jobs that are there.
    pub async fn get_all(&self, ids: Vec<String>) -> Result<Vec<Versioned<Job>>, StoreError> {
        self.jobs.get_all(ids.into_iter().map(|id| Key::new(&JOBS, id)).collect()).await
    }

    /// One for each id, in the order given: none where there is no such job, or it cannot be decoded, which is told to the
    /// operator.
    pub async fn get_each(&self, ids: &[JobId]) -> Result<Vec<Option<Versioned<Job>>>, StoreError> {
        self.jobs.get_each(ids.iter().map(|id| Key::new(&JOBS, id)).collect()).await
    }

    /// Jobs of a domain, newest first.
    pub async fn list(
        &self,
        domain: &Domain,
        filter: &JobFilter,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<Job>, Option<Cursor>), StoreError> {
        let (jobs, next) = self.jobs.find(filter.query(domain).limit(limit).after(after)).await?;
        Ok((jobs.into_iter().map(|job| job.document).collect(), next))
    }

    /// How many jobs have each status, in a domain or in all; a status that no job has is left out.
    pub async fn totals(&self, domain: Option<&Domain>) -> Result<BTreeMap<JobStatus, u64>, StoreError> {
        let mut query = Query::new(&JOBS, Order::BY_ID);
        query.filters.extend(domain.map(|domain| Filter::Is("domain", json!(domain))));
        self.jobs.totals(query, "status").await
    }

    /// How many jobs a domain has, by status and type. The totals are kept: it takes no longer where there are many jobs.
    pub async fn counts(&self, domain: &Domain) -> Result<JobCounts, StoreError> {
        let mut counts = JobCounts::default();
        for status in JobStatus::ALL {
            let query = Query::new(&JOBS, Order::BY_ID)
                .filter(Filter::Is("domain", json!(domain)))
                .filter(Filter::Is("status", json!(status)));
            let of_types: BTreeMap<String, u64> = self.jobs.totals(query, "input.type").await?;
            for (kind, count) in of_types {
                counts.add(kind, status, count);
            }
        }
        Ok(counts)
    }

    /// How many jobs of each type wait, in all domains.
    pub async fn waiting(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let query = Query::new(&JOBS, Order::BY_ID).filter(Filter::Is("status", json!(JobStatus::Queued)));
        self.jobs.totals(query, "input.type").await
    }

    /// Takes due jobs for a holder, from one lane after the other, each under its next epoch; of these sections alone, if any
    /// are given.
    pub async fn claim_due(
        &self,
        now: UnixMillis,
        holder: Holder,
        from: &[Share],
        sections: Option<&[u32]>,
        token: ClaimToken,
        max: usize,
    ) -> Result<Vec<Versioned<Job>>, StoreError> {
        let among = sections
            .map(|sections| Filter::In("section", sections.iter().map(|section| json!(section)).collect()));
        let due = |share: &Share| {
            let mut query = due(share, now);
            query.filters.extend(among.clone());
            query
        };
        let claimed = self.jobs.store().claim(Claim {
            collection: &JOBS,
            from: from.iter().map(due).collect(),
            max,
            set: vec![
                ("status", json!(JobStatus::Started)),
                ("owner", json!(holder.incarnation)),
                ("ownerNode", json!(holder.node)),
                ("startedAt", json!(now)),
                ("metadata.updatedAt", json!(now)),
                ("metadata.updatedBy", json!(holder.node)),
            ],
            add_one: Some("epoch"),
            token: ("claimToken", token),
        });
        Ok(self.decode_all(claimed.await?, now).await)
    }

    /// Jobs that wait and should have begun by now, the earliest first: [`Job::is_expired`], asked of the store.
    pub async fn expired(&self, now: UnixMillis, limit: usize) -> Result<Vec<Versioned<Job>>, StoreError> {
        let query = Query::new(&JOBS, EXPIRING_FIRST)
            .filter(Filter::Is("status", json!(JobStatus::Queued)))
            .filter(Filter::Is("attempt", json!(1)))
            .filter(Filter::Is("lost", json!(0)))
            .filter(Filter::AtMost("expiresAt", now.0))
            .limit(limit);
        let page = self.jobs.store().find(query).await?;
        Ok(self.decode_all(page.documents, now).await)
    }

    /// Those that can be decoded; the others are set aside, so that they do not stand in the way for ever. Where that fails,
    /// they are found again, and those that were claimed beside them are run all the same.
    async fn decode_all(&self, documents: Vec<Document>, now: UnixMillis) -> Vec<Versioned<Job>> {
        let mut jobs = Vec::with_capacity(documents.len());
        for document in documents {
            let (key, version) = (document.key.clone(), document.version);
            match decode(document) {
                Ok(job) => jobs.push(job),
                Err(error) => {
                    let unreadable = Unreadable { key, version, holder: None, error };
                    if let Err(error) = self.set_aside(unreadable, now).await {
                        tracing::warn!(%error, "it cannot be set aside now");
                    }
                }
            }
        }
        jobs
    }

    /// A job that cannot be decoded, or not be written, never gets a fair run: it ends as ERROR, and the others go on. Who comes too late finds
    /// another version, and leaves it alone.
    pub async fn set_aside(&self, job: Unreadable, now: UnixMillis) -> Result<(), StoreError> {
        tracing::error!(error = %job.error, "a job cannot be dealt with and is set aside");
        let fields = vec![
            ("status", json!(JobStatus::Error)),
            ("result", json!({"error": job.error.to_string()})),
            ("owner", Value::Null),
            ("claimToken", Value::Null),
            ("finishedAt", json!(now)),
            ("metadata.updatedAt", json!(now)),
        ];
        let Unreadable { key, version, .. } = job;
        self.jobs.store().write(vec![Write::Change { key, version, fields }]).await.map(|_| ())
    }

    /// Who holds jobs, by the incarnations that stand in them; none for a job that names nobody. It takes a step for each holder,
    /// however many jobs they hold.
    pub async fn holders(&self) -> Result<Vec<Option<String>>, StoreError> {
        let holder = |job: Document| Some(job.body.get("owner")?.as_str()?.to_owned());
        let (mut holders, mut after) = (Vec::new(), None);
        loop {
            let firsts = started(BY_OWNER).firsts().limit(limits::MAX_PAGE).after(after);
            let page = self.jobs.store().find(firsts).await?;
            holders.extend(page.documents.into_iter().map(holder));
            after = page.next;
            if after.is_none() {
                return Ok(holders);
            }
        }
    }

    /// The jobs that somebody holds; those that cannot be decoded apart.
    pub async fn held_by(
        &self,
        holder: Option<&str>,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<Held, StoreError> {
        let by = holder.map_or(Filter::Absent("owner"), |holder| Filter::Is("owner", json!(holder)));
        let page = self.jobs.store().find(started(BY_OWNER).filter(by).limit(limit).after(after)).await?;
        Ok(Held::of(page.documents, page.next))
    }

    /// What somebody holds, by name alone: whoever has seen a job at this version knows what it says.
    pub async fn keys_held_by(
        &self,
        holder: &str,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<(Key, Version)>, Option<Cursor>), StoreError> {
        let query = started(BY_OWNER).filter(Filter::Is("owner", json!(holder))).limit(limit).after(after);
        let page = self.jobs.store().find(query.keys_only()).await?;
        let keys = page.documents.into_iter().map(|document| (document.key, document.version));
        Ok((keys.collect(), page.next))
    }

    /// Those of these jobs that somebody holds now.
    pub async fn held_among(&self, holder: &str, keys: Vec<Key>) -> Result<Held, StoreError> {
        if keys.is_empty() {
            return Ok(Held::default());
        }
        let says = |document: &Document, field: &str, value: &str| {
            document.body.get(field).and_then(Value::as_str) == Some(value)
        };
        let is_held = |document: &Document| {
            says(document, "status", JobStatus::Started.as_str()) && says(document, "owner", holder)
        };
        let found = self.jobs.store().read(keys).await?;
        Ok(Held::of(found.into_iter().flatten().filter(is_held).collect(), None))
    }

    /// The lanes in which jobs wait, in their order, each with the earliest instant at which one of them is due: some of
    /// those behind a lane, or the first of all. Jobs without a lane come before those with an empty one, which nobody has.
    pub async fn lanes(&self, behind: Option<&str>, limit: usize) -> Result<LanePage, StoreError> {
        let waiting = Filter::Is("status", json!(JobStatus::Queued));
        let query = Query::new(&JOBS, BY_LANE).filter(waiting).firsts().limit(limit);
        let last = |lane| vec![json!(lane), json!(i64::MAX), json!(i64::MAX), json!("")];
        let after = behind.map(|lane| Cursor::behind_key(last(lane), &query));
        let query = query.after(after);
        let page = self.jobs.store().find(query).await?;
        let first = |document: Document| {
            let lane = document.body.get("lane").and_then(|lane| Some(lane.as_str()?.to_owned()));
            let run_at = document.body.get("runAt").and_then(Value::as_i64).unwrap_or_default();
            (lane, UnixMillis(run_at))
        };
        let behind = |cursor: Cursor| cursor.key.first().and_then(|lane| Some(lane.as_str()?.to_owned()));
        let next = page.next.map(|cursor| behind(cursor).unwrap_or_default());
        Ok(LanePage { lanes: page.documents.into_iter().map(first).collect(), next })
    }

    /// Writes a change of a job, if nobody wrote since it was read.
    pub async fn save(&self, before: &Versioned<Job>, after: &Job) -> Result<Saved, StoreError> {
        self.jobs.save(before, after).await
    }

    /// Writes changes of jobs, each on its own, where nobody wrote since it was read.
    pub async fn save_all<'a>(
        &self,
        changes: impl Iterator<Item = (&'a Versioned<Job>, &'a Job)>,
    ) -> Result<Vec<Saved>, StoreError> {
        self.jobs.save_all(changes).await
    }

    /// Writes changes that must not be held up: a job that the store does not take as it is to be is set aside, and the
    /// others are written. Says how many were; who was overtaken was not.
    pub async fn save_or_set_aside(
        &self,
        changes: &[(Versioned<Job>, Job)],
        now: UnixMillis,
    ) -> Result<usize, StoreError> {
        let saved = self.save_all(changes.iter().map(|(before, after)| (before, after))).await;
        match (saved, changes) {
            (Ok(saved), _) => Ok(saved.iter().filter(|saved| matches!(saved, Saved::Applied(_))).count()),
            (Err(error @ StoreError::Refused { .. }), [(job, _)]) => {
                let unwritable =
                    Unreadable { key: job.key.clone(), version: job.version, holder: None, error };
                self.set_aside(unwritable, now).await.map(|()| 0)
            }
            (Err(StoreError::Refused { .. }), several) => {
                let mut written = 0;
                for one in several.chunks(1) {
                    written += Box::pin(self.save_or_set_aside(one, now)).await?;
                }
                Ok(written)
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Hides a job, if nobody wrote since it was read. Its id stays taken until it is purged (rule 10), so that a create
    /// that was under way does not bring it back.
    pub async fn delete(&self, job: &Versioned<Job>, at: UnixMillis) -> Result<Saved, StoreError> {
        self.jobs.delete(job, at).await
    }

    /// What a filter names for deleting, newest first: no job that a node runs is among it.
    pub async fn keys_to_delete(
        &self,
        domain: &Domain,
        filter: &JobFilter,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<(Key, Version)>, Option<Cursor>), StoreError> {
        let mut query = filter.query(domain).limit(limit).after(after).keys_only();
        match filter.status {
            Some(JobStatus::Started) => return Ok((Vec::new(), None)),
            Some(_) => {}
            None => {
                let others = JobStatus::ALL.into_iter().filter(|status| *status != JobStatus::Started);
                query = query.filter(Filter::In("status", others.map(|status| json!(status)).collect()));
            }
        }
        let page = self.jobs.store().find(query).await?;
        let keys = page.documents.into_iter().map(|document| (document.key, document.version));
        Ok((keys.collect(), page.next))
    }

    /// Jobs of a domain that were made at `from` or later and before `before`, whatever became of them, the oldest first.
    pub async fn oldest(
        &self,
        domain: &Domain,
        from: UnixMillis,
        before: UnixMillis,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<Versioned<Job>>, Option<Cursor>), StoreError> {
        let query = Query::new(&JOBS, OLDEST_FIRST)
            .filter(Filter::Is("domain", json!(domain)))
            .filter(Filter::AtLeast("metadata.createdAt", from.0))
            .filter(Filter::AtMost("metadata.createdAt", before.0.saturating_sub(1)));
        self.jobs.find(query.limit(limit).after(after)).await
    }

    /// Hides jobs, each on its own, where nobody wrote since its key was found.
    pub async fn delete_all(
        &self,
        jobs: Vec<(Key, Version)>,
        at: UnixMillis,
    ) -> Result<Vec<Saved>, StoreError> {
        self.jobs.delete_all(jobs, at).await
    }

    /// Numbers for new jobs.
    pub async fn numbers(&self, n: u64) -> Result<std::ops::Range<u64>, StoreError> {
        self.jobs.store().sequence(sequences::JOBS, n).await
    }

    pub fn changes(&self) -> Changes {
        self.jobs.store().changes(&JOBS)
    }
}

/// The name of a job.
pub fn key(job: &Job) -> Key {
    Key::new(&JOBS, job.job_id)
}

fn started(order: Order) -> Query {
    Query::new(&JOBS, order).filter(Filter::Is("status", json!(JobStatus::Started)))
}

fn due(share: &Share, now: UnixMillis) -> Query {
    let lane = &share.lane;
    let types = share.types.iter().map(|kind| json!(kind)).collect();
    Query::new(&JOBS, DUE_FIRST)
        .filter(Filter::Is("status", json!(JobStatus::Queued)))
        .filter(lane.as_ref().map_or(Filter::Absent("lane"), |lane| Filter::Is("lane", json!(lane))))
        .filter(Filter::AtMost("runAt", now.0))
        .filter(Filter::In("input.type", types))
        .limit(share.limit)
}
