//! The lane of a job: its domain, its urgency, its type, and its limit key if it has one. Lanes that have due work are
//! served in turns, so that nobody has to wait behind all of another's jobs.

use std::fmt;
use std::str::FromStr;

use crate::domain::Domain;

/// Stands before the limit key. Neither a type nor a key contains control characters, and it sorts before everything
/// that they may contain: the lanes of a type's keys stand together, right behind the lane of the type.
const KEY_MARK: char = '\u{1f}';

/// Written out as `{domain}|{priority}|{type}`, which is how it is stored and sorted; with a limit key, a unit separator
/// (U+001F) and the key follow. No domain has a `|` in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lane {
    pub domain: Domain,
    pub priority: u8,
    pub kind: String,
    pub key: Option<String>,
}

impl Lane {
    /// Behind the lanes of all keys that the type of this lane, as it is written, has at its priority; none if it has no
    /// key. It is no lane itself.
    pub fn behind_keys(lane: &str) -> Option<String> {
        let (keyless, _) = lane.split_once(KEY_MARK)?;
        Some(format!("{keyless}{KEY_MARK}{}", char::MAX))
    }

    /// What a lane as it is written begins with, up to its key; none if it has no key.
    pub fn before_key(lane: &str) -> Option<&str> {
        lane.split_once(KEY_MARK).map(|(keyless, _)| keyless)
    }

    /// Whether a lane as it is written is that of a type at a priority, or of one of its keys.
    pub fn is_of(lane: &str, keyless: &str) -> bool {
        lane.strip_prefix(keyless).is_some_and(|rest| rest.is_empty() || rest.starts_with(KEY_MARK))
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}|{}|{}", self.domain, self.priority, self.kind)?;
        self.key.iter().try_for_each(|key| write!(f, "{KEY_MARK}{key}"))
    }
}

/// What was read is not the name of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a lane is {{domain}}|{{priority}}|{{type}}")]
pub struct NoLane;

impl FromStr for Lane {
    type Err = NoLane;

    fn from_str(text: &str) -> Result<Self, NoLane> {
        let mut parts = text.splitn(3, '|');
        let mut next = || parts.next().ok_or(NoLane);
        let (domain, priority, rest) = (next()?, next()?, next()?);
        let (kind, key) = rest.split_once(KEY_MARK).map_or((rest, None), |(kind, key)| (kind, Some(key)));
        Ok(Self {
            domain: domain.parse().map_err(|_| NoLane)?,
            priority: priority.parse().map_err(|_| NoLane)?,
            kind: kind.to_owned(),
            key: key.map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(kind: &str, key: Option<&str>) -> Lane {
        let (kind, key) = (kind.to_owned(), key.map(str::to_owned));
        Lane { domain: Domain::default(), priority: 9, kind, key }
    }

    #[test]
    fn what_is_written_is_read() {
        for kind in ["mail", "a|b", "", "|", "é 9"] {
            for key in [None, Some("customer 7"), Some("a|b"), Some(""), Some("9|mail")] {
                let lane = lane(kind, key);
                assert_eq!(lane.to_string().parse(), Ok(lane));
            }
        }
        for wrong in ["", "default", "default|5", "|5|mail", "default|x|mail", "Default|5|mail"] {
            assert_eq!(wrong.parse::<Lane>(), Err(NoLane), "{wrong}");
        }
    }

    #[test]
    fn the_keys_of_a_type_stand_together_behind_it() {
        let written = |kind, key| lane(kind, key).to_string();
        let mail = [written("mail", None), written("mail", Some("")), written("mail", Some("\u{10ffff}z"))];
        let others = [written("mai", Some("z")), written("mail ", None), written("mail!", Some(" "))];
        let behind = Lane::behind_keys(&mail[1]).unwrap();
        assert!(mail.is_sorted() && mail[1] < behind && others[0] < mail[0]);
        assert!(others[1..].iter().all(|other| *other > behind));
        assert!(mail.iter().all(|lane| Lane::is_of(lane, &mail[0])));
        assert!(!others.iter().any(|lane| Lane::is_of(lane, &mail[0])));
        assert_eq!((Lane::behind_keys(&mail[0]), Lane::before_key(&mail[1])), (None, Some(&*mail[0])));
    }
}
