//! People: they come to the desk of some node, ask for something, wait for a while and are told something or nothing. What
//! they ask is done by a task of that node and dies with it; they themselves live on, and some ask again.

use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rota_engine::desk::{JobDesk, SubmitError, Submitted};
use rota_model::backoff::Backoff;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{NewJob, Scope, Unique};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::plan::{Errand, Plan};
use super::process::{Front, Fronts};
use super::record::{Accepted, Notebook, Reply, Submission, What, Wish};
use super::work::{Script, TYPES};
use crate::surroundings::BEGINNING;

#[derive(Clone)]
pub struct People {
    notes: Notebook,
    fronts: Fronts,
    plan: Arc<Plan>,
    counters: Arc<Counters>,
    /// The jobs that somebody was told of.
    known: Arc<Mutex<Vec<(Domain, JobId)>>>,
}

#[derive(Default)]
struct Counters {
    serials: AtomicU64,
    requests: AtomicU64,
}

/// A job to be handed in.
#[derive(Clone)]
struct Form {
    domain: Domain,
    job: NewJob,
    submission: Submission,
}

impl People {
    pub fn new(plan: Arc<Plan>, notes: Notebook, fronts: Fronts) -> Self {
        Self { notes, fronts, plan, counters: Arc::default(), known: Arc::default() }
    }

    /// Somebody sets out.
    pub fn send(&self, errand: Errand, dice: &mut StdRng) {
        let (person, mut dice) = (self.clone(), StdRng::seed_from_u64(dice.random()));
        match errand {
            Errand::Submit => {
                let form = self.form(&mut dice);
                tokio::spawn(async move { person.submit(form, dice).await });
            }
            Errand::SubmitBatch
            | Errand::Cancel
            | Errand::Requeue
            | Errand::Delete
            | Errand::DeleteMatching
            | Errand::Direct => {}
        }
    }

    /// Long work, for a crash to interrupt.
    pub fn send_with_long_work(&self, dice: &mut StdRng) {
        let (person, mut dice) = (self.clone(), StdRng::seed_from_u64(dice.random()));
        let mut form = self.form(&mut dice);
        let serial = form.submission.serial;
        let script = Script { fails: 0, is_stubborn: false, ..Script::draw(serial, true, &mut dice) };
        form.job = NewJob::new(form.job.job_name, form.job.input.kind, script.payload());
        form.submission.is_named = false;
        tokio::spawn(async move { person.submit(form, dice).await });
    }

    async fn submit(self, form: Form, mut dice: StdRng) {
        let tries = if form.submission.is_named { dice.random_range(2..=8) } else { 1 };
        for _ in 0..tries {
            if let Some(front) = self.fronts.draw(Some(&form.job.input.kind), &mut dice) {
                let wish = Wish::Submit(vec![form.submission.clone()]);
                let (desk, asked) = (Arc::clone(&front.desk), form.clone());
                let reply = self.ask(&front, wish, &mut dice, submit_one(desk, asked)).await;
                if self.is_content(&form, &reply) {
                    return;
                }
            }
            sleep(Duration::from_millis(dice.random_range(100..=3_000))).await;
        }
    }

    /// Whether nothing more is to be expected. Remembers the job.
    fn is_content(&self, form: &Form, reply: &Reply) -> bool {
        let Reply::Submitted(answers) = reply else { return false };
        let jobs = answers.iter().filter_map(Accepted::job);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(jobs.map(|job| (form.domain.clone(), job)));
        answers.iter().all(|answer| !matches!(answer, Accepted::Failed(_)))
    }

    /// Asks a node for something, and waits for as long as patience lasts. Some who go hang up, and the node drops what it
    /// did for them; of others it does not learn that they went.
    async fn ask(
        &self,
        front: &Front,
        wish: Wish,
        dice: &mut StdRng,
        act: impl Future<Output = Reply> + Send + 'static,
    ) -> Reply {
        let request = self.counters.requests.fetch_add(1, Ordering::Relaxed);
        let patience = Duration::from_millis(dice.random_range(500..=15_000));
        let hangs_up = dice.random_bool(0.5);
        self.notes.note(What::Asked(request, wish));
        let (tell, told) = oneshot::channel();
        let act = async move {
            let _ = tell.send(act.await);
        };
        let doing = tokio::spawn(front.gate.hold(Box::pin(act)));
        let reply = match timeout(patience, told).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) | Err(_) => Reply::Nothing,
        };
        if hangs_up {
            doing.abort();
        }
        self.notes.note(What::Told(request, reply.clone()));
        reply
    }

    fn form(&self, dice: &mut StdRng) -> Form {
        let serial = self.counters.serials.fetch_add(1, Ordering::Relaxed);
        let script = Script::draw(serial, dice.random_bool(self.plan.long), dice);
        let kind = *TYPES.choose(dice).expect("there are types");
        let mut job = NewJob::new(format!("job {serial}"), kind, script.payload());
        self.adorn(&mut job, dice);
        let is_named = dice.random_bool(self.plan.named);
        job.idempotency_key = is_named.then(|| format!("request {serial}"));
        let domain = if dice.random_bool(0.85) { "default" } else { "other" };
        let domain = Domain::from_str(domain).expect("a good name");
        Form { domain, job, submission: Submission { serial, is_named } }
    }

    fn adorn(&self, job: &mut NewJob, dice: &mut StdRng) {
        let now = BEGINNING.plus(self.notes.now());
        let mut ahead = |share, most_ms| {
            let span = dice.random_bool(share).then(|| dice.random_range(500..=most_ms));
            span.map(|span| now.plus(Duration::from_millis(span)))
        };
        job.run_at = ahead(0.15, 40_000);
        job.expires_at = ahead(0.12, 30_000).filter(|at| job.run_at.is_none_or(|run_at| run_at < *at));
        job.priority = dice.random_bool(0.3).then(|| dice.random_range(0..=9));
        job.attempts = Some(dice.random_range(1..=4));
        job.timeout_ms = dice.random_bool(0.15).then(|| dice.random_range(300..=4_000));
        let delay_ms = dice.random_range(20..=1_500);
        job.backoff = Some(Backoff { delay_ms, factor: 2, max_delay_ms: 3_000, ..Backoff::default() });
        if dice.random_bool(self.plan.unique) {
            let scope = [Scope::Queued, Scope::Running, Scope::Unfinished];
            job.unique = Some(Unique {
                key: format!("key {}", dice.random_range(0..4)),
                scope: *scope.choose(dice).expect("there are scopes"),
                for_ms: dice.random_bool(0.2).then(|| dice.random_range(1_000..=20_000)),
            });
        }
    }
}

async fn submit_one(desk: Arc<JobDesk>, form: Form) -> Reply {
    let answer = match desk.submit(&form.domain, form.job).await {
        Ok(Submitted::New(job)) => Accepted::New(job.document.job_id),
        Ok(Submitted::Again(job)) => Accepted::Again(job.document.job_id),
        Err(error) => refused_or_failed(&error),
    };
    Reply::Submitted(vec![answer])
}

fn refused_or_failed(error: &SubmitError) -> Accepted {
    match error {
        SubmitError::Invalid(_) | SubmitError::KeyReused(_) => Accepted::Refused(error.to_string()),
        SubmitError::Store(_) => Accepted::Failed(error.to_string()),
    }
}
