//! Connections: how one is made, what is prepared on it, and how a caller comes by one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::TryStreamExt as _;
use rota_store::StoreError;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use tokio_postgres::config::Host;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Error, Notification, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::refusals::{NoConnection, refused};
use crate::select::Sql;
use crate::{server, tls};

/// How long it may take to reach one of the machines behind a name.
const REACH: Duration = Duration::from_secs(3);
/// How long a connection may take to come about, whoever is there: for each host that the address names.
const CONNECT: Duration = Duration::from_secs(5);
/// After this a server that acknowledges nothing is given up.
const SILENCE: Duration = Duration::from_secs(10);
/// Who gives up a statement after this takes the way to the server for broken, and trusts none of the connections that are there.
const SUSPECT: Duration = Duration::from_secs(1);
/// How often something is tried that others were in the way of.
pub(crate) const TRIES: usize = 20;
/// How many statements are kept prepared on a connection.
const PREPARED: usize = 500;
/// What holds on every connection: what was acknowledged is on disk, whatever the server's default, and nobody waits for ever. Who
/// stops in the middle of a transaction, as a node that freezes, is in nobody's way by the time at which others take its jobs over.
const SETTINGS: &str = "SELECT set_config('synchronous_commit', 'on', false) \
    WHERE current_setting('synchronous_commit') = 'off'; \
    SET statement_timeout = '30s'; SET idle_in_transaction_session_timeout = '3s'; SET timezone = 'UTC'; \
    SET client_min_messages = warning";
/// How statements are to be planned, on engines that can be told. Everything that is asked for often is found by an index, document
/// by document: a table that is not analysed yet, and seems small, is not read through for want of knowing better, for then that
/// is done for ever after. And that a statement is to end whose caller has left, where the server can notice.
const PLANNING: &str = "SELECT set_config(wanted.name, wanted.value, false) FROM (VALUES ('jit', 'off'), \
    ('random_page_cost', '1.1'), ('enable_seqscan', 'off'), ('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'), \
    ('client_connection_check_interval', '1s')) AS wanted (name, value) JOIN pg_settings AS known ON known.name = wanted.name \
    WHERE known.name <> 'client_connection_check_interval' OR version() LIKE '%linux%'";

/// Where the database is.
#[derive(Clone)]
pub(crate) struct Address {
    config: Config,
    tls: MakeRustlsConnect,
    user: Arc<str>,
    /// Whether many new documents may be copied in: a pooler in between may not bear it.
    pub(crate) copies: bool,
}

impl Address {
    /// Reads `postgres://user:password@host/database?…`.
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let (url, copies) = read_copy(url)?;
        let (url, trust) = tls::read(&url)?;
        let mut config: Config = url.parse().map_err(|error: Error| {
            let why =
                std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            let form = "postgres://USER:PASSWORD@HOST/DATABASE, with %2F for / and the like in a password";
            StoreError::refused("read the address of the store", format!("{why}; it must be {form}"))
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(StoreError::refused("read the address of the store", "it names no host"));
        }
        config.connect_timeout(REACH).keepalives_idle(SILENCE).tcp_user_timeout(SILENCE);
        if config.get_application_name().is_none() {
            config.application_name("rota");
        }
        let tls = MakeRustlsConnect::new(tls::client(config.get_ssl_mode(), trust)?);
        let user = config.get_user().unwrap_or("this role").into();
        Ok(Self { config, tls, user, copies })
    }

    /// The first connection: whoever gave us the address is told what is wrong with it.
    pub(crate) async fn first(&self) -> Result<Session, StoreError> {
        let session = self.open(None).await.map_err(|none| none.at_opening(&self.place()))?;
        let checked = timeout(CONNECT, server::check(&session)).await;
        checked.map_err(|_| NoConnection::Silence.at_opening(&self.place()))??;
        Ok(session)
    }

    /// Another connection. What is wrong by now may be put right again.
    pub(crate) async fn connect(&self) -> Result<Session, StoreError> {
        self.open(None).await.map_err(NoConnection::later)
    }

    /// A connection, and what others notify it of.
    pub(crate) async fn listen(&self) -> Result<(Session, mpsc::Receiver<Notification>), StoreError> {
        let (told, hears) = mpsc::channel(1_024);
        Ok((self.open(Some(told)).await.map_err(NoConnection::later)?, hears))
    }

