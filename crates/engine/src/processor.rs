//! Claims due jobs, runs their handlers, settles what came of it.
//!
//! A claim is never orphaned: each carries a token, and at every heartbeat [`Processor::take_over`] looks at all
//! STARTED jobs. Those of dead incarnations are queued again, and so are those that name us although we neither run
//! them nor are just claiming them: a claim whose answer was lost. Whatever is written is written on the version that
//! was read, under the epoch that was claimed; who comes late is refused by the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rota_model::ids::{ClaimToken, Incarnation, JobId};
use rota_model::job::{Holder, Job, JobStatus, Refusal};
use rota_model::time::UnixMillis;
use rota_store::hints::{Changes, News};
use rota_store::jobs::Jobs;
use rota_store::repository::Saved;
use rota_store::{StoreError, Versioned};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::handler::{Context, HandlerError};
use crate::surroundings::Surroundings;
use crate::types::JobTypes;

/// A hint may be lost: an idle processor looks again after this.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long nothing must happen before an idle processor looks ahead.
const QUIET: Duration = Duration::from_millis(10);
/// How long to leave a store alone that is not available.
const STORE_PAUSE: Duration = Duration::from_millis(200);
/// How long running jobs may go on when the node stops.
const GRACE: Duration = Duration::from_millis(300);

pub struct Processor {
    jobs: Jobs,
    types: Arc<JobTypes>,
    surroundings: Surroundings,
    holder: Holder,
    capacity: usize,
    hands: Mutex<Hands>,
    slot_freed: Notify,
    /// Jobs were queued again.
    work_again: Notify,
    tasks: TaskTracker,
}

/// What this node is doing.
#[derive(Default)]
struct Hands {
    running: BTreeMap<JobId, CancellationToken>,
    /// The claim that is under way.
    claiming: Option<ClaimToken>,
}

impl Processor {
    pub(crate) fn new(
        jobs: Jobs,
        types: Arc<JobTypes>,
        surroundings: Surroundings,
        holder: Holder,
        capacity: usize,
    ) -> Self {
        Self {
            jobs,
            types,
            surroundings,
            holder,
            capacity,
            hands: Mutex::default(),
            slot_freed: Notify::new(),
            work_again: Notify::new(),
            tasks: TaskTracker::new(),
        }
    }

    pub fn running(&self) -> usize {
        self.hands().running.len()
    }

    /// Works until told to stop; then lets running jobs finish for a moment and gives the rest back.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut changes = self.jobs.changes();
        while !stop.is_cancelled() {
            let next = match self.step().await {
                Ok(next) => next,
                Err(error) => {
                    tracing::warn!(%error, "cannot claim jobs; trying again");
                    Next::After(STORE_PAUSE)
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.until(next, &mut changes) => {}
            }
        }
        self.drain().await;
    }

    /// Claims as many due jobs as there are free slots and starts them. Says when it is worth trying again.
    async fn step(self: &Arc<Self>) -> Result<Next, StoreError> {
        let free = self.capacity.saturating_sub(self.running());
        if free == 0 {
            return Ok(Next::SlotFree);
        }
        let now = self.surroundings.now();
        let token = ClaimToken::rising(now, &self.surroundings.randomness());
        self.hands().claiming = Some(token);
        let claimed = self.jobs.claim_due(now, self.holder, &self.types.names(), None, token, free).await;
        let started = claimed.map(|jobs| jobs.into_iter().map(|job| self.start(job)).count());
        self.hands().claiming = None;
        // Fewer than asked for: nothing else was due.
        Ok(if started? < free { Next::NewWork } else { Next::SlotFree })
    }

    /// Until there may be something to claim.
    async fn until(&self, next: Next, changes: &mut Changes) {
        match next {
            Next::SlotFree => {
                while self.running() >= self.capacity {
                    self.slot_freed.notified().await;
                }
            }
            Next::After(pause) => sleep(pause).await,
            Next::NewWork => tokio::select! {
                () = new_work(changes) => {}
                () = self.work_again.notified() => {}
                () = self.next_due() => {}
            },
        }
    }

