//! A limit (`limits`): how many jobs of a type, or of one of its keys, run at once in the whole cluster, and how many
//! start per second.
//!
//! Who may run what is written into this document by compare-and-set. Each holder has its own number of slots, and runs
//! no more jobs than that; the numbers are absolute, so that a write repeated is the same write. Those who found too few
//! stand in line for more. Starts are taken from it in small portions, by a clock that the document carries along.
//!
//! - [`mod@line`]: whose slots they are, and who is next
//! - [`starts`]: how many may start by now

mod line;
mod starts;

pub use line::{Holding, Need};
pub use starts::Pace;

use serde::{Deserialize, Serialize};

use crate::Extra;
use crate::check::{Checker, Invalid};
use crate::digest::hex_sha256;
use crate::domain::Domain;
use crate::ids::NodeId;
use crate::job::submission::MAX_KEY_CHARS;
use crate::metadata::Metadata;
use crate::time::UnixMillis;

/// The length of a limit key, in bytes: it stands in the lane of its jobs.
pub const MAX_LIMIT_KEY_BYTES: usize = 400;

/// What a limit is for: a type of a domain, or one key of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LimitName {
    pub domain: Domain,
    pub kind: String,
    pub key: Option<String>,
}

impl LimitName {
    /// The id of its document: a digest, since types and keys may be longer than ids.
    pub fn id(&self) -> String {
        hex_sha256(&serde_json::json!([self.domain, self.kind, self.key]).to_string())
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limit {
    pub domain: Domain,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Those who hold slots or stand in line for them, the next first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Holding>,
    /// How many they are; left out where there are none, so that the others are found without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<u64>,
    /// When starts were taken last, by the clock that the document carries along, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_us: Option<u64>,
    /// Up to when starts are taken, by the same clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_us: Option<u64>,
    pub metadata: Metadata,
    #[serde(flatten)]
    pub extra: Extra,
}

impl Limit {
    pub fn new(name: LimitName, now: UnixMillis, by: NodeId) -> Self {
        let LimitName { domain, kind, key } = name;
        Self {
            domain,
            kind,
            key,
            holders: Vec::new(),
            held: None,
            clock_us: None,
            started_us: None,
            metadata: Metadata::new(now, by),
            extra: Extra::new(),
        }
    }

    pub fn name(&self) -> LimitName {
        LimitName { domain: self.domain.clone(), kind: self.kind.clone(), key: self.key.clone() }
    }

    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check.line("/type", &self.kind, 1..=MAX_KEY_CHARS);
        if let Some(key) = &self.key {
            check_key(&mut check, "/key", key);
        }
        for (nth, holding) in self.holders.iter().enumerate() {
            let is_twice =
                self.holders.iter().take(nth).any(|other| other.incarnation == holding.incarnation);
            if is_twice {
                check.refuse(format!("/holders/{nth}"), "must name each holder once");
            }
        }
        if self.held != Self::held_by(&self.holders) {
            check.refuse("/held", "must be the number of holders, and left out where there are none");
        }
        check.extra("", &self.extra);
        check.finish()
    }

    fn held_by(holders: &[Holding]) -> Option<u64> {
        Some(holders.len() as u64).filter(|count| *count > 0)
    }
}

/// What there is to be said against a limit key.
pub fn check_key(check: &mut Checker, pointer: &str, key: &str) {
    check.line(pointer, key, 1..=MAX_KEY_CHARS);
    if key.len() > MAX_LIMIT_KEY_BYTES {
        check.refuse(pointer, format!("must have at most {MAX_LIMIT_KEY_BYTES} bytes; it has {}", key.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Incarnation;

    fn name(kind: &str, key: Option<&str>) -> LimitName {
        LimitName { domain: Domain::default(), kind: kind.to_owned(), key: key.map(str::to_owned) }
    }

    #[test]
    fn names_differ_where_what_they_are_for_differs() {
        let names = [
            name("a", None),
            name("a", Some("")),
            name("a", Some("b")),
            name("a\",\"b", None),
            name("b", Some("a")),
            name("null", None),
        ];
        let ids: std::collections::BTreeSet<_> = names.iter().map(LimitName::id).collect();
        assert_eq!(ids.len(), names.len());
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let node = NodeId::derived(&["one"]);
        let mut limit = Limit::new(name("", Some(&"é".repeat(201))), UnixMillis(1), node);
        let holding = Holding {
            incarnation: Incarnation::derived(&["one"]),
            node,
            slots: 1,
            wants: false,
            extra: Extra::new(),
        };
        limit.holders = vec![holding.clone(), holding];
        let Invalid(errors) = limit.check().unwrap_err();
        let pointers: Vec<_> = errors.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(pointers, ["/type", "/key", "/key", "/holders/1", "/held"]);
        assert_eq!(Limit::new(name("t", Some("k")), UnixMillis(1), node).check(), Ok(()));
    }
}