    /// Where it is, as people say it.
    fn place(&self) -> String {
        let (hosts, ports) = (self.config.get_hosts(), self.config.get_ports());
        let place = |(nth, host): (usize, &Host)| {
            let port = ports.get(nth).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(host) => format!("{host}:{port}"),
                Host::Unix(folder) => folder.display().to_string(),
            }
        };
        hosts.iter().enumerate().map(place).collect::<Vec<_>>().join(", ")
    }

    /// A server that says nothing is not waited for.
    async fn open(&self, told: Option<mpsc::Sender<Notification>>) -> Result<Session, NoConnection> {
        let hosts = u32::try_from(self.config.get_hosts().len()).unwrap_or(1).max(1);
        let opened = timeout(CONNECT * hosts, self.open_in_time(told)).await;
        opened.map_err(|_| NoConnection::Silence)?.map_err(NoConnection::Failed)
    }

    async fn open_in_time(&self, told: Option<mpsc::Sender<Notification>>) -> Result<Session, Error> {
        let (client, mut connection) = self.config.connect(self.tls.clone()).await?;
        let task = tokio::spawn(async move {
            let mut messages =
                std::pin::pin!(futures::stream::poll_fn(move |context| connection.poll_message(context)));
            while let Some(message) = futures::StreamExt::next(&mut messages).await {
                match (message, &told) {
                    // Who cannot keep up looks for itself: hints may be lost.
                    (Ok(AsyncMessage::Notification(notice)), Some(told)) => _ = told.try_send(notice),
                    (Ok(_), _) => {}
                    (Err(error), _) => {
                        tracing::debug!(error = said(&error), "a connection to PostgreSQL ended");
                        return;
                    }
                }
            }
        });
        client.batch_execute(&format!("{SETTINGS}; {PLANNING}")).await?;
        let (user, connection) = (Arc::clone(&self.user), task.abort_handle());
        Ok(Session { client, user, prepared: Mutex::default(), connection, under_way: Mutex::default() })
    }
}

/// The address without `copy`, which the client library does not know, and whether it is on.
fn read_copy(url: &str) -> Result<(String, bool), StoreError> {
    let Some((before, query)) = url.split_once('?') else { return Ok((url.to_owned(), true)) };
    let (told, kept): (Vec<&str>, Vec<&str>) =
        query.split('&').partition(|option| option.starts_with("copy="));
    let copies = match told.last() {
        None | Some(&"copy=on") => true,
        Some(&"copy=off") => false,
        Some(_) => {
            return Err(StoreError::refused("read the address of the store", "copy must be on or off"));
        }
    };
    let sign = if kept.is_empty() { "" } else { "?" };
    Ok((format!("{before}{sign}{}", kept.join("&")), copies))
}

/// What PostgreSQL says, without what it says around it.
pub(crate) fn said(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => std::error::Error::source(error)
            .map_or_else(|| error.to_string(), |why| format!("{error}: {why}")),
    }
}

/// Whether it was undone because somebody else was in the way: it may simply be done again.
pub(crate) fn is_crossed(error: &Error) -> bool {
    matches!(error.code(), Some(&SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE))
}

/// One connection.
pub(crate) struct Session {
    pub(crate) client: Client,
    /// Who signed in, as far as the address says so.
    pub(crate) user: Arc<str>,
    prepared: Mutex<HashMap<String, Statement>>,
    /// The task that reads and writes for the client. It would go on to the end of what was asked, though nobody wants it any more.
    connection: AbortHandle,
    /// Since when something is under way that has not ended.
    under_way: Mutex<Option<Instant>>,
}

impl Session {
    pub(crate) async fn prepare(&self, text: &str) -> Result<Statement, Error> {
        let known = self.prepared().get(text).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(text).await?;
        let mut prepared = self.prepared();
        if prepared.len() >= PREPARED {
            prepared.clear();
        }
        prepared.insert(text.to_owned(), statement.clone());
        Ok(statement)
    }

    /// The same, unless it is to be planned each time.
    pub(crate) async fn prepare_for(&self, sql: &Sql) -> Result<Statement, Error> {
        if sql.planned_anew { self.client.prepare(&sql.text).await } else { self.prepare(&sql.text).await }
    }

    /// Does something, and knows if it was left half-way: who gives up waiting leaves a connection that is busy.
    pub(crate) async fn wholly<T>(&self, work: impl Future<Output = T>) -> T {
        *self.under_way() = Some(Instant::now());
        let done = work.await;
        *self.under_way() = None;
        done
    }

    /// Wants no more of what is under way.
    pub(crate) fn leave(&self) {
        *self.under_way() = Some(Instant::now());
    }

    /// Ends the connection, whatever is under way on it.
    pub(crate) fn cut(&self) {
        self.connection.abort();
    }

