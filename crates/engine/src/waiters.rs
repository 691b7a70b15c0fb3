//! Those who wait for a job to end. One listener serves all of them: a hint wakes whoever waits for that job.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rota_model::ids::JobId;
use rota_store::hints::{Changes, Hint, News};
use tokio::sync::Notify;

/// The order of this map decides nothing: it is only looked into by id.
type ById = HashMap<String, Arc<Notify>>;

/// One who waits. A caller that goes away takes its place along.
pub(crate) struct Waiter {
    waiters: Waiters,
    id: String,
    pub(crate) changed: Arc<Notify>,
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut by_id = self.waiters.lock();
        // The map holds one, and this is the other: nobody else waits for the job.
        if Arc::strong_count(&self.changed) == 2 {
            by_id.remove(&self.id);
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct Waiters {
    by_id: Arc<Mutex<ById>>,
}

impl Waiters {
    /// Something to be woken by when the job changes, for as long as it is held.
    pub(crate) fn register(&self, id: JobId) -> Waiter {
        let id = id.to_string();
        let changed = Arc::clone(self.lock().entry(id.clone()).or_default());
        Waiter { waiters: self.clone(), id, changed }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_goes_away_leaves_nothing_behind() {
        let (waiters, id) = (Waiters::default(), JobId::derived(&["a job"]));
        let (first, second) = (waiters.register(id), waiters.register(id));
        drop(first);
        assert_eq!(waiters.lock().len(), 1);
        drop(second);
        assert!(waiters.lock().is_empty());
    }
}
