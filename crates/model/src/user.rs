//! People and programs, their roles, and the keys they sign in with: the collection `users` of seed 000.
//!
//! A key is shown once and stored only as its SHA-256 in `hashed_api_key`. A plain hash is enough, since a key is not a
//! password: it has 256 random bits. What is told about a key (its name, when it ends, what it is limited to) stands
//! in `keys`, under an id derived from the hash. A key carries at most its user's rights; a browser's session is a
//! key that ends by itself.

mod key;
mod view;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Extra;
use crate::check::{Checker, Invalid, MAX_NAME_CHARS};
use crate::domain::Domain;

pub use key::{KEY_PREFIX, KeyHash, KeyInfo, MIN_KEY_CHARS, NewKey, check_given_key, new_key};
pub use view::{DomainRole, NewUser, Session, UserView};

/// How many keys a user may hold.
pub const MAX_KEYS: usize = 200;
/// In how many browsers one may be signed in with one key.
pub const MAX_SESSIONS: usize = 10;
/// How many domains a user may enter.
pub const MAX_DOMAINS: usize = 1_000;

/// `<provider>:<subject>`, so that one person may come from several providers without being mistaken for another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, example = "local:alice", min_length = 3, max_length = 200,
    pattern = "^[a-z0-9-]+:[^/ \\u0000-\\u001f\\u007f-\\u009f]+$")]
pub struct UserId(String);

