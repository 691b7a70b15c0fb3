//! What a node has in hand. A job is in hand from the moment at which its claim may be written until it is settled; whatever
//! names us in the store and is not in hand is given back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rota_model::ids::{ClaimToken, JobId};
use rota_model::job::{Holder, Job};
use rota_model::limit::LimitName;
use rota_model::time::UnixMillis;
use rota_store::Versioned;
use rota_store::limits::MAX_PAGE;
use tokio::time::Instant;

use super::brake::{Brake, Stop};
use super::lanes::{Lanes, Plan};
use super::limits::Gate;
use super::line::{Line, Waiting};
use super::pace::Pace;

pub(super) struct Hands {
    pub(super) holder: Holder,
    pub(super) running: BTreeMap<JobId, Held>,
    /// How many of them wait for a slot.
    waiting: usize,
    /// How many of them have a handler that runs; what is left waits for its result to be written.
    active: usize,
    /// Claims that are under way.
    claiming: BTreeSet<ClaimToken>,
    /// How many jobs they may bring.
    reserved: usize,
    pace: Pace,
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
    pub(super) lanes: Lanes,
    /// Those that wait for a slot.
    pub(super) line: Line,
}

pub(super) struct Held {
    pub(super) epoch: u64,
    pub(super) brake: Arc<Brake>,
    stage: Stage,
    /// The limits that it is under.
    gate: Option<Gate>,
    /// What it is, for limits that are yet to come; none where nothing can be limited.
    of: Option<LimitName>,
}

impl Held {
    /// Pulls its brake. Says whether a handler is told by that: it has not ended, and was not told the same before.
    pub(super) fn is_stopped_by(&self, why: Stop) -> bool {
        let knew = self.brake.why() == Some(why);
        self.brake.pull(why);
        !knew && self.stage != Stage::Ended
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It waits for a slot.
    Waits,
    /// Its handler runs.
    Runs,
    /// Its handler has ended, and what came of it is to be written.
    Ended,
}

/// Whether a job that was claimed may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Now,
    /// Nothing new is begun: it is for others.
    Never,
}

/// Every so many claims is about all sections.
const ALL_EVERY: u32 = 8;
/// How many jobs are in hand for each slot at most, whether they wait for it, or only for their result to be written.
const IN_HAND: usize = 32;

/// A claim that is under way.
#[derive(Clone, Copy)]
pub(super) struct Claiming {
    pub(super) token: ClaimToken,
    pub(super) holder: Holder,
    /// How many jobs it may bring.
    pub(super) room: usize,
    began: Instant,
}

/// A slot that is kept for a job that is about to be stored as already claimed.
pub(crate) struct Seat {
    pub(super) holder: Holder,
    pub(super) token: ClaimToken,
    pub(super) brake: Arc<Brake>,
}

impl Hands {
    pub(super) fn new(holder: Holder, lanes: Lanes) -> Self {
        Self {
            holder,
            running: BTreeMap::new(),
            waiting: 0,
            active: 0,
            claiming: BTreeSet::new(),
            reserved: 0,
            pace: Pace::default(),
            rests: false,
            stops: false,
            gives_back: false,
            sections: None,
            claims: 0,
            quiet: false,
            lanes,
            line: Line::default(),
        }
    }

    /// Slots in which no handler runs.
    pub(super) fn unused(&self, capacity: usize) -> usize {
        capacity.saturating_sub(self.active)
    }

    /// Slots that nobody has in view.
    fn free(&self, capacity: usize) -> usize {
        capacity.saturating_sub(self.active + self.waiting + self.reserved)
    }

    /// How many jobs a claim may bring: one for each slot that is free, or will be by then.
    fn room(&self, capacity: usize) -> usize {
        let taken = self.active + self.waiting + self.reserved;
        let most = capacity.saturating_mul(IN_HAND).saturating_sub(self.running.len() + self.reserved);
        capacity.saturating_add(self.pace.ahead).saturating_sub(taken).min(most).min(MAX_PAGE)
    }

    /// The sections that the next claim is about; all, if none are given.
    pub(super) fn sections_to_claim(&mut self) -> Option<Vec<u32>> {
        self.claims = self.claims.wrapping_add(1);
        if self.claims.is_multiple_of(ALL_EVERY) { None } else { self.sections.clone() }
    }

