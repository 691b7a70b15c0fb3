//! The embedded store keeps the contract.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use std::sync::Arc;

use rota_store::Store;
use rota_store_sqlite::SqliteStore;
use rota_store_sqlite::holder::Holder;

fn fresh() -> (Arc<dyn Store>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let holder = Holder::take(folder.path(), "a test").unwrap();
    (Arc::new(SqliteStore::open(folder.path(), holder).unwrap()), folder)
}

rota_testkit::store_contract!(fresh);
