//! What was there before anybody lived: jobs, lines and buckets of hours ago, and how long each tenant keeps its own. A run is
//! too short for anything that happens in it to grow old; these are, or are about to be.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rota_model::Extra;
use rota_model::domain::{Domain, DomainDocument, DomainSettings};
use rota_model::ids::{JobId, LogId, NodeId};
use rota_model::job::submission::Place;
use rota_model::job::{Job, JobStatus, NewJob, Scope, Unique};
use rota_model::keep::Keep;
use rota_model::log::{Level, Log};
use rota_model::metadata::Metadata;
use rota_model::metric::{Sample, Samples};
use rota_model::time::UnixMillis;
use rota_model::unique_key::UniqueKey;
use rota_store::Store;
use rota_store::domains::Domains;
use rota_store::jobs::Jobs;
use rota_store::logs::Logs;
use rota_store::metrics::Metrics;
use rota_store::unique_keys::UniqueKeys;
use serde_json::json;

use super::forms::DOMAINS;
use super::work::{Script, TYPES};
use crate::surroundings::BEGINNING;

const HOUR_MS: u64 = 3_600_000;
/// How long buckets are kept in the simulated world.
pub const METRICS_KEPT: Keep = Keep::For(Duration::from_millis(2 * HOUR_MS));
/// Longer than any job is kept: whoever has such a key keeps others away all the time.
const SCOPE_MS: u64 = 48 * HOUR_MS;

/// What became of a job of former times.
#[derive(Clone, Copy)]
enum Former {
    Ended,
    EndedLately,
    /// It will have ended for as long as it is kept while the run goes on.
    EndsToBeOld,
    /// It ended long ago, and others like it are kept away all the same.
    EndedAndUnique,
    WaitsForLong,
    IsDue,
}

const FORMER: [Former; 8] = [
    Former::Ended,
    Former::Ended,
    Former::Ended,
    Former::EndedLately,
    Former::EndsToBeOld,
    Former::EndedAndUnique,
    Former::WaitsForLong,
    Former::IsDue,
];

pub struct Attic {
    pub store: Arc<dyn Store>,
    pub dice: StdRng,
}

impl Attic {
    /// Fills a store in which nothing goes wrong. Says which jobs there are.
    pub async fn fill(mut self, serials: impl Fn() -> u64) -> Vec<(Domain, JobId)> {
        let mut jobs = Vec::new();
        for name in DOMAINS {
            let domain: Domain = name.parse().expect("a good name");
            let kept_ms = self.keep(&domain).await;
            for nth in 0..self.dice.random_range(8..=20_u64) {
                let former = *FORMER.choose(&mut self.dice).expect("there are some");
                jobs.push((domain.clone(), self.job(&domain, former, nth, kept_ms, serials()).await));
            }
            self.lines(Some(&domain)).await;
        }
        self.lines(None).await;
        self.buckets().await;
        jobs
    }

    /// Says how long jobs are kept; some hours, where they are for ever.
    async fn keep(&mut self, domain: &Domain) -> u64 {
        let mut span = |share| {
            let hours = self.dice.random_bool(share).then(|| self.dice.random_range(1..=3));
            hours.map(|hours| Keep::For(Duration::from_millis(hours * HOUR_MS)))
        };
        let settings = DomainSettings { keep_jobs: span(0.8), keep_logs: span(0.7), weight: None };
        let kept = settings.keep_jobs.and_then(Keep::span).map_or(2 * HOUR_MS, millis);
        let document = DomainDocument::new(domain.clone(), BEGINNING.to_date(), settings);
        Domains::new(Arc::clone(&self.store)).create(document).await.expect(CALM);
        kept
    }

    async fn job(&mut self, domain: &Domain, former: Former, nth: u64, kept_ms: u64, serial: u64) -> JobId {
        let jobs = Jobs::new(Arc::clone(&self.store));
        let job_number = jobs.numbers(1).await.expect(CALM).start;
        let job_id = JobId::derived(&["former", domain.as_str(), &nth.to_string()]);
        let accepted_by = NodeId::derived(&["former"]);
        let place = Place { domain: domain.clone(), job_id, job_number, sections: 64, accepted_by };
        let made_ms = kept_ms + self.dice.random_range(HOUR_MS..6 * HOUR_MS);
        let script = Script { fails: 0, is_stubborn: false, ..Script::draw(serial, false, &mut self.dice) };
        let kind = *TYPES.choose(&mut self.dice).expect("there are types");
        let mut form = NewJob::new(format!("job {serial}"), kind, script.payload());
        let key =
            Unique { key: format!("key {}", nth % 4), scope: Scope::Unfinished, for_ms: Some(SCOPE_MS) };
        form.unique = matches!(former, Former::EndedAndUnique).then_some(key);
        form.run_at =
            matches!(former, Former::WaitsForLong).then(|| BEGINNING.plus(Duration::from_millis(SCOPE_MS)));
        let mut job = form.into_job(place, ago(made_ms));
        let ended_ms = match former {
            Former::Ended | Former::EndedAndUnique => Some(made_ms - self.dice.random_range(0..HOUR_MS / 2)),
            Former::EndedLately => Some(self.dice.random_range(0..kept_ms / 2)),
            Former::EndsToBeOld => Some(kept_ms.saturating_sub(self.dice.random_range(0..180_000))),
            Former::WaitsForLong | Former::IsDue => None,
        };
        if let Some(ended_ms) = ended_ms {
            end(&mut job, ago(ended_ms));
        }
        if let Some(unique) = job.unique.clone() {
            let (metadata, requeue) = (Metadata::new(ago(made_ms), accepted_by), None);
            let key = UniqueKey {
                domain: domain.clone(),
                key: unique.key,
                job_id,
                requeue,
                metadata,
                extra: Extra::new(),
            };
            let keys = UniqueKeys::new(Arc::clone(&self.store));
            if keys.create(key).await.expect(CALM).into_new().is_none() {
                job.unique = None;
            }
        }
        jobs.create(job).await.expect(CALM);
        job_id
    }

    async fn lines(&mut self, domain: Option<&Domain>) {
        let origin = NodeId::derived(&["former"]);
        let mut line = |nth: u64| {
            let id = LogId::derived(&["former", &format!("{domain:?} {nth}")]);
            let log =
                Log::new(Level::Info, "of former times", origin, ago(self.dice.random_range(0..4 * HOUR_MS)));
            (id, Log { domain: domain.cloned(), ..log })
        };
        let lines = (0..6).map(&mut line).collect();
        Logs::new(Arc::clone(&self.store)).append(lines).await.expect(CALM);
    }

    async fn buckets(&mut self) {
        let samples = Samples::from([("jobsProcessed".to_owned(), Sample::new(1, "jobs"))]);
        for _ in 0..8 {
            let at = ago(self.dice.random_range(1..4 * HOUR_MS));
            let metrics = Metrics::new(Arc::clone(&self.store));
            metrics.merge(NodeId::derived(&["former"]), &samples, at).await.expect(CALM);
        }
    }
}

const CALM: &str = "a store in which nothing goes wrong";

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn ago(millis: u64) -> UnixMillis {
    UnixMillis(BEGINNING.0.saturating_sub_unsigned(millis))
}

fn end(job: &mut Job, at: UnixMillis) {
    (job.status, job.epoch) = (JobStatus::Successful, 1);
    (job.started_at, job.finished_at) = (Some(job.run_at), Some(at));
    job.metadata.updated_at = at;
    job.result.insert("epoch".to_owned(), json!(1));
}
