//! Whole runs by dice: the same for the same seed, and right whatever happens.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rota_store::collection::JOBS;
use rota_store::memory::MemoryStore;
use rota_store::seam::{Store, Write};
use rota_testkit::faults::{Call, Effect, Fate, FaultyStore, Lot, RandomFate, Rates, Truth};
use tokio::time::{Instant, sleep};

use crate::script::{claim, create, job, jobs, ms, numbers};

const ROUGH: Rates = Rates {
    fails: 0.1,
    unanswered: 0.1,
    torn: 0.1,
    late: 0.1,
    late_max: Duration::from_secs(5),
    slow: 0.3,
    slow_max: ms(200),
    lag_max: ms(800),
    hint_lost: 0.1,
    hint_doubled: 0.1,
    hint_late: 0.3,
    hint_late_max: ms(300),
};

/// Three nodes create, claim, give back, list and listen. Everything that any of them sees, with its instant.
async fn run(seed: u64) -> Vec<String> {
    let began = Instant::now();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let truth = Truth::lagging(Arc::new(MemoryStore::new()), ms(1_000));
    let mut nodes = Vec::new();
    for node in 0..3u8 {
        let fate = Arc::new(RandomFate::new(seed * 10 + u64::from(node), ROUGH));
        let store = Arc::new(FaultyStore::new(&truth, fate));
        let log = Arc::clone(&seen);
        let say = move |what: String| {
            log.lock().unwrap().push(format!("{:?} node {node}: {what}", began.elapsed()));
        };
        let (mut changes, hear) = (store.changes(&JOBS), say.clone());
        let ears = tokio::spawn(async move {
            loop {
                let news = changes.next().await;
                hear(format!("{news:.60?}"));
            }
        });
        nodes.push(tokio::spawn(async move {
            live(&*store, node, say).await;
            ears.abort();
        }));
    }
    for node in nodes {
        node.await.unwrap();
    }
    sleep(Duration::from_secs(10)).await;
    let end = truth.store().find(jobs()).await.unwrap();
    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
    seen.extend(
        end.documents.iter().map(|found| format!("{} {:?} {:?}", found.key, found.version, found.body)),
    );
    seen
}

async fn live(store: &dyn Store, node: u8, say: impl Fn(String)) {
    for step in 0..40 {
        let number = i64::from(node) * 100 + step;
        say(format!("{:?}", store.write(vec![create(number), create(number + 50)]).await));
        match store.claim(claim(3, node)).await {
            Ok(taken) => say(format!("took {:?}", numbers(&taken))),
            Err(error) => say(error.to_string()),
        }
        say(format!("{:?}", store.find(jobs()).await.map(|page| numbers(&page.documents))));
        say(format!("{:?}", store.sequence("jobs", 2).await));
        sleep(ms(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_run() {
    let first = run(1).await;
    assert!(first.iter().any(|line| line.contains("may or may not have happened")));
    assert!(first.iter().any(|line| line.contains("could not be reached")));
    assert!(first.iter().any(|line| line.contains("took [")));
    let again = run(1).await;
    let differs = first.iter().zip(&again).position(|(one, other)| one != other);
    assert_eq!(differs.map(|nth| (&first[nth], &again[nth])), None);
    assert_eq!(first.len(), again.len());
    assert_ne!(run(2).await, first);
}

/// No job is claimed twice under one epoch, whatever fails, comes late or lags; and none is lost.
#[tokio::test(start_paused = true)]
async fn claims_are_exclusive_whatever_happens() {
    for seed in 0..5 {
        let truth = Truth::lagging(Arc::new(MemoryStore::new()), ms(1_000));
        let batch: Vec<Write> = (0..60).map(create).collect();
        FaultyStore::new(&truth, Arc::new(RandomFate::new(0, Rates::default()))).write(batch).await.unwrap();
        let mut nodes = Vec::new();
        for node in 0..4u8 {
            let store =
                FaultyStore::new(&truth, Arc::new(RandomFate::new(seed * 10 + u64::from(node), ROUGH)));
            nodes.push(tokio::spawn(async move {
                let mut mine = Vec::new();
                for _ in 0..60 {
                    let taken = store.claim(claim(4, node)).await.unwrap_or_default();
                    mine.extend(taken.into_iter().map(|taken| (taken.key.id, taken.body["epoch"].as_i64())));
                    sleep(ms(100)).await;
                }
                mine
            }));
        }
        let mut all = Vec::new();
        for node in nodes {
            all.extend(node.await.unwrap());
        }
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "seed {seed}: {all:?}");
        assert!(all.len() > 20, "seed {seed}: {}", all.len());
        sleep(Duration::from_secs(10)).await;
        let stored = truth.store().find(jobs()).await.unwrap().documents;
        assert_eq!(numbers(&stored), (0..60).collect::<Vec<_>>());
        assert!(stored.iter().all(|found| found.body.get("epoch").is_none_or(|epoch| *epoch == 1)));
    }
}

#[test]
fn dice_fall_as_often_as_they_should() {
    let fate = RandomFate::new(7, Rates { lag_max: ms(0), ..ROUGH });
    let batch: Vec<Write> = (0..4).map(create).collect();
    let lots: Vec<Lot> = (0..4_000).map(|_| fate.of(&Call::Write(&batch))).collect();
    let share = |is: fn(&Lot) -> bool| lots.iter().filter(|lot| is(lot)).count();
    for count in [
        share(|lot| lot.effect == Effect::Fails),
        share(|lot| lot.effect == Effect::Unanswered),
        share(|lot| matches!(lot.effect, Effect::Torn(_))),
        share(|lot| matches!(lot.effect, Effect::Late(span) if span <= ROUGH.late_max)),
    ] {
        assert!((300..500).contains(&count), "{count} of 4,000");
    }
    assert!((1_000..1_400).contains(&share(|lot| !lot.before.is_zero())));
    assert_eq!(share(|lot| !lot.lag.is_zero() || lot.after > ROUGH.slow_max), 0);
}

#[test]
fn without_rates_all_is_calm() {
    let fate = RandomFate::new(7, Rates::default());
    assert!((0..1_000).all(|_| fate.of(&Call::Read(&[job(1)])) == Lot::CALM));
    let always = RandomFate::new(7, Rates { fails: 1.0, ..Rates::default() });
    assert!((0..1_000).all(|_| always.of(&Call::Read(&[])).effect == Effect::Fails));
    let hint = rota_store::hints::Hint { key: job(1), is_new: true };
    assert!((0..1_000).all(|_| fate.of_hint(&hint) == [Duration::ZERO]));
    let lost = RandomFate::new(7, Rates { hint_lost: 1.0, ..Rates::default() });
    assert!((0..1_000).all(|_| lost.of_hint(&hint).is_empty()));
    let doubled = RandomFate::new(7, Rates { hint_doubled: 1.0, ..Rates::default() });
    assert!((0..1_000).all(|_| doubled.of_hint(&hint).len() == 2));
}
