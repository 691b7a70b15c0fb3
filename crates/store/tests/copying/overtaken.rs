//! Two copies into one store: the later one goes on, and the other leaves alone whatever comes then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rota_store::collection::{JOBS, STATE};
use rota_store::copy::CopyError;
use rota_store::seam::{Key, Store};
use rota_store::settings;
use rota_testkit::faults::{Call, Fate, FaultyStore, Lot, Truth};
use serde_json::json;
use tokio::time::sleep;

use crate::faults::Slow;
use crate::{NOW, assert_same, contents, copy, create, delete, filled, job, memory, replace};

#[tokio::test(start_paused = true)]
async fn of_two_copies_into_one_store_the_later_goes_on() {
    let (source, truth) = (filled(8_000).await, Truth::new(memory()));
    let slow = FaultyStore::new(&truth, Arc::new(Slow));
    let second = async {
        sleep(Duration::from_millis(400)).await;
        copy(&*source, &**truth.store(), "2").await
    };
    let (first, second) = tokio::join!(copy(&*source, &slow, "1"), second);
    assert!(matches!(first, Err(CopyError::Overtaken)), "{first:?}");
    assert!(second.unwrap().is_equal());
    assert_same(&*source, &**truth.store()).await;
}

/// Sleeps for an hour before it looks into the store for the nth time.
struct Asleep {
    before: usize,
    looks: AtomicUsize,
}

impl Asleep {
    fn before(nth: usize) -> Arc<Self> {
        Arc::new(Self { before: nth, looks: AtomicUsize::new(0) })
    }

    fn has_slept(&self) -> bool {
        self.looks.load(Ordering::Relaxed) > self.before
    }
}

impl Fate for Asleep {
    fn of(&self, call: &Call<'_>) -> Lot {
        let looks = matches!(call, Call::Read(_) | Call::Find(_));
        if looks && self.looks.fetch_add(1, Ordering::Relaxed) == self.before {
            return Lot { before: Duration::from_secs(3_600), ..Lot::CALM };
        }
        Lot::CALM
    }
}

/// What a node does that has begun on the copy: something new, something changed, something gone.
async fn work_on(store: &Arc<dyn Store>) {
    settings::open(Arc::clone(store), NOW.to_date()).await.unwrap();
    create(&**store, Key::new(&JOBS, "new"), &json!({"jobName": "new"})).await;
    replace(&**store, job(3).0, &json!({"jobName": "changed"})).await;
    delete(&**store, Key::new(&STATE, "1")).await;
}

/// Wherever it slept while another copy ended and a node began: what that node did stays as it is.
#[tokio::test(start_paused = true)]
async fn a_copy_that_was_overtaken_in_its_sleep_changes_nothing_any_more() {
    for nth in 0.. {
        let (source, truth, fate) = (filled(5).await, Truth::new(memory()), Asleep::before(nth));
        let sleeper = FaultyStore::new(&truth, fate.clone());
        let target = truth.store();
        let meanwhile = async {
            sleep(Duration::from_secs(60)).await;
            copy(&*source, &**target, "2").await.unwrap();
            work_on(target).await;
            contents(&**target).await
        };
        let (slept, worked) = tokio::join!(copy(&*source, &sleeper, "1"), meanwhile);
        if !fate.has_slept() {
            assert!(slept.is_ok() && nth > 50, "{nth}: {slept:?}");
            return;
        }
        let is_told = matches!(slept, Err(CopyError::Overtaken | CopyError::NotEmpty(_)));
        assert!(is_told, "{nth}: {slept:?}");
        assert_eq!(contents(&**target).await, worked, "{nth}");
    }
}
