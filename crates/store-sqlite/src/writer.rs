//! One thread writes for all. Whoever waits at the same moment shares one transaction and one fsync.
//!
//! ```text
//!  callers ──▶ inbox ──▶ gather ──▶ BEGIN … apply each … COMMIT ──▶ answer all ──▶ hints
//! ```
//!
//! Nothing is answered before the commit is on disk, or as near to it as the store was asked to wait
//! ([`crate::durability`]). If a statement fails, the whole group is rolled back and everyone is told that nothing
//! happened. If the commit itself fails, everyone is told that it may have, unless the disk was full: then the end of the
//! commit was not written, and it did not happen.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use rota_store::StoreError;
use rota_store::collection::Walkers;
use rota_store::hints::HintSender;
use rota_store::seam::{Claim, Write, Written};
use rusqlite::{Connection, ErrorCode};
use tokio::sync::oneshot;

use crate::commit::{Commit, Finished, Memory};
use crate::durability::Syncer;
use crate::inbox::{Batch, Inbox, Reply, Request};
use crate::prepared::Prepared;
use crate::row::RawDocument;
use crate::statements::Statements;
use crate::text::Bell;
use crate::unavailable;

/// How many writes are handed over at a time.
const PART: usize = 100;

/// The handle of the thread. Dropping it lets the thread finish what was asked and close the file.
pub(crate) struct Writer {
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

/// An answer that is on its way.
pub(crate) struct Pending<T> {
    what: &'static str,
    answer: oneshot::Receiver<Result<T, StoreError>>,
}

impl<T> Pending<T> {
    pub(crate) async fn wait(self) -> Result<T, StoreError> {
        self.answer.await.unwrap_or_else(|_| Err(StoreError::unknown(self.what, "the writer ended")))
    }
}

impl Writer {
    pub(crate) fn start(
        connection: Connection,
        syncer: Option<Syncer>,
        hints: HintSender,
        bell: Bell,
    ) -> Result<Self, StoreError> {
        let (requests, inbox) = Inbox::open();
        let work = Work {
            syncer,
            connection,
            hints,
            bell,
            statements: Statements::new(),
            memory: Memory::default(),
        };
        let thread =
            std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || work.run(inbox));
        let thread = thread.map_err(|error| StoreError::unavailable("start the writer", error))?;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    /// Makes writes ready and hands them over, some at a time: while the first are applied, the others are made ready.
    pub(crate) fn write(&self, batch: Vec<Write>) -> Result<Pending<Vec<Written>>, StoreError> {
        let count = batch.len();
        let is_urgent = count > 0 && batch.iter().all(|write| write.key().collection.urgent);
        let mut walkers = Walkers::default();
        let mut prepared = batch.into_iter().map(|write| Prepared::of(write, &mut walkers));
        let first = prepared.by_ref().take(PART).collect();
        let (sender, rest) = (count > PART).then(mpsc::channel).unzip();
        let batch = Batch { first, rest, count, is_urgent };
        let pending = self.ask("write", |reply| Request::Write(batch, reply))?;
        while let Some(sender) = sender.as_ref().filter(|_| prepared.len() > 0) {
            // A writer that has ended hears neither this nor the request, which says so.
            let _ = sender.send(prepared.by_ref().take(PART).collect::<Vec<_>>());
        }
        Ok(pending)
    }

    pub(crate) fn claim(&self, claim: Claim) -> Result<Pending<Vec<RawDocument>>, StoreError> {
        self.ask("claim", |reply| Request::Claim(Box::new(claim), reply))
    }

    pub(crate) fn sequence(&self, name: &'static str, n: u64) -> Result<Pending<Range<u64>>, StoreError> {
        self.ask("take numbers", |reply| Request::Sequence(name, n, reply))
    }

    /// For the text index, which says how far it got.
    pub(crate) fn forgetter(&self) -> impl Fn(i64) + Send + use<> {
        let requests = self.requests.clone();
        move |seq| {
            // A writer that has ended forgets nothing more: the notes are seen again.
            let _ = requests.as_ref().map(|requests| requests.send(Request::ForgetWords(seq)));
        }
    }