    pub(super) fn busy_with(&self) -> usize {
        if self.rests { self.running.len() + self.reserved } else { self.active }
    }

    /// How many handlers run.
    pub(super) fn active(&self) -> usize {
        self.active
    }

    fn take(&mut self, job: &Job, epoch: u64, stage: Stage, gate: Option<Gate>) -> Arc<Brake> {
        let (id, brake) = (job.job_id, Arc::<Brake>::default());
        let held = Held { epoch, brake: Arc::clone(&brake), stage, gate, of: self.lanes.meet(job) };
        self.count(stage, 1);
        if let Some(former) = self.running.insert(id, held) {
            // A former epoch of it, whose result nobody wants any more.
            former.brake.pull(Stop::LeaseOver);
            self.count(former.stage, -1);
            former.gate.into_iter().for_each(|gate| self.lanes.limits.lose(gate, 1));
        }
        brake
    }

    fn count(&mut self, stage: Stage, n: isize) {
        let of = match stage {
            Stage::Waits => &mut self.waiting,
            Stage::Runs => &mut self.active,
            Stage::Ended => return,
        };
        *of = of.saturating_add_signed(n);
    }

    /// Whose it is, its brake says: a job may be in hand anew, even under the same epoch, before a former life of it is over.
    fn held(&mut self, id: JobId, brake: &Arc<Brake>) -> Option<&mut Held> {
        self.running.get_mut(&id).filter(|held| Arc::ptr_eq(&held.brake, brake))
    }

    fn move_on(&mut self, id: JobId, brake: &Arc<Brake>, to: Stage) {
        let Some(held) = self.held(id, brake) else { return };
        let from = std::mem::replace(&mut held.stage, to);
        self.count(from, -1);
        self.count(to, 1);
        self.pace.ended += usize::from(from == Stage::Runs && to == Stage::Ended);
    }

    /// Who is next in the line, with a slot for it; none where nobody waits, or no slot is free.
    pub(super) fn next_in_line(&mut self, capacity: usize) -> Option<(Waiting, Turn)> {
        if self.active >= capacity {
            return None;
        }
        let waiting = self.line.pop()?;
        let id = waiting.job.document.job_id;
        let may = !self.rests && self.held(id, &waiting.brake).is_some();
        if may {
            self.move_on(id, &waiting.brake, Stage::Runs);
        }
        Some((waiting, if may { Turn::Now } else { Turn::Never }))
    }

    /// The handler of a job has ended: another may run, while what came of it is written.
    pub(super) fn ended(&mut self, id: JobId, brake: &Arc<Brake>) {
        self.move_on(id, brake, Stage::Ended);
    }

