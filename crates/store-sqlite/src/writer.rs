//! One thread writes for all. Whoever waits at the same moment shares one transaction and one fsync.
//!
//! ```text
//!  callers ──▶ channel ──▶ gather ──▶ BEGIN … apply each … COMMIT ──▶ answer all ──▶ hints
//! ```
//!
//! Nothing is answered before the commit is on disk. If a statement fails, the whole group is rolled back and everyone
//! is told that nothing happened; if the commit itself fails, everyone is told that it may have.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rota_store::StoreError;
use rota_store::hints::{Hint, HintSender};
use rota_store::seam::{Claim, Document, Version, Write, Written};
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use serde_json::json;
use tokio::sync::oneshot;

use crate::row::{field_to_sql, join, split};
use crate::{sql, unavailable};

/// How long to wait for company before a commit, when there was company a moment ago.
const GATHER: Duration = Duration::from_micros(50);
/// How many requests share a commit at most, so that nobody waits for ever.
const MAX_GROUP: usize = 4_096;
/// Versions are reserved in blocks, so that a commit need not store how far they got.
const VERSION_BLOCK: u64 = 1_000_000;

/// Where the answer to a request goes.
type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

enum Request {
    Write(Vec<Write>, Reply<Vec<Written>>),
    Claim(Box<Claim>, Reply<Vec<Document>>),
    Sequence(&'static str, u64, Reply<Range<u64>>),
}

/// The handle of the thread. Dropping it lets the thread finish what was asked and close the file.
pub(crate) struct Writer {
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(connection: Connection, hints: HintSender) -> Result<Self, StoreError> {
        let (requests, inbox) = mpsc::channel();
        let work = Work { versions: Versions::default(), connection, hints };
        let thread =
            std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || work.run(&inbox));
        let thread = thread.map_err(|error| StoreError::unavailable("start the writer", error))?;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    pub(crate) async fn write(&self, batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        self.ask("write", |reply| Request::Write(batch, reply)).await
    }

    pub(crate) async fn claim(&self, claim: Claim) -> Result<Vec<Document>, StoreError> {
        self.ask("claim", |reply| Request::Claim(Box::new(claim), reply)).await
    }

    pub(crate) async fn sequence(&self, name: &'static str, n: u64) -> Result<Range<u64>, StoreError> {
        self.ask("take numbers", |reply| Request::Sequence(name, n, reply)).await
    }

