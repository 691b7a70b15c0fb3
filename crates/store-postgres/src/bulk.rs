//! Many new documents at once, by `COPY`: the server takes their rows as they stand and asks nothing about each, which costs it half
//! as much as a statement over arrays. It answers for nothing either, and one that is there already makes all of it fail; then the
//! statement is used that looks for them.
//!
//! ```text
//!  rows      COPY, all columns
//!  register  COPY, where that stands apart: what they are listed and searched by
//!  counts    how many there are of each kind, added up here
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures::SinkExt as _;
use rota_model::domain::Domain;
use rota_store::StoreError;
use rota_store::collection::{Collection, Field, Kind, Reach};
use tokio_postgres::Error;
use tokio_postgres::error::Severity;

use crate::names::{
    column, counted, has_register, key_columns, register_table, registered, table, words_column,
};
use crate::prepared::{Deed, Gathered, Prepared};
use crate::row::Cell;
use crate::select::Sql;
use crate::session::{Session, said};
use crate::value::{Json, Param};

/// Fewer are written sooner by one statement: this takes three, one after the other.
const WORTH_IT: usize = 50;

/// What is written of documents that are not there yet.
struct Bulk {
    tables: Vec<Rows>,
    counts: Option<Sql>,
}

/// The rows of a table, as the server takes them.
struct Rows {
    copy: String,
    bytes: Bytes,
}

/// Whether writes are many new documents, of a kind whose columns can be spelt here.
pub(crate) fn is_bulk(of: &Gathered<'_>) -> bool {
    let several_texts = || of.collection.fields.iter().any(|field| field.kind == Kind::Keywords);
    of.deed == Deed::Create && of.writes.len() >= WORTH_IT && !several_texts()
}

/// What became of all of them.
pub(crate) enum Copied {
    Yes,
    /// Nothing of it happened: one of them may be there already.
    No,
    /// Nothing of it happened, and never will on this way: the server does not know how, or this login may not. The connection is of
    /// no use any more.
    Never,
}

impl Bulk {
    fn of(of: &Gathered<'_>, version: i64) -> Self {
        let mut tables = vec![rows(of, version)];
        if has_register(of.collection) {
            tables.push(register(of));
        }
        Self { tables, counts: counts(of) }
    }

    /// One after the other: a `COPY` that is refused before it begins leaves the driver out of step with the server, and one that
    /// follows a failure is refused.
    async fn write(&self, session: &Session) -> Result<Copied, Error> {
        for Rows { copy, bytes } in &self.tables {
            let Some(statement) = unless_refused(session.prepare(copy).await)? else {
                return Ok(Copied::Never);
            };
            let Some(sink) = unless_refused(session.client.copy_in(&statement).await)? else {
                return Ok(Copied::Never);
            };
            let mut sink = pin!(sink);
            sink.send(bytes.clone()).await?;
            if unless_refused(sink.finish().await)?.is_none() {
                return Ok(Copied::No);
            }
        }
        let Some(counts) = &self.counts else { return Ok(Copied::Yes) };
        let counted = unless_refused(session.query(counts).await)?;
        Ok(counted.map_or(Copied::No, |_| Copied::Yes))
    }
}

/// A step that the server may refuse; none if it did. Whatever else happens, nothing more is to be had from the connection.
fn unless_refused<T>(step: Result<T, Error>) -> Result<Option<T>, Error> {
    match step {
        Ok(done) => Ok(Some(done)),
        Err(error) => {
            let code = error.as_db_error().filter(|said| said.parsed_severity() == Some(Severity::Error));
            tracing::debug!(error = said(&error), "not copied");
            if code.is_some() { Ok(None) } else { Err(error) }
        }
    }
}

/// Creates all of them, or nothing.
pub(crate) async fn create(session: &Session, of: &Gathered<'_>, version: i64) -> Result<Copied, StoreError> {
    let bulk = Bulk::of(of, version);
    // Before it is told to commit, nothing happens.
    let nothing = session.unavailable("write");
    session.client.batch_execute("BEGIN").await.map_err(&nothing)?;
    let copied = bulk.write(session).await.map_err(&nothing)?;
    match copied {
        Copied::Yes => session.client.batch_execute("COMMIT").await.map_err(session.unsure("write"))?,
        Copied::No => session.client.batch_execute("ROLLBACK").await.map_err(&nothing)?,
        Copied::Never => session.cut(),
    }
    Ok(copied)
}

fn rows(of: &Gathered<'_>, version: i64) -> Rows {
    let Gathered { collection, writes, .. } = of;
    let apart = has_register(collection);
    let words: &[&str] = if apart { &[] } else { collection.text };
    let mut names: Vec<String> = key_columns(collection).iter().map(|&name| name.to_owned()).collect();
    names.extend(["version".to_owned(), "body".to_owned()]);
    names.extend(collection.fields.iter().map(|field| column(field.path)));
    names.extend(words.iter().map(|path| words_column(path)));
    names.extend(apart.then(|| "listed".to_owned()));
    let mut table = Table::new(&table(collection), &names);
    for write in writes {
        let mut row = table.row();
        if collection.reach == Reach::Domain {
            row.text(write.key.domain.as_ref().map(Domain::as_str));
        }
        row.text(Some(&write.key.id));
        row.int(version);
        row.json(write.body.as_ref());
        write.cells.iter().for_each(|cell| row.cell(cell));
        words.iter().zip(&write.words).for_each(|(_, words)| row.words(words.as_deref()));
        if apart {
            row.yes();
        }
    }
    table.end()
}

