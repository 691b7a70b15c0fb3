//! Several who claim at once, a hundred jobs at a time, until nothing waits: how long each claim takes, and how many jobs are
//! claimed in all.

use std::sync::Arc;

use rota_store::Store;
use tokio::time::Instant;

use super::{BATCH, Options, beside, claim, creates, measured, median, per_second, stage};
use crate::report::Measurement;

const CLAIM: usize = 100;
const MANY: usize = 16;

pub(super) async fn run(options: &Options) -> Vec<Measurement> {
    let mut of_one = (Vec::new(), Vec::new());
    let mut of_many = (Vec::new(), Vec::new());
    for run in 0..options.runs {
        eprintln!("claims of {CLAIM} by 1 and by {MANY}, run {}", run + 1);
        for (claimers, (spans, rates)) in [(1, &mut of_one), (MANY, &mut of_many)] {
            let (mut span, rate) = claimed(options, claimers).await;
            spans.append(&mut span);
            rates.push(rate);
        }
    }
    let (one, rate) = (median(of_one.0), median(of_one.1));
    vec![
        measured(format!("a claim of {CLAIM}, 1 claimer"), one, "ms"),
        beside(
            measured(format!("a claim of {CLAIM}, {MANY} claimers"), median(of_many.0), "ms"),
            "1 claimer",
            one,
        ),
        measured(format!("jobs claimed {CLAIM} at a time, 1 claimer"), rate, "jobs/s"),
        beside(
            measured(format!("jobs claimed {CLAIM} at a time, {MANY} claimers"), median(of_many.1), "jobs/s"),
            "1 claimer",
            rate,
        ),
    ]
}

/// How long each claim took, and how many jobs were claimed in a second.
async fn claimed(options: &Options, claimers: usize) -> (Vec<f64>, f64) {
    let ground = stage(options.on).await;
    for start in (0..options.documents).step_by(BATCH) {
        ground.store.write(creates(start..start + BATCH as u64)).await.unwrap();
    }
    let began = Instant::now();
    let claiming: Vec<_> =
        (0..claimers).map(|_| tokio::spawn(claim_all(Arc::clone(&ground.store)))).collect();
    let (mut spans, mut count) = (Vec::new(), 0);
    for claimer in claiming {
        let (mut its, claimed) = claimer.await.unwrap();
        spans.append(&mut its);
        count += claimed;
    }
    assert_eq!(count, options.documents, "each is claimed once");
    (spans, per_second(count, began))
}

async fn claim_all(store: Arc<dyn Store>) -> (Vec<f64>, u64) {
    let (mut spans, mut count) = (Vec::new(), 0);
    loop {
        let began = Instant::now();
        let taken = store.claim(claim(CLAIM)).await.unwrap().len() as u64;
        if taken == 0 {
            return (spans, count);
        }
        spans.push(began.elapsed().as_secs_f64() * 1_000.0);
        count += taken;
    }
}
