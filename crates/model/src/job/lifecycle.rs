//! How a job may change: one table of transitions, and the functions that follow it.
//!
//! Three rules hold for every sequence of them, and are tested with random ones:
//!
//! - a requeue is the only way out of a terminal status;
//! - epochs only grow, and what comes back from a handler counts only under the epoch it was handed;
//! - a node's death costs no attempt: it is counted in `lost`.
//!
//! ```text
//!            claim              succeed
//!  QUEUED ──────────▶ STARTED ──────────▶ SUCCESSFUL ─┐
//!    ▲ ▲  retry, lose,   │ ├─ fail ─▶ FAILED ──────────┤
//!    │ └─ release ───────┘ └─ give up ─▶ ERROR ────────┤
//!    └────────────────────── requeue ──────────────────┘
//! ```

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::Extra;
use crate::ids::{ClaimToken, Incarnation, NodeId};
use crate::job::{HistoryEntry, Job, JobStatus, Progress};
use crate::time::UnixMillis;
use crate::transition::{IllegalTransition, Table};

/// A job that killed its node this often is given up.
pub const MAX_LOST: u32 = 20;
/// The first losses are made up for at once. From this one on a job waits for a while, each time longer, so that those that
/// are claimed together with one that kills its nodes part from it.
const PARTS_FROM: u32 = 3;
const LONGEST_PARTING: Duration = Duration::from_secs(60);
/// How much of its past a job keeps; the oldest goes first.
pub const MAX_HISTORY: usize = 100;
/// How large a result in its history may be, in bytes of JSON, once another has followed.
const MAX_OLD_RESULT: usize = 16 * 1024;

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JobEvent {
    /// A node takes it.
    Claim,
    /// Its handler finished.
    Succeed,
    /// Its handler failed and another attempt is left.
    Retry,
    /// Its handler failed for good.
    Fail,
    /// Its node died.
    Lose,
    /// Its node gave it back in good order.
    Release,
    /// It will never get a fair run.
    GiveUp,
    /// A person stopped it.
    Cancel,
    /// A person wants it to run again.
    Requeue,
}

pub const TRANSITIONS: Table<JobStatus, JobEvent> = Table::new(
    "job",
    &[
        (JobStatus::Queued, JobEvent::Claim, JobStatus::Started),
        (JobStatus::Queued, JobEvent::Cancel, JobStatus::Failed),
        (JobStatus::Queued, JobEvent::GiveUp, JobStatus::Error),
        (JobStatus::Started, JobEvent::Succeed, JobStatus::Successful),
        (JobStatus::Started, JobEvent::Retry, JobStatus::Queued),
        (JobStatus::Started, JobEvent::Fail, JobStatus::Failed),
        (JobStatus::Started, JobEvent::Lose, JobStatus::Queued),
        (JobStatus::Started, JobEvent::Release, JobStatus::Queued),
        (JobStatus::Started, JobEvent::GiveUp, JobStatus::Error),
        (JobStatus::Started, JobEvent::Cancel, JobStatus::Failed),
        (JobStatus::Successful, JobEvent::Requeue, JobStatus::Queued),
        (JobStatus::Failed, JobEvent::Requeue, JobStatus::Queued),
        (JobStatus::Error, JobEvent::Requeue, JobStatus::Queued),
    ],
);

/// Who claims a job: a node, in one of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    pub node: NodeId,
    pub incarnation: Incarnation,
}

/// What is to happen after a handler failed, if an attempt is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Again, after the job's backoff.
    Backoff,
    /// Again, at this instant.
    At(UnixMillis),
    /// Never: it would fail again.
    Never,
}

/// Why a change was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A zombie's answer: someone else holds the job by now, or it has ended.
    #[error("epoch {held} is over: the job is {} at epoch {current}", status.as_str())]
    Stale { held: u64, current: u64, status: JobStatus },
    #[error(transparent)]
    Illegal(#[from] IllegalTransition),
}

impl Job {
    /// A node takes the job, under the next epoch.
    pub fn claim(&mut self, holder: Holder, token: ClaimToken, now: UnixMillis) -> Result<(), Refusal> {
        self.step(JobEvent::Claim, now, holder.node)?;
        self.epoch += 1;
        self.owner = Some(holder.incarnation);
        self.owner_node = Some(holder.node);
        self.claim_token = Some(token);
        self.started_at = Some(now);
        Ok(())
    }