impl UserId {
    /// The administrator whom the first start makes.
    pub fn first_administrator() -> Self {
        Self("local:admin".to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UserId {
    type Err = Invalid;

    fn from_str(id: &str) -> Result<Self, Invalid> {
        let mut check = Checker::new();
        check.line("/id", id, 3..=MAX_NAME_CHARS);
        let provider =
            id.split_once(':').filter(|(_, subject)| !subject.is_empty()).map(|(provider, _)| provider);
        let named = |p: &str| {
            !p.is_empty() && p.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        };
        if !provider.is_some_and(named) || id.contains(['/', ' ']) {
            check.refuse("/id", "must be <provider>:<subject> without spaces or '/', such as local:alice");
        }
        check.finish().map(|()| Self(id.to_owned()))
    }
}

/// Whoever reads it out of a document knows where it stands there.
impl TryFrom<String> for UserId {
    type Error = String;

    fn try_from(id: String) -> Result<Self, String> {
        id.parse().map_err(|invalid: Invalid| invalid.details())
    }
}

impl From<UserId> for String {
    fn from(id: UserId) -> Self {
        id.0
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a user may do in a domain; each includes the one before.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Looks.
    Viewer,
    /// Submits, cancels, pauses.
    Operator,
    /// Decides about types, limits and retention.
    Admin,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::Viewer, Role::Operator, Role::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }
}

impl FromStr for Role {
    type Err = Invalid;

    fn from_str(name: &str) -> Result<Self, Invalid> {
        let known = Role::ALL.into_iter().find(|role| role.as_str() == name);
        known.ok_or_else(|| Invalid::one("/role", "must be viewer, operator or admin"))
    }
}

/// A stored user.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct User {
    pub id: UserId,
    /// SHA-256 of each key, in hexadecimal. The seed has one; both forms are read.
    #[serde(default, deserialize_with = "one_or_many")]
    pub hashed_api_key: Vec<KeyHash>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<KeyInfo>,
    /// The domains the user may enter, with the role in each.
    #[serde(default)]
    pub domains: BTreeMap<Domain, Role>,
    /// Whether the user administers the whole installation, and with it every domain.
    #[serde(default)]
    pub installation_admin: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<jiff::Timestamp>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Hashes are no secrets, but nobody needs them in a log.
impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What a user may set about a user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserSettings {
    /// The domains the user may enter, with the role in each.
    #[serde(default)]
    #[schema(value_type = std::collections::HashMap<String, Role>)]
    pub domains: BTreeMap<Domain, Role>,
    /// Whether the user administers the whole installation, and with it every domain.
    #[serde(default)]
    pub installation_admin: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
}

impl UserSettings {
    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check.range("/domains", self.domains.len(), 0..=MAX_DOMAINS);
        if let Some(name) = &self.display_name {
            check.line("/display_name", name, 1..=MAX_NAME_CHARS);
        }
        if let Some(email) = &self.email {
            check.line("/email", email, 3..=254);
            if !email.contains('@') {
                check.refuse("/email", "must be an address such as alice@example.org");
            }
        }
        check.finish()
    }
}

impl User {
    pub fn new(id: UserId, settings: UserSettings, now: jiff::Timestamp) -> Self {
        let mut user = Self {
            id,
            hashed_api_key: Vec::new(),
            keys: Vec::new(),
            domains: BTreeMap::new(),
            installation_admin: false,
            display_name: None,
            email: None,
            created: Some(now),
            extra: Extra::new(),
        };
        user.set(settings);
        user
    }

    pub fn set(&mut self, settings: UserSettings) {
        self.domains = settings.domains;
        self.installation_admin = settings.installation_admin;
        self.display_name = settings.display_name;
        self.email = settings.email;
    }

    /// Adds a key. What ended before is forgotten on the way, so that sessions do not pile up.
    pub fn add_key(&mut self, hash: KeyHash, key: KeyInfo, now: jiff::Timestamp) -> Result<(), Invalid> {
        let ended: Vec<_> =
            self.keys.iter().filter(|key| key.has_ended(now)).map(|key| key.id.clone()).collect();
        for id in ended {
            self.remove_key(&id);
        }
        if key.session {
            self.make_room_for_a_session(key.parent.as_deref());
        } else if self.keys.iter().filter(|key| !key.session).count() >= MAX_KEYS {
            return Err(Invalid::one("", format!("a user holds at most {MAX_KEYS} keys: revoke one first")));
        }
        self.hashed_api_key.push(hash);
        self.keys.push(key);
        Ok(())
    }

    /// Of too many sessions of one key the oldest ends. Sessions never take the place of keys, nor of another key's.
    fn make_room_for_a_session(&mut self, parent: Option<&str>) {
        let sessions: Vec<String> = self
            .keys
            .iter()
            .filter(|key| key.session && key.parent.as_deref() == parent)
            .map(|key| key.id.clone())
            .collect();
        let surplus = (sessions.len() + 1).saturating_sub(MAX_SESSIONS);
        for id in sessions.iter().take(surplus) {
            self.remove_key(id);
        }
    }

    /// Removes a key and the sessions that were made from it; false if there is none of that id.
    pub fn remove_key(&mut self, id: &str) -> bool {
        let before = self.hashed_api_key.len();
        let ends = |key: &KeyInfo| key.id == id || key.parent.as_deref() == Some(id);
        let ending: Vec<String> =
            self.keys.iter().filter(|key| ends(key)).map(|key| key.id.clone()).collect();
        self.hashed_api_key
            .retain(|hash| hash.key_id() != id && !ending.iter().any(|ended| ended == hash.key_id()));
        self.keys.retain(|key| !ending.contains(&key.id));
        self.hashed_api_key.len() < before
    }

    /// What the holder of this key may do, if it is a key of this user and has not ended. Takes the same time
    /// wherever the hashes differ.
    pub fn rights_by_key(&self, hash: &KeyHash, now: jiff::Timestamp) -> Option<Rights> {
        let mut held = false;
        for own in &self.hashed_api_key {
            held |= own.equals(hash);
        }
        if !held {
            return None;
        }
        let info = self.keys.iter().find(|key| key.id == hash.key_id());
        if info.is_some_and(|key| key.has_ended(now)) {
            return None;
        }
        Some(self.rights(info))
    }

    fn rights(&self, key: Option<&KeyInfo>) -> Rights {
        let own = Rights {
            installation: self.installation_admin,
            everywhere: self.installation_admin.then_some(Role::Admin),
            domains: self.domains.clone(),
        };
        match key {
            Some(key) => own.limited_to(key.domain.as_ref(), key.role),
            None => own,
        }
    }
}

/// What somebody may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    pub installation: bool,
    /// The role in every domain; who administers the installation administers them all.
    pub everywhere: Option<Role>,
    pub domains: BTreeMap<Domain, Role>,
}

impl Rights {
    pub fn role_in(&self, domain: &Domain) -> Option<Role> {
        self.everywhere.max(self.domains.get(domain).copied())
    }

    /// The part of these rights that lies within a domain and up to a role. Any limit ends the rights over the
    /// installation.
    #[must_use]
    pub fn limited_to(self, domain: Option<&Domain>, role: Option<Role>) -> Rights {
        if domain.is_none() && role.is_none() {
            return self;
        }
        let cap = |held: Role| held.min(role.unwrap_or(Role::Admin));
        let Some(one) = domain else {
            let domains = self.domains.into_iter().map(|(domain, held)| (domain, cap(held))).collect();
            return Rights { installation: false, everywhere: self.everywhere.map(cap), domains };
        };
        let domains = self.role_in(one).map(|held| (one.clone(), cap(held))).into_iter().collect();
        Rights { installation: false, everywhere: None, domains }
    }
}

fn one_or_many<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Vec<KeyHash>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(KeyHash),
        Many(Vec<KeyHash>),
    }
    Ok(match OneOrMany::deserialize(input)? {
        OneOrMany::One(hash) => vec![hash],
        OneOrMany::Many(hashes) => hashes,
    })
}
