//! Whether the database is ours to use, and how it is made and brought up to date: by whichever node comes first, while the
//! others wait.

use rota_store::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::schema::{FACTS, READER, VERSION, statements};
use crate::session::{Session, said};

/// How often the first statement is tried: two who make a table at the same moment trip over one another.
const TRIES: usize = 5;

/// Everything there is to make, as a person would run it.
pub fn schema() -> String {
    let statements = std::iter::once(FACTS.to_owned()).chain(statements()).chain([remember()]);
    statements.map(|statement| format!("{statement};\n")).collect()
}

fn remember() -> String {
    format!(
        "INSERT INTO facts (name, value) VALUES ('schema', {VERSION}), ('reader', {READER}) \
         ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    )
}

/// Makes what is not there yet. Says what the schema is called in which it stands.
pub(crate) async fn open(session: &Session, user: Option<&str>) -> Result<String, StoreError> {
    let failed = |error: Error| refused(&error, user);
    let row = session.client.query_one("SELECT current_schema()", &[]).await.map_err(failed)?;
    let Ok(Some(name)) = row.try_get::<_, Option<String>>(0) else {
        let why = "no schema of the search path is there: make it, or name another in the address";
        return Err(StoreError::refused("open the store", why));
    };
    if version(session).await.map_err(failed)? == Some((VERSION, READER)) {
        return Ok(name);
    }
    let mut tries = 0;
    while let Err(error) = session.client.batch_execute(FACTS).await {
        let crossed = matches!(error.code(), Some(&SqlState::UNIQUE_VIOLATION | &SqlState::DUPLICATE_TABLE));
        tries += 1;
        if !crossed || tries == TRIES {
            return Err(failed(error));
        }
    }
    session.client.batch_execute("BEGIN").await.map_err(failed)?;
    let made = make(session).await;
    let end = if made.is_ok() { "COMMIT" } else { "ROLLBACK" };
    session.client.batch_execute(end).await.map_err(failed)?;
    made.map_err(failed)?;
    match version(session).await.map_err(failed)? {
        Some((_, reader)) if reader <= VERSION => Ok(name),
        found => {
            let found = found.map_or(0, |(version, _)| version);
            let why = format!("its schema is {found}, and this Rota knows {VERSION}: run a newer Rota");
            Err(StoreError::refused("open the store", why))
        }
    }
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
    if held == 0 {
        let all = statements().into_iter().chain([remember()]).collect::<Vec<_>>().join(";\n");
        session.client.batch_execute(&all).await?;
    }
    Ok(())
}

fn refused(error: &Error, user: Option<&str>) -> StoreError {
    if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) {
        let who = user.unwrap_or("this role");
        let why = format!(
            "{who} may not make tables ({}); let somebody who may run what `rota store schema` prints",
            said(error)
        );
        return StoreError::refused("open the store", why);
    }
    StoreError::unavailable("open the store", said(error))
}