    pub fn succeed(
        &mut self,
        epoch: u64,
        result: Map<String, Value>,
        now: UnixMillis,
        by: NodeId,
    ) -> Result<(), Refusal> {
        self.must_hold(epoch)?;
        self.step(JobEvent::Succeed, now, by)?;
        self.end(result, now);
        Ok(())
    }

    /// The handler failed: another attempt at `again`, or the end where there is none.
    pub fn fail(
        &mut self,
        epoch: u64,
        error: &str,
        again: Option<UnixMillis>,
        now: UnixMillis,
        by: NodeId,
    ) -> Result<(), Refusal> {
        self.must_hold(epoch)?;
        let result = reason("error", error);
        let Some(run_at) = again else {
            self.step(JobEvent::Fail, now, by)?;
            self.end(result, now);
            return Ok(());
        };
        self.step(JobEvent::Retry, now, by)?;
        self.remember(JobEvent::Retry, now, result);
        self.attempt += 1;
        self.let_go(run_at);
        Ok(())
    }

    /// When to try again after a failure; none if this was the last attempt. `chance`, from 0 to 1, spreads those that
    /// failed together.
    pub fn next_attempt(&self, retry: Retry, chance: f64, now: UnixMillis) -> Option<UnixMillis> {
        let left = self.attempt < self.attempts;
        match retry {
            Retry::At(at) if left => Some(at.clamp(now, UnixMillis::MAX)),
            Retry::Backoff if left => {
                let backoff = self.backoff.clone().unwrap_or_default();
                Some(now.plus(backoff.spread(self.attempt, chance)))
            }
            _ => None,
        }
    }

    /// An attempt took longer than it may: another one at `again`, or ERROR where there is none.
    pub fn time_out(
        &mut self,
        epoch: u64,
        again: Option<UnixMillis>,
        now: UnixMillis,
        by: NodeId,
    ) -> Result<(), Refusal> {
        let limit = self.timeout_ms.unwrap_or_default();
        let why = format!("it took longer than its {limit} ms");
        if again.is_some() {
            return self.fail(epoch, &why, again, now, by);
        }
        self.must_hold(epoch)?;
        self.give_up(&why, now, by)
    }

    /// Whether its time to begin is over. Whoever has begun once, and is tried again, does not expire.
    pub fn is_expired(&self, now: UnixMillis) -> bool {
        !self.has_begun() && self.expires_at.is_some_and(|at| at <= now)
    }

    /// Whether an attempt at it was begun before. A claim is no beginning: what was claimed may be given back without a run.
    /// Of what a dead node held nobody knows, so it counts as begun.
    pub fn has_begun(&self) -> bool {
        self.attempt > 1 || self.lost > 0
    }

    /// The node that claimed it under this epoch finds that it came too late.
    pub fn expire_held(&mut self, epoch: u64, now: UnixMillis, by: NodeId) -> Result<(), Refusal> {
        self.must_hold(epoch)?;
        self.expire(now, by)
    }

    /// No node began with it in time.
    pub fn expire(&mut self, now: UnixMillis, by: NodeId) -> Result<(), Refusal> {
        let at = self.expires_at.unwrap_or(now);
        self.give_up(&format!("no node could begin with it before it expired at {at}"), now, by)
    }

    /// The handler says how far it is.
    pub fn report(
        &mut self,
        epoch: u64,
        progress: Progress,
        now: UnixMillis,
        by: NodeId,
    ) -> Result<(), Refusal> {
        self.must_hold(epoch)?;
        self.progress = Some(progress);
        self.metadata.touch(now, by);
        Ok(())
    }

    /// The node that held the job under this epoch is dead. Costs no attempt. `chance`, from 0 to 1, parts those that are
    /// lost together again and again.
    pub fn lose(&mut self, epoch: u64, chance: f64, now: UnixMillis, by: NodeId) -> Result<(), Refusal> {
        self.must_hold(epoch)?;
        if self.lost + 1 >= MAX_LOST {
            self.lost += 1;
            return self.give_up(&format!("its node died {MAX_LOST} times while running it"), now, by);
        }
        self.step(JobEvent::Lose, now, by)?;
        self.remember(JobEvent::Lose, now, Map::new());
        self.lost += 1;
        let pause = parting(self.lost).mul_f64(chance.clamp(0.0, 1.0));
        let again = if pause.is_zero() { self.run_at } else { self.run_at.max(now.plus(pause)) };
        self.let_go(again);
        Ok(())
    }

