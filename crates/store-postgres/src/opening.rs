//! Whether the database is ours to use, and how it is made and brought up to date: by whichever node comes first, while the
//! others wait.

use std::time::Duration;

use rota_store::StoreError;
use tokio::time::sleep;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::schema::{
    FACTS, Preparation, READER, READER_OF_UPGRADED, READS, VERSION, additions, preparations, statements,
};
use crate::session::{self, Session, said};
use crate::strangers;

/// Each statement sees what was written before it got its locks, whatever the server's default is.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
/// How long others are left alone who use what is to be changed.
const PAUSE: Duration = Duration::from_millis(500);
/// How often the first statement is tried.
const TRIES: usize = 5;

/// Everything there is to make, as a person would run it in an empty place.
pub fn schema() -> String {
    wholly(&script(std::iter::once(FACTS.to_owned()).chain(statements()), READER))
}

/// What brings an older version up to date, as a person would run it.
pub fn upgrade() -> String {
    let before: String =
        preparations().into_iter().map(|before| format!("{};\n", before.statement)).collect();
    format!("{before}{}", wholly(&script(additions().into_iter(), READER_OF_UPGRADED)))
}

/// All of it or nothing, whatever it is run with.
fn wholly(script: &str) -> String {
    format!("{BEGIN};\n{script}COMMIT;\n")
}

fn script(statements: impl Iterator<Item = String>, reader: i64) -> String {
    statements.chain([remember(reader)]).map(|statement| format!("{statement};\n")).collect()
}

fn remember(reader: i64) -> String {
    format!(
        "INSERT INTO facts (name, value) VALUES ('schema', {VERSION}), ('reader', {reader}) \
         ON CONFLICT (name) DO UPDATE SET value = greatest(facts.value, excluded.value)"
    )
}

/// Makes what is not there yet, and changes nothing that a newer Rota made. Says what the schema is called in which it stands.
pub(crate) async fn open(session: &Session) -> Result<String, StoreError> {
    let failed = |error: Error| refused(&error, &session.user);
    let (name, found) = look(session).await?;
    if is_current(found)? {
        return Ok(name);
    }
    if found.is_none() {
        strangers::refuse(session, &name).await?;
        make_facts(session).await.map_err(failed)?;
    }
    if found.is_some_and(|(found, _)| found > 0) {
        for preparation in preparations() {
            prepare(session, &preparation).await.map_err(failed)?;
        }
    }
    let mut tries = 1;
    loop {
        match make_in_one(session).await {
            Err(error) if session::is_crossed(&error) && tries < TRIES => tries += 1,
            made => break made.map_err(failed)?,
        }
    }
    // Whoever was first may have known more.
    is_current(version(session).await.map_err(failed)?).map(|_| name)
}

/// Opens what is there to read it, if anything is. Nothing is made and nothing is brought up to date: older nodes may be at work
/// on it, and whoever only looks need not be one who may change tables.
pub(crate) async fn open_as_it_is(session: &Session) -> Result<Option<String>, StoreError> {
    let (name, found) = look(session).await?;
    is_current(found)?;
    match found {
        Some((found, _)) if found < READS => {
            let why = format!(
                "its schema is {found}, and this Rota reads {READS} at least: bring it up to date first, with what `rota store \
                 schema --upgrade` prints"
            );
            Err(StoreError::refused("open the store", why))
        }
        found => Ok(found.map(|_| name)),
    }
}

/// What the schema is called, and which version of ours is there.
async fn look(session: &Session) -> Result<(String, Option<(i64, i64)>), StoreError> {
    let user = &*session.user;
    let failed = |error: Error| refused(&error, user);
    let row = session.client.query_one("SELECT current_schema()", &[]).await.map_err(failed)?;
    let Ok(Some(name)) = row.try_get::<_, Option<String>>(0) else {
        let why = format!(
            "no schema of the search path is there that {user} may use: make it, name another in the address, or grant it"
        );
        return Err(StoreError::refused("open the store", why));
    };
    let found = version(session).await.map_err(failed)?;
    stands_in(session, &name, found.is_some()).await?;
    Ok((name, found))
}

/// What is found further along the search path is not what would be made, and not what would be brought up to date.
async fn stands_in(session: &Session, name: &str, is_there: bool) -> Result<(), StoreError> {
    let query = "SELECT n.nspname::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace \
                 WHERE c.oid = to_regclass('facts')";
    let row = session.client.query_opt(query, &[]).await.map_err(|error| refused(&error, &session.user))?;
    match row.and_then(|row| row.try_get::<_, String>(0).ok()).filter(|there| is_there && there != name) {
        Some(there) => {
            let why = format!(
                "its tables stand in the schema {there}, and the search path begins with {name}: name {there} first, as in \
                 `?options=-csearch_path%3D{there}`, or drop the schema {name} if it is empty"
            );
            Err(StoreError::refused("open the store", why))
        }
        None => Ok(()),
    }
}

