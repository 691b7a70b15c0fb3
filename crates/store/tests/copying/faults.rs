//! Stores that are away, answer nothing and write late; a copy that is cut off; a source that others write to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rota_store::collection::{JOBS, SETTINGS};
use rota_store::copy::CopyError;
use rota_store::seam::{Key, Store, Write};
use rota_store::{StoreError, settings};
use rota_testkit::faults::{Call, Effect, Fate, FaultyStore, Lot, RandomFate, Rates, Sky, Truth, Weather};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    NOW, assert_same, contents, copy, copying, create, delete, filled, job, memory, purge_all, read, replace,
};

const RATES: Rates = Rates {
    fails: 0.1,
    unanswered: 0.1,
    torn: 0.1,
    late: 0.1,
    late_max: Duration::from_secs(5),
    slow: 0.1,
    slow_max: Duration::from_millis(300),
    lag_max: Duration::ZERO,
    hint_lost: 0.0,
    hint_doubled: 0.0,
    hint_late: 0.0,
    hint_late_max: Duration::ZERO,
};

#[tokio::test(start_paused = true)]
async fn whatever_happens_to_the_calls_the_documents_are_the_same() {
    for seed in 0..12 {
        let (right, truth) = (filled(1_300).await, Truth::new(memory()));
        let source =
            FaultyStore::new(&Truth::new(Arc::clone(&right)), Arc::new(RandomFate::new(seed, RATES)));
        let target = FaultyStore::new(&truth, Arc::new(RandomFate::new(seed + 1_000, RATES)));
        let copied = copy(&source, &target, "1").await.unwrap();
        assert!(copied.is_equal(), "seed {seed}");
        // What was on its way lands, and changes nothing.
        sleep(Duration::from_secs(10)).await;
        assert_same(&*right, &**truth.store()).await;
        let next = truth.store().sequence("jobs", 1).await.unwrap().start;
        assert!(next > 42, "seed {seed}: {next}");
    }
}

/// Lets so many documents be written, and nothing after them.
struct Until {
    left: AtomicUsize,
    written: AtomicUsize,
}

impl Until {
    fn new(left: usize) -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(left), written: AtomicUsize::new(0) })
    }
}

impl Fate for Until {
    fn of(&self, call: &Call<'_>) -> Lot {
        let Call::Write(batch) = call else { return Lot::CALM };
        let left = self.left.load(Ordering::Relaxed);
        if batch.len() > left {
            return Lot { effect: Effect::Refused, ..Lot::CALM };
        }
        self.left.store(left - batch.len(), Ordering::Relaxed);
        self.written.fetch_add(batch.len(), Ordering::Relaxed);
        Lot::CALM
    }
}

#[tokio::test]
async fn a_copy_that_was_cut_off_goes_on_near_where_it_was() {
    let (source, truth) = (filled(9_000).await, Truth::new(memory()));
    let cut_off = copy(&*source, &FaultyStore::new(&truth, Until::new(7_000)), "1").await.unwrap_err();
    assert!(matches!(cut_off, CopyError::Store(StoreError::Refused { .. })), "{cut_off}");
    let target = truth.store();
    let unfinished = settings::open(Arc::clone(target), NOW.to_date()).await.unwrap_err().to_string();
    assert!(unfinished.contains("a copy of here that was not finished; give the same"), "{unfinished}");

    let rest = Until::new(usize::MAX);
    let copied = copy(&*source, &FaultyStore::new(&truth, rest.clone()), "2").await.unwrap();
    assert!(copied.is_equal() && copied.resumed);
    assert_same(&*source, &**target).await;
    let written = rest.written.load(Ordering::Relaxed);
    assert!((2_000..6_000).contains(&written), "{written}");
    let node = settings::open(Arc::clone(target), NOW.to_date()).await.unwrap();
    assert_eq!(node, settings::open(Arc::clone(&source), NOW.to_date()).await.unwrap());
}

