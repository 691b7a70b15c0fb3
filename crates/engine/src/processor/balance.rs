//! Brings what a node has of limits in line with their documents: reserves what is wanted, gives back what is not used,
//! makes way for others who wait. One task does all of it, so that no claim ever waits for a limit that is not its own.
//!
//! Slots are used only once the write that reserved them was acknowledged, and no longer from the moment on at which a
//! write that gives them up is sent. Whatever lands late finds another version, or says what is so anyway: until a write
//! was applied, the least of all that may have been written is what is used.

use std::sync::Arc;
use std::time::Duration;

use rota_model::job::Holder;
use rota_model::limit::{Limit, LimitName};
use rota_store::hints::{Changes, News};
use rota_store::repository::Saved;
use rota_store::seam::Version;
use rota_store::{StoreError, Versioned};
use tokio::time::{sleep, timeout};

use super::Processor;
use super::limits::Part;
use crate::flaws::Flaw;
use crate::patience::{Complaint, answered};

/// How many limits are dealt with at once.
const MOST: usize = 256;
/// How long a node that stops tries to give back what it held.
const GOODBYE: Duration = Duration::from_secs(1);

/// What is to be written of one limit.
struct Change {
    name: LimitName,
    /// None if there is no document yet.
    before: Option<Versioned<Limit>>,
    after: Limit,
    part: Part,
}

/// What became of it; none if somebody else wrote meanwhile.
type Outcome = Result<Option<Version>, StoreError>;

impl Processor {
    /// Goes on until it is dropped.
    pub(crate) async fn keep_limits(self: Arc<Self>) {
        let mut changes = self.limits.changes();
        let mut complaint = Complaint::default();
        loop {
            let wait = self.next_look_at_limits();
            tokio::select! {
                biased;
                () = self.limits_wanted.notified() => {}
                () = self.registry.news() => {}
                () = sleep(wait.unwrap_or(Duration::MAX)), if wait.is_some() => {}
                () = self.told_of_limits(&mut changes) => {}
            }
            self.look_at_list().await;
            self.resolve_doubts().await;
            if let Err(error) = self.balance().await {
                self.journal().complain(&mut complaint, "cannot write to limits; trying again", error);
            }
        }
    }

    /// How long until there is something to do for limits; none if there is nothing.
    fn next_look_at_limits(&self) -> Option<Duration> {
        let (at, hands) = (self.surroundings.elapsed(), self.hands());
        let limits = &hands.lanes.limits;
        limits.next_balance(at).into_iter().chain(limits.rules.next(at)).min()
    }

    /// Gives back what is held, when nothing more is begun.
    pub(super) async fn leave_limits(&self) {
        self.hands().lanes.limits.want_nothing();
        let _ = timeout(GOODBYE, self.balance()).await;
    }

    /// Until somebody writes to a limit that concerns us.
    async fn told_of_limits(&self, changes: &mut Changes) {
        match changes.next().await {
            News::Of(hints) => {
                let limits = &mut self.hands().lanes.limits;
                hints.iter().for_each(|hint| limits.tell(&hint.key.id));
            }
            News::Lost => self.hands().lanes.limits.tell_all(),
            // Nobody will tell any more: looks remain.
            News::Closed => std::future::pending().await,
        }
    }

    async fn balance(&self) -> Result<(), StoreError> {
        let _one_at_a_time = self.balancing.lock().await;
        let at = self.surroundings.elapsed();
        let (holder, names) = {
            let mut hands = self.hands();
            (hands.holder, hands.lanes.limits.balanced_now(at, MOST))
        };
        if names.is_empty() || !self.lease.is_good() {
            if !names.is_empty() {
                sleep(super::STORE_PAUSE).await;
            }
            return Ok(());
        }
        let read = match answered("read limits", self.limits.get_each(&names)).await {
            Ok(read) => read,
            Err(error) => {
                self.could_not(&names, false);
                return Err(error);
            }
        };
        let changes = self.changes_of(holder, names, read);
        if changes.is_empty() || !self.lease.is_good() {
            return Ok(());
        }
        let (new, old): (Vec<Change>, Vec<Change>) =
            changes.into_iter().partition(|one| one.before.is_none());
        let created = self.create_limits(&new).await;
        let saved = self.save_limits(&old).await;
        let error = created.iter().chain(&saved).find_map(|outcome| outcome.as_ref().err().cloned());
        self.were_written(holder, new.into_iter().zip(created).chain(old.into_iter().zip(saved)));
        error.map_or(Ok(()), Err)
    }

