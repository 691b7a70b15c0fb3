//! What a node has in hand. A job is in hand from the moment at which its claim may be written until it is settled; whatever
//! names us in the store and is not in hand is given back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use rota_model::ids::{ClaimToken, JobId};
use rota_model::job::{Holder, Job};
use rota_model::time::UnixMillis;
use rota_store::Versioned;
use rota_store::limits::MAX_PAGE;
use tokio_util::sync::CancellationToken;

pub(super) struct Hands {
    pub(super) holder: Holder,
    pub(super) running: BTreeMap<JobId, Held>,
    /// How many of them have a handler that runs; the others only wait for their result to be written.
    active: usize,
    /// Claims that are under way.
    claiming: BTreeSet<ClaimToken>,
    /// Slots that they may fill.
    reserved: usize,
    /// Whether nothing new is begun.
    pub(super) rests: bool,
    /// Whether that is for ever.
    stops: bool,
    /// Whether what was claimed before that, and is only answered now, is given back too.
    pub(super) gives_back: bool,
    /// The sections to look at first.
    pub(super) sections: Option<Vec<u32>>,
    claims: u32,
    /// Whether nothing waits to be claimed, as far as is known.
    pub(super) quiet: bool,
    /// When the next job is due that waits for its time.
    pub(super) next_due: Option<UnixMillis>,
}

pub(super) struct Held {
    pub(super) epoch: u64,
    pub(super) brake: Arc<Brake>,
    /// Whether its handler has ended.
    ended: bool,
}

impl Held {
    fn new(epoch: u64) -> Self {
        Self { epoch, brake: Arc::default(), ended: false }
    }
}

/// Every so many claims is about all sections.
const ALL_EVERY: u32 = 8;
/// Results that wait to be written keep a node from claiming more only when there are this many for each slot.
const UNWRITTEN: usize = 4;

/// A slot that is kept for a job that is about to be stored as already claimed.
pub(crate) struct Seat {
    pub(super) holder: Holder,
    pub(super) token: ClaimToken,
    pub(super) brake: Arc<Brake>,
}

impl Hands {
    pub(super) fn new(holder: Holder) -> Self {
        Self {
            holder,
            running: BTreeMap::new(),
            active: 0,
            claiming: BTreeSet::new(),
            reserved: 0,
            rests: false,
            stops: false,
            gives_back: false,
            sections: None,
            claims: 0,
            quiet: false,
            next_due: None,
        }
    }

    fn free(&self, capacity: usize) -> usize {
        let unwritten = capacity.saturating_mul(UNWRITTEN).saturating_sub(self.running.len());
        capacity.saturating_sub(self.active + self.reserved).min(unwritten)
    }

    /// The sections that the next claim is about; all, if none are given.
    pub(super) fn sections_to_claim(&mut self) -> Option<Vec<u32>> {
        self.claims = self.claims.wrapping_add(1);
        if self.claims.is_multiple_of(ALL_EVERY) { None } else { self.sections.clone() }
    }

    /// How many handlers run.
    pub(super) fn active(&self) -> usize {
        self.active
    }

    fn take(&mut self, id: JobId, epoch: u64) -> Arc<Brake> {
        let held = Held::new(epoch);
        let brake = Arc::clone(&held.brake);
        match self.running.insert(id, held) {
            // A former epoch of it, whose result nobody wants any more.
            Some(former) if !former.ended => former.brake.pull(Stop::NotOurs),
            _ => self.active += 1,
        }
        brake
    }

    /// The handler of a job has ended: another may run, while what came of it is written. Whose it is, its brake says: a
    /// job may be in hand anew, even under the same epoch, before a former life of it is over.
    pub(super) fn ended(&mut self, id: JobId, brake: &Arc<Brake>) {
        let held = self.running.get_mut(&id).filter(|held| Arc::ptr_eq(&held.brake, brake) && !held.ended);
        if let Some(held) = held {
            held.ended = true;
            self.active -= 1;
        }
    }

