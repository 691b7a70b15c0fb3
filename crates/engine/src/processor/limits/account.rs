//! What a node has of one limit.
//!
//! `held` are the slots that are ours for certain: of all that we wrote since the last answer, whatever of it took effect,
//! the least. Only a write that was applied makes it certain again.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

use rota_model::ids::{Incarnation, NodeId};
use rota_model::job_type::Bounds;
use rota_model::limit::{Limit, Need, Pace};
use rota_store::seam::Version;

use crate::patience::STORE_PAUSE;

/// What is not used for this long, and up to twice as long, is given back.
const IDLE: Duration = Duration::from_millis(300);
/// Starts that were taken count for this long.
const STARTS_HOLD: Duration = Duration::from_secs(1);
/// Who found nothing asks again after this, if nobody tells it sooner.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// Who holds something looks this often whether others wait.
const LOOK: Duration = Duration::from_secs(1);
/// After a look, or a write that did not go well, it is left alone for this long.
const PAUSE: Duration = Duration::from_millis(20);
/// Who does not take what is there for it, for this long, is passed over.
const PASSED_OVER: Duration = Duration::from_secs(1);
/// An account of which nothing is held is kept for this long: it knows the clock of its document.
const KEPT: Duration = Duration::from_secs(30);
/// So many slots are reserved at first; later as many again as are used.
const FIRST: u32 = 4;

pub(in crate::processor) struct Account {
    bounds: Bounds,
    held: u32,
    /// How many of them may be used again when what uses them has ended; fewer than all, if others wait.
    cap: u32,
    /// How many were used and are not to be used again; and how many of them were so when a write was last made ready.
    spent: u32,
    spent_before: u32,
    used: u32,
    starts: u32,
    starts_until: Duration,
    /// The clock of the document, and when it showed that.
    clock: Option<(u64, Duration)>,
    /// What the document said of starts when we last wrote it.
    own_starts: (Option<u64>, Option<u64>),
    /// How many more could be used.
    wanted: u32,
    /// When something was last wanted, used or freed.
    active_at: Duration,
    /// How long after that it is given back. Never the same for two: of those who each have what the other waits for, one has
    /// to give way before the other.
    idle: Duration,
    /// Not before this is it worth asking again.
    retry_at: Duration,
    looked_at: Duration,
    /// The last version that was seen, and since when.
    seen: Option<(Version, Duration)>,
    is_in_line: bool,
    /// Whether a write of ours may have taken effect, or may yet.
    is_unsure: bool,
    /// Whether somebody wrote to the document.
    is_told: bool,
}

/// What a node is to have of a limit, once that is written.
pub(in crate::processor) struct Part {
    pub(in crate::processor) slots: u32,
    pub(in crate::processor) starts: u32,
}

/// Up to [`IDLE`], as good as by chance: another for each node, and each time.
fn spread(me: Incarnation, at: Duration) -> Duration {
    let thrown = BuildHasherDefault::<DefaultHasher>::default().hash_one((me, at));
    Duration::from_micros(thrown % u64::try_from(IDLE.as_micros()).unwrap_or(u64::MAX))
}

