//! A store whose finds lag keeps the contract, too: what search engines promise is enough for it. By how much they lag
//! is thrown by dice, so that a find may show less than the one before it.

use std::sync::Arc;
use std::time::Duration;

use rota_store::Store;
use rota_store::memory::MemoryStore;
use rota_testkit::faults::{FaultyStore, RandomFate, Rates, Truth};

const LAG: Duration = Duration::from_millis(20);

fn fresh() -> (Arc<dyn Store>, ()) {
    let truth = Truth::lagging(Arc::new(MemoryStore::new()), LAG);
    let fate = RandomFate::new(1, Rates { lag_max: LAG, ..Rates::default() });
    (Arc::new(FaultyStore::new(&truth, Arc::new(fate))), ())
}

rota_testkit::store_contract!(fresh);
