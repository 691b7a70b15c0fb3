//! Connections: how one is made, what is prepared on it, and how a caller comes by one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rota_store::StoreError;
use tokio::sync::{Semaphore, mpsc};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Error, Notification, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::select::Sql;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);
/// After this a server that acknowledges nothing is given up.
const SILENCE: Duration = Duration::from_secs(10);
/// How many statements are kept prepared on a connection.
const PREPARED: usize = 500;
/// What holds on every connection. What was acknowledged is on disk, whatever the server's default; and tables that are not
/// analysed yet are not read through for want of knowing better.
const SETTINGS: &str = "SELECT set_config('synchronous_commit', 'on', false) \
    WHERE current_setting('synchronous_commit') = 'off'; \
    SET statement_timeout = '30s'; SET idle_in_transaction_session_timeout = '30s'; SET jit = off; \
    SET random_page_cost = 1.1; SET timezone = 'UTC'; SET client_min_messages = warning";

/// Where the database is.
#[derive(Clone)]
pub(crate) struct Address {
    config: Config,
    tls: MakeRustlsConnect,
}

impl Address {
    /// Reads `postgres://user:password@host/database?…`.
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let mut config: Config = url.parse().map_err(|error: Error| {
            let why =
                std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            StoreError::refused("read the address of the store", why)
        })?;
        config.connect_timeout(CONNECT).keepalives_idle(SILENCE).tcp_user_timeout(SILENCE);
        if config.get_application_name().is_none() {
            config.application_name("rota");
        }
        let tls = MakeRustlsConnect::new(tls(config.get_ssl_mode())?);
        Ok(Self { config, tls })
    }

    /// Who signs in, as far as the address says so.
    pub(crate) fn user(&self) -> Option<&str> {
        self.config.get_user()
    }

    pub(crate) async fn connect(&self) -> Result<Session, StoreError> {
        self.open(None).await
    }

    /// A connection, and what others notify it of.
    pub(crate) async fn listen(&self) -> Result<(Session, mpsc::Receiver<Notification>), StoreError> {
        let (told, hears) = mpsc::channel(1_024);
        Ok((self.open(Some(told)).await?, hears))
    }

    async fn open(&self, told: Option<mpsc::Sender<Notification>>) -> Result<Session, StoreError> {
        let failed = |error: Error| StoreError::unavailable("reach PostgreSQL", said(&error));
        let (client, mut connection) = self.config.connect(self.tls.clone()).await.map_err(failed)?;
        tokio::spawn(async move {
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
        client.batch_execute(SETTINGS).await.map_err(failed)?;
        Ok(Session { client, prepared: Mutex::default() })
    }
}

fn tls(mode: SslMode) -> Result<ClientConfig, StoreError> {
    let mut roots = RootCertStore::empty();
    if mode != SslMode::Disable {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| StoreError::unavailable("set up TLS", error))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// What PostgreSQL says, without what it says around it.
pub(crate) fn said(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => std::error::Error::source(error)
            .map_or_else(|| error.to_string(), |why| format!("{error}: {why}")),
    }
}

/// What a failure means to who only read: nothing happened.
pub(crate) fn unavailable(what: &'static str) -> impl Fn(Error) -> StoreError {
    move |error| StoreError::unavailable(what, said(&error))
}

/// What a failure means to who wrote. Where the server says why, it did nothing, unless it was about to end; where it says
/// nothing, nobody knows.
pub(crate) fn unsure(what: &'static str) -> impl Fn(Error) -> StoreError {
    move |error| {
        let refused = error.as_db_error().is_some_and(|said| {
            said.parsed_severity() == Some(Severity::Error) && *said.code() != SqlState::ADMIN_SHUTDOWN
        });
        if refused {
            StoreError::unavailable(what, said(&error))
        } else {
            StoreError::unknown(what, said(&error))
        }
    }
}

/// Whether it was undone because somebody else was in the way: it may simply be done again.
pub(crate) fn is_crossed(error: &Error) -> bool {
    matches!(error.code(), Some(&SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE))
}

/// One connection.
pub(crate) struct Session {
    pub(crate) client: Client,
    prepared: Mutex<HashMap<String, Statement>>,
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

    pub(crate) async fn query(&self, sql: &Sql) -> Result<Vec<Row>, Error> {
        let statement = self.prepare(&sql.text).await?;
        let values: Vec<&(dyn ToSql + Sync)> = sql.values.iter().map(|value| value as _).collect();
        self.client.query(&statement, &values).await
    }

    fn prepared(&self) -> std::sync::MutexGuard<'_, HashMap<String, Statement>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    pub(crate) fn new(address: Address, most: usize) -> Self {
        Self { address, permits: Semaphore::new(most), free: Mutex::default() }
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
        lent.query(sql).await.map_err(unavailable(what))
    }

    /// One statement of somebody who writes.
    pub(crate) async fn write(&self, what: &'static str, sql: &Sql) -> Result<Vec<Row>, StoreError> {
        let lent = self.lend().await?;
        // What cannot be prepared is not sent either.
        lent.prepare(&sql.text).await.map_err(unavailable(what))?;
        loop {
            match lent.query(sql).await {
                Err(error) if is_crossed(&error) => {}
                done => return done.map_err(unsure(what)),
            }
        }
    }
}

impl std::ops::Deref for Lent<'_> {
    type Target = Session;

    #[expect(clippy::expect_used, reason = "it is there until it is dropped")]
    fn deref(&self) -> &Session {
        self.session.as_ref().expect("a connection on loan")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let back = self.session.take().filter(|session| !session.client.is_closed());
        self.pool.free.lock().unwrap_or_else(PoisonError::into_inner).extend(back);
    }
}
