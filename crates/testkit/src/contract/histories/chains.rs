//! Whether what a crowd remembers of one document can be true.
//!
//! An applied write names the version that it was made on, so that the applied writes of a document form chains: each
//! begins with a create, each has one successor at most, and none but the last is open at its end. What was *not*
//! applied must have met a state of the document that explains it, at some moment while the caller waited:
//!
//! ```text
//!  create ──▶ v1 ──change──▶ v2 ──delete──▶ (v3, hidden) ──purge──▶ absent     one life
//!             └─ there from when the create was begun until the change was answered, at the most
//! ```

use std::collections::BTreeMap;

use rota_store::seam::{Document, Fields, Key, Version, Write, Written};

/// What one caller did to one document.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) act: Act,
    pub(super) answer: Written,
    /// By a clock that all callers share: when it was asked, and when it was answered.
    pub(super) began: u64,
    pub(super) ended: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Act {
    Wish(Write),
    /// A document that was claimed, the version it had before, and what the claim set.
    Claim {
        taken: Document,
        base: Version,
        set: Fields,
    },
}

impl Event {
    pub(super) fn key(&self) -> &Key {
        match &self.act {
            Act::Wish(write) => write.key(),
            Act::Claim { taken, .. } => &taken.key,
        }
    }

    fn base(&self) -> Option<Version> {
        match &self.act {
            Act::Claim { base, .. } => Some(*base),
            Act::Wish(Write::Create { .. }) => None,
            Act::Wish(
                Write::Replace { version, .. }
                | Write::Change { version, .. }
                | Write::Delete { version, .. }
                | Write::Purge { version, .. },
            ) => Some(*version),
        }
    }

    fn applied(&self) -> Option<Version> {
        if let Written::Applied(version) = self.answer { Some(version) } else { None }
    }

    /// What the document is after it, if it was applied.
    fn leaves(&self, version: Version) -> State {
        match &self.act {
            Act::Wish(Write::Delete { key, .. }) if key.collection.hides() => State::Hidden(version),
            Act::Wish(Write::Delete { .. } | Write::Purge { .. }) => State::Absent,
            _ => State::There(version),
        }
    }
}

/// What a document may be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Absent,
    There(Version),
    Hidden(Version),
}

/// The applied writes of one document from its create to its end.
pub(super) type Life<'a> = Vec<&'a Event>;

/// The lives of one document, in an order in which they can have been, if there is one; otherwise what contradicts it.
pub(super) fn lives<'a>(events: &[&'a Event]) -> Result<Vec<Life<'a>>, String> {
    let lives = chains(events)?;
    let lives = in_order(lives)?;
    let windows = windows(&lives);
    let unexplained = events.iter().find(|event| event.applied().is_none() && !is_explained(event, &windows));
    match unexplained {
        Some(event) => Err(format!("nothing explains {event:?}: it was {windows:?}")),
        None => Ok(lives),
    }
}

fn chains<'a>(events: &[&'a Event]) -> Result<Vec<Life<'a>>, String> {
    let mut versions = BTreeMap::new();
    let mut successors: BTreeMap<u64, &Event> = BTreeMap::new();
    let applied = || events.iter().filter_map(|event| Some((*event, event.applied()?)));
    for (event, version) in applied() {
        if let Some(twin) = versions.insert(version.0, event) {
            return Err(format!("one version for two writes: {twin:?} and {event:?}"));
        }
        let twin = event.base().and_then(|base| successors.insert(base.0, event));
        if let Some(twin) = twin {
            return Err(format!("both were applied to the same version: {twin:?} and {event:?}"));
        }
    }
    let mut lives: Vec<Life<'_>> = Vec::new();
    for (create, _) in applied().filter(|(event, _)| event.base().is_none()) {
        let mut life = vec![create];
        while let Some(next) =
            life[life.len() - 1].applied().and_then(|version| successors.remove(&version.0))
        {
            life.push(next);
        }
        lives.push(life);
    }
    match successors.into_values().next() {
        Some(stray) => Err(format!("applied to a version that nobody made: {stray:?}")),
        None => Ok(lives),
    }
}

/// Whether something of the one was over before something of the other was begun.
fn precedes(one: &Life<'_>, other: &Life<'_>) -> bool {
    one.iter().any(|before| other.iter().any(|after| before.ended < after.began))
}

fn is_open(life: &Life<'_>) -> bool {
    let last = life[life.len() - 1];
    last.applied().is_some_and(|version| last.leaves(version) != State::Absent)
}

fn in_order(mut lives: Vec<Life<'_>>) -> Result<Vec<Life<'_>>, String> {
    for life in &lives {
        if let Some(pair) = life.windows(2).find(|pair| pair[1].ended < pair[0].began) {
            return Err(format!("it was answered before its predecessor was asked for: {pair:?}"));
        }
    }
    let mut ordered: Vec<Life<'_>> = Vec::new();
    while !lives.is_empty() {
        let comes = |life: &Life<'_>| {
            let others = || lives.iter().filter(|other| !std::ptr::eq(*other, life));
            !others().any(|other| precedes(other, life)) && (!is_open(life) || others().next().is_none())
        };
        let Some(first) = lives.iter().position(comes) else {
            return Err(format!("there is no order of these lives: {lives:#?}"));
        };
        ordered.push(lives.remove(first));
    }
    Ok(ordered)
}

/// When a document may have been in a state, at the most.
#[derive(Debug)]
struct Window {
    state: State,
    from: u64,
    to: u64,
}