impl Account {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            held: 0,
            cap: u32::MAX,
            spent: 0,
            spent_before: 0,
            used: 0,
            starts: 0,
            starts_until: Duration::ZERO,
            clock: None,
            own_starts: (None, None),
            wanted: 0,
            active_at: Duration::ZERO,
            idle: IDLE,
            retry_at: Duration::ZERO,
            looked_at: Duration::ZERO,
            seen: None,
            is_in_line: false,
            is_unsure: false,
            is_told: false,
        }
    }

    /// Where fewer may run from now on, nothing more begins until it is known what the others have.
    pub(super) fn set_bounds(&mut self, bounds: Bounds) {
        let before = std::mem::replace(&mut self.bounds, bounds).concurrency;
        if bounds.concurrency.is_some_and(|most| before.is_none_or(|before| most < before)) {
            (self.spent, self.spent_before) = (self.held.saturating_sub(self.used), 0);
            self.cap = 0;
        }
        self.retry_at = Duration::ZERO;
        self.is_told = true;
    }

    pub(super) fn available(&self, at: Duration) -> u32 {
        let usable = |most| self.usable().min(most);
        let slots = self.bounds.concurrency.map_or(u32::MAX, |most| usable(most).saturating_sub(self.used));
        let starts = self.bounds.starts_per_second.map_or(u32::MAX, |_| self.starts_at(at));
        slots.min(starts)
    }

    /// How many slots are ours and not to be given up.
    fn usable(&self) -> u32 {
        self.held.saturating_sub(self.spent)
    }

    fn starts_at(&self, at: Duration) -> u32 {
        if at < self.starts_until { self.starts } else { 0 }
    }

    pub(super) fn allot(&mut self, count: u32, at: Duration) {
        self.used += count;
        self.starts = self.starts.saturating_sub(count);
        self.active_at = at;
    }

    pub(super) fn put_back(&mut self, count: u32, at: Duration) {
        self.used = self.used.saturating_sub(count);
        self.starts += count;
        self.active_at = at;
    }

    pub(super) fn free(&mut self, count: u32, at: Duration) {
        self.used = self.used.saturating_sub(count);
        let beyond = self.usable().saturating_sub(self.cap.max(self.used));
        self.spent += beyond.min(count);
        self.active_at = at;
        if self.bounds.starts_per_second.is_some() {
            // What was lacking may have been the slot.
            self.retry_at = self.retry_at.min(at.max(self.looked_at + PAUSE));
        }
    }

    pub(super) fn take_up(&mut self, at: Duration) {
        self.used += 1;
        self.active_at = at;
        self.is_told = true;
    }

    /// Says how many that may bring.
    pub(super) fn want(&mut self, count: u32, at: Duration) -> u32 {
        self.active_at = at;
        self.wanted = self.wanted.max(count);
        if self.retry_at > at { 0 } else { count }
    }

    pub(super) fn want_nothing(&mut self) {
        self.wanted = 0;
        self.active_at = Duration::ZERO;
        self.is_told = true;
        self.looked_at = Duration::ZERO;
    }

    pub(super) fn tell(&mut self) {
        self.is_told = true;
    }

    pub(super) fn is_in_line(&self) -> bool {
        self.is_in_line
    }

    /// When it is to be balanced.
    pub(super) fn due_at(&self) -> Duration {
        let when = |is: bool, at: Duration| if is { at } else { Duration::MAX };
        let concerns = self.held > 0 || self.is_in_line || self.used > 0 || self.wanted > 0;
        let has_spare = self.held > self.used;
        [
            when(self.is_unsure || self.is_told && concerns, self.looked_at + PAUSE),
            when(self.wanted > 0, self.retry_at),
            when(self.spent > 0, self.looked_at + PAUSE),
            when(has_spare || self.is_in_line, (self.active_at + self.idle).max(self.looked_at + PAUSE)),
            when(self.held > 0 || self.used > 0, self.looked_at + LOOK),
            when(!concerns, self.active_at + KEPT),
        ]
        .into_iter()
        .min()
        .unwrap_or(Duration::MAX)
    }

    /// Whether nothing is lost with it.
    pub(super) fn is_idle(&self, at: Duration) -> bool {
        let is_empty = self.held == 0 && self.used == 0 && !self.is_in_line && !self.is_unsure;
        is_empty && at >= self.active_at + KEPT
    }

    /// What is needed, if the others leave this much.
    fn need(&self, left: u32, at: Duration, may_queue: bool) -> Need {
        let is_active = at < self.active_at + self.idle;
        // What was reserved for something is used for it, whoever waits by now; unless there is less than there was.
        let fresh = self.usable().min(left).saturating_sub(self.used);
        let used = if is_active { self.used + fresh } else { self.used };
        let more = if is_active { self.wanted.min(self.used.max(FIRST)).saturating_sub(fresh) } else { 0 };
        Need { used, more, queues: is_active && self.wanted > 0 && (may_queue || self.is_in_line) }
    }

    /// What the clock of the document shows now.
    fn clock_at(&self, limit: &Limit, at: Duration, wall_us: u64) -> u64 {
        let passed =
            |since: Duration| u64::try_from(at.saturating_sub(since).as_micros()).unwrap_or(u64::MAX);
        let ours = self.clock.map_or(wall_us, |(shown, since)| shown.saturating_add(passed(since)));
        ours.max(limit.clock_us.unwrap_or(0))
    }

    /// A document was read: what is to be ours, in the document and once it is written. Until then we use no more than we
    /// would have in either case.
    pub(in crate::processor) fn settle(
        &mut self,
        limit: &mut Limit,
        version: Option<Version>,
        who: (Incarnation, NodeId),
        now: (Duration, u64),
        may_queue: bool,
    ) -> Part {
        let ((me, node), (at, wall_us)) = (who, now);
        self.see(version, at);
        let concurrency = self.bounds.concurrency;
        let left = concurrency.map_or(u32::MAX, |most| limit.left_by_others(me, most));
        let need = self.need(left, at, may_queue);
        self.idle = IDLE + spread(me, at);
        let mut slots = limit.settle(me, node, concurrency, need);
        let is_short = slots < need.used.saturating_add(need.more);
        let stands_still = self.seen.is_some_and(|(_, since)| at >= since + PASSED_OVER);
        if is_short && stands_still && concurrency.is_some_and(|most| limit.free(most) > 0) {
            limit.pass_over(me);
            slots = limit.settle(me, node, concurrency, need);
        }
        let starts = self.take_starts(limit, slots, at, wall_us);
        // Who has slots that are free lacks starts alone, and knows when these come.
        let pause = if concurrency.is_some() && slots <= self.used { ASK_AGAIN } else { PAUSE };
        self.retry_at = self.retry_at.max(at + pause);
        let usable = self.usable().min(slots);
        self.held = self.held.min(slots);
        self.spent = self.held - usable;
        self.spent_before = self.spent;
        self.looked_at = at;
        self.is_told = false;
        self.is_in_line = limit.holders.iter().any(|holding| holding.incarnation == me && holding.wants);
        self.cap = concurrency.map_or(u32::MAX, |most| limit.may_keep(me, most));
        Part { slots, starts }
    }

    fn see(&mut self, version: Option<Version>, at: Duration) {
        let Some(version) = version else { return };
        if self.seen.is_none_or(|(seen, _)| seen != version) {
            self.seen = Some((version, at));
        }
    }

    /// Takes starts, where they are wanted and there are slots for them.
    fn take_starts(&mut self, limit: &mut Limit, slots: u32, at: Duration, wall_us: u64) -> u32 {
        let Some(pace) = self.bounds.starts_per_second.map(Pace) else { return 0 };
        let has_room = self.bounds.concurrency.is_none() || slots > self.used;
        if self.wanted == 0 || self.starts_at(at) > 0 || !has_room {
            return 0;
        }
        let clock = self.clock_at(limit, at, wall_us);
        self.clock = Some((clock, at));
        let wait = limit.wait_for_starts(pace, clock, self.wanted);
        if !wait.is_zero() {
            self.retry_at = at + wait;
            return 0;
        }
        let starts = limit.take_starts(pace, clock, self.wanted);
        self.own_starts = (limit.clock_us, limit.started_us);
        starts
    }

    pub(in crate::processor) fn own_starts(&self) -> (Option<u64>, Option<u64>) {
        self.own_starts
    }

    /// It is written. Says whether there is something now that was not there before.
    pub(in crate::processor) fn written(&mut self, part: &Part, version: Version, at: Duration) -> bool {
        // What took long to write counts from when it was asked for: by then others may start, too.
        let usable = self.usable();
        // What was given up while it was being written is in what was written, and is not to be used all the same.
        let spent_since = self.spent.saturating_sub(self.spent_before).min(part.slots);
        (self.held, self.spent, self.spent_before, self.is_unsure) = (part.slots, spent_since, 0, false);
        let gains = self.usable() > usable || part.starts > 0;
        self.seen = Some((version, at));
        if part.starts > 0 {
            (self.starts, self.starts_until) = (part.starts, self.looked_at + STARTS_HOLD);
        }
        if gains {
            self.wanted = 0;
        }
        gains
    }

    /// Whether it has to be written though nothing in the document changes: what was read decides nothing.
    pub(in crate::processor) fn must_write(&self, part: &Part) -> bool {
        self.is_unsure || part.slots > self.usable() || part.starts > 0
    }

    /// Somebody else wrote meanwhile: nothing is gained.
    pub(in crate::processor) fn overtaken(&mut self) -> bool {
        self.is_told = true;
        false
    }

    /// It is not known, or not for certain, what became of a write: nothing is gained.
    pub(in crate::processor) fn failed(&mut self, is_unsure: bool, at: Duration) -> bool {
        self.is_unsure |= is_unsure;
        self.is_told = true;
        self.looked_at = at + STORE_PAUSE;
        self.retry_at = self.retry_at.max(self.looked_at);
        false
    }
}

