//! How hints go astray between the store and one node: each is handed on after the spans that fate gives, or not at all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rota_store::Store;
use rota_store::collection::{Collection, SETTINGS, USERS};
use rota_store::hints::{Changes, Hint, HintSender, News};
use rota_store::seam::Key;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::fate::Fate;

/// More than any listener is kept waiting with.
const FLOOD: usize = 2_048;

/// One for each collection that somebody listens to. They end with their node.
#[derive(Default)]
pub(super) struct Relays(Mutex<BTreeMap<&'static str, Relay>>);

struct Relay {
    hints: HintSender,
    task: AbortHandle,
}

impl Relays {
    pub(super) fn listen(
        &self,
        collection: &'static Collection,
        store: &Arc<dyn Store>,
        fate: &Arc<dyn Fate>,
    ) -> Changes {
        let mut relays = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let relay = relays.entry(collection.name).or_insert_with(|| {
            let hints = HintSender::default();
            let handing_on = hand_on(collection, store.changes(collection), hints.clone(), Arc::clone(fate));
            Relay { hints, task: tokio::spawn(handing_on).abort_handle() }
        });
        relay.hints.listen(collection)
    }
}

impl Drop for Relays {
    fn drop(&mut self) {
        for relay in self.0.lock().unwrap_or_else(PoisonError::into_inner).values() {
            relay.task.abort();
        }
    }
}

async fn hand_on(
    collection: &'static Collection,
    mut changes: Changes,
    hints: HintSender,
    fate: Arc<dyn Fate>,
) {
    loop {
        match changes.next().await {
            News::Of(commit) => hand_on_commit(&commit, &hints, &*fate),
            News::Lost => flood(collection, &hints),
            News::Closed => return,
        }
    }
}

/// What arrives at once arrives together; the rest one by one.
fn hand_on_commit(commit: &[Hint], hints: &HintSender, fate: &dyn Fate) {
    let mut at_once = Vec::new();
    for hint in commit {
        for span in fate.of_hint(hint) {
            if span.is_zero() {
                at_once.push(hint.clone());
            } else {
                tokio::spawn(send_later(hints.clone(), hint.clone(), span));
            }
        }
    }
    hints.send(at_once);
}

async fn send_later(hints: HintSender, hint: Hint, span: Duration) {
    sleep(span).await;
    hints.send(vec![hint]);
}

/// The relay itself lost hints, and so its listeners must learn that some were lost: with more news of another
/// collection than they are kept.
fn flood(collection: &'static Collection, hints: &HintSender) {
    let other = if collection == &USERS { &SETTINGS } else { &USERS };
    for _ in 0..FLOOD {
        hints.send(vec![Hint { key: Key::new(other, "lost"), is_new: false }]);
    }
}
