//! Tables of somebody else that have the names of ours. They are found before anything is made, so that nothing is.

use rota_store::StoreError;
use rota_store::collection::ALL;

use crate::session::Session;

/// What has our names in a schema without facts: where these are, who made them made the rest as well, maybe just now.
const WITHOUT_FACTS: &str = "SELECT c.relname::text FROM pg_class AS c JOIN pg_namespace AS s ON s.oid = c.relnamespace \
    WHERE s.nspname = $1::text AND c.relname::text = ANY($2::text[]) AND NOT EXISTS (SELECT FROM pg_class AS f \
    WHERE f.relnamespace = s.oid AND f.relname = 'facts') ORDER BY c.relname";

/// Facts that are not such as ours.
const OTHER_FACTS: &str = "SELECT 'facts' WHERE to_regclass('facts') IS NOT NULL AND 2 > (SELECT count(*) FROM pg_attribute \
    WHERE attrelid = to_regclass('facts') AND (attname = 'name' AND atttypid = 'text'::regtype \
    OR attname = 'value' AND atttypid = 'bigint'::regtype))";

/// Refuses a schema that is somebody else's.
pub(crate) async fn refuse(session: &Session, schema: &str) -> Result<(), StoreError> {
    let failed = session.unavailable("open the store");
    let mut found = session.client.query(WITHOUT_FACTS, &[&schema, &names()]).await.map_err(&failed)?;
    found.extend(session.client.query(OTHER_FACTS, &[]).await.map_err(&failed)?);
    let found: Vec<String> = found.iter().filter_map(|row| row.try_get(0).ok()).collect();
    if found.is_empty() {
        return Ok(());
    }
    let why = format!(
        "in the schema {schema} stands what Rota has not made and would call so itself ({}): name a database or a schema of \
         its own",
        found.join(", ")
    );
    Err(StoreError::refused("open the store", why))
}

/// What our tables and views are called.
fn names() -> Vec<String> {
    let own = ["sequences", "counts"].map(str::to_owned);
    let of_collection = |name: &str| [name.to_owned(), format!("{name}.rows"), format!("{name}.words")];
    own.into_iter().chain(ALL.iter().flat_map(|collection| of_collection(collection.name))).collect()
}
