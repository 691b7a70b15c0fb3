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
use tokio_postgres::error::{Severity, SqlState};

use crate::names::{counted, has_register, register_columns, register_table, registered, row_columns, table};
use crate::prepared::{Deed, Gathered, Prepared};
use crate::row::Cell;
use crate::select::Sql;
use crate::session::{self, Session};
use crate::value::{Json, Param};

/// Fewer are written sooner by one statement: this is waited for six times.
const WORTH_IT: usize = 200;

/// Whoever freezes while the server waits for its rows is not waited for as long as others: its locks would be in their way.
const BEGIN: &str = "BEGIN; SET LOCAL statement_timeout = '5s'";

/// What is written of documents that are not there yet.
struct Bulk {
    tables: Vec<Rows>,
    counts: Option<Sql>,
    documents: u64,
}

/// The rows of a table, as the server takes them.
struct Rows {
    copy: String,
    bytes: Bytes,
}

/// Whether writes are many new documents, of a kind whose columns can be spelt here. What is urgent goes the shortest way.
pub(crate) fn is_bulk(of: &Gathered<'_>) -> bool {
    let several_texts = || of.collection.fields.iter().any(|field| field.kind == Kind::Keywords);
    let is_plain = !of.collection.urgent && !several_texts();
    of.deed == Deed::Create && of.writes.len() >= WORTH_IT && is_plain
}

/// What became of all of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    Yes,
    /// Nothing of it happened: one of them is there already.
    Crossed,
    /// Nothing of it happened: the server does not take it like this, or not now. The connection is cut.
    Refused,
}

impl Bulk {
    fn of(of: &Gathered<'_>, version: i64) -> Self {
        let mut tables = vec![rows(of, version)];
        if has_register(of.collection) {
            tables.push(register(of));
        }
        let documents = u64::try_from(of.writes.len()).unwrap_or(u64::MAX);
        Self { tables, counts: counts(of), documents }
    }

    /// One after the other: a `COPY` that is refused before it begins leaves the driver out of step with the server, and one that
    /// follows a failure is refused.
    async fn write(&self, session: &Session) -> Result<Copied, Error> {
        session.client.batch_execute(BEGIN).await?;
        for Rows { copy, bytes } in &self.tables {
            let statement = session.prepare(copy).await?;
            let mut sink = pin!(session.client.copy_in(&statement).await?);
            sink.send(bytes.clone()).await?;
            let copied = sink.finish().await?;
            // Somebody's trigger, or another engine, may leave some out: each is answered for by the statement then.
            if copied < self.documents {
                return Ok(Copied::Refused);
            }
        }
        if let Some(counts) = &self.counts {
            session.query(counts).await?;
        }
        Ok(Copied::Yes)
    }
}

/// What a failure before the end means, where the server says why and goes on. One that is there already is found when all of it
/// was sent, and the connection is as good as before; of the others nobody knows.
fn told(error: &Error) -> Option<Copied> {
    let said = error.as_db_error()?;
    match said.parsed_severity() {
        Some(Severity::Fatal | Severity::Panic) => None,
        _ if *said.code() == SqlState::UNIQUE_VIOLATION => Some(Copied::Crossed),
        _ => {
            let why = session::said(error);
            tracing::info!(why, "many new documents cannot be copied in; they are inserted for a while");
            Some(Copied::Refused)
        }
    }
}

/// Creates all of them, or nothing.
pub(crate) async fn create(session: &Session, of: &Gathered<'_>, version: i64) -> Result<Copied, StoreError> {
    let written = Bulk::of(of, version).write(session).await;
    let copied = written.or_else(|error| told(&error).ok_or(error));
    let ended = match &copied {
        Ok(Copied::Yes) => session.client.batch_execute("COMMIT").await.map_err(session.unsure("write")),
        Ok(Copied::Crossed) => {
            session.client.batch_execute("ROLLBACK").await.map_err(session.unavailable("write"))
        }
        Ok(Copied::Refused) | Err(_) => {
            session.cut();
            Ok(())
        }
    };
    // Before it was told to commit, nothing has happened.
    ended.inspect_err(|_| session.cut())?;
    copied.map_err(session.unavailable("write"))
}

fn rows(of: &Gathered<'_>, version: i64) -> Rows {
    let Gathered { collection, writes, .. } = of;
    let apart = has_register(collection);
    let mut table = Table::new(&table(collection), &row_columns(collection));
    for write in writes {
        let mut row = table.row();
        if collection.reach == Reach::Domain {
            row.text(write.key.domain.as_ref().map(Domain::as_str));
        }
        row.text(Some(&write.key.id));
        row.int(version);
        row.json(write.body.as_ref());
        write.cells.iter().for_each(|cell| row.cell(cell));
        if apart {
            row.yes();
        } else {
            write.words.iter().for_each(|words| row.words(words.as_deref()));
        }
    }
    table.end()
}

fn register(of: &Gathered<'_>) -> Rows {
    let Gathered { collection, writes, .. } = of;
    let place = |field: &Field| collection.fields.iter().position(|one| one.path == field.path);
    let places: Vec<usize> = registered(collection).filter_map(place).collect();
    let mut table = Table::new(&register_table(collection), &register_columns(collection));
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
        let kind = paths.iter().map(|path| kind_by(collection, write, path)).collect();
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
fn kind_by<'a>(collection: &Collection, write: &'a Prepared, path: &str) -> Option<&'a str> {
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

#[cfg(test)]
mod tests {
    use rota_store::collection::{ALL, USERS, Walkers};
    use rota_store::seam::{Key, Write};
    use serde_json::json;

    use super::*;
    use crate::opening;
    use crate::prepared::gather;
    use crate::session::Address;

    fn create(collection: &'static Collection, nth: usize) -> Prepared {
        let key = match collection.reach {
            Reach::Installation => Key::new(collection, nth),
            Reach::Domain => Key::in_domain(collection, &Domain::default(), nth),
        };
        let body =
            json!({"jobName": "b a b", "name": "b a b", "message": "b a b", "n": nth, "status": "QUEUED"});
        Prepared::of(Write::Create { key, body: body.as_object().unwrap().clone() }, &mut Walkers::default())
    }

    /// What the server does not understand is written in another way, and nobody would notice.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn every_collection_is_copied_in_but_users() {
        let address = Address::parse(&rota_testkit::postgres::fresh()).unwrap();
        let session = address.first().await.unwrap();
        opening::open(&session).await.unwrap();
        for collection in ALL {
            let writes: Vec<Prepared> = (0..WORTH_IT).map(|nth| create(collection, nth)).collect();
            let gathered = gather(&writes);
            assert_eq!(is_bulk(&gathered[0]), *collection != USERS && !collection.urgent, "{collection:?}");
            if is_bulk(&gathered[0]) {
                for expected in [Copied::Yes, Copied::Crossed, Copied::Crossed] {
                    let copied = super::create(&session, &gathered[0], 1).await.unwrap();
                    assert_eq!(copied, expected, "{collection:?}");
                }
            }
            assert!(!is_bulk(&gather(&writes[1..])[0]), "{collection:?}");
        }
    }
}
