//! A job that is submitted to a node with nothing else to do is stored as already claimed: one write instead of two before
//! its handler runs. The task that stores it is the node's own, and begins with it when the write is done, whether or not
//! somebody still waits for the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rota_model::ids::ClaimToken;
use rota_model::job::{Job, JobStatus};
use rota_model::time::UnixMillis;
use rota_store::StoreError;
use rota_store::repository::Created;
use tokio::sync::oneshot;

use super::hands::Seat;
use super::{InHand, Processor};
use crate::desk::{self, Made};
use crate::flaws::Flaw;

impl Processor {
    /// A slot for a job that was just submitted, if it can begin at once, nothing else is waiting and nothing limits it.
    pub(crate) fn seat_for(&self, job: &Job, is_limited: bool) -> Option<Seat> {
        let now = self.surroundings.now();
        let fits = !is_limited
            && job.status == JobStatus::Queued
            && job.run_at <= now
            && !job.is_expired(self.surroundings.steady_now())
            && self.types.handler(&job.input.kind).is_some()
            && self.lease.is_good();
        if !fits {
            return None;
        }
        let token = ClaimToken::rising(now, &self.surroundings.randomness());
        let mut hands = self.hands();
        if self.surroundings.has(Flaw::JumpsTheQueue) {
            hands.quiet = true;
            return hands.take_seat(job, token, self.capacity, UnixMillis(0));
        }
        let seat = hands.take_seat(job, token, self.capacity, now)?;
        if hands.lanes.limits.rules.are_in_doubt() {
            self.limits_wanted.notify_one();
        }
        Some(seat)
    }

    /// Stores a job as already claimed, and begins with it as soon as it is stored. The caller may go at any time.
    pub(crate) async fn begin_new(
        this: &Arc<Self>,
        seat: Seat,
        job: Job,
    ) -> Result<Created<Job>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let processor = Arc::clone(this);
        this.surroundings.spawn(async move {
            let brake = Arc::clone(&seat.brake);
            let held = InHand { processor: Arc::clone(&processor), id: job.job_id, brake };
            match held.processor.create_claimed(&seat, job).await {
                Ok(Created::New(job)) if held.processor.may_begin(&job.document, &seat) => {
                    let _ = reply.send(Ok(Created::New(job.clone())));
                    held.run_to_end(Box::new(job), Ok(())).await;
                }
                other => {
                    drop(held);
                    let _ = reply.send(other);
                }
            }
            // Its slot is free for whoever came meanwhile.
            processor.work().await;
        });
        answer.await.unwrap_or_else(|_| Err(StoreError::unknown("create a job", "the node ended meanwhile")))
    }

    /// A claim that would be worth nothing by now is not written: then the job is stored as one that waits.
    async fn create_claimed(&self, seat: &Seat, job: Job) -> Result<Created<Job>, StoreError> {
        let mut claimed = job.clone();
        if let Err(refusal) = claimed.claim(seat.holder, seat.token, self.surroundings.now()) {
            return Err(StoreError::refused("create a job", refusal));
        }
        let good = || {
            let hands = self.hands();
            self.lease.is_good() && hands.holder == seat.holder && !hands.rests
        };
        let last = AtomicBool::new(true);
        let form = || {
            last.store(good(), Ordering::Relaxed);
            if last.load(Ordering::Relaxed) { &claimed } else { &job }
        };
        let made = desk::create_in_form(&self.jobs, &self.surroundings, &job, form).await?;
        let as_claimed = matches!(made, Made::New(_)) && last.load(Ordering::Relaxed);
        Ok(made.of(if as_claimed { claimed } else { job }))
    }

    /// Whether a job is ours, now that it is stored. If not, it is found again, and given back or queued again.
    fn may_begin(&self, job: &Job, seat: &Seat) -> bool {
        let in_time = self.lease.is_good() || self.surroundings.has(Flaw::BeginsAfterLease);
        let ours = job.status == JobStatus::Started && job.claim_token == Some(seat.token);
        in_time && ours && self.hands().holder == seat.holder
    }
}
