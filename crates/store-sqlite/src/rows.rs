//! Rows of the file, as they are written. Statements are held as long as one kind of row follows another: preparing them
//! anew, even from a cache, would cost as much as a small write.

use hashbrown::HashMap;
use rota_store::collection::{Collection, Kind};
use rota_store::seam::{Key, Version};
use rusqlite::types::Value as SqlValue;
use rusqlite::{CachedStatement, Connection, Row as SqlRow, ToSql, params};

use crate::row::{Columns, Row};
use crate::statements::{HIDES, LARGE_BYTES, Statements, Texts, divides, keywords_table};

/// What every row begins with.
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub(crate) pk: i64,
    pub(crate) version: Version,
    pub(crate) hidden_at: Option<i64>,
}

pub(crate) struct Rows<'a> {
    pub(crate) connection: &'a Connection,
    statements: &'a Statements,
    heads: Held<'a>,
    inserts: Held<'a>,
    changes: Held<'a>,
}

/// Statements in use, by collection and fields.
type Held<'a> = HashMap<(&'static str, u64), CachedStatement<'a>>;

impl<'a> Rows<'a> {
    pub(crate) fn new(connection: &'a Connection, statements: &'a Statements) -> Self {
        Self {
            connection,
            statements,
            heads: Held::default(),
            inserts: Held::default(),
            changes: Held::default(),
        }
    }

