//! Whose slots they are, and who is next.
//!
//! Nobody has more than is left by the others, and nobody has less than it uses. Where somebody waits, each is due its
//! part: as many as there are slots for each, and of what is left over one for each who stands before the others. Who
//! gives a slot up for others goes to the end of the line, so that what cannot be divided goes round.

use serde::{Deserialize, Serialize};

use super::Limit;
use crate::Extra;
use crate::ids::{Incarnation, NodeId};

/// What one life of a node holds of a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holding {
    pub incarnation: Incarnation,
    pub node: NodeId,
    pub slots: u32,
    /// Whether it could use more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wants: bool,
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a node needs of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// Slots that it uses now, and will use for as long as it likes.
    pub used: u32,
    /// How many more it could use.
    pub more: u32,
    /// Whether it stands in line while it has less than that.
    pub queues: bool,
}

impl Limit {
    /// How many slots a holder has.
    pub fn slots_of(&self, who: Incarnation) -> u32 {
        self.holders.iter().find(|holding| holding.incarnation == who).map_or(0, |holding| holding.slots)
    }

    /// How many slots the others leave to this one.
    pub fn left_by_others(&self, who: Incarnation, concurrency: u32) -> u32 {
        let others = self.holders.iter().filter(|holding| holding.incarnation != who);
        others.fold(concurrency, |left, holding| left.saturating_sub(holding.slots))
    }

    /// How many slots nobody has.
    pub fn free(&self, concurrency: u32) -> u32 {
        self.holders.iter().fold(concurrency, |left, holding| left.saturating_sub(holding.slots))
    }

    /// How many a holder may keep when those that it uses are done: some, if others are due more than they have, or if all
    /// together have more than there are since there were more once; otherwise whatever it has.
    pub fn may_keep(&self, who: Incarnation, concurrency: u32) -> u32 {
        let others = || self.holders.iter().filter(|holding| holding.incarnation != who);
        let count = others().count() + 1;
        let lacks =
            |(nth, holding): (usize, &Holding)| holding.wants && holding.slots < due(nth, count, concurrency);
        let due = if others().enumerate().any(lacks) { due(count - 1, count, concurrency) } else { u32::MAX };
        let left = self.left_by_others(who, concurrency);
        if self.slots_of(who) > left { due.min(left) } else { due }
    }

    /// How many a holder may have by the place where it stands.
    fn may_take(&self, who: Incarnation, concurrency: u32) -> u32 {
        let is_me = |holding: &Holding| holding.incarnation == who;
        let stands = self.holders.iter().position(is_me);
        let count = self.holders.len() + usize::from(stands.is_none());
        let lacks = |(nth, holding): (usize, &Holding)| {
            !is_me(holding) && holding.wants && holding.slots < due(nth, count, concurrency)
        };
        if self.holders.iter().enumerate().any(lacks) {
            due(stands.unwrap_or(count - 1), count, concurrency)
        } else {
            u32::MAX
        }
    }

    /// Gives a holder what it needs, as far as that can be had, and takes back what it does not. Says how many it has now.
    pub fn settle(&mut self, who: Incarnation, node: NodeId, concurrency: Option<u32>, need: Need) -> u32 {
        let Some(concurrency) = concurrency else {
            self.holders.retain(|holding| holding.incarnation != who);
            self.held = Self::held_by(&self.holders);
            return 0;
        };
        let (has, keeps) = (self.slots_of(who), self.may_keep(who, concurrency));
        let gives_up = has > keeps.max(need.used);
        let may = if gives_up { keeps } else { self.may_take(who, concurrency) };
        let wanted = need.used.saturating_add(need.more);
        let slots = wanted.min(self.left_by_others(who, concurrency)).min(may).max(need.used);
        let wants = need.queues && slots < wanted;
        let at = self.holders.iter().position(|holding| holding.incarnation == who);
        self.holders.retain(|holding| holding.incarnation != who);
        if slots > 0 || wants {
            let holding = Holding { incarnation: who, node, slots, wants, extra: Extra::new() };
            let at = at.filter(|_| !gives_up).unwrap_or(self.holders.len());
            self.holders.insert(at.min(self.holders.len()), holding);
        }
        self.held = Self::held_by(&self.holders);
        slots
    }

    /// Nobody waits for those any longer who do not take what is there for them.
    pub fn pass_over(&mut self, who: Incarnation) {
        for holding in self.holders.iter_mut().filter(|holding| holding.incarnation != who) {
            holding.wants = false;
        }
        self.holders.retain(|holding| holding.slots > 0 || holding.wants || holding.incarnation == who);
        self.held = Self::held_by(&self.holders);
    }

    /// Takes back what these held, who are no more.
    pub fn sweep(&mut self, is_gone: impl Fn(&Holding) -> bool) {
        self.holders.retain(|holding| !is_gone(holding));
        self.held = Self::held_by(&self.holders);
    }
}

