//! One job, from its claim to its settling: its handler, the time it may take, what it says meanwhile.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt as _;
use rota_model::check::{Checker, MAX_NAME_CHARS};
use rota_model::ids::NodeId;
use rota_model::job::{Job, JobStatus, Refusal, Retry};
use rota_model::log::Level;
use rota_model::time::UnixMillis;
use rota_store::Versioned;
use rota_store::repository::Saved;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::brake::{Brake, Stop};
use super::said::Said;
use super::settle::{Finished, settle};
use super::{InHand, Processor, STOP_GRACE};
use crate::flaws::Flaw;
use crate::handler::{Context, HandlerError, Reports};
use crate::meter::Latency;
use crate::patience::answered;

/// Most jobs are over by then; the others are looked after until they end.
const FOLLOW_AFTER: Duration = Duration::from_millis(100);
/// How often what a handler says of its progress is written at most.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

/// How much of what a handler says of its progress or its failure is kept, in bytes.
const MAX_SAID: usize = 4 * 1024;
/// How large a result may be, in bytes of JSON: as large as a payload.
const MAX_RESULT: usize = 1024 * 1024;

/// What came of running a job.
pub(super) enum Outcome {
    Ended(Result<Map<String, Value>, HandlerError>),
    TimedOut,
    Expired,
    /// It was stopped by us.
    Stopped(Stop),
    /// It was stopped by us before its handler began.
    NotBegun(Stop),
}