    /// What is to be written, now that the documents are read.
    fn changes_of(
        &self,
        holder: Holder,
        names: Vec<LimitName>,
        read: Vec<Option<Versioned<Limit>>>,
    ) -> Vec<Change> {
        let (at, now) = (self.surroundings.elapsed(), self.surroundings.now());
        let wall_us = now.as_u64().saturating_mul(1_000);
        let mut hands = self.hands();
        if hands.holder != holder {
            return Vec::new();
        }
        let limits = &mut hands.lanes.limits;
        let outlives = self.surroundings.has(Flaw::SlotsOutliveLife);
        let me = if outlives { limits.first_name(holder.incarnation) } else { holder.incarnation };
        let mut changes = Vec::new();
        for (name, before) in names.into_iter().zip(read) {
            let may_queue = limits.may_queue();
            let mut after = match &before {
                Some(before) => before.document.clone(),
                None => Limit::new(name.clone(), now, holder.node),
            };
            let (version, who) = (before.as_ref().map(|before| before.version), (me, holder.node));
            let settled = limits.of_account(&name, |account| {
                if self.surroundings.has(Flaw::RatePerNode) {
                    (after.clock_us, after.started_us) = account.own_starts();
                }
                let part = account.settle(&mut after, version, who, (at, wall_us), may_queue);
                let differs =
                    before.as_ref().map_or(!after.holders.is_empty(), |before| before.document != after);
                (differs || account.must_write(&part)).then_some(part)
            });
            if let Some(part) = settled.flatten() {
                after.metadata.touch(now, holder.node);
                changes.push(Change { name, before, after, part });
            }
        }
        changes
    }

    async fn create_limits(&self, new: &[Change]) -> Vec<Outcome> {
        if new.is_empty() {
            return Vec::new();
        }
        let limits: Vec<Limit> = new.iter().map(|change| change.after.clone()).collect();
        each(new.len(), answered("write limits", self.limits.create_all(&limits)).await)
    }

    async fn save_limits(&self, old: &[Change]) -> Vec<Outcome> {
        if old.is_empty() {
            return Vec::new();
        }
        let changes = old.iter().filter_map(|change| Some((change.before.as_ref()?, &change.after)));
        let saved = answered("write limits", self.limits.save_all(changes)).await;
        let applied = |saved: Saved| match saved {
            Saved::Applied(version) => Some(version),
            Saved::Overtaken => None,
        };
        each(old.len(), saved.map(|saved| saved.into_iter().map(applied).collect()))
    }

    fn were_written(&self, holder: Holder, outcomes: impl Iterator<Item = (Change, Outcome)>) {
        let at = self.surroundings.elapsed();
        let mut hands = self.hands();
        if hands.holder != holder {
            return;
        }
        let (mut gains, blindly) = (false, self.surroundings.has(Flaw::ReservesBlindly));
        for (Change { name, part, .. }, outcome) in outcomes {
            let gained = hands.lanes.limits.of_account(&name, |account| match outcome {
                Ok(Some(version)) => account.written(&part, version, at),
                Ok(None) if blindly => account.written(&part, Version(0), at),
                Ok(None) => account.overtaken(),
                Err(error) => account.failed(matches!(error, StoreError::Unknown { .. }), at),
            });
            gains |= gained.unwrap_or(false);
        }
        drop(hands);
        if gains {
            self.slots.notify_one();
        }
    }

    fn could_not(&self, names: &[LimitName], is_unsure: bool) {
        let at = self.surroundings.elapsed();
        let mut hands = self.hands();
        for name in names {
            hands.lanes.limits.of_account(name, |account| account.failed(is_unsure, at));
        }
    }
}

/// One answer for each of so many writes.
fn each(count: usize, answers: Result<Vec<Option<Version>>, StoreError>) -> Vec<Outcome> {
    match answers {
        Ok(answers) => answers.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error); count],
    }
}
