//! What is declared about each collection, once. Every backend derives its tables or mappings from this.
//!
//! A declared field can be asked for. A field that is declared to *change* can also be set on its own, by a change or
//! a claim, without writing the rest of the document again; backends keep such fields apart from the body, which is
//! then written once.

mod declared;
mod field;
mod layout;

use std::time::Duration;

pub use declared::{
    ALL, DOMAINS, EXECUTIONS, JOB_TYPES, JOBS, LIMITS, LOGS, METRICS, PROGRESS, SETTINGS, STATE, TIMERS,
    UNIQUE_KEYS, USERS,
};
pub use field::{Field, Kind, millis, take_at, value_at};
pub use layout::{Layout, Member, Walker, Walkers};

/// A collection of documents. An id names one document in it; in one domain of it, if it has [`Reach::Domain`].
pub struct Collection {
    pub name: &'static str,
    pub reach: Reach,
    pub fields: &'static [Field],
    pub indexes: &'static [Index],
    /// Where words are searched, with dots. They need not be declared otherwise.
    pub text: &'static [&'static str],
    /// Keyword fields by which people look at totals often: these are kept up to date, not counted.
    pub counted: &'static [&'static str],
    pub deleting: Deleting,
    pub kept: Retention,
    /// Whether a write of nothing but such documents overtakes everything else that waits to be written: where who is late
    /// is taken for dead.
    pub urgent: bool,
}

/// Whose documents a collection holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Everybody's: one collection for the installation.
    Installation,
    /// One domain's: the name of the collection ends in it, as in `timers-default`.
    Domain,
}

/// What deleting means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleting {
    /// The document is gone, and its id free.
    AtOnce,
    /// The document is hidden, and its id taken, until it is purged, which whoever sweeps does after this span. A create
    /// that was under way when it was deleted finds the id taken.
    Hides(Duration),
}

/// How long documents are kept unless somebody decides otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    ForEver,
    /// Until this long after the instant in this field.
    For {
        since: &'static str,
        span: Duration,
    },
}

/// Stands among the fields of an index for the domain, in a collection that each domain has for itself.
pub const DOMAIN: &str = "@domain";

/// Documents in the order of some fields; only those where `only` holds, if it is given. An index is about speed alone:
/// what is found does not depend on it.
#[derive(Debug)]
pub struct Index {
    pub name: &'static str,
    pub fields: &'static [&'static str],
    pub only: Option<(&'static str, &'static str)>,
    /// Whether it holds only documents with a value in its first field, so that those without pay nothing for it. It
    /// serves who asks for a value there, and nobody else.
    pub sparse: bool,
}

impl Index {
    pub const fn new(name: &'static str, fields: &'static [&'static str]) -> Self {
        Self { name, fields, only: None, sparse: false }
    }

    /// Only documents where a keyword field has this value.
    #[must_use]
    pub const fn only(self, path: &'static str, value: &'static str) -> Self {
        Self { only: Some((path, value)), ..self }
    }

    /// Only documents with a value in the first field.
    #[must_use]
    pub const fn sparse(self) -> Self {
        Self { sparse: true, ..self }
    }
}

impl Collection {
    /// What most collections are like.
    pub const PLAIN: Collection = Collection {
        name: "",
        reach: Reach::Installation,
        fields: &[],
        indexes: &[],
        text: &[],
        counted: &[],
        deleting: Deleting::AtOnce,
        kept: Retention::ForEver,
        urgent: false,
    };

    pub fn field(&self, path: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.path == path)
    }

    /// The fields that are set on their own.
    pub fn changing(&self) -> impl Iterator<Item = &'static Field> {
        self.fields.iter().filter(|field| field.changes)
    }

    pub fn hides(&self) -> bool {
        matches!(self.deleting, Deleting::Hides(_))
    }

    /// Whether it is one of those that stores know.
    pub fn is_known(&self) -> bool {
        ALL.iter().any(|known| std::ptr::eq(*known, self))
    }
}

/// By its name: all that is declared would drown what is said about it.
impl std::fmt::Debug for Collection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Collections are the same if their names are.
impl PartialEq for Collection {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Collection {}

impl std::hash::Hash for Collection {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What every backend counts on when it derives tables or mappings.
    #[test]
    fn declarations_make_sense() {
        for collection in ALL {
            let name = collection.name;
            let kind = |path: &str| collection.field(path).map(|field| field.kind);
            let ordered = |path: &str| matches!(kind(path), Some(Kind::Keyword | Kind::Integer | Kind::Date));
            for (nth, field) in collection.fields.iter().enumerate() {
                let twin = collection.fields[..nth].iter().any(|other| other.path == field.path);
                assert!(!twin, "{name}: {} is declared twice", field.path);
                let simple = !matches!(field.kind, Kind::Date | Kind::Keywords);
                assert!(simple || !field.changes, "{name}: {} cannot change on its own", field.path);
            }
            for index in collection.indexes {
                let known =
                    |path: &str| ordered(path) || (path == DOMAIN && collection.reach == Reach::Domain);
                assert!(index.fields.iter().all(|path| known(path)), "{name}: index {}", index.name);
                let guard = index.only.is_none_or(|(path, _)| kind(path) == Some(Kind::Keyword));
                assert!(guard, "{name}: index {} is guarded by no keyword", index.name);
                let declared = index.fields.first().is_some_and(|path| ordered(path));
                assert!(declared || !index.sparse, "{name}: index {} always has a value", index.name);
            }
            for path in collection.counted {
                assert_eq!(kind(path), Some(Kind::Keyword), "{name}: {path} is counted");
            }
            if let Retention::For { since, .. } = collection.kept {
                assert!(ordered(since), "{name}: kept since {since}");
            }
            assert!(collection.is_known());
        }
    }

    #[test]
    fn what_is_declared_elsewhere_is_not_known() {
        let twin = Collection { name: "jobs", ..Collection::PLAIN };
        assert!(!twin.is_known());
    }
}