impl Outcome {
    /// What becomes of the job that was held under this epoch. `chance`, from 0 to 1, spreads those that failed together.
    pub(super) fn write(
        &self,
        job: &mut Job,
        epoch: u64,
        chance: f64,
        now: UnixMillis,
        node: NodeId,
    ) -> Result<(), Refusal> {
        match self {
            Outcome::Stopped(_) => job.interrupt(epoch, now, node),
            Outcome::NotBegun(_) => job.release(epoch, now, node),
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

impl InHand {
    /// Runs the job if it may begin, writes down what came of it, and lets go of it.
    pub(super) async fn run_to_end(self, job: Box<Versioned<Job>>, may_begin: Result<(), Stop>) {
        let processor = &self.processor;
        let epoch = job.document.epoch;
        let job = Mutex::new(job);
        let outcome = match may_begin {
            Ok(()) => processor.run_handler(&job, &self.brake).await,
            Err(why) => Outcome::NotBegun(why),
        };
        processor.handler_ended(self.id, &self.brake);
        match outcome {
            Outcome::Stopped(why @ (Stop::NotOurs | Stop::LeaseOver)) => {
                processor.note_interrupted(self.id, epoch, why);
                processor.tell_of_stop(&job.into_inner().document, why);
            }
            Outcome::NotBegun(why @ (Stop::NotOurs | Stop::LeaseOver)) => {
                processor.tell_of_stop(&job.into_inner().document, why);
            }
            outcome => {
                let chance = processor.surroundings.chance();
                settle(Finished { job: job.into_inner(), epoch, outcome, chance, held: self });
            }
        }
    }
}

impl Processor {
    async fn run_handler(self: &Arc<Self>, job: &Mutex<Box<Versioned<Job>>>, brake: &Brake) -> Outcome {
        if let Some(why) = brake.why() {
            return Outcome::NotBegun(why);
        }
        let (handler, context, said, attempt) = {
            let job = &job.lock().await.document;
            let said = Arc::new(Said::new(job, self.journal().clone()));
            let now = self.surroundings.now();
            if job.is_expired(self.surroundings.steady_now()) && !self.surroundings.has(Flaw::BeginsTooLate) {
                return Outcome::Expired;
            }
            let Some(handler) = self.types.handler(&job.input.kind) else {
                return Outcome::NotBegun(Stop::Release);
            };
            self.surroundings.meter().record(Latency::QueueWait, now.since(job.run_at));
            let (attempt, traceparent) = self.trace(job);
            (handler, Context { traceparent, ..self.context(job, brake, &said) }, said, attempt)
        };
        let deadline = context.deadline;
        self.journal().tell_of(&said.about, Level::Debug, "its handler begins", None);
        let began = self.surroundings.meter().begin();
        let mut run = pin!(AssertUnwindSafe(async move { handler.run(context).await }).catch_unwind());
        // Most handlers are done before anybody would have to be told of them; the others are worth a place of their own.
        let outcome = match futures::poll!(&mut run) {
            Poll::Ready(ended) => stopped_or(brake, ended_by(ended)),
            Poll::Pending => {
                if self.is_somebody_next() {
                    self.call_worker();
                }
                Box::pin(self.attend(run, deadline, job, brake, &said)).await
            }
        };
        self.surroundings.meter().end(Latency::RunTime, began);
        said.close();
        if let Some(attempt) = attempt {
            self.end_trace(attempt, &outcome);
        }
        outcome
    }

    /// Stands by a handler until it ends, or has to.
    async fn attend(
        &self,
        mut run: impl Future<Output = Caught> + Unpin,
        deadline: Option<Instant>,
        job: &Mutex<Box<Versioned<Job>>>,
        brake: &Brake,
        said: &Said,
    ) -> Outcome {
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
            () = self.follow(job, brake, said) => Outcome::Stopped(Stop::NotOurs),
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
            traceparent: None,
            deadline: limit.and_then(|limit| Instant::now().checked_add(limit)),
            cancelled: brake.told.clone(),
            reports: Arc::clone(said) as Arc<dyn Reports>,
        }
    }

    /// Looks after a job that runs for long: writes its progress, and stops it when it is ours no more. Goes on until it is
    /// dropped.
    async fn follow(&self, job: &Mutex<Box<Versioned<Job>>>, brake: &Brake, said: &Said) {
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
                **job.lock().await = ours;
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
    async fn write_progress(&self, job: &Mutex<Box<Versioned<Job>>>, epoch: u64, said: &Said) {
        let Some(progress) = said.take() else { return };
        let before = job.lock().await.clone();
        let mut after = before.document.clone();
        if after.report(epoch, progress.clone(), self.surroundings.now(), self.node()).is_err() {
            return;
        }
        match answered("write progress", self.jobs.save(&before, &after)).await {
            Ok(Saved::Applied(version)) => **job.lock().await = before.written(after, version),
            Ok(Saved::Overtaken) => said.put_back(progress),
            Err(error) if error.is_passing() => said.put_back(progress),
            Err(error) => tracing::warn!(job = %said.about.job, %error, "its progress cannot be written"),
        }
    }

    pub(super) fn node(&self) -> NodeId {
        self.hands().holder.node
    }
}

/// Why a result cannot be kept by every store, if it cannot.
pub(super) fn fault_of(result: &Map<String, Value>) -> Option<String> {
    let mut check = Checker::new();
    for (name, value) in result {
        check.line(name, name, 1..=MAX_NAME_CHARS);
        check.json(&format!("/{name}"), value);
    }
    let size = serde_json::to_vec(result).map_or(usize::MAX, |text| text.len());
    if size > MAX_RESULT {
        check.refuse("", format!("may have {MAX_RESULT} bytes at most; it has {size}"));
    }
    check.finish().err().map(|invalid| shortened(format!("its result cannot be stored: {invalid}")))
}

/// What a handler says, within reason: a job keeps a hundred of these. No store takes a NUL.
pub(super) fn shortened(mut said: String) -> String {
    if said.len() > MAX_SAID {
        said.truncate((0..=MAX_SAID).rev().find(|end| said.is_char_boundary(*end)).unwrap_or(0));
        said.push_str(" …");
    }
    if said.contains('\0') { said.replace('\0', "\u{fffd}") } else { said }
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

/// How a handler ended, if it did not panic.
type Caught = std::thread::Result<Result<Map<String, Value>, HandlerError>>;

/// A handler that panics has failed, with what it said.
fn ended_by(ended: Caught) -> Outcome {
    Outcome::Ended(ended.unwrap_or_else(|said| {
        let text = said.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| said.downcast_ref::<String>().cloned());
        let text = text.as_deref().unwrap_or("it said nothing");
        Err(HandlerError::Failed(format!("the handler panicked: {text}")))
    }))
}
