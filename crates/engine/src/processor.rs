//! Claims due jobs, runs their handlers, settles what came of it.
//!
//! A claim is never orphaned: each carries a token and names the life of the node that made it, and [`recovery`] looks at
//! all STARTED jobs again and again. Whatever is written is written on the version that was read, under the epoch that was
//! claimed; who comes late is refused by the store.
//!
//! - [`hands`]: what the node has in hand, and how many more it can take
//! - [`claiming`]: when to claim, and what
//! - [`lanes`], [`turns`]: whose turn it is
//! - [`rules`], [`limits`], [`balance`]: what is limited, and what that lets through
//! - [`mod@line`]: those that wait for a slot
//! - [`seat`]: a job that is stored as already claimed
//! - [`run`]: one job, from its claim to its settling
//! - [`said`]: what a handler says meanwhile
//! - [`settle`]: writing what came of it
//! - [`spans`]: each attempt as traces know it
//! - [`telling`]: what of all this is worth a line in the log
//! - [`recovery`]: jobs whose holder is gone, and those that are ours no more

mod balance;
mod brake;
mod claiming;
mod hands;
mod lanes;
mod limits;
mod line;
mod pace;
mod recovery;
mod rules;
mod run;
mod said;
mod seat;
mod settle;
mod spans;
mod telling;
mod turns;

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rota_model::ids::JobId;
use rota_model::job::{Holder, Job};
use rota_store::Store;
use rota_store::domains::Domains;
use rota_store::job_limits::JobLimits;
use rota_store::jobs::Jobs;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::flaws::Flaw;
use crate::lease::Lease;
use crate::patience::{Complaint, STORE_PAUSE};
use crate::registry::TypeRegistry;
use crate::surroundings::Surroundings;
use crate::types::JobTypes;
use crate::waiters::Waiters;

use brake::{Brake, Stop};
use claiming::Next;
use hands::Hands;
use lanes::Lanes;
use limits::Gate;
use recovery::Own;
use settle::Unsettled;

/// A hint may be lost: an idle processor looks again after this.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long a handler that was told to stop may take for it.
const STOP_GRACE: Duration = Duration::from_millis(500);

pub struct Processor {
    jobs: Jobs,
    domains: Domains,
    limits: JobLimits,
    registry: Arc<TypeRegistry>,
    types: Arc<JobTypes>,
    surroundings: Surroundings,
    waiters: Waiters,
    lease: Arc<Lease>,
    capacity: usize,
    /// How far searches of the store lag behind what was written.
    find_lag: Duration,
    hands: Mutex<Hands>,
    unsettled: Mutex<Unsettled>,
    own: Mutex<Own>,
    /// There is room for more jobs.
    room: Notify,
    /// Nothing is in hand.
    empty: Notify,
    /// Jobs were queued again, or what the node may do changed.
    work_again: Notify,
    /// Limits let more through.
    slots: Notify,
    /// What the node has of its limits is to be brought in line with what it needs; one at a time does that.
    limits_wanted: Notify,
    balancing: tokio::sync::Mutex<()>,
    /// One at a time asks what types limit.
    asking: tokio::sync::Mutex<()>,
}

/// What a processor needs of its node.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) registry: Arc<TypeRegistry>,
    pub(crate) types: Arc<JobTypes>,
    pub(crate) surroundings: Surroundings,
    pub(crate) waiters: Waiters,
    pub(crate) lease: Arc<Lease>,
    pub(crate) holder: Holder,
    pub(crate) capacity: usize,
}

