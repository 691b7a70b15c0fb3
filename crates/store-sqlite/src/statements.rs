//! The statements of a collection. Each has one text per shape of request, made once, so that SQLite prepares it once
//! and keeps it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rota_store::collection::{ALL, Collection, Reach};

/// Bodies of at least this size stand in a table of their own, where a collection has fields that change on their own:
/// SQLite writes a row as a whole, and a large body would be written again with every change beside it. In the row itself
/// stands an empty text then.
pub(crate) const LARGE_BYTES: usize = 4_096;

/// Among the fields of a change: that the document is hidden with it. Only then: every index holds what is not hidden, and
/// SQLite writes all of them again when that is set, even to what it was.
pub(crate) const HIDES: u64 = 1 << 63;

pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The column of a declared field.
pub(crate) fn column(path: &str) -> String {
    if path == rota_store::collection::DOMAIN {
        return "in_domain".to_owned();
    }
    quoted(&path.replace('.', "_"))
}

/// The table of a collection. The plain name is left for a view that shows whole documents.
pub(crate) fn table(collection: &Collection) -> String {
    quoted(&format!("{}.rows", collection.name))
}

/// The table of its large bodies.
pub(crate) fn large_table(collection: &Collection) -> String {
    quoted(&format!("{}.large", collection.name))
}

/// The table of the texts in a field of several.
pub(crate) fn keywords_table(collection: &Collection, path: &str) -> String {
    quoted(&format!("{}.{path}", collection.name))
}

/// Whether large bodies stand apart.
pub(crate) fn divides(collection: &Collection) -> bool {
    collection.changing().next().is_some()
}

/// The whole body, wherever it stands.
pub(crate) fn body(collection: &Collection) -> String {
    if !divides(collection) {
        return "body".to_owned();
    }
    let (large, rows) = (large_table(collection), table(collection));
    format!("iif(body <> '', body, (SELECT large.body FROM {large} AS large WHERE large.pk = {rows}.pk))")
}

/// Which documents are shown; they are also those that indexes hold.
pub(crate) fn is_shown(collection: &Collection) -> &'static str {
    if collection.hides() { "hidden_at IS NULL" } else { "true" }
}

/// What names a document: id, version, domain.
pub(crate) fn key(collection: &Collection) -> &'static str {
    match collection.reach {
        Reach::Installation => "id, version, NULL",
        Reach::Domain => "id, version, in_domain",
    }
}

/// What makes up a document: its key, the body, then the changing fields.
pub(crate) fn document(collection: &Collection) -> String {
    let changing = collection.changing().map(|field| format!(", {}", column(field.path)));
    format!("{}, {}{}", key(collection), body(collection), changing.collect::<String>())
}

fn by_key(collection: &Collection) -> &'static str {
    match collection.reach {
        Reach::Installation => "id = ?1",
        Reach::Domain => "id = ?1 AND in_domain = ?2",
    }
}

fn hidden_at(collection: &Collection) -> &'static str {
    if collection.hides() { "hidden_at" } else { "NULL" }
}

fn list(columns: impl Iterator<Item = String>) -> String {
    columns.map(|column| format!(", {column}")).collect()
}

/// The texts for one collection.
pub(crate) struct Texts {
    /// What a writer must know of a document: pk, version, hidden_at, counted fields.
    pub(crate) head: String,
    pub(crate) insert: String,
    pub(crate) replace: String,
    pub(crate) delete: String,
    pub(crate) read: String,
    /// The places of the counted fields among the declared ones.
    pub(crate) counted: Vec<usize>,
    pub(crate) insert_large: String,
    pub(crate) delete_large: String,
}

impl Texts {
    fn of(collection: &Collection) -> Self {
        let (table, large) = (table(collection), large_table(collection));
        let counted = list(collection.counted.iter().map(|path| column(path)));
        let columns = list(collection.fields.iter().map(|field| column(field.path)));
        let domain = if collection.reach == Reach::Domain { ", in_domain" } else { "" };
        let hidden = if collection.hides() { ", hidden_at" } else { "" };
        let extra = usize::from(!domain.is_empty()) + usize::from(!hidden.is_empty());
        let holes = ", ?".repeat(collection.fields.len() + extra);
        let set = collection.fields.iter().map(|field| format!("{} = ?", column(field.path)));
        let hide = if collection.hides() { ", hidden_at = ?" } else { "" };
        Self {
            head: format!(
                "SELECT pk, version, {}{counted} FROM {table} WHERE {}",
                hidden_at(collection),
                by_key(collection)
            ),
            insert: format!(
                "INSERT INTO {table} (pk, id, version, body{columns}{hidden}{domain}) VALUES (?, ?, ?, ?{holes}) \
                 ON CONFLICT DO NOTHING"
            ),
            replace: format!("UPDATE {table} SET version = ?, body = ?{}{hide} WHERE pk = ?", list(set)),
            delete: format!("DELETE FROM {table} WHERE pk = ?"),
            read: format!(
                "SELECT {} FROM {table} WHERE {} AND {}",
                document(collection),
                by_key(collection),
                is_shown(collection)
            ),
            counted: places(collection, collection.counted),
            insert_large: format!("INSERT INTO {large} (pk, body) VALUES (?, ?)"),
            delete_large: format!("DELETE FROM {large} WHERE pk = ?"),
        }
    }
}

fn places(collection: &Collection, paths: &[&str]) -> Vec<usize> {
    let place = |path: &&str| collection.fields.iter().position(|field| field.path == *path);
    paths.iter().filter_map(place).collect()
}

/// The texts for all collections, and those for changes as they are met.
pub(crate) struct Statements {
    of: HashMap<&'static str, Texts>,
    /// By the set of fields, one bit each.
    changes: Mutex<HashMap<(&'static str, u64), Arc<str>>>,
}

impl Statements {
    pub(crate) fn new() -> Self {
        let of = ALL.iter().map(|collection| (collection.name, Texts::of(collection))).collect();
        Self { of, changes: Mutex::default() }
    }

    pub(crate) fn of(&self, collection: &'static Collection) -> Option<&Texts> {
        self.of.get(collection.name)
    }

    /// Sets the version, the columns in the order of their fields and, where [`HIDES`] is among them, whether it is hidden.
    pub(crate) fn change(&self, collection: &'static Collection, fields: u64) -> Arc<str> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let text = changes.entry((collection.name, fields)).or_insert_with(|| {
            let is_set = |nth: usize| nth < 63 && fields & (1 << nth) != 0;
            let set = collection.fields.iter().enumerate().filter(|(nth, _)| is_set(*nth));
            let set = list(set.map(|(_, field)| format!("{} = ?", column(field.path))));
            let hide = if fields & HIDES == 0 { "" } else { ", hidden_at = ?" };
            format!("UPDATE {} SET version = ?{set}{hide} WHERE pk = ?", table(collection)).into()
        });
        Arc::clone(text)
    }
}
