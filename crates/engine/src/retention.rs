//! What is kept no longer goes: jobs that ended long ago, where their domain says so; log lines; metrics.
//!
//! **In slices that disturb nobody.** A round goes through everything that has a span. It takes one small slice after the other, rests
//! after each for as long as that took, and stops for this tick when its time is up: whoever writes meanwhile waits for one
//! slice at most, and the store has half of its time for others even while a million jobs go.
//!
//! **Jobs** are walked through by their age, from the oldest on, in pages of bounded cost whatever they hold. Those that have not ended,
//! or ended lately, stay behind; so that they are not looked at again and again, the next round begins where the last one got
//! to, and only now and then at the very beginning. What goes is hidden at once and purged an hour later (rule 10), by the version that was seen:
//! a job that somebody requeues at this moment stays.
//!
//! **Time** is that of a clock that nobody put forward ([`crate::maintenance`]): who sets a clock ahead by a year loses nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::job::Job;
use rota_model::keep::Keep;
use rota_model::time::UnixMillis;
use rota_store::collection::{LOGS, METRICS, Retention as Kept};
use rota_store::cursor::Cursor;
use rota_store::domains::Domains;
use rota_store::jobs::Jobs;
use rota_store::query::Filter;
use rota_store::repository::Saved;
use rota_store::{Store, StoreError, Versioned, sweep};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::flaws::Flaw;
use crate::meter::Count;
use crate::surroundings::Surroundings;

/// How many documents go at a time.
const SLICE: usize = 200;
/// How long a tick may take, rests and all.
const TICK: Duration = Duration::from_millis(500);
/// How often a round begins.
const EVERY: Duration = Duration::from_secs(60);
/// How often it begins with the oldest jobs of all.
const FROM_THE_BEGINNING: Duration = Duration::from_secs(60 * 60);

pub(crate) struct Retention {
    store: Arc<dyn Store>,
    jobs: Jobs,
    domains: Domains,
    surroundings: Surroundings,
    /// What is left of the round that is under way.
    round: VecDeque<Errand>,
    /// When the next one begins, by the clock that only goes forward.
    next: Duration,
    /// How far the jobs of a domain were walked through.
    walked: BTreeMap<Domain, Walked>,
}

/// One thing to be done in a round.
enum Errand {
    Jobs {
        domain: Domain,
        before: UnixMillis,
        after: Option<Cursor>,
    },
    /// Those of the installation, if no domain is given.
    Logs {
        domain: Option<Domain>,
        before: UnixMillis,
    },
    Metrics {
        before: UnixMillis,
    },
}

#[derive(Clone, Copy)]
struct Walked {
    /// All that were made before were looked at.
    to: UnixMillis,
    /// When the walk last began at the beginning.
    began: Duration,
}

impl Retention {
    pub(crate) fn new(store: Arc<dyn Store>, surroundings: Surroundings) -> Self {
        Self {
            jobs: Jobs::new(Arc::clone(&store)),
            domains: Domains::new(Arc::clone(&store)),
            store,
            next: surroundings.elapsed() + EVERY,
            surroundings,
            round: VecDeque::new(),
            walked: BTreeMap::new(),
        }
    }

    /// To be called about every second, with the time.
    pub(crate) async fn tick(&mut self, now: UnixMillis) -> Result<(), StoreError> {
        if self.round.is_empty() {
            if self.surroundings.elapsed() < self.next {
                return Ok(());
            }
            self.round = self.errands(now).await?;
            self.next = self.surroundings.elapsed() + EVERY;
        }
        let began = Instant::now();
        while let Some(errand) = self.round.pop_front() {
            let slice = Instant::now();
            if let Some(rest) = self.run(errand, now).await? {
                self.round.push_front(rest);
            }
            if began.elapsed() > TICK {
                break;
            }
            sleep(slice.elapsed()).await;
        }
        Ok(())
    }

