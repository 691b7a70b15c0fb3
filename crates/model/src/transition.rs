//! How a status may change: one table per kind of thing, and the one function that asks it.
//!
//! Every change of a status goes through a [`Table`]. What the table does not list does not happen, so a table is
//! also the complete answer to "how does one leave this state?", and a test can walk it.

use std::fmt::{self, Debug};

/// The rows `(from, event, to)` of one kind of thing.
#[derive(Clone, Copy, Debug)]
pub struct Table<S: 'static, E: 'static> {
    /// What changes, as people call it: "job", "timer".
    pub what: &'static str,
    pub rows: &'static [(S, E, S)],
}

impl<S: Copy + PartialEq + Debug, E: Copy + PartialEq + Debug> Table<S, E> {
    pub const fn new(what: &'static str, rows: &'static [(S, E, S)]) -> Self {
        Self { what, rows }
    }

    /// The status after an event.
    pub fn next(&self, from: S, event: E) -> Result<S, IllegalTransition> {
        self.find(from, event).ok_or_else(|| IllegalTransition {
            what: self.what,
            from: upper_case(&from),
            event: upper_case(&event),
        })
    }

    pub fn allows(&self, from: S, event: E) -> bool {
        self.find(from, event).is_some()
    }

    /// Whether nothing leads out of a status.
    pub fn is_final(&self, status: S) -> bool {
        !self.rows.iter().any(|(from, _, to)| *from == status && *to != status)
    }

    fn find(&self, from: S, event: E) -> Option<S> {
        self.rows.iter().find(|(f, e, _)| *f == from && *e == event).map(|(_, _, to)| *to)
    }
}

/// An event that a status does not allow: "job: no CANCEL from SUCCESSFUL".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct IllegalTransition {
    pub what: &'static str,
    pub from: String,
    pub event: String,
}

impl fmt::Display for IllegalTransition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: no {} from {}", self.what, self.event, self.from)
    }
}

/// The name of a variant as the documents write it: `InProgress` is `IN_PROGRESS`.
fn upper_case(variant: &impl Debug) -> String {
    let mut name = String::new();
    for c in format!("{variant:?}").chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_uppercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Door {
        Open,
        Shut,
        WalledUp,
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Act {
        Open,
        Shut,
        WallUp,
    }

    const DOOR: Table<Door, Act> = Table::new(
        "door",
        &[
            (Door::Shut, Act::Open, Door::Open),
            (Door::Open, Act::Shut, Door::Shut),
            (Door::Shut, Act::WallUp, Door::WalledUp),
        ],
    );

    #[test]
    fn only_rows_of_the_table_happen() {
        assert_eq!(DOOR.next(Door::Shut, Act::Open), Ok(Door::Open));
        assert!(DOOR.allows(Door::Open, Act::Shut));
        assert!(!DOOR.allows(Door::Open, Act::WallUp));
        assert!(DOOR.is_final(Door::WalledUp) && !DOOR.is_final(Door::Open));
        let refused = DOOR.next(Door::WalledUp, Act::Open).unwrap_err();
        assert_eq!(refused.to_string(), "door: no OPEN from WALLED_UP");
    }
}
