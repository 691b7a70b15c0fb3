//! Those who wait for a job to end. One listener serves all of them: a hint wakes whoever waits for that job.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rota_model::ids::JobId;
use rota_store::hints::{Changes, Hint, News};
use tokio::sync::Notify;

/// The order of this map decides nothing: it is only looked into by id.
type ById = HashMap<String, Arc<Notify>>;

#[derive(Clone, Default)]
pub(crate) struct Waiters {
    by_id: Arc<Mutex<ById>>,
}

impl Waiters {
    /// Something to be woken by when the job changes. It stays registered for as long as somebody holds it.
    pub(crate) fn register(&self, id: JobId) -> Arc<Notify> {
        Arc::clone(self.lock().entry(id.to_string()).or_default())
    }

    /// Forgets a job that nobody else waits for.
    pub(crate) fn leave(&self, id: JobId, mine: Arc<Notify>) {
        let mut by_id = self.lock();
        drop(mine);
        let id = id.to_string();
        if by_id.get(&id).is_some_and(|notify| Arc::strong_count(notify) == 1) {
            by_id.remove(&id);
        }
    }

    /// Passes hints on until the store closes.
    pub(crate) async fn run(self, mut changes: Changes) {
        loop {
            match changes.next().await {
                News::Of(hints) => self.wake(&hints),
                News::Lost => self.lock().values().for_each(|notify| notify.notify_waiters()),
                News::Closed => return,
            }
        }
    }

    fn wake(&self, hints: &[Hint]) {
        let by_id = self.lock();
        if by_id.is_empty() {
            return;
        }
        for notify in hints.iter().filter_map(|hint| by_id.get(&hint.id)) {
            notify.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ById> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