    /// A job is no longer in hand.
    pub(super) fn let_go(&mut self, id: JobId, brake: &Arc<Brake>) {
        self.ended(id, brake);
        if self.running.get(&id).is_some_and(|held| Arc::ptr_eq(&held.brake, brake)) {
            self.running.remove(&id);
        }
    }

    /// Nothing new is begun, or may be again; once the node stops, never again.
    pub(super) fn set_rests(&mut self, rests: bool) {
        self.rests = rests || self.stops;
        self.gives_back &= self.rests;
    }

    /// The node stops, whatever is wanted of it from now on.
    pub(super) fn stop(&mut self) {
        self.stops = true;
        self.rests = true;
    }

    pub(super) fn has_room(&self, capacity: usize) -> bool {
        self.free(capacity) > 0
    }

    /// Keeps all free slots for a claim. None if there are none.
    pub(super) fn begin_claim(&mut self, token: ClaimToken, capacity: usize) -> Option<(usize, Holder)> {
        let free = self.free(capacity).min(MAX_PAGE);
        if free == 0 {
            return None;
        }
        self.claiming.insert(token);
        self.reserved += free;
        Some((free, self.holder))
    }

    /// Takes in hand what was claimed, unless the life is over that claimed it, and frees the other slots.
    pub(super) fn end_claim(
        &mut self,
        token: ClaimToken,
        reserved: usize,
        holder: Holder,
        jobs: &[Versioned<Job>],
    ) -> Vec<Arc<Brake>> {
        self.claiming.remove(&token);
        self.reserved -= reserved;
        if self.holder != holder {
            return Vec::new();
        }
        let begun: Vec<_> =
            jobs.iter().map(|job| self.take(job.document.job_id, job.document.epoch)).collect();
        if self.gives_back {
            begun.iter().for_each(|brake| brake.pull(Stop::Release));
        }
        begun
    }

    /// A slot for a new job, if nothing else is waiting.
    pub(super) fn take_seat(
        &mut self,
        id: JobId,
        token: ClaimToken,
        capacity: usize,
        now: UnixMillis,
    ) -> Option<Seat> {
        let waiting = !self.quiet || self.next_due.is_some_and(|due| due <= now);
        if waiting || self.rests || self.free(capacity) == 0 || self.running.contains_key(&id) {
            return None;
        }
        let brake = self.take(id, 1);
        Some(Seat { holder: self.holder, token, brake })
    }

    pub(super) fn expect(&mut self, run_at: UnixMillis, now: UnixMillis) {
        if run_at <= now {
            self.quiet = false;
        } else if self.next_due.is_none_or(|due| run_at < due) {
            self.next_due = Some(run_at);
        }
    }

    /// Whether we run it, or are just claiming it.
    pub(super) fn has(&self, job: &Job) -> bool {
        let claiming = job.claim_token.is_some_and(|token| self.claiming.contains(&token));
        claiming || self.running.get(&job.job_id).is_some_and(|held| held.epoch == job.epoch)
    }
}

/// Why a handler is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The job was cancelled, or is somebody else's by now.
    NotOurs,
    /// The node cannot be sure any more that the job is its own.
    LeaseOver,
    /// The node stops, and gives it back.
    Release,
}

/// What stops a handler: first it is told, then it is dropped.
#[derive(Default)]
pub(super) struct Brake {
    pub(super) told: CancellationToken,
    pub(super) dropped: CancellationToken,
    why: OnceLock<Stop>,
}

impl Brake {
    pub(super) fn pull(&self, why: Stop) {
        let _ = self.why.set(why);
        self.told.cancel();
        if why == Stop::LeaseOver {
            self.dropped.cancel();
        }
    }

    /// Why it was told to stop, if it was.
    pub(super) fn why(&self) -> Option<Stop> {
        if self.dropped.is_cancelled() { Some(Stop::LeaseOver) } else { self.why.get().copied() }
    }
}
