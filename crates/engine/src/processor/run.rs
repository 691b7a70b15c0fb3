//! One job, from its claim to its settling: its handler, the time it may take, what it says meanwhile.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex as Lock, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt as _;
use rota_model::Extra;
use rota_model::check::{Checker, MAX_NAME_CHARS};
use rota_model::ids::NodeId;
use rota_model::job::{Job, JobStatus, Progress, Refusal, Retry};
use rota_model::log::Level;
use rota_model::time::UnixMillis;
use rota_store::Versioned;
use rota_store::repository::Saved;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::hands::{Brake, Stop};
use super::{InHand, Processor, STOP_GRACE};
use crate::handler::{Context, HandlerError, Reports};
use crate::patience::answered;

/// Most jobs are over by then; the others are looked after until they end.
const FOLLOW_AFTER: Duration = Duration::from_millis(100);
/// How often what a handler says of its progress is written at most.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

/// How much of what a handler says of its failure is kept, in bytes.
const MAX_WHY: usize = 4 * 1024;

/// What came of running a job.
enum Outcome {
    Ended(Result<Map<String, Value>, HandlerError>),
    TimedOut,
    Expired,
    /// It was stopped by us.
    Stopped(Stop),
}

impl Outcome {
    /// What becomes of the job that was held under this epoch. `chance`, from 0 to 1, spreads those that failed together.
    fn write(
        &self,
        job: &mut Job,
        epoch: u64,
        chance: f64,
        now: UnixMillis,
        node: NodeId,
    ) -> Result<(), Refusal> {
        match self {
            Outcome::Stopped(_) => job.release(epoch, now, node),
            Outcome::Expired => job.expire_held(epoch, now, node),
            Outcome::TimedOut => {
                job.time_out(epoch, job.next_attempt(Retry::Backoff, chance, now), now, node)
            }
            Outcome::Ended(Ok(result)) => match fault_of(result) {
                None => job.succeed(epoch, result.clone(), now, node),
                Some(fault) => job.fail(epoch, &fault, None, now, node),
            },
            Outcome::Ended(Err(error)) => {
                let retry = match error {
                    HandlerError::Failed(_) | HandlerError::Stopped => Retry::Backoff,
                    HandlerError::Fatal(_) => Retry::Never,
                    HandlerError::RetryAt { at, .. } => Retry::At(*at),
                };
                let why = shortened(error.to_string());
                job.fail(epoch, &why, job.next_attempt(retry, chance, now), now, node)
            }
        }
    }
}

/// What a handler said, until somebody writes it down.
#[derive(Default)]
struct Said {
    progress: Lock<Option<Progress>>,
    news: Notify,
    name: String,
}

impl Reports for Said {
    fn progress(&self, percent: f64, message: Option<String>) {
        let progress = Progress { percent, message, extra: Extra::new() };
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
        self.news.notify_one();
    }

    fn log(&self, level: Level, text: String) {
        let job = &self.name;
        match level {
            Level::Error => tracing::error!(%job, "{text}"),
            Level::Warn => tracing::warn!(%job, "{text}"),
            Level::Info => tracing::info!(%job, "{text}"),
            Level::Debug => tracing::debug!(%job, "{text}"),
        }
    }
}

impl Said {
    fn take(&self) -> Option<Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// It could not be written: it is said again, unless something newer was.
    fn put_back(&self, progress: Progress) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(progress);
        self.news.notify_one();
    }
}

impl InHand {
    /// Runs the job, writes down what came of it, and lets go of it.
    pub(super) async fn run_to_end(self, job: Versioned<Job>) {
        let processor = &*self.processor;
        let epoch = job.document.epoch;
        let job = Mutex::new(job);
        let outcome = processor.run_handler(&job, &self.brake).await;
        processor.hands().ended(self.id, &self.brake);
        processor.slot_freed.notify_one();
        if !matches!(outcome, Outcome::Stopped(Stop::NotOurs | Stop::LeaseOver)) {
            let (node, chance) = (processor.node(), processor.surroundings.chance());
            let change = |job: &mut Job, epoch, now| outcome.write(job, epoch, chance, now, node);
            processor.settle(job.into_inner(), epoch, change).await;
        }
    }
}