/// What is due to one of so many, by its place among them.
fn due(nth: usize, count: usize, concurrency: u32) -> u32 {
    let count = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
    let nth = u32::try_from(nth).unwrap_or(u32::MAX);
    concurrency / count + u32::from(nth < concurrency % count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Domain;
    use crate::limit::LimitName;
    use crate::time::UnixMillis;

    fn who(name: &str) -> Incarnation {
        Incarnation::derived(&[name])
    }

    fn node() -> NodeId {
        NodeId::derived(&["one"])
    }

    fn limit() -> Limit {
        let name = LimitName { domain: Domain::default(), kind: "mail".to_owned(), key: None };
        Limit::new(name, UnixMillis(1), node())
    }

    fn needs(limit: &mut Limit, name: &str, concurrency: u32, used: u32, more: u32) -> u32 {
        let need = Need { used, more, queues: true };
        let slots = limit.settle(who(name), node(), Some(concurrency), need);
        assert_eq!(limit.check(), Ok(()));
        slots
    }

    #[test]
    fn together_they_have_no_more_than_there_are() {
        let mut limit = limit();
        assert_eq!(needs(&mut limit, "a", 5, 0, 3), 3);
        assert_eq!(needs(&mut limit, "b", 5, 0, 3), 2);
        assert_eq!(needs(&mut limit, "c", 5, 0, 3), 0);
        assert_eq!(limit.free(5), 0);
        assert_eq!(needs(&mut limit, "a", 5, 0, 0), 0, "who needs nothing has nothing");
        assert_eq!(limit.held, Some(2));
    }

    #[test]
    fn a_limit_that_was_lowered_takes_nothing_away_that_is_used() {
        let mut limit = limit();
        assert_eq!(needs(&mut limit, "a", 5, 0, 5), 5);
        assert_eq!(needs(&mut limit, "a", 2, 4, 3), 4);
        assert_eq!(needs(&mut limit, "b", 2, 0, 1), 0);
        assert_eq!(needs(&mut limit, "a", 2, 1, 3), 1);
        assert_eq!(needs(&mut limit, "b", 2, 0, 3), 1);
        assert_eq!(
            limit.settle(who("a"), node(), None, Need { used: 1, more: 1, queues: true }),
            0,
            "no limit at all"
        );
    }

    #[test]
    fn where_all_have_more_than_there_are_each_gives_up_what_ends() {
        let mut limit = limit();
        assert_eq!((needs(&mut limit, "a", 4, 0, 2), needs(&mut limit, "b", 4, 0, 2)), (2, 2));
        assert_eq!((limit.may_keep(who("a"), 2), limit.may_keep(who("b"), 2)), (0, 0));
        assert_eq!(needs(&mut limit, "a", 2, 1, 2), 1);
        assert_eq!((limit.may_keep(who("a"), 2), limit.may_keep(who("b"), 2)), (0, 1));
        assert_eq!(needs(&mut limit, "b", 2, 1, 2), 1);
        assert_eq!((limit.may_keep(who("a"), 2), limit.may_keep(who("b"), 2)), (u32::MAX, u32::MAX));
        assert_eq!(needs(&mut limit, "a", 2, 1, 2), 1);
    }

    #[test]
    fn one_slot_goes_round() {
        let mut limit = limit();
        assert_eq!(needs(&mut limit, "a", 1, 0, 4), 1);
        assert_eq!(needs(&mut limit, "b", 1, 0, 4), 0);
        let mut had = Vec::new();
        for _ in 0..6 {
            let has = if limit.slots_of(who("a")) == 1 { "a" } else { "b" };
            let other = if has == "a" { "b" } else { "a" };
            assert_eq!(limit.may_keep(who(has), 1), 0);
            assert_eq!(needs(&mut limit, has, 1, 1, 4), 1, "while it uses it");
            assert_eq!(needs(&mut limit, has, 1, 0, 4), 0, "then it is the other's");
            assert_eq!(needs(&mut limit, has, 1, 0, 4), 0, "even if it asks at once");
            assert_eq!(needs(&mut limit, other, 1, 0, 4), 1);
            had.push(other);
        }
        assert_eq!(had, ["b", "a", "b", "a", "b", "a"]);
    }

    #[test]
    fn each_has_its_part_and_what_is_left_over_is_had_by_somebody() {
        for (concurrency, count) in [(7_u32, 3_usize), (4, 2), (3, 2), (2, 3), (10, 1)] {
            let names: Vec<String> = (0..count).map(|nth| nth.to_string()).collect();
            let mut limit = limit();
            needs(&mut limit, "0", concurrency, 0, 100);
            for _ in 0..20 {
                for name in &names {
                    // Each is done with what it has, and needs as much again.
                    needs(&mut limit, name, concurrency, 0, 100);
                }
            }
            let slots: Vec<u32> = names.iter().map(|name| limit.slots_of(who(name))).collect();
            let share = concurrency / u32::try_from(count).unwrap();
            assert!(
                slots.iter().all(|slots| (share..=share + 1).contains(slots)),
                "{concurrency}: {slots:?}"
            );
            assert!(limit.free(concurrency) <= 1, "{concurrency}: {slots:?}");
        }
    }

    #[test]
    fn who_does_not_take_what_is_there_is_passed_over() {
        let mut limit = limit();
        needs(&mut limit, "a", 2, 0, 2);
        needs(&mut limit, "b", 2, 0, 2);
        assert_eq!(needs(&mut limit, "a", 2, 0, 2), 1);
        limit.pass_over(who("a"));
        assert_eq!(needs(&mut limit, "a", 2, 0, 2), 2);
        assert_eq!(limit.holders.len(), 1);
        limit.sweep(|holding| holding.incarnation == who("a"));
        assert_eq!((limit.holders.len(), limit.held), (0, None));
    }
}
