//! When to claim, what, and from where.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rota_model::ids::ClaimToken;
use rota_model::time::UnixMillis;
use rota_store::StoreError;
use rota_store::hints::{Changes, Hint, News};
use tokio::time::{Instant, sleep, timeout};

use super::lanes::{Look, PAGE, Plan};
use super::{LOOK_AGAIN, Processor};
use crate::flaws::Flaw;
use crate::patience::{STORE_PAUSE, answered};

/// How long nothing must happen before an idle processor looks ahead.
const QUIET: Duration = Duration::from_millis(10);
/// How long a node with nothing to do leaves the sections of others to them.
const HELP_AFTER: Duration = Duration::from_millis(200);

impl Processor {
    /// Claims as many due jobs as there are free slots and begins with them. Says when it is worth trying again.
    pub(super) async fn step(
        self: &Arc<Self>,
        short_since: &mut Option<Instant>,
    ) -> Result<Next, StoreError> {
        if self.hands().rests {
            return Ok(Next::Told);
        }
        if !self.lease.is_good() {
            return Ok(Next::After(STORE_PAUSE));
        }
        // Now and then all sections alike: work that only we can do may wait in those of another.
        let own = self.hands().sections_to_claim();
        self.look_if_needed().await?;
        self.resolve_doubts().await;
        let Some(short) = self.claim(own.as_deref()).await? else { return Ok(Next::Room) };
        if !short {
            *short_since = None;
            return Ok(Next::Room);
        }
        if own.is_some() {
            let since = *short_since.get_or_insert_with(Instant::now);
            if let Some(left) = HELP_AFTER.checked_sub(since.elapsed()).filter(|left| !left.is_zero()) {
                return Ok(Next::NewWork(left));
            }
            *short_since = None;
            if self.claim(None).await? != Some(true) {
                return Ok(Next::Room);
            }
        }
        let mut hands = self.hands();
        hands.quiet = true;
        Ok(Next::NewWork(hands.lanes.rest()))
    }

    /// One claim, for all slots that are free or soon will be. Says whether it came back short, and so nothing else was due;
    /// none if there is no room, or no lease to claim under.
    async fn claim(self: &Arc<Self>, sections: Option<&[u32]>) -> Result<Option<bool>, StoreError> {
        // The node may have stood still since it last looked.
        if !self.lease.is_good() {
            return Ok(None);
        }
        let now = self.surroundings.now();
        let token = ClaimToken::rising(now, &self.surroundings.randomness());
        let Some(claiming) = self.hands().begin_claim(token, self.capacity) else { return Ok(None) };
        let mut plan = self.plan(now, claiming.room);
        if self.surroundings.has(Flaw::ServesByName) {
            plan.shares.retain(|share| share.limit == claiming.room);
            plan.shares.sort_by(|a, b| a.lane.cmp(&b.lane));
        }
        let claim = self.jobs.claim_due(now, claiming.holder, &plan.shares, sections, token, claiming.room);
        let claimed =
            if plan.shares.is_empty() { Ok(Vec::new()) } else { answered("claim jobs", claim).await };
        // A claim that is answered too late is begun with by nobody here: it is found again, and given back.
        let in_time = self.lease.is_good() || self.surroundings.has(Flaw::BeginsAfterLease);
        let jobs = claimed.as_deref().ok().map(|jobs| if in_time { jobs } else { &[] });
        let at = self.surroundings.elapsed();
        let mut hands = self.hands();
        let begun = hands.end_claim(claiming, Some(&plan), jobs);
        if hands.lanes.limits.came != plan.came {
            hands.take_up(at);
        }
        let claimed = claimed.inspect_err(|error| {
            hands.lanes.took_nothing(&plan, matches!(error, StoreError::Unknown { .. }), at);
        })?;
        let short = claimed.len() < claiming.room;
        hands.lanes.took(&plan, &claimed, short && sections.is_none(), at);
        for gate in claimed.iter().skip(begun.len()).filter_map(|job| plan.gate(&job.document)) {
            hands.lanes.limits.lose(gate, 1);
        }
        drop(hands);
        if !begun.is_empty() {
            self.line_up(claimed.into_iter().zip(begun));
        }
        // Where there are more lanes than a claim asks, others are asked next; of our own sections, only when we help out.
        Ok(Some(short && (plan.is_whole || sections.is_some())))
    }

