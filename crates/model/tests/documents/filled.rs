//! One document of every type with every field filled, for the tests of names, of unknown fields and of the seeds'
//! schemas. Each is a struct literal without `..`, so that a new field does not compile until it is filled here.

#![expect(clippy::unwrap_used, reason = "a document that cannot be made fails the test that asked for it")]

mod backups;
mod jobs;
mod placements;
mod timers;

use std::str::FromStr;
use std::time::Duration;

use rota_model::Extra;
use rota_model::domain::{Domain, DomainDocument};
use rota_model::ids::NodeId;
use rota_model::keep::Keep;
use rota_model::metadata::Metadata;
use rota_model::settings::Settings;
use rota_model::time::UnixMillis;
use rota_model::user::{KeyHash, NewKey, Role, User, UserId, UserSettings};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A document as it is written, and the way through its type and back.
pub(crate) struct Filled {
    pub(crate) name: &'static str,
    pub(crate) written: Value,
    /// The objects in it that may hold fields which this version does not know.
    pub(crate) open: &'static [&'static str],
    pub(crate) through: fn(Value) -> Result<Value, serde_json::Error>,
}

impl Filled {
    fn new<T: Serialize + DeserializeOwned>(
        name: &'static str,
        document: &T,
        open: &'static [&'static str],
    ) -> Self {
        let through = |value| serde_json::to_value(serde_json::from_value::<T>(value)?);
        Self { name, written: serde_json::to_value(document).unwrap(), open, through }
    }
}

/// All of them, by the names of their collections.
pub(crate) fn documents() -> Vec<Filled> {
    let mut all = vec![
        Filled::new("users", &user(), &["", "/keys/0"]),
        Filled::new("domains", &domain_document(), &[""]),
        Filled::new("settings", &settings(), &[""]),
    ];
    all.extend(jobs::documents());
    all.extend(timers::documents());
    all.extend(placements::documents());
    all.extend(backups::documents());
    all
}

pub(crate) fn document(name: &str) -> Value {
    documents().into_iter().find(|filled| filled.name == name).unwrap().written
}

fn user() -> User {
    let id = UserId::from_str("local:alice").unwrap();
    let settings = UserSettings {
        domains: [(Domain::default(), Role::Operator)].into(),
        installation_admin: true,
        display_name: Some("Alice".to_owned()),
        email: Some("alice@example.org".to_owned()),
    };
    let mut user = User::new(id, settings, date());
    let key = NewKey {
        name: "laptop".to_owned(),
        domain: Some(Domain::default()),
        role: Some(Role::Viewer),
        expires: Some(later()),
    };
    let text = "rota_0123456789abcdef";
    user.add_key(KeyHash::of(text), key.into_info(text, date()), date()).unwrap();
    user
}

fn domain_document() -> DomainDocument {
    DomainDocument {
        name: Domain::default(),
        created: date(),
        weight: Some(3),
        keep_jobs: Some(Keep::For(Duration::from_secs(30 * 24 * 60 * 60))),
        keep_logs: Some(Keep::Forever),
        extra: Extra::new(),
    }
}

fn settings() -> Settings {
    Settings {
        sections: 64,
        schema: 1,
        oldest_reader: 1,
        created: date(),
        bootstrapped: true,
        extra: Extra::new(),
    }
}

fn date() -> jiff::Timestamp {
    "2026-03-29T00:30:00Z".parse().unwrap()
}

fn later() -> jiff::Timestamp {
    "2027-03-29T00:30:00.25Z".parse().unwrap()
}

const NOW: UnixMillis = UnixMillis(1_593_341_664_912);

fn node() -> NodeId {
    NodeId::derived(&["node"])
}

fn metadata() -> Metadata {
    Metadata { created_at: NOW, updated_at: NOW, updated_by: node(), extra: Extra::new() }
}
