//! Those who wait for a job to end. One listener serves all of them: a hint wakes whoever waits for that job.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rota_model::ids::JobId;
use rota_store::hints::{Changes, Hint, News};
use tokio::sync::Notify;

/// In the order of ids, so that who is woken first does not depend on chance.
type ById = BTreeMap<String, Arc<Notify>>;

/// One who waits. A caller that goes away takes its place along.
pub(crate) struct Waiter {
    waiters: Waiters,
    id: String,
    /// There until dropped.
    changed: Option<Arc<Notify>>,
}

impl Waiter {
    /// Until the job changes; counted from the call, not from the first poll.
    pub(crate) fn changed(&self) -> impl Future<Output = ()> + use<> {
        let notified = self.changed.clone().map(Notify::notified_owned);
        async move {
            match notified {
                Some(notified) => notified.await,
                None => std::future::pending().await,
            }
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut by_id = self.waiters.lock();
        // Ours goes while the map is ours: then the map's own is the last if nobody else waits.
        self.changed = None;
        if by_id.get(&self.id).is_some_and(|notify| Arc::strong_count(notify) == 1) {
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
        let changed = Some(Arc::clone(self.lock().entry(id.clone()).or_default()));
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
        for notify in hints.iter().filter_map(|hint| by_id.get(&hint.key.id)) {
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
