//! The in-memory store keeps the contract.

use std::sync::Arc;

use rota_store::Store;
use rota_store::memory::MemoryStore;

fn fresh() -> (Arc<dyn Store>, ()) {
    (Arc::new(MemoryStore::new()), ())
}

rota_testkit::store_contract!(fresh);
