//! `messaging.Key`, the protobuf message that names a timer in a domain, and the string that stands for it.
//!
//! Seed 000 says that the id of a `progress` document is "a stringified protobuf messaging.Key" and leaves the message
//! and the string open. The message is
//!
//! ```proto
//! package messaging;
//! message Key {
//!   string domain = 1;
//!   string uuid = 2;
//! }
//! ```
//!
//! and its string is base64url, without padding, of its canonical encoding: the two fields in the order of their tags,
//! each once, nothing else, the UUID in lower case with hyphens. Protobuf's own text format was not taken, because it
//! promises no stable bytes, and an id must have exactly one spelling: with two, one timer would have two progresses
//! and would fire twice. For the same reason reading refuses every other spelling of the same key. The string is safe in
//! the path of a URL and, with at most 138 characters, far below the 512 bytes of an id in a search engine.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use prost::Message;

use crate::domain::Domain;
use crate::ids::TimerId;

/// Names a timer across domains.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub domain: Domain,
    pub uuid: TimerId,
}

/// The message as it is encoded.
#[derive(Clone, PartialEq, Message)]
struct KeyMessage {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(string, tag = "2")]
    uuid: String,
}

/// Text that is not the one spelling of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be the base64url form of a canonical messaging.Key")]
pub struct NotAKey;

impl Key {
    pub fn encode(&self) -> Vec<u8> {
        KeyMessage { domain: self.domain.to_string(), uuid: self.uuid.to_string() }.encode_to_vec()
    }

    /// Reads the canonical encoding and nothing else.
    pub fn decode(bytes: &[u8]) -> Result<Self, NotAKey> {
        let message = KeyMessage::decode(bytes).map_err(|_| NotAKey)?;
        let domain = message.domain.parse().map_err(|_| NotAKey)?;
        let uuid = message.uuid.parse().map_err(|_| NotAKey)?;
        let key = Self { domain, uuid };
        if key.encode() == bytes { Ok(key) } else { Err(NotAKey) }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.encode()))
    }
}

impl FromStr for Key {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        Self::decode(&URL_SAFE_NO_PAD.decode(text).map_err(|_| NotAKey)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};

    fn key() -> Key {
        let uuid = "018f3c2e-5a77-7c1d-9b1e-2f6c0a4d8e11".parse().unwrap();
        Key { domain: Domain::default(), uuid }
    }

    #[test]
    fn the_string_round_trips_and_never_changes() {
        let text = key().to_string();
        assert_eq!(text, "CgdkZWZhdWx0EiQwMThmM2MyZS01YTc3LTdjMWQtOWIxZS0yZjZjMGE0ZDhlMTE");
        assert_eq!(text.parse(), Ok(key()));
        let longest = Key { domain: "d".repeat(63).parse().unwrap(), ..key() };
        assert_eq!(longest.to_string().len(), 138);
    }

    #[test]
    fn any_other_spelling_is_refused() {
        let canonical = key().encode();
        let upper = KeyMessage { domain: "default".to_owned(), uuid: key().uuid.to_string().to_uppercase() };
        let (first, second) = canonical.split_at(9);
        let swapped = [second, first].concat();
        let repeated = [first, first, second].concat();
        let unknown_field = [canonical.as_slice(), &[0x18, 0x01]].concat();
        let long_length = [&[0x0a, 0x87, 0x00], b"default".as_slice(), second].concat();
        for bytes in [upper.encode_to_vec(), swapped, repeated, unknown_field, long_length, Vec::new()] {
            assert_eq!(Key::decode(&bytes), Err(NotAKey), "{bytes:?}");
        }
        for text in [URL_SAFE.encode(&canonical) + "=", STANDARD.encode(b"???"), "default".to_owned()] {
            assert_eq!(text.parse::<Key>(), Err(NotAKey), "{text}");
        }
    }
}