    /// A job is no longer in hand. Says which limits it was under.
    pub(super) fn let_go(&mut self, id: JobId, brake: &Arc<Brake>) -> Option<Gate> {
        self.held(id, brake)?;
        self.ended(id, brake);
        self.running.remove(&id)?.gate
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

    /// Whether it is worth claiming: not before half of what may be in hand is used up, unless nobody waits.
    pub(super) fn has_room(&self, capacity: usize) -> bool {
        self.room(capacity) >= self.waiting.max(1)
    }

    /// Keeps all room for a claim. None if there is none, or nothing new is begun.
    pub(super) fn begin_claim(&mut self, token: ClaimToken, capacity: usize) -> Option<Claiming> {
        let room = self.room(capacity);
        if room == 0 || self.rests {
            return None;
        }
        self.claiming.insert(token);
        self.reserved += room;
        let began = Instant::now();
        self.pace.begin_claim(began);
        Some(Claiming { token, holder: self.holder, room, began })
    }

    /// Takes in hand what was claimed by a plan, unless the life is over that claimed it.
    pub(super) fn end_claim(
        &mut self,
        claiming: Claiming,
        plan: Option<&Plan>,
        claimed: Option<&[Versioned<Job>]>,
    ) -> Vec<Arc<Brake>> {
        self.claiming.remove(&claiming.token);
        self.reserved -= claiming.room;
        self.pace.end_claim(if claimed.is_some() { claiming.began.elapsed() } else { Duration::ZERO });
        if self.holder != claiming.holder {
            return Vec::new();
        }
        let taken = claimed.unwrap_or_default().iter().map(|job| &job.document);
        let gate = |job| plan.and_then(|plan| plan.gate(job));
        let begun: Vec<_> = taken.map(|job| self.take(job, job.epoch, Stage::Waits, gate(job))).collect();
        if self.gives_back {
            begun.iter().for_each(|brake| brake.pull(Stop::Release));
        }
        begun
    }

    /// What types limit was asked for. Those of which nothing waits and nothing is in hand are forgotten.
    pub(super) fn end_asking(&mut self, at: Duration, failed: bool) {
        let in_hand = self.running.values().filter_map(|held| held.of.as_ref());
        self.lanes.end_asking(at, failed, in_hand);
    }

    /// What is in hand counts from the moment on at which its limits are known.
    pub(super) fn take_up(&mut self, at: Duration) {
        let limits = &mut self.lanes.limits;
        for held in self.running.values_mut() {
            let Some(of) = &held.of else { continue };
            if let Some(gate) = limits.take_up(of, held.gate.as_ref(), at) {
                held.gate = Some(gate);
            }
        }
    }

    /// A slot for a new job, if nothing else is waiting, and nothing limits it by now.
    pub(super) fn take_seat(
        &mut self,
        job: &Job,
        token: ClaimToken,
        capacity: usize,
        now: UnixMillis,
    ) -> Option<Seat> {
        let waiting = !self.quiet || self.lanes.is_due(now);
        let is_full = self.free(capacity) == 0 || self.room(capacity) == 0;
        if waiting || self.rests || is_full || self.running.contains_key(&job.job_id) {
            return None;
        }
        if self.lanes.is_limited(job) {
            return None;
        }
        let brake = self.take(job, 1, Stage::Runs, None);
        Some(Seat { holder: self.holder, token, brake })
    }

    pub(super) fn expect(&mut self, job: &Job, now: UnixMillis) {
        self.quiet &= job.run_at > now;
        // Who begins with nothing does not forget anything either: it looks when it may work again.
        if self.rests { self.lanes.tell() } else { self.lanes.expect(job) }
    }

    /// Whether we run it, or are just claiming it.
    pub(super) fn has(&self, job: &Job) -> bool {
        let claiming = job.claim_token.is_some_and(|token| self.claiming.contains(&token));
        claiming || self.running.get(&job.job_id).is_some_and(|held| held.epoch == job.epoch)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a surprise is a failure of the test")]
    use rota_model::domain::Domain;
    use rota_model::ids::{Incarnation, NodeId};
    use rota_model::job::NewJob;
    use rota_model::job::submission::Place;
    use rota_store::seam::Version;
    use serde_json::json;
    use tokio::time::advance;

    use super::*;

    const SLOTS: usize = 4;
    const NOW: UnixMillis = UnixMillis(1_000);

    fn hands() -> Hands {
        let node = NodeId::derived(&["one"]);
        Hands::new(Holder { node, incarnation: Incarnation::rising(NOW, &[0; 10]) }, Lanes::default())
    }

    fn claimed(number: u64) -> Versioned<Job> {
        let place = Place {
            domain: Domain::default(),
            job_id: JobId::derived(&[&number.to_string()]),
            job_number: number,
            sections: 64,
            accepted_by: NodeId::derived(&["one"]),
        };
        let document = NewJob::new("a job", "noop", json!({})).into_job(place, NOW);
        Versioned { key: rota_store::jobs::key(&document), document, version: Version(number) }
    }

    fn line_up(hands: &mut Hands, job: Versioned<Job>, brake: &Arc<Brake>) {
        let (job, brake) = (Box::new(job), Arc::clone(brake));
        hands.line.push(Waiting { job, brake, since: Instant::now() });
    }

    /// One claim that brings all it may, and takes this long. Says how many it brought.
    async fn claim(hands: &mut Hands, next: &mut u64, took: Duration) -> usize {
        let claiming = hands.begin_claim(ClaimToken::rising(NOW, &[0; 10]), SLOTS).unwrap();
        advance(took).await;
        let jobs: Vec<_> = (0..claiming.room as u64).map(|nth| claimed(*next + nth)).collect();
        *next += jobs.len() as u64;
        let brakes = hands.end_claim(claiming, None, Some(&jobs));
        jobs.into_iter().zip(&brakes).for_each(|(job, brake)| line_up(hands, job, brake));
        brakes.len()
    }

    fn begin(hands: &mut Hands) -> (JobId, Arc<Brake>) {
        let (waiting, turn) = hands.next_in_line(SLOTS).unwrap();
        assert!(turn == Turn::Now);
        (waiting.job.document.job_id, waiting.brake)
    }

    fn run_and_end(hands: &mut Hands, jobs: usize) {
        for _ in 0..jobs {
            let (id, brake) = begin(hands);
            hands.let_go(id, &brake);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_ends_at_once_has_more_claimed_ahead_and_never_more_than_its_slots_run() {
        let (mut hands, mut next) = (hands(), 0);
        let took = Duration::from_millis(2);
        let mut most = 0;
        for _ in 0..10 {
            let jobs = claim(&mut hands, &mut next, took).await;
            most = most.max(jobs);
            run_and_end(&mut hands, jobs);
        }
        assert!(most > 2 * SLOTS, "{most} at once");
        assert!(most <= IN_HAND * SLOTS, "{most} at once");
        let jobs = claim(&mut hands, &mut next, took).await;
        let running: Vec<_> = (0..SLOTS).map(|_| begin(&mut hands)).collect();
        assert!(jobs > SLOTS && hands.next_in_line(SLOTS).is_none(), "all slots are taken");
        hands.ended(running[0].0, &running[0].1);
        hands.set_rests(true);
        let (_, turn) = hands.next_in_line(SLOTS).unwrap();
        assert!(turn == Turn::Never, "for others to run");
        assert_eq!(hands.busy_with(), jobs);
    }

    #[tokio::test(start_paused = true)]
    async fn as_long_as_enough_waits_nobody_claims_for_a_few() {
        let (mut hands, mut next) = (hands(), 0);
        for _ in 0..10 {
            let jobs = claim(&mut hands, &mut next, Duration::from_millis(2)).await;
            run_and_end(&mut hands, jobs);
        }
        let jobs = claim(&mut hands, &mut next, Duration::from_millis(2)).await;
        assert!(!hands.has_room(SLOTS), "{jobs} have come just now");
        run_and_end(&mut hands, 1);
        assert!(hands.room(SLOTS) > 0 && !hands.has_room(SLOTS), "one of {jobs} is done");
        run_and_end(&mut hands, jobs - 2);
        assert!(hands.has_room(SLOTS), "one of {jobs} is left");
    }

    #[tokio::test(start_paused = true)]
    async fn where_handlers_take_long_nothing_is_claimed_that_has_to_wait() {
        let (mut hands, mut next) = (hands(), 0);
        for _ in 0..10 {
            let jobs = claim(&mut hands, &mut next, Duration::from_millis(2)).await;
            assert!(jobs <= SLOTS + 1, "{jobs} at once");
            advance(Duration::from_millis(500)).await;
            run_and_end(&mut hands, jobs.min(SLOTS));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_is_taken_anew_counts_once() {
        let (mut hands, job) = (hands(), claimed(1));
        let id = job.document.job_id;
        let first = hands.take(&job.document, 1, Stage::Waits, None);
        line_up(&mut hands, job.clone(), &first);
        let second = hands.take(&job.document, 2, Stage::Waits, None);
        line_up(&mut hands, job, &second);
        assert_eq!(first.why(), Some(Stop::LeaseOver));
        let (_, turn) = hands.next_in_line(SLOTS).unwrap();
        assert!(turn == Turn::Never, "it is in other hands");
        hands.let_go(id, &first);
        assert!(Arc::ptr_eq(&begin(&mut hands).1, &second));
        assert_eq!((hands.active(), hands.waiting, hands.running.len()), (1, 0, 1));
        hands.let_go(id, &second);
        assert_eq!((hands.active(), hands.waiting, hands.running.len()), (0, 0, 0));
    }
}