impl Processor {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { store, registry, types, surroundings, waiters, lease, holder, capacity } = parts;
        let mut names = types.names();
        if surroundings.has(Flaw::ClaimsEveryType) {
            names.extend(types.foreign());
        }
        let lanes = Lanes::new(names, registry.is_open());
        let find_lag = store.promises().find_lag;
        Self {
            jobs: Jobs::new(Arc::clone(&store)),
            domains: Domains::new(Arc::clone(&store)),
            limits: JobLimits::new(store),
            registry,
            types,
            surroundings,
            waiters,
            lease,
            capacity,
            find_lag,
            hands: Mutex::new(Hands::new(holder, lanes)),
            unsettled: Mutex::default(),
            own: Mutex::default(),
            room: Notify::new(),
            empty: Notify::new(),
            work_again: Notify::new(),
            slots: Notify::new(),
            limits_wanted: Notify::new(),
            balancing: tokio::sync::Mutex::new(()),
            asking: tokio::sync::Mutex::new(()),
        }
    }

    /// How many handlers run.
    pub fn running(&self) -> usize {
        self.hands().active()
    }

    /// How many handlers run; of a node that rests, how many jobs are still its own: whoever waits for it to be done waits
    /// for their results too.
    pub(crate) fn busy_with(&self) -> usize {
        self.hands().busy_with()
    }

    /// Works until told to stop, then lets running jobs finish for as long as they may and gives the rest back.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken, grace: Duration) {
        let mut changes = self.jobs.changes();
        let (mut short_since, mut complaint) = (None, Complaint::default());
        while !stop.is_cancelled() {
            self.hear(&mut changes);
            let next = match self.step(&mut short_since).await {
                Ok(next) => next,
                Err(error) => {
                    self.journal().complain(&mut complaint, "cannot claim jobs; trying again", error);
                    Next::After(STORE_PAUSE)
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = self.until(next, &mut changes) => {}
            }
        }
        self.hands().stop();
        self.clear_line();
        if !self.surroundings.has(Flaw::StopsWithoutRelease) {
            self.give_back(grace).await;
            self.leave_limits().await;
        }
    }

    /// There is work that no hint tells of.
    pub(crate) fn wake(&self) {
        self.work_again.notify_one();
    }

    /// Somebody stored jobs that wait: until they are claimed, no new one goes before those that are due.
    pub(crate) fn expect<'a>(&self, jobs: impl IntoIterator<Item = &'a Job>) {
        let now = self.surroundings.now();
        let mut hands = self.hands();
        jobs.into_iter().for_each(|job| hands.expect(job, now));
    }

    /// The node is to begin nothing new, or may again.
    pub(crate) fn set_rests(self: &Arc<Self>, rests: bool) {
        let rests = rests && !self.surroundings.has(Flaw::ClaimsWhilePaused);
        self.hands().set_rests(rests);
        if rests {
            self.clear_line();
        }
        self.work_again.notify_one();
    }

    /// The sections to look at first; all alike if none are given.
    pub(crate) fn set_sections(&self, sections: Option<Vec<u32>>) {
        let mut hands = self.hands();
        if hands.sections != sections {
            hands.sections = sections;
            self.work_again.notify_one();
        }
    }

    /// The node lives on under another incarnation. What the former one claimed at its very end is not begun with.
    pub(crate) fn set_holder(&self, holder: Holder) {
        let mut hands = self.hands();
        if !self.surroundings.has(Flaw::HandlersOutliveLease) {
            hands.running.values().for_each(|held| held.brake.pull(Stop::LeaseOver));
        }
        hands.holder = holder;
        if !self.surroundings.has(Flaw::SlotsOutliveLife) {
            hands.lanes.limits.begin_life();
        }
        drop(hands);
        *self.own() = Own::default();
        self.work_again.notify_one();
    }

    /// The lease is over: whatever runs is stopped at once, and nothing more is written about it.
    pub(crate) fn abandon(self: &Arc<Self>) -> usize {
        if self.surroundings.has(Flaw::HandlersOutliveLease) {
            return 0;
        }
        self.stop_all(Stop::LeaseOver)
    }

    /// Lets running jobs finish for as long as they may, and gives the rest back for others to run; unless the node is to
    /// work again by then.
    pub(crate) async fn give_back(self: &Arc<Self>, grace: Duration) {
        let _ = timeout(grace, self.all_ended()).await;
        {
            let mut hands = self.hands();
            hands.gives_back = hands.rests;
            if !hands.rests {
                return;
            }
        }
        self.stop_all(Stop::Release);
        let _ = timeout(STOP_GRACE * 4, self.all_ended()).await;
    }

    async fn all_ended(&self) {
        loop {
            let mut empty = pin!(self.empty.notified());
            empty.as_mut().enable();
            if self.hands().running.is_empty() {
                return;
            }
            empty.await;
        }
    }

    /// A job that is limited is out of hand. Where it may still name us, what it used is free once that was looked at.
    fn leave(&self, hands: &mut Hands, gate: Gate, brake: &Brake) {
        let (limits, at) = (&mut hands.lanes.limits, self.surroundings.elapsed());
        match brake.why() {
            Some(Stop::LeaseOver) => limits.lose(gate, 1),
            _ if self.surroundings.has(Flaw::FreesTwice) => limits.free(&gate, 2, at),
            _ => limits.free(&gate, 1, at),
        }
        self.slots.notify_one();
        self.limits_wanted.notify_one();
    }

    /// A slot is free. Whoever had it looks who is next.
    fn handler_ended(&self, id: JobId, brake: &Arc<Brake>) {
        let mut hands = self.hands();
        hands.ended(id, brake);
        if hands.has_room(self.capacity) {
            self.room.notify_one();
        }
    }

    /// Says how many handlers are told so for the first time.
    fn stop_all(self: &Arc<Self>, why: Stop) -> usize {
        let told = self.hands().running.values().filter(|held| held.is_stopped_by(why)).count();
        self.clear_line();
        told
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job that is in hand for as long as this lives, however its task ends.
struct InHand {
    processor: Arc<Processor>,
    id: JobId,
    brake: Arc<Brake>,
}

impl Drop for InHand {
    fn drop(&mut self) {
        let processor = &self.processor;
        let mut hands = processor.hands();
        if let Some(gate) = hands.let_go(self.id, &self.brake) {
            processor.leave(&mut hands, gate, &self.brake);
        }
        if hands.has_room(processor.capacity) {
            processor.room.notify_one();
        }
        if hands.running.is_empty() {
            processor.empty.notify_waiters();
        }
    }
}