    fn ask<T>(
        &self,
        what: &'static str,
        request: impl FnOnce(Reply<T>) -> Request,
    ) -> Result<Pending<T>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let closed = || StoreError::unavailable(what, "the store is closed");
        let requests = self.requests.as_ref().ok_or_else(closed)?;
        requests.send(request(reply)).map_err(|_| closed())?;
        Ok(Pending { what, answer })
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
    /// Where commits do not wait for the disk. Ends before the file is closed, so that all of them are on disk then.
    syncer: Option<Syncer>,
    connection: Connection,
    hints: HintSender,
    bell: Bell,
    statements: Statements,
    memory: Memory,
}

/// What is answered once the commit is on disk.
type Answer = Box<dyn FnOnce(Option<StoreError>) + Send>;

impl Work {
    fn run(mut self, mut inbox: Inbox) {
        while let Some(group) = inbox.gather() {
            // Whoever was in the group is told that it may or may not have happened; the others go on.
            if catch_unwind(AssertUnwindSafe(|| self.serve(group))).is_err() {
                tracing::error!("writing panicked; its group may or may not have happened");
                self.roll_back();
            }
        }
    }

    fn serve(&mut self, group: Vec<Request>) {
        let mut answers: Vec<Answer> = Vec::with_capacity(group.len());
        let claims = group.iter().any(|request| matches!(request, Request::Claim(..)));
        let begun = self.execute("BEGIN IMMEDIATE").err().map(unavailable("write"));
        let mut commit = Commit::new(&self.connection, &self.statements, &mut self.memory, claims);
        commit.failure = begun;
        for request in group {
            answers.extend(apply(request, &mut commit));
        }
        let Finished { hints, gave_numbers, failure } = commit.finish();
        let failure = failure.or_else(|| self.commit(gave_numbers).err());
        if failure.is_some() {
            self.roll_back();
        }
        for answer in answers {
            answer(failure.clone());
        }
        if failure.is_none() {
            self.bell.ring(&hints);
            self.hints.send(hints);
        }
    }

    /// Waits for the disk, unless that is left to the syncer.
    fn commit(&self, gave_numbers: bool) -> Result<(), StoreError> {
        self.execute("COMMIT").map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::unavailable("write", error),
            _ => StoreError::unknown("commit", error),
        })?;
        let Some(syncer) = &self.syncer else { return Ok(()) };
        syncer.log().committed(gave_numbers).map_err(|error| StoreError::unknown("commit", error))
    }

    fn roll_back(&mut self) {
        if !self.connection.is_autocommit() {
            let _ = self.execute("ROLLBACK");
        }
        // What was remembered may have been rolled back with the rest.
        self.memory = Memory::default();
    }

    fn execute(&self, statement: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(statement)?.execute([]).map(|_| ())
    }
}

/// Does one request inside the transaction; what it answers waits for the commit.
fn apply(request: Request, commit: &mut Commit<'_>) -> Option<Answer> {
    match request {
        Request::Write(batch, reply) => Some(answer(reply, commit, |commit| write(batch, commit))),
        Request::Claim(claim, reply) => Some(answer(reply, commit, |commit| commit.claim(&claim))),
        Request::Sequence(name, n, reply) => {
            Some(answer(reply, commit, |commit| commit.numbers(name, n).map_err(unavailable("take numbers"))))
        }
        Request::ForgetWords(seq) => {
            if commit.failure.is_none()
                && let Err(error) = commit.forget_words(seq)
            {
                commit.failure.get_or_insert(unavailable("write")(error));
            }
            None
        }
    }
}

fn write(batch: Batch, commit: &mut Commit<'_>) -> Result<Vec<Written>, StoreError> {
    let mut answers = Vec::with_capacity(batch.count);
    for part in std::iter::once(batch.first).chain(batch.rest.into_iter().flatten()) {
        commit.write(part, &mut answers).map_err(unavailable("write"))?;
    }
    if answers.len() < batch.count {
        return Err(StoreError::unavailable("write", "whoever wrote broke off"));
    }
    Ok(answers)
}

/// Runs a part of the transaction unless an earlier part failed, and prepares its answer.
fn answer<T: Send + 'static>(
    reply: Reply<T>,
    commit: &mut Commit<'_>,
    part: impl FnOnce(&mut Commit<'_>) -> Result<T, StoreError>,
) -> Answer {
    let done = match &commit.failure {
        Some(error) => Err(error.clone()),
        None => part(commit),
    };
    if let Err(error) = &done {
        commit.failure.get_or_insert(error.clone());
    }
    Box::new(move |failure| {
        let _ = reply.send(failure.map_or(done, Err));
    })
}
