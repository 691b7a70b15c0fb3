//! Writes of all callers, gathered: whoever writes while the server is busy with others is part of the next commit, and one
//! commit waits for the disk for all of them. Several connections commit side by side where there is enough to write; what is
//! urgent has one of its own, and waits for nobody.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::join_all;
use rota_store::StoreError;
use rota_store::collection::{Collection, Walkers};
use rota_store::hints::Hint;
use rota_store::seam::{Key, Write, Written};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

use crate::bulk::{self, Copied, is_bulk};
use crate::deeds::{self, Twins};
use crate::inbox::{Inbox, PORTION, PORTION_BYTES, Reply, Request};
use crate::names::has_register;
use crate::notices::Notices;
use crate::numbers::Versions;
use crate::outcome::{Outcome, at};
use crate::prepared::{Deed, Gathered, Prepared, gather};
use crate::select::Sql;
use crate::session::{Address, Session, TRIES, is_crossed, said};

/// How many connections commit side by side.
const SIDE_BY_SIDE: usize = 4;
/// How long a commit may take: a little longer than the server itself lets a statement run;
const PATIENCE: Duration = Duration::from_secs(35);
/// and one that is urgent. A way that leads nowhere any more must not cost a lease, which lasts six seconds.
const URGENT_PATIENCE: Duration = Duration::from_secs(2);

/// How long many new documents are not copied in after one of them was there already: others of the same caller may be, too;
const AFTER_TWINS: Duration = Duration::from_secs(1);
/// and after the server did not take it, for whatever reason.
const AFTER_REFUSAL: Duration = Duration::from_secs(300);

/// The callers' side. The tasks that write end with it.
pub(crate) struct Writer {
    plain: Arc<Inbox>,
    urgent: Arc<Inbox>,
    tasks: Vec<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(address: &Address, versions: &Arc<Versions>, notices: &Notices) -> Self {
        let (plain, urgent) = (Arc::<Inbox>::default(), Arc::<Inbox>::default());
        let scribe = |inbox: &Arc<Inbox>, versions: &Arc<Versions>, patience| Scribe {
            inbox: Arc::clone(inbox),
            address: address.clone(),
            session: None,
            versions: Arc::clone(versions),
            notices: notices.clone(),
            patience,
            uncopied: Vec::new(),
        };
        let scribes = std::iter::repeat_with(|| scribe(&plain, versions, PATIENCE)).take(SIDE_BY_SIDE);
        // Who is urgent waits for nobody, not even for versions.
        let scribes = scribes.chain([scribe(&urgent, &Arc::default(), URGENT_PATIENCE)]);
        let tasks = scribes.map(|scribe| tokio::spawn(scribe.run())).collect();
        Self { plain, urgent, tasks }
    }

    /// Writes in commits of a bounded size; side by side, unless a document is among them more than once. While one is under
    /// way, the next is made ready.
    pub(crate) async fn write(&self, batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        let urgent = batch.iter().all(|write| write.key().collection.urgent);
        let inbox = if urgent { &self.urgent } else { &self.plain };
        let in_order = has_twins(&batch);
        let mut answers = Vec::new();
        let mut under_way = Vec::new();
        for writes in Portions::of(batch) {
            let (reply, answer) = oneshot::channel();
            inbox.put(Request { writes, reply });
            if in_order {
                answers.push(answer.await);
            } else {
                under_way.push(answer);
            }
        }
        answers.extend(join_all(under_way).await);
        let closed = |_| Err(StoreError::unknown("write", "the store was closed"));
        let answers: Vec<_> = answers.into_iter().map(|answer| answer.unwrap_or_else(closed)).collect();
        let in_part = !answers.iter().all(is_undone);
        let mut written = Vec::new();
        for answer in answers {
            written.extend(if in_part { answer.map_err(StoreError::in_part) } else { answer }?);
        }
        Ok(written)
    }
}

/// Whether nothing of it happened.
fn is_undone(answer: &Result<Vec<Written>, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Refused { .. } | StoreError::Unavailable { .. }))
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// A batch in parts, each made ready when its turn comes.
struct Portions {
    left: std::vec::IntoIter<Write>,
    walkers: Walkers,
}

impl Portions {
    fn of(batch: Vec<Write>) -> Self {
        Self { left: batch.into_iter(), walkers: Walkers::default() }
    }
}

impl Iterator for Portions {
    type Item = Vec<Prepared>;

    fn next(&mut self) -> Option<Vec<Prepared>> {
        let (mut portion, mut bytes) = (Vec::new(), 0);
        while portion.len() < PORTION && bytes < PORTION_BYTES {
            let Some(write) = self.left.next() else { break };
            let ready = Prepared::of(write, &mut self.walkers);
            bytes += ready.bytes();
            portion.push(ready);
        }
        (!portion.is_empty()).then_some(portion)
    }
}