    fn under_way(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn query(&self, sql: &Sql) -> Result<Vec<Row>, Error> {
        let statement = self.prepare(&sql.text).await?;
        let values: Vec<&(dyn ToSql + Sync)> = sql.values.iter().map(|value| value as _).collect();
        self.client.query(&statement, &values).await
    }

    /// One statement that writes, again while others are in its way. Rows are read as they come, while the server goes on with the
    /// next.
    pub(crate) async fn write<T>(
        &self,
        what: &'static str,
        sql: &Sql,
        read: impl Fn(Row) -> T,
    ) -> Result<Vec<T>, StoreError> {
        // What cannot be prepared is not sent either.
        let statement = self.prepare(&sql.text).await.map_err(self.unavailable(what))?;
        let mut tries = 1;
        loop {
            let done = async {
                let rows = self.client.query_raw(&statement, &sql.values).await?;
                rows.map_ok(&read).try_collect().await
            };
            match done.await {
                Err(error) if is_crossed(&error) && tries < TRIES => tries += 1,
                done => return done.map_err(self.unsure(what)),
            }
        }
    }

    fn prepared(&self) -> std::sync::MutexGuard<'_, HashMap<String, Statement>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a failure means to who only read: nothing happened.
    pub(crate) fn unavailable(&self, what: &'static str) -> impl Fn(Error) -> StoreError {
        move |error| {
            refused(what, &self.user, &error).unwrap_or_else(|| StoreError::unavailable(what, said(&error)))
        }
    }

    /// What a failure means to who wrote. Where the server says why, it did nothing, unless it was about to end or does not
    /// know; where it says nothing, nobody knows.
    pub(crate) fn unsure(&self, what: &'static str) -> impl Fn(Error) -> StoreError {
        move |error| {
            let did_nothing = error.as_db_error().is_some_and(|said| {
                said.parsed_severity() == Some(Severity::Error) && !leaves_doubt(said.code())
            });
            if did_nothing { self.unavailable(what)(error) } else { StoreError::unknown(what, said(&error)) }
        }
    }
}

/// Whether it may have happened all the same.
fn leaves_doubt(code: &SqlState) -> bool {
    let is_lost = code.code().starts_with("08");
    is_lost || [SqlState::ADMIN_SHUTDOWN, SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN].contains(code)
}

/// Connections that callers share, each for one statement at a time. None spans several: who is dropped half-way leaves
/// nothing open.
pub(crate) struct Pool {
    address: Address,
    permits: Semaphore,
    free: Mutex<Vec<Session>>,
}

/// A connection on loan.
pub(crate) struct Lent<'a> {
    session: Option<Session>,
    pool: &'a Pool,
    _permit: tokio::sync::SemaphorePermit<'a>,
}

impl Pool {
    /// Connections of which there is one already.
    pub(crate) fn new(address: Address, first: Session, most: usize) -> Self {
        Self { address, permits: Semaphore::new(most), free: Mutex::new(vec![first]) }
    }

    pub(crate) async fn lend(&self) -> Result<Lent<'_>, StoreError> {
        let closed = |_| StoreError::unavailable("reach PostgreSQL", "the store is closed");
        let permit = self.permits.acquire().await.map_err(closed)?;
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let session = match free.filter(|session| !session.client.is_closed()) {
            Some(session) => session,
            None => self.address.connect().await?,
        };
        Ok(Lent { session: Some(session), pool: self, _permit: permit })
    }

    /// One statement of somebody who only reads.
    pub(crate) async fn read(&self, what: &'static str, sql: &Sql) -> Result<Vec<Row>, StoreError> {
        let lent = self.lend().await?;
        lent.wholly(lent.query(sql)).await.map_err(lent.unavailable(what))
    }

    /// One statement of somebody who writes.
    pub(crate) async fn write(&self, what: &'static str, sql: &Sql) -> Result<(), StoreError> {
        let lent = self.lend().await?;
        lent.wholly(lent.write(what, sql, drop)).await.map(drop)
    }
}

impl std::ops::Deref for Lent<'_> {
    type Target = Session;

    #[expect(clippy::expect_used, reason = "it is there until it is dropped")]
    fn deref(&self) -> &Session {
        self.session.as_ref().expect("a connection on loan")
    }
}

/// What is busy does not come back: the next to have it would wait for what nobody wants any more.
impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut free = self.pool.free.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(session) = self.session.take() else { return };
        let since = *session.under_way();
        match since {
            None => free.extend(Some(session).filter(|session| !session.client.is_closed())),
            Some(since) => {
                session.cut();
                if since.elapsed() > SUSPECT {
                    free.clear();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node that freezes there leaves what it has locked; others take its jobs over after seven seconds.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_stops_in_the_middle_of_a_transaction_is_soon_in_nobodys_way() {
        let address = Address::parse(&rota_testkit::postgres::fresh()).unwrap();
        let (stops, goes_on) = (address.first().await.unwrap(), address.first().await.unwrap());
        stops.client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
        stops.client.batch_execute("BEGIN; INSERT INTO t VALUES (1)").await.unwrap();
        let same = goes_on.client.batch_execute("INSERT INTO t VALUES (1)");
        timeout(Duration::from_secs(6), same).await.unwrap().unwrap();
        assert!(stops.client.batch_execute("COMMIT").await.is_err());
    }

    #[test]
    fn an_address_says_whether_documents_are_copied_in() {
        for (url, expected) in [
            ("postgres://db/rota", ("postgres://db/rota", true)),
            ("postgres://db/rota?copy=off", ("postgres://db/rota", false)),
            ("postgres://db/rota?a=1&copy=on&b=2", ("postgres://db/rota?a=1&b=2", true)),
        ] {
            assert_eq!(read_copy(url).unwrap(), (expected.0.to_owned(), expected.1));
        }
        assert!(read_copy("postgres://db/rota?copy=perhaps").is_err());
    }
}