    fn texts(&self, collection: &'static Collection) -> rusqlite::Result<&'a Texts> {
        self.statements.of(collection).ok_or(rusqlite::Error::QueryReturnedNoRows)
    }

    /// What `read` makes of the head of a document: pk, version, hidden_at and the counted fields; none if it is not there.
    pub(crate) fn head<T>(
        &mut self,
        key: &Key,
        read: impl FnOnce(&SqlRow<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        let text = self.texts(key.collection)?.head.as_str();
        let statement = held(&mut self.heads, self.connection, (key.collection.name, 0), || text)?;
        let mut rows = match &key.domain {
            None => statement.query(params![key.id])?,
            Some(domain) => statement.query(params![key.id, domain.as_str()])?,
        };
        rows.next()?.map(read).transpose()
    }

    /// Whether it was inserted: it is not if the id is taken.
    pub(crate) fn insert(&mut self, key: &Key, head: Head, row: &Row) -> rusqlite::Result<bool> {
        let Row { columns, body, keywords } = row;
        let text = self.texts(key.collection)?.insert.as_str();
        let (body, large) = divide(key.collection, body);
        let version = head.version.0.cast_signed();
        let statement = held(&mut self.inserts, self.connection, (key.collection.name, 0), || text)?;
        let mut values: Vec<&dyn ToSql> = Vec::with_capacity(columns.len() + 6);
        values.extend([&head.pk as &dyn ToSql, &key.id, &version, &body]);
        values.extend(columns.iter().map(|column| column as &dyn ToSql));
        if key.collection.hides() {
            values.push(&head.hidden_at);
        }
        let domain = key.domain.as_ref().map(rota_model::domain::Domain::as_str);
        if let Some(domain) = &domain {
            values.push(domain);
        }
        let inserted = statement.execute(values.as_slice())? == 1;
        if inserted {
            self.put_apart(key.collection, head.pk, large, keywords)?;
        }
        Ok(inserted)
    }

    pub(crate) fn replace(
        &self,
        collection: &'static Collection,
        head: Head,
        row: &Row,
    ) -> rusqlite::Result<()> {
        let Row { columns, body, keywords } = row;
        self.remove_apart(collection, head.pk)?;
        let (body, large) = divide(collection, body);
        let version = head.version.0.cast_signed();
        let mut values: Vec<&dyn ToSql> = vec![&version, &body];
        values.extend(columns.iter().map(|column| column as &dyn ToSql));
        if collection.hides() {
            values.push(&head.hidden_at);
        }
        values.push(&head.pk);
        self.connection.prepare_cached(&self.texts(collection)?.replace)?.execute(values.as_slice())?;
        self.put_apart(collection, head.pk, large, keywords)
    }

    pub(crate) fn change(
        &mut self,
        collection: &'static Collection,
        head: Head,
        mut columns: Columns,
        hides: bool,
    ) -> rusqlite::Result<()> {
        columns.sort_unstable_by_key(|(nth, _)| *nth);
        let fields = columns.iter().fold(0, |fields, (nth, _)| fields | 1 << nth);
        let fields = if hides { fields | HIDES } else { fields };
        let text = || self.statements.change(collection, fields);
        let statement = held(&mut self.changes, self.connection, (collection.name, fields), text)?;
        let version = head.version.0.cast_signed();
        let mut values: Vec<&dyn ToSql> = Vec::with_capacity(columns.len() + 3);
        values.push(&version);
        values.extend(columns.iter().map(|(_, column)| column as &dyn ToSql));
        if hides {
            values.push(&head.hidden_at);
        }
        values.push(&head.pk);
        statement.execute(values.as_slice()).map(|_| ())
    }

    pub(crate) fn remove(&self, collection: &'static Collection, pk: i64) -> rusqlite::Result<()> {
        self.remove_apart(collection, pk)?;
        if !collection.text.is_empty() {
            self.note_words(collection, pk)?;
        }
        self.connection.prepare_cached(&self.texts(collection)?.delete)?.execute([pk]).map(|_| ())
    }

    /// Tells the text index to look at a document again.
    pub(crate) fn note_words(&self, collection: &Collection, pk: i64) -> rusqlite::Result<()> {
        let note = "INSERT INTO text_changes (collection, pk) VALUES (?, ?)";
        self.connection.prepare_cached(note)?.execute(params![collection.name, pk]).map(|_| ())
    }

    /// The places of the counted fields among the declared ones.
    pub(crate) fn counted(&self, collection: &'static Collection) -> &'a [usize] {
        self.statements.of(collection).map(|texts| texts.counted.as_slice()).unwrap_or_default()
    }

    /// Takes away what stands apart from the row.
    fn remove_apart(&self, collection: &'static Collection, pk: i64) -> rusqlite::Result<()> {
        if divides(collection) {
            self.connection.prepare_cached(&self.texts(collection)?.delete_large)?.execute([pk])?;
        }
        for field in collection.fields.iter().filter(|field| field.kind == Kind::Keywords) {
            let remove = format!("DELETE FROM {} WHERE pk = ?", keywords_table(collection, field.path));
            self.connection.prepare_cached(&remove)?.execute([pk])?;
        }
        Ok(())
    }

    /// Puts where it belongs what stands apart from the row.
    fn put_apart(
        &self,
        collection: &'static Collection,
        pk: i64,
        large: Option<&str>,
        keywords: &[(usize, Vec<String>)],
    ) -> rusqlite::Result<()> {
        if let Some(body) = large {
            self.connection
                .prepare_cached(&self.texts(collection)?.insert_large)?
                .execute(params![pk, body])?;
        }
        for (nth, texts) in keywords {
            let Some(field) = collection.fields.get(*nth) else { continue };
            let table = keywords_table(collection, field.path);
            let add = format!("INSERT OR IGNORE INTO {table} (value, pk) VALUES (?, ?)");
            for text in texts {
                self.connection.prepare_cached(&add)?.execute(params![text, pk])?;
            }
        }
        Ok(())
    }
}

fn held<'s, 'a, T: std::ops::Deref<Target = str>>(
    held: &'s mut Held<'a>,
    connection: &'a Connection,
    name: (&'static str, u64),
    text: impl FnOnce() -> T,
) -> rusqlite::Result<&'s mut CachedStatement<'a>> {
    use hashbrown::hash_map::Entry;
    match held.entry(name) {
        Entry::Occupied(statement) => Ok(statement.into_mut()),
        Entry::Vacant(place) => Ok(place.insert(connection.prepare_cached(&text())?)),
    }
}

/// What stands in the row, and what stands apart because it is large.
fn divide<'a>(collection: &Collection, body: &'a str) -> (&'a str, Option<&'a str>) {
    if body.len() < LARGE_BYTES || !divides(collection) {
        return (body, None);
    }
    ("", Some(body))
}

/// What a column counts as.
pub(crate) fn counted_value(column: Option<&SqlValue>) -> Option<&str> {
    match column {
        Some(SqlValue::Text(text)) => Some(text.as_str()),
        _ => None,
    }
}