/// What was copied before the copy was cut off is not what is there now.
#[tokio::test]
async fn a_source_that_changed_before_the_copy_went_on_is_the_one_that_counts() {
    for cut_off_after in [3, 1_004, 5_010, 6_600] {
        let (source, truth) = (filled(6_500).await, Truth::new(memory()));
        let cut_off = copy(&*source, &FaultyStore::new(&truth, Until::new(cut_off_after)), "1").await;
        assert_eq!(cut_off.is_err(), cut_off_after < 6_600, "{cut_off_after}");
        replace(&*source, job(3).0, &json!({"jobName": "changed"})).await;
        delete(&*source, job(4).0).await;
        delete(&*source, job(5).0).await;
        purge_all(&*source, &JOBS).await;
        delete(&*source, job(6).0).await;
        create(&*source, Key::new(&JOBS, "1"), &json!({"jobName": "once hidden"})).await;
        create(&*source, Key::new(&JOBS, "a"), &json!({"jobName": "before all others"})).await;
        let target = truth.store();
        let copied = copy(&*source, &**target, "2").await.unwrap();
        assert!(copied.is_equal(), "{cut_off_after}: {:?}", copied.collections);
        assert_same(&*source, &**target).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stays_away_is_given_up_after_a_minute() {
    let (source, truth) = (filled(10).await, Truth::new(memory()));
    let weather = Arc::new(Weather::new(1, Rates::default(), Sky::Refused));
    let target = FaultyStore::new(&truth, weather);
    let began = Instant::now();
    let error = copy(&*source, &target, "1").await.unwrap_err();
    assert!(matches!(error, CopyError::Store(StoreError::Unavailable { .. })), "{error}");
    assert!((50..=61).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

/// Every call takes a while.
pub(crate) struct Slow;

impl Fate for Slow {
    fn of(&self, _call: &Call<'_>) -> Lot {
        Lot { before: Duration::from_millis(10), ..Lot::CALM }
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_in_use_is_copied_as_it_is_found() {
    let (right, target) = (filled(3_000).await, memory());
    let source = FaultyStore::new(&Truth::new(Arc::clone(&right)), Arc::new(Slow));
    let writing = async {
        for nth in 0.. {
            sleep(Duration::from_millis(1)).await;
            replace(&*right, job(nth % 100).0, &json!({"jobName": format!("written {nth}")})).await;
        }
    };
    let mut copying = copying(&source, &*target, "1");
    copying.in_use = true;
    let mut nobody = |_| {};
    let copied = tokio::select! {
        copied = copying.run(&mut nobody) => copied.unwrap(),
        () = writing => panic!("it writes for ever"),
    };
    assert!(!copied.is_equal());
    let jobs = copied.collections.iter().find(|one| one.collection.name == "jobs").unwrap();
    assert!((1..=100).contains(&jobs.differing), "{}", jobs.differing);
    assert_eq!(jobs.named.len(), 5.min(usize::try_from(jobs.differing).unwrap()));
    let marker = read(&*target, Key::new(&SETTINGS, "copy")).await.unwrap();
    assert_eq!(marker.body["finished"], true, "it can be used");

    // At rest the same copy brings over what is missing.
    let copied = copy(&*right, &*target, "2").await.unwrap();
    assert!(copied.is_equal() && copied.resumed);
    assert_same(&*right, &*target).await;
}

/// A store that keeps something else than it was given.
#[tokio::test]
async fn what_still_differs_is_told_and_the_copy_is_not_finished() {
    let (source, target) = (filled(20).await, Forgetful(memory()));
    let copied = copy(&*source, &target, "1").await.unwrap();
    assert!(!copied.is_equal());
    let differing: Vec<_> = copied.collections.iter().filter(|one| !one.is_equal()).collect();
    assert_eq!(differing.len(), 1);
    assert_eq!((differing[0].collection.name, differing[0].differing), ("jobs", 1));
    assert_eq!(differing[0].named, [job(7).0]);
    let store: Arc<dyn Store> = Arc::clone(&target.0);
    settings::open(store, NOW.to_date()).await.unwrap_err();
    assert_eq!(contents(&*source).await.len(), contents(&*target.0).await.len());
}

struct Forgetful(Arc<dyn Store>);

#[async_trait::async_trait]
impl Store for Forgetful {
    fn promises(&self) -> rota_store::Promises {
        self.0.promises()
    }

    async fn write(&self, mut batch: Vec<Write>) -> Result<Vec<rota_store::seam::Written>, StoreError> {
        for write in &mut batch {
            if let Write::Create { key, body } | Write::Replace { key, body, .. } = write
                && *key == job(7).0
            {
                body.shift_remove("jobName");
            }
        }
        self.0.write(batch).await
    }

    async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<rota_store::seam::Document>>, StoreError> {
        self.0.read(keys).await
    }

    async fn find(&self, query: rota_store::query::Query) -> Result<rota_store::query::Page, StoreError> {
        self.0.find(query).await
    }

    async fn count(
        &self,
        query: rota_store::query::Query,
        by: Option<&'static str>,
    ) -> Result<Vec<rota_store::seam::Tally>, StoreError> {
        self.0.count(query, by).await
    }

    async fn claim(
        &self,
        claim: rota_store::seam::Claim,
    ) -> Result<Vec<rota_store::seam::Document>, StoreError> {
        self.0.claim(claim).await
    }

    async fn sequence(&self, name: &'static str, n: u64) -> Result<std::ops::Range<u64>, StoreError> {
        self.0.sequence(name, n).await
    }

    fn changes(&self, collection: &'static rota_store::collection::Collection) -> rota_store::hints::Changes {
        self.0.changes(collection)
    }
}
