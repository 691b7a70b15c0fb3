//! Whether the server is one that can be used. Other engines that speak its protocol say older versions than they are, and are
//! let in: what they cannot do shows soon enough.

use rota_store::StoreError;
use tokio_postgres::SimpleQueryMessage;

use crate::session::Session;

/// The first version in which everything works that is asked of it.
const LEAST: u32 = 15;

pub(crate) async fn check(session: &Session) -> Result<(), StoreError> {
    let asked = "SELECT version(), current_setting('server_version_num')";
    let answer = session.client.simple_query(asked).await.map_err(session.unavailable("open the store"))?;
    let row = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let column = |nth| row.and_then(|row| row.get(nth)).unwrap_or_default();
    match too_old(column(0), column(1)) {
        None => Ok(()),
        Some(found) => {
            let why = format!("it is in PostgreSQL {found}, and Rota needs {LEAST} or later");
            Err(StoreError::refused("open the store", why))
        }
    }
}

/// The version, if it is a PostgreSQL that is too old.
fn too_old(version: &str, number: &str) -> Option<u32> {
    let others = ["-YB-", "CockroachDB", "Redshift", "Materialize"];
    let is_postgres =
        version.starts_with("PostgreSQL ") && !others.iter().any(|other| version.contains(other));
    let major = number.parse::<u32>().ok()? / 10_000;
    (is_postgres && major < LEAST).then_some(major)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_postgresql_is_refused_and_nothing_else() {
        for (version, number, old) in [
            ("PostgreSQL 14.9 (Debian 14.9-1) on x86_64-pc-linux-gnu", "140009", Some(14)),
            ("PostgreSQL 9.6.24 on x86_64-pc-linux-gnu", "90624", Some(9)),
            ("PostgreSQL 15.0 on x86_64-pc-linux-gnu", "150000", None),
            ("PostgreSQL 18devel on x86_64-pc-linux-gnu", "180000", None),
            ("CockroachDB CCL v23.1.0 (x86_64-pc-linux-gnu)", "130000", None),
            ("PostgreSQL 11.2-YB-2.20.0.0-b0 on x86_64-pc-linux-gnu", "110002", None),
            ("", "", None),
        ] {
            assert_eq!(too_old(version, number), old, "{version}");
        }
    }
}
