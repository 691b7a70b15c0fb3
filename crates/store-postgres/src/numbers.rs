//! Numbers that nobody was given before: those of sequences, and the versions of documents.

use std::ops::Range;
use std::time::Duration;

use rota_store::StoreError;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::select::Sql;
use crate::session::Session;
use crate::value::Param;

/// Versions are reserved in blocks: a statement knows its version before it is sent.
const BLOCK: u64 = 1_000_000;
/// Everybody who writes waits for whoever asks for more.
const PATIENCE: Duration = Duration::from_secs(5);

/// Moves a sequence on; the first number is 1.
pub(crate) async fn take(session: &Session, name: &str, n: u64) -> Result<Range<u64>, StoreError> {
    let mut sql = Sql::default();
    let (name, n_value) = (sql.value(Param::Text(name.to_owned())), sql.value(Param::Int(n.cast_signed())));
    sql.text = format!(
        "INSERT INTO sequences AS s (name, next) VALUES ({name}, 1 + {n_value}::bigint) \
         ON CONFLICT (name) DO UPDATE SET next = s.next + {n_value}::bigint RETURNING next"
    );
    let rows = session.write("take numbers", &sql, |row| row.try_get(0).ok()).await?;
    let next: Option<i64> = rows.into_iter().next().flatten();
    let end =
        next.ok_or_else(|| StoreError::unavailable("take numbers", "no number was given"))?.unsigned_abs();
    Ok(end - n..end)
}

/// The versions of this process. They rise, and no other process has them: a document made anew never has a version that
/// its predecessor had.
#[derive(Default)]
pub(crate) struct Versions(Mutex<Range<u64>>);

impl Versions {
    /// The first of so many. Where there are too few, more are asked for on the connection that will need them: who writes waits
    /// for no other.
    pub(crate) async fn take(&self, session: &Session, count: usize) -> Result<i64, StoreError> {
        let count = u64::try_from(count).unwrap_or(BLOCK).min(BLOCK);
        let mut left = self.0.lock().await;
        if left.end - left.start < count {
            // What could not be had for certain is lost, and nothing else.
            let taken = timeout(PATIENCE, take(session, "versions", BLOCK)).await;
            let silent = |_| {
                // What was asked may still be under way on it.
                session.cut();
                Err(StoreError::unavailable("take versions", "no answer came in time"))
            };
            *left = taken.unwrap_or_else(silent).map_err(|error| match error {
                StoreError::Refused { .. } => error,
                error => StoreError::unavailable("take versions", error),
            })?;
        }
        let first = left.start;
        left.start += count;
        Ok(first.cast_signed())
    }
}
