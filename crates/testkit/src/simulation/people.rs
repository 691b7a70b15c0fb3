//! People: they come to the desk of some node, ask for something, wait for a while and are told something or nothing. What
//! they ask is done by a task of that node and dies with it; they themselves live on, and some ask again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rota_engine::desk::{ChangeError, JobDesk, SubmitError, Submitted};
use rota_engine::fleet::{Fleet, FleetError};
use rota_engine::registry::TypeError;
use rota_model::domain::Domain;
use rota_model::ids::{JobId, NodeId};
use rota_model::job::{JobStatus, NewJob};
use rota_model::job_type::{JobType, KeyLimits, TypeLimits};
use rota_model::node::NodeWish;
use rota_store::jobs::JobFilter;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::forms::{Form, draw_domain};
use super::plan::{Errand, Plan, Profile, draw_limits};
use super::process::{Front, Fronts};
use super::record::{Accepted, Notebook, Reply, What, Wish};
use super::work::TYPES;
use crate::surroundings::BEGINNING;

tokio::task_local! {
    static REQUEST: ();
}

/// Whether the present task does what a person asked for.
pub fn is_request() -> bool {
    REQUEST.try_with(|()| ()).is_ok()
}

#[derive(Clone)]
pub struct People {
    notes: Notebook,
    fronts: Fronts,
    plan: Arc<Plan>,
    nodes: Arc<Vec<NodeId>>,
    counters: Arc<Counters>,
    /// The jobs that somebody was told of.
    known: Arc<Mutex<Vec<(Domain, JobId)>>>,
}

#[derive(Default)]
struct Counters {
    serials: AtomicU64,
    requests: AtomicU64,
}

impl People {
    pub fn new(plan: Arc<Plan>, notes: Notebook, fronts: Fronts, nodes: Vec<NodeId>) -> Self {
        let (counters, known) = (Arc::default(), Arc::default());
        Self { notes, fronts, plan, nodes: Arc::new(nodes), counters, known }
    }

    /// The number of the next submission.
    pub fn serial(&self) -> u64 {
        self.counters.serials.fetch_add(1, Ordering::Relaxed)
    }

