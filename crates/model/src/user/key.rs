//! A key: what is stored of it and what is told about it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::Extra;
use crate::check::{Checker, Invalid, MAX_NAME_CHARS};
use crate::digest::hex_sha256;
use crate::domain::Domain;
use crate::user::Role;

/// A key given from outside must have at least this many characters.
pub const MIN_KEY_CHARS: usize = 16;
/// By what a key of Rota is recognised, wherever it turns up.
pub const KEY_PREFIX: &str = "rota_";

/// A new key, from 256 random bits.
pub fn new_key(randomness: &[u8; 32]) -> String {
    format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(randomness))
}

/// SHA-256 of a key, in hexadecimal.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyHash(String);

/// Enough to tell keys apart in a log.
impl std::fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyHash({}…)", self.key_id())
    }
}

impl KeyHash {
    pub fn of(key: &str) -> Self {
        Self(hex_sha256(key))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// By what a key is named without being known.
    pub fn key_id(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }

    /// Takes the same time wherever they differ.
    pub fn equals(&self, other: &KeyHash) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

/// What is told about a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct KeyInfo {
    pub id: String,
    pub name: String,
    /// The beginning of the key, by which its owner recognises it.
    pub hint: String,
    #[schema(value_type = String, format = "date-time")]
    pub created: jiff::Timestamp,
    /// The key that a session was made from: it ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Made by a browser that signed in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub session: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub expires: Option<jiff::Timestamp>,
    /// Good for this domain alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,
    /// Good for no more than this role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

impl KeyInfo {
    /// Whether it carries less than its user's rights, or ends by itself. Such a key makes no other: what is made would
    /// not be bound by its limits.
    pub fn is_limited(&self) -> bool {
        self.session || self.expires.is_some() || self.domain.is_some() || self.role.is_some()
    }

    pub(super) fn has_ended(&self, now: jiff::Timestamp) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }
}

/// The body of `POST …/keys`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    #[schema(min_length = 1, max_length = 200, example = "laptop")]
    pub name: String,
    /// Good for this domain alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,
    /// Good for no more than this role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub expires: Option<jiff::Timestamp>,
}

impl NewKey {
    pub fn check(&self, now: jiff::Timestamp) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check.line("/name", &self.name, 1..=MAX_NAME_CHARS);
        if self.expires.is_some_and(|end| end <= now) {
            check.refuse("/expires", "must lie ahead");
        }
        check.finish()
    }

    pub fn into_info(self, key: &str, now: jiff::Timestamp) -> KeyInfo {
        KeyInfo {
            id: KeyHash::of(key).key_id().to_owned(),
            name: self.name,
            hint: format!("{}…", key.chars().take(KEY_PREFIX.len() + 4).collect::<String>()),
            created: now,
            parent: None,
            session: false,
            expires: self.expires,
            domain: self.domain,
            role: self.role,
            extra: Extra::new(),
        }
    }
}

/// Checks a key that was given from outside, in the environment of the first start.
pub fn check_given_key(key: &str) -> Result<(), Invalid> {
    let long_enough = key.chars().count() >= MIN_KEY_CHARS;
    if long_enough && key.len() <= 256 && key.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(());
    }
    Err(Invalid::one(
        "",
        format!("a key has {MIN_KEY_CHARS} to 256 printable ASCII characters and no spaces"),
    ))
}
