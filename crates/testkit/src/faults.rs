//! A store to which things happen, for the simulator and whoever wants to see a caller stand up to them.
//!
//! [`FaultyStore`] stands before a store that is right and asks its [`Fate`] at each call what becomes of it: it may
//! come late, fail before anything happened, happen without being answered, happen in part, or happen long after the
//! caller gave up or died. Lists, counts and claims may look at the past. Hints may be lost, doubled and late.
//!
//! ```text
//!   node 1 ─ FaultyStore ─ fate ┐
//!   node 2 ─ FaultyStore ─ fate ┼─ Truth ─┬─ the store that is right: writes, reads, numbers
//!   node 3 ─ FaultyStore ─ fate ┘         └─ its past: what finds, counts and claims see
//! ```
//!
//! Each node has a [`FaultyStore`] and a fate of its own; what they share is a [`Truth`]. Nothing here asks for the time
//! or for chance: spans are waited for by tokio's clock, which a test may have paused, and chance is the fate's. On a
//! runtime of one thread the same fates give the same run.
//!
//! - [`fate`]: what may happen; one fate that is calm, and one that throws dice from a seed
//! - [`weather`]: a fate that changes: rough, calm, or cut off from the store
//! - [`caller`]: who made a call, for those below who take down what became of it
//! - [`truth`]: the store that is right, and what it held a while ago in [`past`]
//! - [`relay`]: how hints go astray

pub mod caller;
pub mod fate;
mod past;
mod relay;
pub mod truth;
pub mod weather;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rota_store::collection::Collection;
use rota_store::hints::Changes;
use rota_store::query::{Page, Query};
use rota_store::seam::{Claim, Document, Key, Promises, Store, Tally, Write, Written};
use rota_store::{StoreError, limits};
use tokio::time::sleep;

pub use fate::{Call, Calm, Effect, Fate, Lot, RandomFate, Rates};
pub use truth::Truth;
pub use weather::{Sky, Weather};

use relay::Relays;

/// What one node sees of the store.
pub struct FaultyStore {
    truth: Arc<Truth>,
    fate: Arc<dyn Fate>,
    relays: Relays,
}

impl FaultyStore {
    pub fn new(truth: &Arc<Truth>, fate: Arc<dyn Fate>) -> Self {
        Self { truth: Arc::clone(truth), fate, relays: Relays::default() }
    }

    /// A store that does everything right, and shows it only after this span to whoever finds, counts or claims.
    pub fn lagging(store: Arc<dyn Store>, lag: Duration) -> Self {
        Self::new(&Truth::lagging(store, lag), Arc::new(Calm { lag }))
    }

    /// A call that changes something. Once it is under way it is not taken back when the caller goes.
    async fn act<T: Send + 'static>(
        &self,
        what: &str,
        lot: Lot,
        act: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let unknown = || Err(StoreError::unknown(what, "the answer was lost"));
        let act = caller::named(act);
        if let Effect::Late(span) = lot.effect {
            tokio::spawn(async move {
                wait(lot.before + lot.after + span).await;
                act.await
            });
            wait(lot.before + lot.after).await;
            return unknown();
        }
        wait(lot.before).await;
        if let Some(error) = failed(what, lot.effect) {
            wait(lot.after).await;
            return Err(error);
        }
        let answer = under_way(act).await;
        wait(lot.after).await;
        if lot.effect == Effect::Done { answer } else { answer.and_then(|_| unknown()) }
    }

    /// A call that changes nothing: whatever goes wrong with it, it did not happen.
    async fn look<T>(
        &self,
        what: &str,
        lot: Lot,
        look: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        wait(lot.before).await;
        if lot.effect != Effect::Done {
            wait(lot.after).await;
            return Err(StoreError::unavailable(what, "the store could not be reached"));
        }
        let answer = look.await;
        wait(lot.after).await;
        answer
    }
}

/// What the caller of a call is told of which nothing happens.
fn failed(what: &str, effect: Effect) -> Option<StoreError> {
    match effect {
        Effect::Fails => Some(StoreError::unavailable(what, "the store could not be reached")),
        Effect::Refused => Some(StoreError::refused(what, "the store does not take it")),
        Effect::Done | Effect::Unanswered | Effect::Torn(_) | Effect::Late(_) => None,
    }
}

async fn wait(span: Duration) {
    if !span.is_zero() {
        sleep(span).await;
    }
}

/// Goes on even if nobody waits for it any more.
async fn under_way<T: Send + 'static>(
    act: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    let ended = tokio::spawn(act).await;
    ended.unwrap_or_else(|error| Err(StoreError::unknown("wait for the store", error)))
}

#[async_trait]
impl Store for FaultyStore {
    fn promises(&self) -> Promises {
        self.truth.promises()
    }

    async fn write(&self, mut batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        limits::check_writes(&batch)?;
        let lot = self.fate.of(&Call::Write(&batch));
        let what = batch.first().map_or("write".to_owned(), |write| format!("write {}", write.key()));
        if let Effect::Torn(bits) = lot.effect {
            let mut nth = 0..;
            batch.retain(|_| nth.next().is_some_and(|nth| bits >> (nth % 64) & 1 == 1));
        }
        let truth = Arc::clone(&self.truth);
        self.act(&what, lot, async move { truth.write(batch).await }).await
    }

    async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<Document>>, StoreError> {
        limits::check_keys(&keys)?;
        let lot = self.fate.of(&Call::Read(&keys));
        self.look("read", lot, self.truth.store().read(keys)).await
    }

    async fn find(&self, query: Query) -> Result<Page, StoreError> {
        limits::check_query(&query)?;
        let lot = self.fate.of(&Call::Find(&query));
        let what = format!("find in {}", query.collection.name);
        self.look(&what, lot, self.truth.find(query, lot.lag)).await
    }

    async fn count(&self, query: Query, by: Option<&'static str>) -> Result<Vec<Tally>, StoreError> {
        limits::check_count(&query, by)?;
        let lot = self.fate.of(&Call::Count(&query));
        let what = format!("count {}", query.collection.name);
        self.look(&what, lot, self.truth.count(query, by, lot.lag)).await
    }

    async fn claim(&self, mut claim: Claim) -> Result<Vec<Document>, StoreError> {
        limits::check_claim(&claim)?;
        let lot = self.fate.of(&Call::Claim(&claim));
        let what = format!("claim from {}", claim.collection.name);
        if let Effect::Torn(bits) = lot.effect {
            claim.max = claim.max.min(bits.count_ones() as usize);
        }
        let truth = Arc::clone(&self.truth);
        self.act(&what, lot, async move { truth.claim(claim, lot.lag).await }).await
    }

    async fn sequence(&self, name: &'static str, n: u64) -> Result<Range<u64>, StoreError> {
        limits::check_sequence(name, n)?;
        let lot = self.fate.of(&Call::Sequence(name, n));
        let store = Arc::clone(self.truth.store());
        self.act(&format!("take numbers from {name}"), lot, async move { store.sequence(name, n).await })
            .await
    }

    /// Must be called inside a runtime.
    fn changes(&self, collection: &'static Collection) -> Changes {
        self.relays.listen(collection, self.truth.store(), &self.fate)
    }
}