impl Processor {
    async fn run_handler(&self, job: &Mutex<Versioned<Job>>, brake: &Brake) -> Outcome {
        if let Some(why) = brake.why() {
            return Outcome::Stopped(why);
        }
        let (handler, context, said) = {
            let job = &job.lock().await.document;
            let said = Arc::new(Said { name: job.job_id.to_string(), ..Said::default() });
            if job.is_expired(self.surroundings.now()) {
                return Outcome::Expired;
            }
            let Some(handler) = self.types.handler(&job.input.kind) else {
                return Outcome::Stopped(Stop::Release);
            };
            (handler, self.context(job, brake, &said), said)
        };
        let deadline = context.deadline;
        let mut run = pin!(AssertUnwindSafe(async move { handler.run(context).await }).catch_unwind());
        // Most handlers are done before anybody would have to be told of them.
        if let Poll::Ready(ended) = futures::poll!(&mut run) {
            return ended_by(ended);
        }
        let timed_out = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = brake.dropped.cancelled() => Outcome::Stopped(Stop::LeaseOver),
            ended = &mut run => stopped_or(brake, ended_by(ended)),
            () = brake.told.cancelled() => {
                let ended = stopping(&mut run, brake).await.map(ended_by);
                stopped_or(brake, ended.unwrap_or(Outcome::Stopped(Stop::NotOurs)))
            }
            () = timed_out => {
                brake.told.cancel();
                stopping(&mut run, brake).await;
                match brake.why() {
                    Some(why) => Outcome::Stopped(why),
                    None => Outcome::TimedOut,
                }
            }
            () = self.follow(job, brake, &said) => Outcome::Stopped(Stop::NotOurs),
        }
    }

    fn context(&self, job: &Job, brake: &Brake, said: &Arc<Said>) -> Context {
        let limit = job.timeout_ms.map(Duration::from_millis);
        Context {
            job_id: job.job_id,
            domain: job.domain.clone(),
            payload: job.input.payload.clone(),
            epoch: job.epoch,
            attempt: job.attempt,
            deadline: limit.and_then(|limit| Instant::now().checked_add(limit)),
            cancelled: brake.told.clone(),
            reports: Arc::clone(said) as Arc<dyn Reports>,
        }
    }

    /// Looks after a job that runs for long: writes its progress, and stops it when it is ours no more. Goes on until it is
    /// dropped.
    async fn follow(&self, job: &Mutex<Versioned<Job>>, brake: &Brake, said: &Said) {
        sleep(FOLLOW_AFTER).await;
        let (id, epoch) = {
            let job = &job.lock().await.document;
            (job.job_id, job.epoch)
        };
        let waiter = self.waiters.register(id);
        loop {
            let changed = waiter.changed();
            if let Ok(found) = answered("read a job", self.jobs.get_any(id)).await {
                let ours = found.filter(|found| is_held(&found.document, epoch));
                let Some(ours) = ours else {
                    brake.pull(Stop::NotOurs);
                    return std::future::pending().await;
                };
                *job.lock().await = ours;
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = said.news.notified() => {
                    self.write_progress(job, epoch, said).await;
                    sleep(PROGRESS_EVERY).await;
                }
            }
        }
    }

    /// What cannot be written now is said again soon.
    async fn write_progress(&self, job: &Mutex<Versioned<Job>>, epoch: u64, said: &Said) {
        let Some(progress) = said.take() else { return };
        let before = job.lock().await.clone();
        let mut after = before.document.clone();
        if after.report(epoch, progress.clone(), self.surroundings.now(), self.node()).is_err() {
            return;
        }
        match answered("write progress", self.jobs.save(&before, &after)).await {
            Ok(Saved::Applied(version)) => *job.lock().await = before.written(after, version),
            Ok(Saved::Overtaken) => said.put_back(progress),
            Err(error) if error.is_passing() => said.put_back(progress),
            Err(error) => tracing::warn!(job = %said.name, %error, "its progress cannot be written"),
        }
    }

    pub(super) fn node(&self) -> NodeId {
        self.hands().holder.node
    }
}

/// Why a result cannot be kept by every store, if it cannot.
fn fault_of(result: &Map<String, Value>) -> Option<String> {
    let mut check = Checker::new();
    for (name, value) in result {
        check.line(name, name, 1..=MAX_NAME_CHARS);
        check.json(&format!("/{name}"), value);
    }
    check.finish().err().map(|invalid| shortened(format!("its result cannot be stored: {invalid}")))
}

/// What a handler says of its failure, within reason: a job keeps a hundred of these.
fn shortened(mut why: String) -> String {
    if why.len() > MAX_WHY {
        why.truncate((0..=MAX_WHY).rev().find(|end| why.is_char_boundary(*end)).unwrap_or(0));
        why.push_str(" …");
    }
    why
}

/// Whether a job is still held under this epoch.
pub(super) fn is_held(job: &Job, epoch: u64) -> bool {
    job.status == JobStatus::Started && job.epoch == epoch
}

/// Waits for a handler that was told to stop. None if it does not.
async fn stopping<T>(run: &mut (impl Future<Output = T> + Unpin), brake: &Brake) -> Option<T> {
    tokio::select! {
        biased;
        () = brake.dropped.cancelled() => None,
        ended = timeout(STOP_GRACE, run) => ended.ok(),
    }
}

/// Who was told to stop, and did not finish all the same, was stopped.
fn stopped_or(brake: &Brake, outcome: Outcome) -> Outcome {
    match (brake.why(), outcome) {
        (Some(Stop::Release) | None, finished @ Outcome::Ended(Ok(_))) => finished,
        (Some(why), _) => Outcome::Stopped(why),
        (None, outcome) => outcome,
    }
}

type Run = Result<Map<String, Value>, HandlerError>;

/// A handler that panics has failed, with what it said.
fn ended_by(ended: Result<Run, Box<dyn std::any::Any + Send>>) -> Outcome {
    Outcome::Ended(ended.unwrap_or_else(|said| {
        let text = said.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| said.downcast_ref::<String>().cloned());
        let text = text.as_deref().unwrap_or("it said nothing");
        Err(HandlerError::Failed(format!("the handler panicked: {text}")))
    }))
}