fn has_twins(batch: &[Write]) -> bool {
    let mut keys: HashSet<&Key> = HashSet::with_capacity(batch.len());
    !batch.iter().all(|write| keys.insert(write.key()))
}

/// One who writes, with a connection of its own.
struct Scribe {
    inbox: Arc<Inbox>,
    address: Address,
    session: Option<Session>,
    versions: Arc<Versions>,
    notices: Notices,
    patience: Duration,
    /// Of which kinds many new documents are written like few, and until when.
    uncopied: Vec<(&'static Collection, Instant)>,
}

impl Scribe {
    async fn run(mut self) {
        loop {
            let group = self.inbox.next().await;
            let written = AssertUnwindSafe(self.write_each(group)).catch_unwind().await;
            if written.is_err() {
                // Who waited for it is told that nobody knows; the next has a connection of which everything is known.
                tracing::error!("writing broke off; it goes on with what comes next");
                self.session = None;
            }
            self.inbox.done();
        }
    }

    /// Who wants what this login may not do is in nobody's way: each is tried alone then.
    async fn write_each(&mut self, group: Vec<Request>) {
        for request in self.write(group).await {
            self.write(vec![request]).await;
        }
    }

    /// Writes for all of them at once and answers them; gives them back if that is refused to several.
    async fn write(&mut self, group: Vec<Request>) -> Vec<Request> {
        let (writes, replies): (Vec<_>, Vec<_>) =
            group.into_iter().map(|request| (request.writes, request.reply)).unzip();
        let counts: Vec<usize> = writes.iter().map(Vec::len).collect();
        let mut writes: Vec<Prepared> = writes.into_iter().flatten().collect();
        match self.commit_in_time(&writes).await {
            Ok(written) => self.answer(writes, &written, counts, replies),
            Err(StoreError::Refused { .. }) if counts.len() > 1 => {
                let apart = counts.into_iter().zip(replies);
                return apart
                    .map(|(count, reply)| Request { writes: writes.drain(..count).collect(), reply })
                    .collect();
            }
            Err(error) => replies.into_iter().for_each(|reply| _ = reply.send(Err(error.clone()))),
        }
        Vec::new()
    }

    fn answer(&self, writes: Vec<Prepared>, written: &[Written], counts: Vec<usize>, replies: Vec<Reply>) {
        let mut rest = written;
        for (count, reply) in counts.into_iter().zip(replies) {
            let (own, others) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            let _ = reply.send(Ok(own.to_vec()));
            rest = others;
        }
        let applied = writes.into_iter().zip(written);
        let applied = applied.filter(|(_, written)| matches!(written, Written::Applied(_)));
        let hints: Vec<Hint> = applied.filter_map(|(write, _)| write.hint).collect();
        self.notices.tell(hints);
    }

    async fn session(&mut self) -> Result<&Session, StoreError> {
        if self.session.as_ref().is_none_or(|session| session.client.is_closed()) {
            self.session = Some(self.address.connect().await?);
        }
        self.session.as_ref().ok_or_else(|| StoreError::unavailable("write", "there is no connection"))
    }

    /// Who does not answer in time is left: nobody knows what became of it, and the next has another connection.
    async fn commit_in_time(&mut self, writes: &[Prepared]) -> Result<Vec<Written>, StoreError> {
        loop {
            // A new connection has limits of its own: it may have to try one address after the other.
            self.session().await?;
            match timeout(self.patience, self.commit(writes)).await {
                Ok(Ok(None)) => {}
                Ok(Ok(Some(written))) => return Ok(written),
                Ok(Err(error)) => return Err(error),
                Err(_) => break,
            }
        }
        self.session.take().inspect(Session::cut);
        Err(StoreError::unknown("write", "no answer came in time"))
    }

    /// Creates all of many documents, and says under which version; none if nothing of it happened.
    async fn create(&mut self, new: &Gathered<'_>) -> Result<Option<i64>, StoreError> {
        let versions = Arc::clone(&self.versions);
        let session = self.session().await?;
        let version = versions.take(session, 1).await?;
        let copied = bulk::create(session, new, version).await;
        if !matches!(copied, Ok(Copied::Yes | Copied::Crossed)) {
            // It was cut.
            self.session = None;
        }
        let pause = match copied? {
            Copied::Yes => return Ok(Some(version)),
            Copied::Crossed => AFTER_TWINS,
            Copied::Refused => AFTER_REFUSAL,
        };
        self.uncopied.retain(|(collection, _)| *collection != new.collection);
        self.uncopied.push((new.collection, Instant::now() + pause));
        Ok(None)
    }

