//! Which lines a listener has had: the last of them, and how far back that reaches.

use std::collections::{BTreeSet, VecDeque};

use rota_model::ids::LogId;
use rota_model::log::LogLine;
use rota_model::time::UnixMillis;

/// How many are remembered.
const MAX_SEEN: usize = 50_000;

#[derive(Default)]
pub(super) struct Seen {
    known: BTreeSet<LogId>,
    order: VecDeque<(UnixMillis, LogId)>,
    /// Lines that are older than this, or as old, may have been forgotten.
    forgotten: Option<UnixMillis>,
}

impl Seen {
    /// Whether a line is new; from now on it is not.
    pub(super) fn is_new(&mut self, line: &LogLine) -> bool {
        let (at, id) = line.position();
        self.forgotten.is_none_or(|forgotten| at > forgotten) && self.add(at, id)
    }

    /// Says whether it was not known.
    pub(super) fn add(&mut self, at: UnixMillis, id: LogId) -> bool {
        if !self.known.insert(id) {
            return false;
        }
        self.order.push_back((at, id));
        if self.order.len() > MAX_SEEN
            && let Some((at, id)) = self.order.pop_front()
        {
            self.known.remove(&id);
            self.forgotten = self.forgotten.max(Some(at));
        }
        true
    }

    pub(super) fn has(&self, id: LogId) -> bool {
        self.known.contains(&id)
    }

    /// From when on it is known which lines were had, at the earliest from `at` on.
    pub(super) fn reaches(&self, at: UnixMillis) -> UnixMillis {
        self.forgotten.map_or(at, |forgotten| forgotten.max(at))
    }
}

#[cfg(test)]
mod tests {
    use rota_model::ids::NodeId;
    use rota_model::log::{Level, Log};

    use super::*;

    fn line(at: i64) -> LogLine {
        let log = Log::new(Level::Info, "x", NodeId::derived(&["n"]), UnixMillis(at));
        LogLine { log_id: LogId::rising(UnixMillis(at), &[0; 10]), log }
    }

    #[test]
    fn a_line_is_new_once_and_what_may_be_forgotten_is_not_new() {
        let mut seen = Seen::default();
        assert!(seen.is_new(&line(1)) && !seen.is_new(&line(1)) && seen.has(line(1).log_id));
        for at in 2..=i64::try_from(MAX_SEEN).unwrap() + 1 {
            assert!(seen.is_new(&line(at)));
        }
        assert!(!seen.has(line(1).log_id) && !seen.is_new(&line(1)));
        assert_eq!(seen.reaches(UnixMillis(0)), UnixMillis(1));
        assert_eq!(seen.reaches(UnixMillis(7)), UnixMillis(7));
    }
}