    /// What a round has to do.
    async fn errands(&mut self, now: UnixMillis) -> Result<VecDeque<Errand>, StoreError> {
        let (mut errands, domains) = (VecDeque::new(), self.domains.all().await?);
        self.walked.retain(|domain, _| domains.iter().any(|known| known.name == *domain));
        let keeps_lines = self.surroundings.journal().is_on();
        if let Some(before) = logs_by_default().before(now).filter(|_| keeps_lines) {
            errands.push_back(Errand::Logs { domain: None, before });
        }
        if let Some(before) = self.surroundings.meter().kept().and_then(|kept| kept.before(now)) {
            errands.push_back(Errand::Metrics { before });
        }
        for document in domains {
            let lines = document.keep_logs.unwrap_or(logs_by_default());
            if let Some(before) = lines.before(now).filter(|_| keeps_lines) {
                errands.push_back(Errand::Logs { domain: Some(document.name.clone()), before });
            }
            if let Some(before) = document.keep_jobs.and_then(|kept| kept.before(now)) {
                errands.push_back(Errand::Jobs { domain: document.name, before, after: None });
            }
        }
        Ok(errands)
    }

    /// One slice. Gives back what is left of the errand.
    async fn run(&mut self, errand: Errand, now: UnixMillis) -> Result<Option<Errand>, StoreError> {
        let store = &*self.store;
        let (gone, rest) = match errand {
            Errand::Jobs { domain, before, after } => self.clear_jobs(domain, before, after, now).await?,
            Errand::Logs { domain, before } => {
                let of = domain.as_ref();
                let whose = of.map_or(Filter::Absent("domain"), |domain| Filter::Is("domain", json!(domain)));
                let gone = sweep::delete_older_of(store, &LOGS, Some(whose), before, now, SLICE).await?;
                (gone, (gone > 0).then_some(Errand::Logs { domain, before }))
            }
            Errand::Metrics { before } => {
                let gone = sweep::delete_older(store, &METRICS, before, now, SLICE).await?;
                (gone, (gone > 0).then_some(Errand::Metrics { before }))
            }
        };
        self.surroundings.meter().count(Count::Cleared, gone);
        Ok(rest)
    }

    async fn clear_jobs(
        &mut self,
        domain: Domain,
        before: UnixMillis,
        after: Option<Cursor>,
        now: UnixMillis,
    ) -> Result<(u64, Option<Errand>), StoreError> {
        let walked = self.walk(&domain);
        let (found, next) = self.jobs.oldest(&domain, walked.to, before, SLICE, after).await?;
        let last = found.last().map(|job| job.document.metadata.created_at);
        let over = found.into_iter().filter(|job| self.is_over(&job.document, before, now));
        let over: Vec<_> = over.map(|Versioned { key, version, .. }| (key, version)).collect();
        let gone = if over.is_empty() { Vec::new() } else { self.jobs.delete_all(over, now).await? };
        let gone = gone.iter().filter(|saved| matches!(saved, Saved::Applied(_))).count() as u64;
        if let (None, Some(to)) = (&next, last) {
            self.walked.insert(domain.clone(), Walked { to, ..walked });
        }
        Ok((gone, next.map(|next| Errand::Jobs { domain, before, after: Some(next) })))
    }

    /// Whether a job that is old may go: it has ended, and that long ago, and its unique key keeps nobody away any more. One that a
    /// timer made will have to wait here until its execution has the outcome (rule 10).
    fn is_over(&self, job: &Job, before: UnixMillis, now: UnixMillis) -> bool {
        let ended = job.finished_at.unwrap_or(job.metadata.updated_at);
        let has_ended = job.status.is_terminal() || self.surroundings.has(Flaw::ClearsByAge);
        let keeps_away = job.is_in_scope(now) && !self.surroundings.has(Flaw::ClearsInScope);
        has_ended && ended < before && !keeps_away
    }

    /// From where on the jobs of a domain are to be looked at.
    fn walk(&mut self, domain: &Domain) -> Walked {
        let now = self.surroundings.elapsed();
        let anew = Walked { to: UnixMillis(0), began: now };
        let known = self.walked.get(domain).copied();
        let walked =
            known.filter(|walked| now.saturating_sub(walked.began) < FROM_THE_BEGINNING).unwrap_or(anew);
        self.walked.insert(domain.clone(), walked);
        walked
    }
}

/// How long lines are kept, unless a domain says otherwise.
fn logs_by_default() -> Keep {
    match LOGS.kept {
        Kept::ForEver => Keep::Forever,
        Kept::For { span, .. } => Keep::For(span),
    }
}
