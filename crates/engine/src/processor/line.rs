//! Jobs that were claimed and wait for a slot, in the order in which they came.
//!
//! ```text
//!  claim ──▶ line ──▶ a worker: runs one after the other, as long as there are slots and jobs
//!              │         └── whose handler takes its time calls another worker to the line
//!              └── waited too long, or nothing new is begun ──▶ given back
//! ```
//!
//! Where handlers end at once, one worker goes through the whole line, and no job costs a task, a timer or a wake-up. There
//! are as many workers to begin with as threads: a handler that computes without ever waiting holds up only its own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rota_model::job::Job;
use rota_store::Versioned;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::brake::{Brake, Stop};
use super::hands::Turn;
use super::{InHand, Processor};
use crate::flaws::Flaw;

/// How long a job that was claimed ahead waits for a slot at most.
const WAIT_FOR_SLOT: Duration = Duration::from_millis(200);
/// After how many jobs a worker lets others have its thread.
const BREATH: usize = 32;

/// A job in the line.
pub(super) struct Waiting {
    pub(super) job: Box<Versioned<Job>>,
    pub(super) brake: Arc<Brake>,
    pub(super) since: Instant,
}

#[derive(Default)]
pub(super) struct Line(VecDeque<Waiting>);

impl Line {
    pub(super) fn push(&mut self, waiting: Waiting) {
        self.0.push_back(waiting);
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        self.0.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that came then, or before.
    fn came_by(&mut self, then: Instant) -> Vec<Waiting> {
        let staying = self.0.iter().position(|waiting| waiting.since > then).unwrap_or(self.0.len());
        self.0.drain(..staying).collect()
    }

    fn all(&mut self) -> Vec<Waiting> {
        self.0.drain(..).collect()
    }
}

impl Processor {
    /// Lets claimed jobs wait for their turn. Who does not get one soon is given back: slots were expected to be free sooner,
    /// and other nodes may have some.
    pub(super) fn line_up(self: &Arc<Self>, jobs: impl Iterator<Item = (Versioned<Job>, Arc<Brake>)>) {
        let since = Instant::now();
        let (workers, rests) = {
            let mut hands = self.hands();
            let before = hands.line.0.len();
            for (job, brake) in jobs {
                hands.line.push(Waiting { job: Box::new(job), brake, since });
            }
            let came = hands.line.0.len() - before;
            (came.min(hands.unused(self.slots())).min(threads()), hands.rests)
        };
        if rests {
            return self.clear_line();
        }
        for _ in 0..workers {
            self.call_worker();
        }
        let this = Arc::clone(self);
        self.surroundings.spawn(async move {
            sleep(WAIT_FOR_SLOT).await;
            let late = this.hands().line.came_by(since);
            this.turn_away(late);
        });
    }

    pub(super) fn call_worker(self: &Arc<Self>) {
        let this = Arc::clone(self);
        self.surroundings.spawn(async move { this.work().await });
    }

    /// Whether somebody waits who could begin.
    pub(super) fn is_somebody_next(&self) -> bool {
        let hands = self.hands();
        !hands.line.is_empty() && hands.unused(self.slots()) > 0
    }

    /// Runs one after the other, until nobody waits or there is no slot.
    pub(super) async fn work(self: &Arc<Self>) {
        for nth in 1_usize.. {
            let Some((waiting, turn)) = self.next_in_line() else { return };
            self.serve(waiting, turn).await;
            if nth.is_multiple_of(BREATH) {
                tokio::task::yield_now().await;
            }
        }
    }

    fn next_in_line(&self) -> Option<(Waiting, Turn)> {
        let mut hands = self.hands();
        let next = hands.next_in_line(self.slots())?;
        // Fewer wait now.
        if hands.has_room(self.capacity) {
            self.room.notify_one();
        }
        Some(next)
    }

    fn slots(&self) -> usize {
        if self.surroundings.has(Flaw::BeginsWithoutSlot) { usize::MAX } else { self.capacity }
    }

    async fn serve(self: &Arc<Self>, waiting: Waiting, turn: Turn) {
        let Waiting { job, brake, .. } = waiting;
        let held = InHand { processor: Arc::clone(self), id: job.document.job_id, brake };
        let may_begin = self.may_begin_with(&held, turn);
        held.run_to_end(job, may_begin).await;
    }

    fn may_begin_with(&self, held: &InHand, turn: Turn) -> Result<(), Stop> {
        match (held.brake.why(), turn) {
            (Some(why), _) => Err(why),
            (None, Turn::Now) if self.lease.is_good() => Ok(()),
            (None, Turn::Now) if self.surroundings.has(Flaw::BeginsAfterLease) => Ok(()),
            (None, Turn::Now) => {
                // What it names us in is not free before somebody looked.
                held.brake.pull(Stop::LeaseOver);
                Err(Stop::LeaseOver)
            }
            (None, Turn::Never) => Err(Stop::Release),
        }
    }

    /// Nothing new is begun: whoever waits is for others.
    pub(super) fn clear_line(self: &Arc<Self>) {
        let all = self.hands().line.all();
        self.turn_away(all);
    }

    fn turn_away(self: &Arc<Self>, waiting: Vec<Waiting>) {
        if waiting.is_empty() {
            return;
        }
        let this = Arc::clone(self);
        self.surroundings.spawn(async move {
            for one in waiting {
                this.serve(one, Turn::Never).await;
            }
        });
    }
}

fn threads() -> usize {
    Handle::current().metrics().num_workers().max(1)
}