    async fn ask<T>(&self, what: &str, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let closed = || StoreError::unavailable(what, "the store is closed");
        let requests = self.requests.as_ref().ok_or_else(closed)?;
        requests.send(request(reply)).map_err(|_| closed())?;
        answer.await.unwrap_or_else(|_| Err(StoreError::unknown(what, "the writer ended")))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Work {
    connection: Connection,
    hints: HintSender,
    versions: Versions,
}

/// What is answered once the commit is on disk.
type Answer = Box<dyn FnOnce(Option<StoreError>) + Send>;

impl Work {
    fn run(mut self, inbox: &Receiver<Request>) {
        let mut company = false;
        while let Ok(first) = inbox.recv() {
            let group = gather(first, inbox, company);
            company = group.len() > 1;
            // Whoever was in the group is told that it may or may not have happened; the others go on.
            if catch_unwind(AssertUnwindSafe(|| self.serve(group))).is_err() {
                tracing::error!("writing panicked; its group may or may not have happened");
                let _ = self.execute("ROLLBACK");
                self.versions = Versions::default();
            }
        }
    }

    fn serve(&mut self, group: Vec<Request>) {
        let mut answers = Vec::with_capacity(group.len());
        let mut hints = Vec::new();
        let mut failure = self.execute("BEGIN IMMEDIATE").err();
        for request in group {
            answers.push(self.apply(request, &mut failure, &mut hints));
        }
        failure = failure
            .or_else(|| self.execute("COMMIT").err().map(|error| StoreError::unknown("commit", error)));
        if failure.is_some() {
            let _ = self.execute("ROLLBACK");
            // The block may have been rolled back with the rest.
            self.versions = Versions::default();
        }
        for answer in answers {
            answer(failure.clone());
        }
        if failure.is_none() {
            self.hints.send(hints);
        }
    }

    fn execute(&self, statement: &str) -> Result<(), StoreError> {
        let mut prepared = self.connection.prepare_cached(statement).map_err(unavailable("write"))?;
        prepared.execute([]).map(|_| ()).map_err(unavailable("write"))
    }

    /// Does one request inside the transaction; what it answers waits for the commit.
    fn apply(&mut self, request: Request, failure: &mut Option<StoreError>, hints: &mut Vec<Hint>) -> Answer {
        match request {
            Request::Write(batch, reply) => finish(reply, failure, |()| self.write(batch, hints)),
            Request::Claim(claim, reply) => finish(reply, failure, |()| self.claim(*claim, hints)),
            Request::Sequence(name, n, reply) => finish(reply, failure, |()| {
                advance(&self.connection, name, n).map_err(unavailable("take numbers"))
            }),
        }
    }

    fn write(&mut self, batch: Vec<Write>, hints: &mut Vec<Hint>) -> Result<Vec<Written>, StoreError> {
        let failed = unavailable("write");
        let mut answers = Vec::with_capacity(batch.len());
        for write in batch {
            let version = self.versions.next(&self.connection).map_err(&failed)?;
            let hint = write.hint();
            let written = write_one(&self.connection, write, version).map_err(&failed)?;
            if matches!(written, Written::Applied(_)) {
                hints.push(hint);
            }
            answers.push(written);
        }
        Ok(answers)
    }

    fn claim(&mut self, claim: Claim, hints: &mut Vec<Hint>) -> Result<Vec<Document>, StoreError> {
        let failed = unavailable("claim");
        let collection = claim.collection;
        let mut fields = claim.set;
        fields.push((claim.token.0, json!(claim.token.1)));
        let update = sql::claim_one(collection, &fields, claim.add_one);
        let mut claimed = Vec::new();
        for query in &claim.from {
            let room = query.limit.min(claim.max - claimed.len());
            if room == 0 {
                break;
            }
            for pk in matching(&self.connection, query, room).map_err(&failed)? {
                let version = self.versions.next(&self.connection).map_err(&failed)?;
                let mut values = vec![version_to_sql(version)];
                values.extend(set_values(collection, &fields));
                values.push(SqlValue::Integer(pk));
                let mut statement = self.connection.prepare_cached(&update).map_err(&failed)?;
                let mut rows = statement.query(params_from_iter(values)).map_err(&failed)?;
                if let Some(row) = rows.next().map_err(&failed)? {
                    claimed.push(join(collection, row)?);
                }
            }
        }
        hints.extend(claimed.iter().map(|document| Hint {
            collection,
            id: document.id.clone(),
            is_new: false,
        }));
        Ok(claimed)
    }
}

/// Runs a part of the transaction unless an earlier part failed, and prepares its answer.
fn finish<T: Send + 'static>(
    reply: Reply<T>,
    failure: &mut Option<StoreError>,
    part: impl FnOnce(()) -> Result<T, StoreError>,
) -> Answer {
    let done = match failure {
        Some(error) => Err(error.clone()),
        None => part(()).inspect_err(|error| *failure = Some(error.clone())),
    };
    Box::new(move |commit| {
        let _ = reply.send(commit.map_or(done, Err));
    })
}

/// Takes whoever waits. Where there was company a moment ago it looks around a little longer, yielding the core to those
/// who are about to come: a timed wait would sleep for twice as long as it is told.
fn gather(first: Request, inbox: &Receiver<Request>, company: bool) -> Vec<Request> {
    let mut group = vec![first];
    let began = stopwatch();
    loop {
        group.extend(inbox.try_iter().take(MAX_GROUP - group.len()));
        if !company || group.len() >= MAX_GROUP || began.elapsed() >= GATHER {
            return group;
        }
        std::thread::yield_now();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the writer is a real thread beside a real disk; nothing decides by it"
)]
fn stopwatch() -> Instant {
    Instant::now()
}

/// The versions of this store: they rise over all documents and all restarts, so that a document made anew never has
/// a version its predecessor had.
#[derive(Default)]
struct Versions {
    next: u64,
    end: u64,
}

impl Versions {
    fn next(&mut self, connection: &Connection) -> rusqlite::Result<Version> {
        if self.next == self.end {
            let block = advance(connection, "versions", VERSION_BLOCK)?;
            (self.next, self.end) = (block.start, block.end);
        }
        self.next += 1;
        Ok(Version(self.next - 1))
    }
}

fn version_to_sql(version: Version) -> SqlValue {
    SqlValue::Integer(version.0.cast_signed())
}

/// Moves a sequence on; the first number is 1.
fn advance(connection: &Connection, name: &str, n: u64) -> rusqlite::Result<Range<u64>> {
    let statement = "INSERT INTO sequences (name, next) VALUES (?1, 1 + ?2)
        ON CONFLICT (name) DO UPDATE SET next = next + ?2 RETURNING next";
    let end: i64 =
        connection.prepare_cached(statement)?.query_row(params![name, n.cast_signed()], |row| row.get(0))?;
    let end = end.unsigned_abs();
    Ok(end - n..end)
}

fn write_one(connection: &Connection, write: Write, version: Version) -> rusqlite::Result<Written> {
    let next = version_to_sql(version);
    let (collection, statement, values) = match write {
        Write::Create { key, body } => {
            let (columns, text) = split(key.collection, body);
            let mut values = vec![SqlValue::Text(key.id), next, SqlValue::Text(text)];
            values.extend(columns);
            let inserted =
                connection.prepare_cached(&sql::insert(key.collection))?.execute(params_from_iter(values))?;
            return Ok(if inserted == 1 { Written::Applied(version) } else { Written::Exists });
        }
        Write::Replace { key, version, body } => {
            let (columns, text) = split(key.collection, body);
            let mut values = vec![next, SqlValue::Text(text)];
            values.extend(columns);
            values.extend([SqlValue::Text(key.id), version_to_sql(version)]);
            (key.collection, sql::replace(key.collection), values)
        }
        Write::Change { key, version, fields } => {
            let mut values = vec![next];
            values.extend(set_values(key.collection, &fields));
            values.extend([SqlValue::Text(key.id), version_to_sql(version)]);
            (key.collection, sql::change(key.collection, &fields), values)
        }
        Write::Delete { key, version } => {
            let values = vec![SqlValue::Text(key.id), version_to_sql(version)];
            (key.collection, sql::delete(key.collection), values)
        }
    };
    // The id is the last value but one of every conditional write.
    let id = values.iter().rev().nth(1).cloned();
    if connection.prepare_cached(&statement)?.execute(params_from_iter(values))? == 1 {
        return Ok(Written::Applied(version));
    }
    let exists = format!("SELECT 1 FROM {} WHERE id = ?", sql::table(collection));
    let found = connection.prepare_cached(&exists)?.query_row(params_from_iter(id), |_| Ok(())).optional()?;
    Ok(if found.is_some() { Written::Conflict } else { Written::Missing })
}

fn set_values(
    collection: &rota_store::collection::Collection,
    fields: &[(&'static str, serde_json::Value)],
) -> Vec<SqlValue> {
    let kind = |path: &str| collection.field(path).map(|field| field.kind);
    fields.iter().filter_map(|(path, value)| Some(field_to_sql(kind(path)?, value))).collect()
}

fn matching(
    connection: &Connection,
    query: &rota_store::query::Query,
    room: usize,
) -> rusqlite::Result<Vec<i64>> {
    let (text, values) = sql::select(query, "pk", room);
    let mut statement = connection.prepare_cached(&text)?;
    let rows = statement.query_map(params_from_iter(values), |row| row.get(0))?;
    rows.collect()
}