    /// Looks where jobs wait, unless that is known well enough.
    async fn look_if_needed(&self) -> Result<(), StoreError> {
        if !self.hands().lanes.wants_look(self.surroundings.now()) {
            return Ok(());
        }
        loop {
            let look = self.hands().lanes.begin_look();
            self.look(look).await?;
            if !self.hands().lanes.goes_on(self.surroundings.now()) {
                break;
            }
        }
        let round = self.hands().lanes.begin_round();
        if let Some(round) = round {
            self.look(round).await?;
        }
        if self.hands().lanes.wants_weights() {
            // Who does not know them goes on without.
            let weights = answered("read the weights of domains", self.domains.weights()).await.ok();
            self.hands().lanes.set_weights(weights);
        }
        Ok(())
    }

    async fn look(&self, look: Look) -> Result<(), StoreError> {
        let page = self.jobs.lanes(look.behind.as_deref(), PAGE);
        let looked = answered("look for jobs that wait", page).await;
        let mut hands = self.hands();
        match looked {
            Ok(page) => hands.lanes.end_look(&look, page),
            Err(error) => {
                hands.lanes.tell();
                return Err(error);
            }
        }
        Ok(())
    }

    /// From where to claim; what limits lack for it is asked for.
    fn plan(&self, now: UnixMillis, room: usize) -> Plan {
        let at = self.surroundings.elapsed();
        let mut hands = self.hands();
        let plan = hands.lanes.plan(now, room, at);
        if hands.lanes.limits.next_balance(at).is_some_and(|wait| wait.is_zero()) {
            self.limits_wanted.notify_one();
        }
        plan
    }

    /// Until there may be something to claim.
    pub(super) async fn until(&self, next: Next, changes: &mut Changes) {
        match next {
            Next::Room => {
                while !self.hands().has_room(self.capacity) {
                    self.hearing(self.room.notified(), changes).await;
                }
                // Slots that are freed together are filled together.
                tokio::task::yield_now().await;
            }
            Next::Told => {
                self.hearing(self.work_again.notified(), changes).await;
                self.hands().lanes.tell();
            }
            Next::After(pause) => sleep(pause).await,
            Next::NewWork(at_most) => tokio::select! {
                biased;
                () = self.new_work(changes) => self.hands().lanes.tell(),
                () = self.work_again.notified() => self.hands().lanes.tell(),
                () = self.slots.notified() => {}
                () = self.next_due(at_most) => {}
            },
        }
        self.hands().quiet = false;
    }

    /// Until something else happens, and takes note meanwhile of what is told: nobody keeps it for those who do not listen.
    async fn hearing(&self, until: impl Future<Output = ()>, changes: &mut Changes) {
        let mut until = pin!(until);
        while timeout(LOOK_AGAIN, &mut until).await.is_err() {
            self.hear(changes);
        }
    }

    /// Until a job that waits for its time is due, and not longer than said. Looks ahead only after a moment of quiet: who is
    /// busy is woken anyway. What is due already, and was not to be had, belongs to others or is not to be seen yet.
    async fn next_due(&self, at_most: Duration) {
        sleep(QUIET.min(at_most)).await;
        let _ = self.look_if_needed().await;
        let now = self.surroundings.now();
        let ahead = self.hands().lanes.next_after(now).map(|due| due.since(now));
        sleep(ahead.map_or(at_most, |ahead| ahead.min(at_most))).await;
    }

    /// Until a hint tells of a new job that somebody else stored, or hints were lost.
    async fn new_work(&self, changes: &mut Changes) {
        loop {
            match changes.next().await {
                News::Of(hints) if self.is_work(&hints) => return,
                News::Of(_) => {}
                News::Lost => return,
                // Nobody will tell any more: the look ahead remains.
                News::Closed => std::future::pending().await,
            }
        }
    }

    /// Takes note of what was told while there was no time to wait for it.
    pub(super) fn hear(&self, changes: &mut Changes) {
        while let Some(news) = changes.told() {
            match news {
                News::Of(hints) if !self.is_work(&hints) => {}
                News::Of(_) | News::Lost => self.hands().lanes.tell(),
                News::Closed => return,
            }
        }
    }

    fn is_work(&self, hints: &[Hint]) -> bool {
        let mut new = hints.iter().filter(|hint| hint.is_new).peekable();
        if new.peek().is_none() {
            return false;
        }
        let hands = self.hands();
        let ours = |hint: &Hint| hint.key.id.parse().is_ok_and(|id| hands.running.contains_key(&id));
        !new.all(ours)
    }
}

/// When it is worth trying to claim again.
pub(super) enum Next {
    /// All slots are taken, or were taken just now.
    Room,
    /// Nothing else is due; look again after this at the latest.
    NewWork(Duration),
    /// The node is to begin nothing until it is told otherwise.
    Told,
    /// The store did not answer, or we did not reach it for too long.
    After(Duration),
}
