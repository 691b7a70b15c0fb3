//! Looking where jobs wait, page by page. Of a type with a great many limit keys only some are known at a time: those that
//! come first, and a part of the others that goes round. So a look costs as much as there are types, however many keys
//! they have.

use rota_model::job::Lane;
use rota_model::time::UnixMillis;
use rota_store::jobs::LanePage;
use tokio::time::Instant;

use super::{Lanes, Place};

/// How many lanes are read at once.
pub(in crate::processor) const PAGE: usize = 256;

/// A look that is under way.
pub(in crate::processor) struct Look {
    /// Behind which lane it looks; at the first if none is given.
    pub(in crate::processor) behind: Option<String>,
    /// The type whose keys it goes round, as its lane is written; none if it goes through all lanes.
    crowd: Option<String>,
    began: Instant,
    expected: u64,
}

/// A type with more keys than are known at a time.
pub(super) struct Crowd {
    /// The last of the keys that come first.
    head: String,
    /// Behind which of the others to go on.
    behind: String,
}

impl Lanes {
    /// What is told from now on is for a look after this one, through all lanes.
    pub(in crate::processor) fn begin_look(&mut self) -> Look {
        self.stale &= self.position.is_some();
        self.look(self.position.clone(), None)
    }

    /// A look at some more of the keys of one of the types that have too many.
    pub(in crate::processor) fn begin_round(&mut self) -> Option<Look> {
        let last = self.went_round.take();
        let behind = |keyless: &&String| last.as_ref().is_none_or(|last| *keyless > last);
        let next = self.crowds.keys().find(behind).or_else(|| self.crowds.keys().next())?.clone();
        self.went_round = Some(next.clone());
        let behind = self.crowds.get(&next).map(|crowd| crowd.behind.clone());
        Some(self.look(behind, Some(next)))
    }

    fn look(&mut self, behind: Option<String>, crowd: Option<String>) -> Look {
        self.is_looking = true;
        Look { behind, crowd, began: Instant::now(), expected: self.expected }
    }

    /// What was seen takes the place of what was known about that part of the lanes.
    pub(in crate::processor) fn end_look(&mut self, look: &Look, page: LanePage) {
        let LanePage { lanes, next } = page;
        match &look.crowd {
            Some(keyless) => self.end_round(look, keyless, &lanes, next.as_deref()),
            None => self.end_page(look, next),
        }
        let is_of_crowd = |place: &Place| {
            let crowd = look.crowd.as_deref();
            crowd.is_none_or(|keyless| place.as_ref().is_some_and(|lane| Lane::is_of(lane, keyless)))
        };
        for (place, run_at) in lanes.into_iter().filter(|(place, _)| is_of_crowd(place)) {
            self.learn(&place, run_at);
        }
        self.is_looking = false;
        self.looked = Some((Instant::now(), look.began.elapsed()));
        self.find_next_due();
    }

    fn end_page(&mut self, look: &Look, next: Option<String>) {
        let to = next.clone().map(Some);
        self.forget(
            look.expected,
            |place| look.behind.is_none() || place.as_ref() > look.behind.as_ref(),
            |place| to.as_ref().is_none_or(|to| place <= to),
        );
        let is_seen = |keyless: &str| look.behind.as_deref().is_none_or(|behind| behind < keyless);
        let last = next.as_deref();
        // Whatever was seen to its end is crowded no more.
        self.crowds.retain(|keyless, _| {
            let ends_here = last.is_none_or(|last| last > keyless.as_str() && !Lane::is_of(last, keyless));
            !(is_seen(keyless) && ends_here)
        });
        self.position = next.map(|last| self.skip_keys(last));
    }

    /// Where a page ends among the keys of a type, the rest of them are left to be gone round.
    fn skip_keys(&mut self, last: String) -> String {
        let Some((keyless, behind)) = Lane::before_key(&last).zip(Lane::behind_keys(&last)) else {
            return last;
        };
        let known = self.crowds.remove(keyless).map(|crowd| crowd.behind).filter(|behind| *behind > last);
        let crowd = Crowd { behind: known.unwrap_or_else(|| last.clone()), head: last.clone() };
        self.crowds.insert(keyless.to_owned(), crowd);
        behind
    }

    fn end_round(&mut self, look: &Look, keyless: &str, lanes: &[(Place, UnixMillis)], next: Option<&str>) {
        let Some(crowd) = self.crowds.get_mut(keyless) else { return };
        let goes_on = next.filter(|last| Lane::is_of(last, keyless));
        crowd.behind = goes_on.unwrap_or(&crowd.head).to_owned();
        let head = crowd.head.clone();
        let is_rest =
            |place: &Place| place.as_ref().is_some_and(|lane| Lane::is_of(lane, keyless) && *lane > head);
        let is_seen = |place: &Place| lanes.binary_search_by(|(lane, _)| lane.cmp(place)).is_ok();
        self.forget(look.expected, is_rest, |place| !is_seen(place));
    }

    /// Forgets lanes of which both holds, unless something was expected there since.
    fn forget(&mut self, expected: u64, one: impl Fn(&Place) -> bool, other: impl Fn(&Place) -> bool) {
        self.known.retain(|place, known| known.expected > expected || !one(place) || !other(place));
    }
}