    /// Somebody heard of these jobs before.
    pub fn know(&self, jobs: Vec<(Domain, JobId)>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).extend(jobs);
    }

    /// Somebody sets out.
    pub fn send(&self, errand: Errand, dice: &mut StdRng) {
        let (person, mut dice) = (self.clone(), StdRng::seed_from_u64(dice.random()));
        match errand {
            Errand::Submit => {
                let form = self.form(&mut dice);
                tokio::spawn(async move { person.submit(form, dice).await });
            }
            Errand::SubmitLong => {
                let form = Form::long(self.serial(), &mut dice);
                tokio::spawn(async move { person.submit(form, dice).await });
            }
            Errand::SubmitBatch => {
                let count = dice.random_range(2..=6);
                let forms: Vec<Form> = (0..count).map(|_| self.form(&mut dice)).collect();
                let domain = draw_domain(&mut dice);
                tokio::spawn(async move { person.submit_batch(forms, domain, dice).await });
            }
            Errand::Flood => {
                let count = dice.random_range(40..=90);
                let kind = self.plan.limits.choose(&mut dice).map(|(_, kind, _)| kind.clone());
                let kind = kind.filter(|_| self.plan.profile == Profile::Limits);
                let forms: Vec<Form> = (0..count).map(|_| self.quick(kind.as_deref(), &mut dice)).collect();
                tokio::spawn(async move { person.submit_batch(forms, Domain::default(), dice).await });
            }
            Errand::Cancel | Errand::Requeue | Errand::Delete => {
                tokio::spawn(async move { person.change(errand, dice).await });
            }
            Errand::DeleteMatching => {
                tokio::spawn(async move { person.delete_matching(dice).await });
            }
            Errand::Direct => {
                let node = self.nodes[dice.random_range(0..self.nodes.len())];
                let wishes = [Some(NodeWish::Pause), Some(NodeWish::Drain), None, None];
                let wish = wishes[dice.random_range(0..wishes.len())];
                tokio::spawn(async move { person.direct(node, wish, 1, dice).await });
            }
            Errand::Limit => {
                tokio::spawn(async move { person.limit(dice).await });
            }
        }
    }

    /// Somebody lets a node work again, and does not go before that is done.
    pub fn resume(&self, node: NodeId, dice: &mut StdRng) {
        let (person, dice) = (self.clone(), StdRng::seed_from_u64(dice.random()));
        tokio::spawn(async move { person.direct(node, None, 10, dice).await });
    }

    fn form(&self, dice: &mut StdRng) -> Form {
        Form::draw(self.serial(), &self.plan, BEGINNING.plus(self.notes.now()), dice)
    }

    fn quick(&self, kind: Option<&str>, dice: &mut StdRng) -> Form {
        match kind {
            Some(kind) => Form::limited(self.serial(), &self.plan, kind, false, dice),
            None => Form::quick(self.serial(), dice),
        }
    }

    async fn submit(self, form: Form, mut dice: StdRng) {
        let tries = if form.submission.is_named { dice.random_range(2..=8) } else { 1 };
        for _ in 0..tries {
            if let Some(front) = self.fronts.draw(&mut dice) {
                let wish = Wish::Submit(vec![form.submission.clone()]);
                let (domain, job) = (form.domain.clone(), form.job.clone());
                let act = submit_one(Arc::clone(&front.desk), domain, job);
                let reply = self.ask(&front, wish, &mut dice, act).await;
                if self.remember(&form.domain, &reply) {
                    return;
                }
            }
            sleep(Duration::from_millis(dice.random_range(100..=3_000))).await;
        }
    }

    /// Several at once, and again those that are named and were not answered.
    async fn submit_batch(self, mut forms: Vec<Form>, domain: Domain, mut dice: StdRng) {
        for _ in 0..dice.random_range(1..=4) {
            if let Some(front) = self.fronts.draw(&mut dice) {
                let wish = Wish::Submit(forms.iter().map(|form| form.submission.clone()).collect());
                let jobs = forms.iter().map(|form| form.job.clone()).collect();
                let act = submit_all(Arc::clone(&front.desk), domain.clone(), jobs);
                let reply = self.ask(&front, wish, &mut dice, act).await;
                if self.remember(&domain, &reply) {
                    return;
                }
                forms.retain(|form| form.submission.is_named);
            }
            if forms.is_empty() {
                return;
            }
            sleep(Duration::from_millis(dice.random_range(100..=3_000))).await;
        }
    }

    /// Keeps the jobs in mind that were acknowledged. Says whether nothing more is to be expected.
    fn remember(&self, domain: &Domain, reply: &Reply) -> bool {
        let Reply::Submitted(answers) = reply else { return false };
        let jobs = answers.iter().filter_map(Accepted::job);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(jobs.map(|job| (domain.clone(), job)));
        answers.iter().all(|answer| !matches!(answer, Accepted::Failed(_)))
    }

    async fn change(self, errand: Errand, mut dice: StdRng) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if known.is_empty() {
            return;
        }
        // More often one of the last that were heard of.
        let last = known.len() - 1;
        let back = if dice.random_bool(0.5) {
            dice.random_range(0..=last.min(5))
        } else {
            dice.random_range(0..=last)
        };
        let (domain, job) = known[last - back].clone();
        let Some(front) = self.fronts.draw(&mut dice) else { return };
        let desk = Arc::clone(&front.desk);
        match errand {
            Errand::Cancel => self.ask(&front, Wish::Cancel(job), &mut dice, cancel(desk, domain, job)).await,
            Errand::Requeue => {
                self.ask(&front, Wish::Requeue(job), &mut dice, requeue(desk, domain, job)).await
            }
            _ => self.ask(&front, Wish::Delete(job), &mut dice, delete(desk, domain, job)).await,
        };
    }

    async fn delete_matching(self, mut dice: StdRng) {
        let Some(front) = self.fronts.draw(&mut dice) else { return };
        let domain = draw_domain(&mut dice);
        let statuses = [None, Some(JobStatus::Successful), Some(JobStatus::Failed), Some(JobStatus::Queued)];
        let status = statuses[dice.random_range(0..statuses.len())];
        let limit = dice.random_range(1..=10);
        let act = delete_matching(Arc::clone(&front.desk), domain.clone(), status, limit);
        self.ask(&front, Wish::DeleteMatching(domain), &mut dice, act).await;
    }

    async fn direct(self, node: NodeId, wish: Option<NodeWish>, tries: u32, mut dice: StdRng) {
        for _ in 0..tries {
            if let Some(front) = self.fronts.draw(&mut dice) {
                let act = direct(front.fleet.clone(), node, wish);
                if let Reply::Done = self.ask(&front, Wish::Node(node, wish), &mut dice, act).await {
                    return;
                }
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Limits a type anew, one that is limited already more often than another, while some of its jobs run; and has more of
    /// them done when everybody has heard of it.
    async fn limit(self, mut dice: StdRng) {
        let known = self.plan.limits.choose(&mut dice).filter(|_| dice.random_bool(0.8));
        let (domain, kind) = match known {
            Some((domain, kind, _)) => (domain.clone(), kind.clone()),
            None => (draw_domain(&mut dice), TYPES.choose(&mut dice).expect("there are types").to_string()),
        };
        let limits = Some(draw_limits(&mut dice)).filter(|limits| !limits.is_none() && dice.random_bool(0.8));
        self.clone().submit_some(4, &domain, &kind, true, &mut dice).await;
        sleep(Duration::from_millis(dice.random_range(500..=3_000))).await;
        let Some(front) = self.fronts.draw(&mut dice) else { return };
        let wish = Wish::Limit(domain.clone(), kind.clone(), limits);
        let act = limit(Arc::clone(&front.desk), domain.clone(), kind.clone(), limits);
        self.ask(&front, wish, &mut dice, act).await;
        sleep(Duration::from_secs(9)).await;
        self.submit_some(6, &domain, &kind, false, &mut dice).await;
    }

    async fn submit_some(self, count: u32, domain: &Domain, kind: &str, is_long: bool, dice: &mut StdRng) {
        let form = |_| Form::limited(self.serial(), &self.plan, kind, is_long, dice);
        let forms: Vec<Form> = (0..count).map(form).collect();
        let dice = StdRng::seed_from_u64(dice.random());
        self.submit_batch(forms, domain.clone(), dice).await;
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
        let patience = patience(dice);
        let hangs_up = dice.random_bool(0.5);
        self.notes.note(What::Asked(request, front.life, wish));
        let (tell, told) = oneshot::channel();
        let act = async move {
            let _ = tell.send(act.await);
        };
        let doing = tokio::spawn(front.gate.hold(Box::pin(REQUEST.scope((), act))));
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
}

/// Most have little; some wait until a node has given up by itself.
fn patience(dice: &mut StdRng) -> Duration {
    let range_ms = if dice.random_bool(0.3) { 15_000..=40_000 } else { 500..=15_000 };
    Duration::from_millis(dice.random_range(range_ms))
}

async fn submit_one(desk: Arc<JobDesk>, domain: Domain, job: NewJob) -> Reply {
    let answer = match desk.submit(&domain, job).await {
        Ok(Submitted::New(job)) => Accepted::New(job.document.job_id),
        Ok(Submitted::Again(job)) => Accepted::Again(job.document.job_id),
        Ok(Submitted::Twin(job)) => Accepted::Twin(job.document.job_id),
        Err(error) => not_submitted(&error),
    };
    Reply::Submitted(vec![answer])
}

async fn submit_all(desk: Arc<JobDesk>, domain: Domain, jobs: Vec<NewJob>) -> Reply {
    let answers = desk.submit_all(&domain, jobs).await;
    let answer = |answer: Result<rota_engine::desk::Accepted, SubmitError>| {
        answer.map_or_else(|error| not_submitted(&error), |accepted| Accepted::InBatch(accepted.job_id))
    };
    Reply::Submitted(answers.into_iter().map(answer).collect())
}

fn not_submitted(error: &SubmitError) -> Accepted {
    match error {
        SubmitError::Invalid(_) | SubmitError::KeyReused(_) | SubmitError::Deleted(_) => {
            Accepted::Refused(error.to_string())
        }
        SubmitError::Busy | SubmitError::Store(_) => Accepted::Failed(error.to_string()),
    }
}

async fn cancel(desk: Arc<JobDesk>, domain: Domain, job: JobId) -> Reply {
    changed(desk.cancel(&domain, job, None).await.map(|_| ()))
}

async fn requeue(desk: Arc<JobDesk>, domain: Domain, job: JobId) -> Reply {
    changed(desk.requeue(&domain, job, None).await.map(|_| ()))
}

async fn delete(desk: Arc<JobDesk>, domain: Domain, job: JobId) -> Reply {
    changed(desk.delete(&domain, job, None).await)
}

fn changed(changed: Result<(), ChangeError>) -> Reply {
    match changed {
        Ok(()) => Reply::Done,
        Err(error @ (ChangeError::Busy | ChangeError::Store(_))) => Reply::Failed(error.to_string()),
        Err(refused) => Reply::Refused(refused.to_string()),
    }
}

async fn delete_matching(desk: Arc<JobDesk>, domain: Domain, status: Option<JobStatus>, limit: u64) -> Reply {
    let filter = JobFilter { status, ..JobFilter::default() };
    match desk.delete_matching(&domain, &filter, Some(limit)).await {
        Ok(deleted) => Reply::Deleted(deleted.deleted),
        Err(error) => Reply::Failed(error.to_string()),
    }
}

async fn limit(desk: Arc<JobDesk>, domain: Domain, kind: String, limits: Option<TypeLimits>) -> Reply {
    let types = desk.types();
    let changed = match limits {
        Some(limits) => types.put(&domain, limited(&domain, &kind, limits), None, true).await.map(|_| ()),
        None => types.delete(&domain, &kind, None, true).await,
    };
    match changed {
        Ok(()) => Reply::Done,
        Err(error @ (TypeError::Busy | TypeError::Store(_))) => Reply::Failed(error.to_string()),
        Err(refused) => Reply::Refused(refused.to_string()),
    }
}

/// A type of a domain that says nothing but what it limits.
pub fn limited(domain: &Domain, kind: &str, limits: TypeLimits) -> JobType {
    let TypeLimits { whole, per_key } = limits;
    JobType {
        domain: Some(domain.clone()),
        kind: kind.to_owned(),
        concurrency: whole.concurrency,
        starts_per_second: whole.starts_per_second,
        per_key: Some(KeyLimits {
            concurrency: per_key.concurrency,
            starts_per_second: per_key.starts_per_second,
            ..KeyLimits::default()
        }),
        ..JobType::default()
    }
}

async fn direct(fleet: Fleet, node: NodeId, wish: Option<NodeWish>) -> Reply {
    let told = match wish {
        Some(NodeWish::Pause) => fleet.pause(node).await,
        Some(NodeWish::Drain) => fleet.drain(node).await,
        None => fleet.resume(node).await,
    };
    match told {
        Ok(_) => Reply::Done,
        Err(error @ (FleetError::Busy | FleetError::Store(_))) => Reply::Failed(error.to_string()),
        Err(refused) => Reply::Refused(refused.to_string()),
    }
}