fn register(of: &Gathered<'_>) -> Rows {
    let Gathered { collection, writes, .. } = of;
    let place = |field: &Field| collection.fields.iter().position(|one| one.path == field.path);
    let places: Vec<usize> = registered(collection).filter_map(place).collect();
    let mut names = vec!["id".to_owned()];
    names.extend(collection.text.iter().map(|path| words_column(path)));
    names.extend(registered(collection).map(|field| column(field.path)));
    let mut table = Table::new(&register_table(collection), &names);
    for write in writes {
        let mut row = table.row();
        row.text(Some(&write.key.id));
        write.words.iter().for_each(|words| row.words(words.as_deref()));
        places.iter().filter_map(|nth| write.cells.get(*nth)).for_each(|cell| row.cell(cell));
    }
    table.end()
}

/// The differences in the totals.
fn counts(of: &Gathered<'_>) -> Option<Sql> {
    let Gathered { collection, writes, .. } = of;
    let paths = counted(collection);
    if paths.is_empty() {
        return None;
    }
    let mut kinds: BTreeMap<Vec<Option<&str>>, i64> = BTreeMap::new();
    for write in writes {
        let kind = paths.iter().map(|path| counted_as(collection, write, path)).collect();
        *kinds.entry(kind).or_default() += 1;
    }
    let mut sql = Sql::default();
    let column =
        |nth: usize| kinds.keys().map(move |kind| kind.get(nth).copied().flatten().map(str::to_owned));
    let arrays: Vec<String> = (0..paths.len())
        .map(|nth| format!("{}::text[]", sql.value(Param::Texts(column(nth).collect()))))
        .collect();
    let names: Vec<String> = (0..paths.len()).map(|nth| format!("k{nth}")).collect();
    let (arrays, names) = (arrays.join(", "), names.join(", "));
    let numbers = sql.value(Param::Ints(kinds.values().copied().map(Some).collect()));
    sql.push(&format!(
        "INSERT INTO counts (collection, key, n) SELECT '{}', ARRAY[{names}], n FROM unnest({arrays}, {numbers}::bigint[]) AS k ({names}, n)",
        collection.name
    ));
    Some(sql)
}

/// What a document counts as, by a path.
fn counted_as<'a>(collection: &Collection, write: &'a Prepared, path: &str) -> Option<&'a str> {
    let place = collection.fields.iter().position(|field| field.path == path);
    match place {
        None => write.key.domain.as_ref().map(Domain::as_str),
        Some(nth) => match write.cells.get(nth) {
            Some(Cell::Text(text)) => Some(text),
            _ => None,
        },
    }
}

/// What stands before the rows: a signature, no flags, nothing more to say.
const BEGINNING: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const NULL: i32 = -1;

/// Rows in the binary form of `COPY`.
struct Table {
    copy: String,
    columns: i16,
    bytes: BytesMut,
}

impl Table {
    fn new(name: &str, columns: &[String]) -> Self {
        let copy = format!("COPY {name} ({}) FROM STDIN (FORMAT binary)", columns.join(", "));
        let columns = i16::try_from(columns.len()).unwrap_or(i16::MAX);
        Self { copy, columns, bytes: BytesMut::from(BEGINNING) }
    }

    fn row(&mut self) -> Row<'_> {
        self.bytes.put_i16(self.columns);
        Row(&mut self.bytes)
    }

    fn end(mut self) -> Rows {
        self.bytes.put_i16(-1);
        Rows { copy: self.copy, bytes: self.bytes.freeze() }
    }
}

/// One row, to which its values are added in the order of the columns: each with its length.
struct Row<'a>(&'a mut BytesMut);

impl Row<'_> {
    fn value(&mut self, parts: &[&[u8]]) {
        self.0.put_i32(i32::try_from(parts.iter().map(|part| part.len()).sum::<usize>()).unwrap_or(i32::MAX));
        parts.iter().for_each(|part| self.0.put_slice(part));
    }

    fn null(&mut self) {
        self.0.put_i32(NULL);
    }

    fn text(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.value(&[text.as_bytes()]),
            None => self.null(),
        }
    }

    fn int(&mut self, int: i64) {
        self.value(&[&int.to_be_bytes()]);
    }

    fn yes(&mut self) {
        self.value(&[&[1]]);
    }

    /// Before it stands the version of the binary form.
    fn json(&mut self, json: Option<&Json>) {
        match json {
            Some(json) => self.value(&[&[1], json.as_str().as_bytes()]),
            None => self.null(),
        }
    }

    /// Each is of the kind that its field declares: nothing else is let through.
    fn cell(&mut self, cell: &Cell) {
        match cell {
            Cell::Null => self.null(),
            Cell::Text(text) => self.text(Some(text)),
            Cell::Int(int) => self.int(*int),
            Cell::Json(json) => self.json(Some(json)),
        }
    }

    /// Each word once, in order, at no place in particular.
    fn words(&mut self, words: Option<&str>) {
        let Some(words) = words else { return self.null() };
        let words: BTreeSet<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        let length: usize = 4 + words.iter().map(|word| word.len() + 3).sum::<usize>();
        self.0.put_i32(i32::try_from(length).unwrap_or(i32::MAX));
        self.0.put_i32(i32::try_from(words.len()).unwrap_or(i32::MAX));
        for word in words {
            self.0.put_slice(word);
            // Its end, and the number of its places.
            self.0.put_slice(&[0, 0, 0]);
        }
    }
}