    /// Until a job that waits for its time is due; in any case not longer than a lost hint may go unnoticed. Looks ahead
    /// only after a moment of quiet: who is busy is woken anyway.
    async fn next_due(&self) {
        sleep(QUIET).await;
        let due = self.jobs.next_due(&self.types.names()).await.ok().flatten();
        let ahead = due.map(|due| due.since(self.surroundings.now()));
        sleep(ahead.map_or(LOOK_AGAIN, |ahead| ahead.min(LOOK_AGAIN))).await;
    }

    fn start(self: &Arc<Self>, job: Versioned<Job>) {
        let cancelled = CancellationToken::new();
        self.hands().running.insert(job.document.job_id, cancelled.clone());
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            let id = job.document.job_id;
            this.run_and_settle(job, cancelled).await;
            this.hands().running.remove(&id);
            this.slot_freed.notify_one();
        });
    }

    async fn run_and_settle(&self, job: Versioned<Job>, cancelled: CancellationToken) {
        let epoch = job.document.epoch;
        let outcome = self.run_handler(&job.document, cancelled).await;
        let node = self.holder.node;
        self.settle(job, |job, now| match &outcome {
            Ok(result) => job.succeed(epoch, result.clone(), now, node),
            Err(
                HandlerError::Failed(error)
                | HandlerError::Fatal(error)
                | HandlerError::RetryAt { why: error, .. },
            ) => job.fail(epoch, error, None, now, node),
            Err(HandlerError::Stopped) => job.release(epoch, now, node),
        })
        .await;
    }

    /// A handler that panics has failed, with what it said.
    async fn run_handler(
        &self,
        job: &Job,
        cancelled: CancellationToken,
    ) -> Result<Map<String, Value>, HandlerError> {
        let Some(handler) = self.types.handler(&job.input.kind) else { return Err(HandlerError::Stopped) };
        let context = Context {
            job_id: job.job_id,
            domain: job.domain.clone(),
            payload: job.input.payload.clone(),
            epoch: job.epoch,
            attempt: job.attempt,
            deadline: None,
            cancelled,
            reports: Arc::new(()),
        };
        match tokio::spawn(async move { handler.run(context).await }).await {
            Ok(outcome) => outcome,
            Err(error) if error.is_panic() => Err(HandlerError::Failed(panic_message(error))),
            Err(_) => Err(HandlerError::Stopped),
        }
    }

    /// Writes a change on the version last read; on a conflict reads again, and gives up only if the job is no longer
    /// ours to change. While the store is away it keeps trying: the result is not lost as long as the node lives.
    async fn settle(
        &self,
        mut job: Versioned<Job>,
        change: impl Fn(&mut Job, UnixMillis) -> Result<(), Refusal>,
    ) {
        let id = job.document.job_id;
        loop {
            match self.try_settle(&job, &change).await {
                Ok(Settled::Written(status)) => {
                    if !status.is_terminal() {
                        self.work_again.notify_one();
                    }
                    return;
                }
                Ok(Settled::Refused(refusal)) => {
                    tracing::warn!(job = %id, %refusal, "a late answer was refused");
                    return;
                }
                Ok(Settled::Overtaken) => {}
                Err(error) => {
                    tracing::warn!(job = %id, %error, "cannot record a result; trying again");
                    sleep(STORE_PAUSE).await;
                }
            }
            match self.jobs.get_any(id).await {
                Ok(Some(now)) => job = now,
                Ok(None) => return,
                Err(_) => sleep(STORE_PAUSE).await,
            }
        }
    }

    async fn try_settle(
        &self,
        job: &Versioned<Job>,
        change: impl Fn(&mut Job, UnixMillis) -> Result<(), Refusal>,
    ) -> Result<Settled, StoreError> {
        let mut after = job.document.clone();
        if let Err(refusal) = change(&mut after, self.surroundings.now()) {
            return Ok(Settled::Refused(refusal));
        }
        Ok(match self.jobs.save(job, &after).await? {
            Saved::Applied(_) => Settled::Written(after.status),
            Saved::Overtaken => Settled::Overtaken,
        })
    }

    /// Queues again what dead nodes held, and what names us although we do not have it in hand.
    pub async fn take_over(&self, alive: &BTreeSet<Incarnation>) -> Result<usize, StoreError> {
        let (mut taken, mut after) = (0, None);
        loop {
            let started = self.jobs.started(after).await?;
            for job in started.jobs {
                taken += usize::from(self.take_over_one(&job, alive).await?);
            }
            for job in started.unreadable {
                // A live node of a newer version may well understand what it runs. We run nothing that we cannot read.
                let elsewhere = |owner| owner != self.holder.incarnation && alive.contains(&owner);
                if !job.owner.is_some_and(elsewhere) {
                    self.jobs.set_aside(job, self.surroundings.now()).await?;
                }
            }
            if started.next.is_none() {
                return Ok(taken);
            }
            after = started.next;
        }
    }

    async fn take_over_one(
        &self,
        job: &Versioned<Job>,
        alive: &BTreeSet<Incarnation>,
    ) -> Result<bool, StoreError> {
        let (now, node, epoch) = (self.surroundings.now(), self.holder.node, job.document.epoch);
        let mut after = job.document.clone();
        let change = match job.document.owner {
            Some(owner) if owner == self.holder.incarnation && self.has_in_hand(&job.document) => {
                return Ok(false);
            }
            Some(owner) if owner == self.holder.incarnation => after.release(epoch, now, node),
            Some(owner) if alive.contains(&owner) => return Ok(false),
            _ => after.lose(epoch, now, node),
        };
        if change.is_err() {
            return Ok(false);
        }
        // Overtaken means that its holder, or another node, was faster.
        let taken = matches!(self.jobs.save(job, &after).await?, Saved::Applied(_));
        if taken {
            self.work_again.notify_one();
        }
        Ok(taken)
    }

    fn has_in_hand(&self, job: &Job) -> bool {
        let hands = self.hands();
        hands.running.contains_key(&job.job_id)
            || (job.claim_token.is_some() && job.claim_token == hands.claiming)
    }

    /// The node stops: running jobs may finish within the grace, the rest is given back for others to run.
    async fn drain(&self) {
        self.tasks.close();
        if timeout(GRACE, self.tasks.wait()).await.is_ok() {
            return;
        }
        for cancelled in self.hands().running.values() {
            cancelled.cancel();
        }
        let _ = timeout(GRACE, self.tasks.wait()).await;
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When it is worth trying to claim again.
enum Next {
    /// All slots are taken, or were taken just now.
    SlotFree,
    /// Nothing else is due.
    NewWork,
    /// The store did not answer.
    After(Duration),
}

/// Until a hint tells of a new job, or hints were lost.
async fn new_work(changes: &mut Changes) {
    loop {
        match changes.next().await {
            News::Of(hints) if hints.iter().any(|hint| hint.is_new) => return,
            News::Of(_) => {}
            News::Lost => return,
            // Nobody will tell any more: the look ahead remains.
            News::Closed => std::future::pending().await,
        }
    }
}

enum Settled {
    Written(JobStatus),
    Overtaken,
    Refused(Refusal),
}

fn panic_message(error: tokio::task::JoinError) -> String {
    let said = error.into_panic();
    let text = said.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| said.downcast_ref::<String>().cloned());
    format!("the handler panicked: {}", text.as_deref().unwrap_or("it said nothing"))
}

impl crate::handler::Reports for () {
    fn progress(&self, _: f64, _: Option<String>) {}
    fn log(&self, _: rota_model::log::Level, _: String) {}
}