#[cfg(test)]
mod tests {
    use rota_model::domain::Domain;
    use rota_model::limit::LimitName;
    use rota_model::time::UnixMillis;

    use super::*;

    const AT: Duration = Duration::from_secs(100);

    /// Two run where one may, since the limit came later. One of them ends while its node writes to the limit.
    #[test]
    fn what_ends_while_a_write_is_under_way_is_not_begun_anew() {
        let (me, node) = (Incarnation::derived(&["me"]), NodeId::derived(&["me"]));
        let other = Incarnation::derived(&["other"]);
        let name = LimitName { domain: Domain::default(), kind: "t".to_owned(), key: None };
        let mut limit = Limit::new(name, UnixMillis(0), node);
        let running = Need { used: 1, more: 0, queues: false };
        limit.settle(other, node, Some(1), running);
        let mut account = Account::new(Bounds { concurrency: Some(1), ..Bounds::default() });
        account.take_up(AT);
        for nth in 0..2 {
            account.want(1, AT);
            let part = account.settle(&mut limit, Some(Version(nth)), (me, node), (AT, 0), true);
            assert_eq!(part.slots, 1, "what runs is counted");
            if nth == 1 {
                account.free(1, AT);
            }
            account.written(&part, Version(nth + 1), AT);
        }
        assert_eq!(account.available(AT), 0, "another runs, and one may");
    }
}