    /// Whether many new documents are copied in; not for a while after that was in vain.
    fn copies(&self, new: &Gathered<'_>) -> bool {
        let rests = |(collection, until): &(&Collection, Instant)| {
            *collection == new.collection && Instant::now() < *until
        };
        self.address.copies && is_bulk(new) && !self.uncopied.iter().any(rests)
    }

    /// Writes all of it, or nothing. None where that is to be tried again, in another way.
    async fn commit(&mut self, writes: &[Prepared]) -> Result<Option<Vec<Written>>, StoreError> {
        let gathered = gather(writes);
        if let [new] = &gathered[..]
            && self.copies(new)
        {
            let version = self.create(new).await?;
            return Ok(version.map(|version| vec![at(version); writes.len()]));
        }
        let versions = Arc::clone(&self.versions);
        let session = self.session().await?;
        let version = versions.take(session, gathered.len()).await?;
        let several = gathered.iter().any(|of| of.round > 0);
        let (mut tries, mut twins) = (0, Twins::Rare);
        let rows = loop {
            let statements = statements(&gathered, version, twins, several);
            let mut prepared = Vec::with_capacity(statements.len());
            for sql in &statements {
                // Nothing is sent before all of them are understood.
                prepared.push(session.prepare(&sql.text).await.map_err(session.unavailable("write"))?);
            }
            match in_one(session, &statements, &prepared).await {
                Ok(rows) => break rows,
                Err(error) if is_twin(&error) && twins == Twins::Rare => twins = Twins::Expected,
                Err(error) if is_crossed(&error) && tries < TRIES => {
                    tracing::debug!(error = said(&error), "writing again");
                    tries += 1;
                }
                Err(error) => return Err(session.unsure("write")(error)),
            }
        };
        let mut outcome = Outcome::new(writes.len());
        let mut rows = rows.into_iter();
        for (version, of) in (version..).zip(&gathered) {
            let done = rows.next().unwrap_or_default();
            let all_done = outcome.note(of, &done, version);
            let there = if several { rows.next() } else { None };
            if of.deed != Deed::Create && !all_done {
                let missed = outcome.missed(of);
                let there = match there {
                    Some(there) => Some(there),
                    // It is written, and is answered for: what cannot be told is a conflict, which asks to look again.
                    None => session.query(&deeds::which_are_there(&missed)).await.ok(),
                };
                outcome.tell_apart(&missed, there.as_deref());
            }
        }
        Ok(Some(outcome.told()))
    }
}

/// One statement for each kind of write. Where documents are written in several rounds, what is there between them is asked as well:
/// what is there now may not be there after the next.
fn statements(gathered: &[Gathered<'_>], version: i64, twins: Twins, several: bool) -> Vec<Sql> {
    let mut statements = Vec::with_capacity(gathered.len());
    for (version, of) in (version..).zip(gathered) {
        // Elsewhere it is how somebody learns that another was first.
        let twins = if has_register(of.collection) { twins } else { Twins::Expected };
        statements.push(deeds::statement(of, version, twins));
        statements.extend(several.then(|| deeds::which_are_there(of)));
    }
    statements
}

/// Whether somebody else made the same document at the same moment.
fn is_twin(error: &Error) -> bool {
    error.code() == Some(&SqlState::UNIQUE_VIOLATION)
}

async fn ask(session: &Session, sql: &Sql, statement: &Statement) -> Result<Vec<Row>, Error> {
    let values: Vec<&(dyn ToSql + Sync)> = sql.values.iter().map(|value| value as _).collect();
    session.client.query(statement, &values).await
}

/// Sends all statements at once, and waits for their answers. Several are one transaction.
async fn in_one(
    session: &Session,
    statements: &[Sql],
    prepared: &[Statement],
) -> Result<Vec<Vec<Row>>, Error> {
    if let ([sql], [statement]) = (statements, prepared) {
        return Ok(vec![ask(session, sql, statement).await?]);
    }
    let begin = session.client.batch_execute("BEGIN");
    let all = join_all(statements.iter().zip(prepared).map(|(sql, statement)| ask(session, sql, statement)));
    let (begun, asked) = futures::future::join(begin, all).await;
    let rows: Result<Vec<Vec<Row>>, Error> = begun.and_then(|()| asked.into_iter().collect());
    match rows {
        Ok(rows) => {
            session.client.batch_execute("COMMIT").await?;
            Ok(rows)
        }
        Err(error) => {
            let _ = session.client.batch_execute("ROLLBACK").await;
            Err(error)
        }
    }
}
