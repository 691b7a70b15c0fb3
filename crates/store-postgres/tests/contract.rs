//! A real PostgreSQL keeps the contract.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use std::sync::Arc;

use rota_store::Store;
use rota_store_postgres::PostgresStore;
use rota_testkit::postgres;

fn fresh() -> (Arc<dyn Store>, ()) {
    let url = postgres::fresh();
    let open = async move { PostgresStore::open(&url).await.unwrap() };
    let store = tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(open));
    (Arc::new(store), ())
}

rota_testkit::store_contract!(fresh);
