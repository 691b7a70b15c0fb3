//! A write made ready by its caller, so that the writer's thread, which everybody waits for, has only to store it.

use rota_model::time::UnixMillis;
use rota_store::collection::{Collection, Walkers};
use rota_store::seam::{Fields, Key, Version, Write};

use crate::row::{Columns, Row, columns_of};

#[derive(Debug)]
pub(crate) enum Prepared {
    Create { key: Key, row: Row },
    Replace { key: Key, version: Version, row: Row },
    Change { key: Key, version: Version, columns: Columns, has_words: bool },
    Delete { key: Key, version: Version, at: UnixMillis },
    Purge { key: Key, version: Version },
}

impl Prepared {
    pub(crate) fn of(write: Write, walkers: &mut Walkers) -> Self {
        match write {
            Write::Create { key, body } => {
                let row = Row::of(key.collection, body, walkers.of(key.collection));
                Prepared::Create { key, row }
            }
            Write::Replace { key, version, body } => {
                let row = Row::of(key.collection, body, walkers.of(key.collection));
                Prepared::Replace { key, version, row }
            }
            Write::Change { key, version, fields } => {
                let has_words = has_words(key.collection, &fields);
                let columns = columns_of(key.collection, fields);
                Prepared::Change { key, version, columns, has_words }
            }
            Write::Delete { key, version, at } => Prepared::Delete { key, version, at },
            Write::Purge { key, version } => Prepared::Purge { key, version },
        }
    }

    pub(crate) fn key(&self) -> &Key {
        match self {
            Prepared::Create { key, .. }
            | Prepared::Replace { key, .. }
            | Prepared::Change { key, .. }
            | Prepared::Delete { key, .. }
            | Prepared::Purge { key, .. } => key,
        }
    }

    pub(crate) fn is_new(&self) -> bool {
        matches!(self, Prepared::Create { .. })
    }
}

/// Whether a change brings words that are searched. One that only takes words away need not be told to the text index:
/// whoever finds the document by a word that it no longer has sees so, and leaves it out.
pub(crate) fn has_words(collection: &Collection, fields: &Fields) -> bool {
    let brings = |path: &str| {
        fields.iter().any(|(field, value)| match path.strip_prefix(field) {
            Some("") => value.is_string(),
            Some(rest) => {
                let below = rest.strip_prefix('.').map(|rest| format!("/{}", rest.replace('.', "/")));
                below.is_some_and(|pointer| value.pointer(&pointer).is_some_and(serde_json::Value::is_string))
            }
            None => false,
        })
    };
    collection.text.iter().any(|path| brings(path))
}
