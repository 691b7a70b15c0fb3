//! How tests wait for what a store promises to show later. A store that promises to show it at once is asked once.

use std::fmt::Debug;
use std::panic::Location;
use std::time::Duration;

use rota_store::query::Query;
use tokio::time::{Instant, sleep, timeout};

use super::Subject;
use super::verbs::{brief, total, walk};

/// Long after any promise. Who waits this long waits for something that never comes.
pub(super) const GENEROUS: Duration = Duration::from_secs(30);

/// Asks until the answer is the expected one: at once, or when the lag of finds is over.
#[track_caller]
pub(super) fn eventually<T: PartialEq + Debug>(
    store: &Subject,
    expected: T,
    ask: impl AsyncFn() -> T,
) -> impl Future<Output = ()> {
    let lag = store.promises().find_lag;
    within(lag, lag, expected, ask, Location::caller())
}

/// The same for a search for words, which may lag by more.
#[track_caller]
pub(super) fn eventually_worded<T: PartialEq + Debug>(
    store: &Subject,
    expected: T,
    ask: impl AsyncFn() -> T,
) -> impl Future<Output = ()> {
    let promises = store.promises();
    let lag = promises.find_lag.max(promises.text_lag);
    within(lag, promises.find_lag, expected, ask, Location::caller())
}

/// Asks for a good while longer than the lag, and rests once the answer came.
async fn within<T: PartialEq + Debug>(
    lag: Duration,
    rest: Duration,
    expected: T,
    ask: impl AsyncFn() -> T,
    at: &'static Location<'static>,
) {
    let deadline = Instant::now() + if lag.is_zero() { lag } else { lag + GENEROUS };
    loop {
        let seen = ask().await;
        if seen == expected {
            // Whoever looked just now may have been ahead of others.
            return sleep(rest).await;
        }
        if Instant::now() >= deadline {
            let (expected, seen) = (brief(&expected), brief(&seen));
            panic!("{at}: expected\n  {expected}\nand saw, with a lag of {lag:?},\n  {seen}");
        }
        sleep((lag / 8).clamp(Duration::from_millis(1), Duration::from_millis(250))).await;
    }
}

/// Waits until a list shows this many documents, each as it is now; then it can be counted on.
#[track_caller]
pub(super) fn caught_up(store: &Subject, query: Query, count: usize) -> impl Future<Output = ()> {
    let at = Location::caller();
    async move {
        let behind = async || {
            let found = walk(store, query.clone()).await;
            let keys = found.iter().map(|document| document.key.clone()).collect();
            let read = store.read(keys).await.unwrap();
            let mut pairs = found.iter().zip(&read);
            let differing =
                pairs.find(|(found, read)| Some(*found) != read.as_ref()).map(|pair| brief(&pair));
            (found.len(), total(store, query.clone()).await, differing)
        };
        let lag = store.promises().find_lag;
        within(lag, lag, (count, count as u64, None), behind, at).await;
    }
}

/// What surely comes, and is waited for.
#[track_caller]
pub(super) fn awaited<T>(coming: impl Future<Output = T>) -> impl Future<Output = T> {
    let at = Location::caller();
    async move {
        let came = timeout(GENEROUS, coming).await;
        came.unwrap_or_else(|_| panic!("{at}: it did not come"))
    }
}