    /// The node that held the job under this epoch gives it back without having begun, and somebody else may run it at once.
    pub fn release(&mut self, epoch: u64, now: UnixMillis, by: NodeId) -> Result<(), Refusal> {
        self.must_hold(epoch)?;
        self.step(JobEvent::Release, now, by)?;
        self.remember(JobEvent::Release, now, Map::new());
        self.let_go(self.run_at);
        Ok(())
    }

    /// The node that held the job under this epoch stopped its handler, and gives it back. It was begun with in time, and
    /// does not expire any more.
    pub fn interrupt(&mut self, epoch: u64, now: UnixMillis, by: NodeId) -> Result<(), Refusal> {
        self.release(epoch, now, by)?;
        self.expires_at = None;
        Ok(())
    }

    pub fn give_up(&mut self, why: &str, now: UnixMillis, by: NodeId) -> Result<(), Refusal> {
        self.step(JobEvent::GiveUp, now, by)?;
        self.end(reason("error", why), now);
        Ok(())
    }

    pub fn cancel(&mut self, why: &str, now: UnixMillis, by: NodeId) -> Result<(), Refusal> {
        self.step(JobEvent::Cancel, now, by)?;
        self.end(reason("cancelled", why), now);
        Ok(())
    }

    /// The only way out of a terminal status: the same id, the next epoch, the old result kept.
    pub fn requeue(&mut self, now: UnixMillis, by: NodeId) -> Result<(), Refusal> {
        self.step(JobEvent::Requeue, now, by)?;
        self.shorten_history();
        let result = std::mem::take(&mut self.result);
        self.remember(JobEvent::Requeue, now, result);
        self.epoch += 1;
        self.attempt = 1;
        self.lost = 0;
        self.let_go(now);
        self.finished_at = None;
        // Who wants it to run does not want it to end before it can.
        self.expires_at = None;
        Ok(())
    }

    fn must_hold(&self, epoch: u64) -> Result<(), Refusal> {
        if self.status == JobStatus::Started && self.epoch == epoch {
            return Ok(());
        }
        Err(Refusal::Stale { held: epoch, current: self.epoch, status: self.status })
    }

    fn step(&mut self, event: JobEvent, now: UnixMillis, by: NodeId) -> Result<(), Refusal> {
        self.status = TRANSITIONS.next(self.status, event)?;
        self.metadata.touch(now, by);
        Ok(())
    }

    fn end(&mut self, result: Map<String, Value>, now: UnixMillis) {
        self.result = result;
        self.finished_at = Some(now);
        self.owner = None;
        self.claim_token = None;
    }

    fn let_go(&mut self, run_at: UnixMillis) {
        self.run_at = run_at;
        self.owner = None;
        self.owner_node = None;
        self.claim_token = None;
        self.started_at = None;
        self.progress = None;
    }

    /// Of the results before the last, only small ones are kept: a job that is requeued often must not outgrow its store.
    fn shorten_history(&mut self) {
        for entry in &mut self.history {
            let size = serde_json::to_vec(&entry.result).map_or(usize::MAX, |text| text.len());
            if size > MAX_OLD_RESULT {
                entry.result = reason("omitted", &format!("a result of {size} bytes"));
            }
        }
    }

    fn remember(&mut self, event: JobEvent, at: UnixMillis, result: Map<String, Value>) {
        if self.history.len() >= MAX_HISTORY {
            self.history.remove(0);
        }
        let (epoch, node) = (self.epoch, self.owner_node);
        self.history.push(HistoryEntry { at, event, epoch, node, result, extra: Extra::new() });
    }
}

/// Within which span a job is queued again after so many losses.
fn parting(lost: u32) -> Duration {
    let doubled = lost.checked_sub(PARTS_FROM).map(|times| Duration::from_secs(1 << times.min(10)));
    doubled.unwrap_or_default().min(LONGEST_PARTING)
}

fn reason(kind: &str, why: &str) -> Map<String, Value> {
    Map::from_iter([(kind.to_owned(), json!(why))])
}