/// Whether nothing is to be made. A newer version is as good as ours if it can be read by us.
fn is_current(found: Option<(i64, i64)>) -> Result<bool, StoreError> {
    match found {
        Some((found, reader)) if reader > VERSION => {
            let why = format!(
                "its schema is {found} and needs a Rota that knows {reader} at least; this one knows {VERSION}: run a newer Rota"
            );
            Err(StoreError::refused("open the store", why))
        }
        found => Ok(found.is_some_and(|(found, _)| found >= VERSION)),
    }
}

/// Waits for those who use the table, as long as it takes, but never for long at a time: whoever comes meanwhile waits behind us.
async fn prepare(session: &Session, preparation: &Preparation) -> Result<(), Error> {
    loop {
        let row = session.client.query_one(preparation.is_needed.as_str(), &[]).await?;
        if !row.try_get::<_, bool>(0)? {
            return Ok(());
        }
        session.client.batch_execute("BEGIN; SET LOCAL lock_timeout = '2s'").await?;
        match session.client.batch_execute(&preparation.statement).await {
            Ok(()) => return session.client.batch_execute("COMMIT").await,
            Err(error) => {
                session.client.batch_execute("ROLLBACK").await?;
                if error.code() != Some(&SqlState::LOCK_NOT_AVAILABLE) {
                    return Err(error);
                }
                tracing::info!("waiting for those who read a table that is to be brought up to date");
                sleep(PAUSE).await;
            }
        }
    }
}

/// All of it or nothing, however long it takes to wait for others and to build what is missing.
async fn make_in_one(session: &Session) -> Result<(), Error> {
    session.client.batch_execute(&format!("{BEGIN}; SET LOCAL statement_timeout = 0")).await?;
    let made = make(session).await;
    session.client.batch_execute(if made.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    made
}

/// Two who make it at the same moment trip over one another.
async fn make_facts(session: &Session) -> Result<(), Error> {
    let mut tries = 1;
    loop {
        match session.client.batch_execute(FACTS).await {
            Err(error) if is_crossed(&error) && tries < TRIES => tries += 1,
            done => return done,
        }
    }
}

fn is_crossed(error: &Error) -> bool {
    let crossed = [SqlState::UNIQUE_VIOLATION, SqlState::DUPLICATE_TABLE, SqlState::DUPLICATE_OBJECT];
    error.code().is_some_and(|code| crossed.contains(code))
}

/// The version of what is there, and of the oldest that understands it.
async fn version(session: &Session) -> Result<Option<(i64, i64)>, Error> {
    let row = session.client.query_one("SELECT to_regclass('facts') IS NOT NULL", &[]).await?;
    if !row.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let rows = session.client.query("SELECT name, value FROM facts", &[]).await?;
    let fact = |wanted: &str| {
        let held = rows.iter().find(|row| row.try_get::<_, String>(0).is_ok_and(|name| name == wanted));
        held.and_then(|row| row.try_get::<_, i64>(1).ok())
    };
    Ok(fact("schema").zip(fact("reader")))
}

/// Whoever inserts the row first makes the rest; the others wait for it.
async fn make(session: &Session) -> Result<(), Error> {
    let lock = "INSERT INTO facts (name, value) VALUES ('schema', 0) ON CONFLICT (name) DO UPDATE \
                SET value = facts.value RETURNING value";
    let held: i64 = session.client.query_one(lock, &[]).await?.try_get(0)?;
    let (missing, reader) = match held {
        0 => (statements(), READER),
        ..VERSION => (additions(), READER_OF_UPGRADED),
        _ => return Ok(()),
    };
    session.client.batch_execute(&script(missing.into_iter(), reader)).await
}

fn refused(error: &Error, user: &str) -> StoreError {
    let (code, said) = (error.code().map_or("", SqlState::code), said(error));
    let why = match code {
        "42501" => format!(
            "{user} may not do this ({said}): let somebody who may run what `rota store schema` prints, or `rota store schema \
             --upgrade` where an older Rota made the tables; or make {user} a member of one of the roles that `rota store schema \
             --grants` makes"
        ),
        // What is there is not what we would have made.
        _ if code.starts_with("42") => {
            format!(
                "tables of somebody else have the names of Rota's ({said}): name a database or a schema of its own"
            )
        }
        _ => return StoreError::unavailable("open the store", said),
    };
    StoreError::refused("open the store", why)
}
