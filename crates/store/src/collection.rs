//! What is declared about each collection, once. Every backend derives its tables or mappings from this.
//!
//! A declared field can be asked for. A field that is declared to *change* can also be set on its own, by a change or
//! a claim, without writing the rest of the document again; backends keep such fields apart from the body, which is
//! then written once.

use serde_json::{Map, Value};

/// A collection of documents.
#[derive(Debug)]
pub struct Collection {
    pub name: &'static str,
    pub fields: &'static [Field],
    pub indexes: &'static [Index],
}

#[derive(Debug)]
pub struct Field {
    /// Where it stands in the document, with dots: `metadata.updatedAt`.
    pub path: &'static str,
    pub kind: Kind,
    /// Whether it is set on its own.
    pub changes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text that is compared as a whole.
    Keyword,
    /// Several such texts.
    Keywords,
    Integer,
    /// Anything; it can be set but not asked for.
    Json,
}

/// Documents in the order of some fields; only those where `only` holds, if it is given.
#[derive(Debug)]
pub struct Index {
    pub name: &'static str,
    pub fields: &'static [&'static str],
    pub only: Option<(&'static str, &'static str)>,
}

impl Collection {
    pub fn field(&self, path: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.path == path)
    }

    /// The fields that are set on their own.
    pub fn changing(&self) -> impl Iterator<Item = &'static Field> {
        self.fields.iter().filter(|field| field.changes)
    }
}

/// Collections are the same if their names are.
impl PartialEq for Collection {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Field {
    pub fn parts(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('.')
    }

    /// What a document holds there.
    pub fn get<'a>(&self, body: &'a Map<String, Value>) -> Option<&'a Value> {
        let mut parts = self.parts();
        let first = body.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.as_object()?.get(part))
    }

    /// Puts a value there, or takes it away: null and absent are the same for a declared field.
    pub fn set(&self, body: &mut Map<String, Value>, value: Value) {
        set_below(body, self.path, value);
    }

    /// Takes out what a document holds there.
    pub fn take(&self, body: &mut Map<String, Value>) -> Option<Value> {
        let mut map = body;
        let (parents, last) = self.path.rsplit_once('.').map_or((None, self.path), |(p, l)| (Some(p), l));
        for part in parents.into_iter().flat_map(|path| path.split('.')) {
            map = map.get_mut(part)?.as_object_mut()?;
        }
        map.shift_remove(last)
    }
}

fn set_below(map: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None if value.is_null() => {
            map.shift_remove(path);
        }
        None => {
            map.insert(path.to_owned(), value);
        }
        Some((part, rest)) => {
            let below = map.entry(part).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(below) = below {
                set_below(below, rest, value);
            }
        }
    }
}

const fn fixed(path: &'static str, kind: Kind) -> Field {
    Field { path, kind, changes: false }
}

const fn changing(path: &'static str, kind: Kind) -> Field {
    Field { path, kind, changes: true }
}

pub static JOBS: Collection = Collection {
    name: "jobs",
    fields: &[
        fixed("domain", Kind::Keyword),
        fixed("jobName", Kind::Keyword),
        fixed("jobNumber", Kind::Integer),
        fixed("input.type", Kind::Keyword),
        fixed("priority", Kind::Integer),
        fixed("section", Kind::Integer),
        fixed("metadata.createdAt", Kind::Integer),
        changing("status", Kind::Keyword),
        changing("runAt", Kind::Integer),
        changing("attempt", Kind::Integer),
        changing("lost", Kind::Integer),
        changing("epoch", Kind::Integer),
        changing("owner", Kind::Keyword),
        changing("ownerNode", Kind::Keyword),
        changing("claimToken", Kind::Keyword),
        changing("startedAt", Kind::Integer),
        changing("finishedAt", Kind::Integer),
        changing("progress", Kind::Json),
        changing("history", Kind::Json),
        changing("result", Kind::Json),
        changing("metadata.updatedAt", Kind::Integer),
        changing("metadata.updatedBy", Kind::Keyword),
    ],
    indexes: &[
        Index { name: "due", fields: &["priority", "runAt", "jobNumber"], only: Some(("status", "QUEUED")) },
        Index { name: "held", fields: &["owner"], only: Some(("status", "STARTED")) },
        Index { name: "newest", fields: &["domain", "metadata.createdAt", "jobNumber"], only: None },
    ],
};

pub static STATE: Collection = Collection {
    name: "state",
    fields: &[
        fixed("name", Kind::Keyword),
        changing("status", Kind::Keyword),
        changing("lastSeenAt", Kind::Integer),
        changing("jobQueueSection", Kind::Integer),
        changing("running", Kind::Integer),
        changing("metadata.updatedAt", Kind::Integer),
        changing("metadata.updatedBy", Kind::Keyword),
    ],
    indexes: &[],
};

pub static USERS: Collection =
    Collection { name: "users", fields: &[fixed("hashed_api_key", Kind::Keywords)], indexes: &[] };

pub static DOMAINS: Collection = Collection { name: "domains", fields: &[], indexes: &[] };

pub static SETTINGS: Collection = Collection { name: "settings", fields: &[], indexes: &[] };

/// Every collection there is.
pub static ALL: [&Collection; 5] = [&JOBS, &STATE, &USERS, &DOMAINS, &SETTINGS];