fn windows(lives: &[Life<'_>]) -> Vec<Window> {
    let made = |life: &Life<'_>| life[0].ended;
    let first_made = lives.iter().map(made).min().unwrap_or(u64::MAX);
    let mut windows = vec![Window { state: State::Absent, from: 0, to: first_made }];
    for life in lives {
        let later = lives.iter().filter(|other| !std::ptr::eq(*other, life) && precedes(life, other));
        let anew = later.map(made).min().unwrap_or(u64::MAX);
        for (nth, event) in life.iter().enumerate() {
            let to = life.get(nth + 1).map_or(anew, |next| next.ended);
            let state = event.applied().map(|version| event.leaves(version));
            windows.extend(state.map(|state| Window { state, from: event.began, to }));
        }
    }
    windows
}

fn is_explained(event: &Event, windows: &[Window]) -> bool {
    let meanwhile = windows.iter().filter(|window| window.from <= event.ended && event.began <= window.to);
    meanwhile.map(|window| window.state).any(|state| explains(state, event))
}

fn explains(state: State, event: &Event) -> bool {
    let another = |version| event.base() != Some(version);
    let Act::Wish(wish) = &event.act else { return false };
    match (event.answer, wish, state) {
        (Written::Exists, Write::Create { .. }, State::There(_) | State::Hidden(_))
        | (Written::Missing, Write::Purge { .. }, State::Absent)
        | (Written::Conflict, Write::Purge { .. }, State::There(_)) => true,
        (Written::Conflict, Write::Purge { .. }, State::Hidden(version)) => another(version),
        (_, Write::Create { .. } | Write::Purge { .. }, _) => false,
        (Written::Missing, _, State::Absent | State::Hidden(_)) => true,
        (Written::Conflict, _, State::There(version)) => another(version),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::examples::{change, create, delete, job, numbered, user};
    use rota_store::seam::Body;

    const fn v(version: u64) -> Written {
        Written::Applied(Version(version))
    }

    fn event(wish: Write, answer: Written, (began, ended): (u64, u64)) -> Event {
        Event { act: Act::Wish(wish), answer, began, ended }
    }

    fn verdict(events: &[Event]) -> Result<usize, String> {
        lives(&events.iter().collect::<Vec<_>>()).map(|lives| lives.len())
    }

    fn change_of(version: u64) -> Write {
        change(numbered(1), Version(version), vec![])
    }

    fn hide(version: u64) -> Write {
        delete(numbered(1), Version(version))
    }

    fn purge(version: u64) -> Write {
        Write::Purge { key: numbered(1), version: Version(version) }
    }

    #[test]
    fn what_can_have_been_is_accepted() {
        let events = [
            event(create(1), v(1), (1, 2)),
            event(create(1), Written::Exists, (1, 3)),
            event(change_of(1), v(2), (3, 6)),
            event(change_of(1), Written::Conflict, (4, 5)),
            event(hide(2), v(3), (7, 8)),
            event(change_of(2), Written::Missing, (7, 9)),
            event(purge(2), Written::Conflict, (9, 10)),
            event(purge(3), v(4), (11, 12)),
            event(purge(3), Written::Missing, (11, 14)),
            event(create(1), v(5), (13, 16)),
            event(change_of(2), Written::Conflict, (15, 17)),
        ];
        assert_eq!(verdict(&events), Ok(2));
    }

    #[test]
    fn a_lost_write_is_seen() {
        let twice = [
            event(create(1), v(1), (1, 2)),
            event(change_of(1), v(2), (3, 4)),
            event(change_of(1), v(3), (5, 6)),
        ];
        assert!(verdict(&twice).unwrap_err().contains("same version"));
        let stray = [event(create(1), v(1), (1, 2)), event(change_of(7), v(2), (3, 4))];
        assert!(verdict(&stray).unwrap_err().contains("nobody made"));
        let again = [event(create(1), v(1), (1, 2)), event(change_of(1), v(1), (3, 4))];
        assert!(verdict(&again).unwrap_err().contains("one version"));
    }

    #[test]
    fn two_lives_at_once_are_seen() {
        let both = [event(create(1), v(1), (1, 2)), event(create(1), v(2), (3, 4))];
        assert!(verdict(&both).unwrap_err().contains("no order"));
        let key = user("u");
        let make = || Write::Create { key: key.clone(), body: Body::new() };
        let gone = || delete(key.clone(), Version(1));
        let freed = [event(make(), v(1), (1, 2)), event(gone(), v(2), (3, 5)), event(make(), v(3), (4, 6))];
        assert_eq!(verdict(&freed), Ok(2));
        let taken = [event(make(), v(1), (1, 2)), event(gone(), v(2), (7, 8)), event(make(), v(3), (4, 6))];
        assert!(verdict(&taken).unwrap_err().contains("no order"));
    }

    #[test]
    fn an_answer_that_nothing_explains_is_seen() {
        let made = || event(create(1), v(1), (1, 2));
        let replace = |version| Write::Replace { key: numbered(1), version: Version(version), body: job(1) };
        for impossible in [
            vec![made(), event(replace(1), Written::Missing, (3, 4))],
            vec![made(), event(replace(1), Written::Conflict, (3, 4))],
            vec![event(create(1), Written::Exists, (1, 2))],
            vec![event(hide(1), Written::Conflict, (1, 2))],
            vec![made(), event(purge(1), Written::Missing, (3, 4))],
            vec![made(), event(create(1), Written::Conflict, (3, 4))],
            vec![made(), event(hide(1), v(2), (3, 4)), event(replace(1), Written::Conflict, (5, 6))],
            vec![made(), event(hide(1), v(2), (3, 4)), event(purge(2), Written::Conflict, (5, 6))],
        ] {
            assert!(verdict(&impossible).unwrap_err().contains("nothing explains"), "{impossible:?}");
        }
    }
}
