//! Metrics: what nodes put into one bucket at the same time is all there, and once.

use rota_model::metric::{MetricsBucket, Sample, Samples};
use rota_model::time::UnixMillis;
use rota_store::Store;
use rota_store::collection::METRICS;
use rota_store::metrics::Metrics;
use rota_store::seam::{Key, Version};

use super::crowded::Crowded;
use super::{Arc, node, store};

fn samples(value: i64) -> Samples {
    Samples::from([("jobs".to_owned(), Sample::new(value, "jobs"))])
}

async fn all(metrics: &Metrics) -> Vec<MetricsBucket> {
    metrics.between(UnixMillis(0), UnixMillis(i64::MAX), 1_000, None).await.unwrap().0
}

async fn version(store: &Arc<dyn Store>, bucket: &str) -> Option<Version> {
    let found = store.read(vec![Key::new(&METRICS, bucket)]).await.unwrap();
    found.into_iter().flatten().next().map(|document| document.version)
}

#[tokio::test]
async fn nodes_that_write_at_once_lose_nothing() {
    let metrics = Metrics::new(Arc::new(Crowded::default()));
    let merges: Vec<_> = (0..8)
        .map(|nth| {
            let metrics = metrics.clone();
            let merge = async move {
                metrics.merge(node(&format!("node {nth}")), &samples(nth), UnixMillis(7_000)).await
            };
            tokio::spawn(merge)
        })
        .collect();
    for merge in merges {
        merge.await.unwrap().unwrap();
    }
    let buckets = all(&metrics).await;
    assert_eq!(buckets.len(), 1);
    let by_node = buckets.first().unwrap().metrics.get("jobs").unwrap();
    for nth in 0..8 {
        assert_eq!(by_node.get(&node(&format!("node {nth}"))).unwrap().value, nth);
    }
}

#[tokio::test]
async fn a_repeated_merge_writes_nothing() {
    let store = store();
    let metrics = Metrics::new(Arc::clone(&store));
    metrics.merge(node("a"), &samples(1), UnixMillis(7_000)).await.unwrap();
    let (first, bucket) = (version(&store, "5000").await, all(&metrics).await);
    assert!(first.is_some());
    metrics.merge(node("a"), &samples(1), UnixMillis(7_000)).await.unwrap();
    metrics.merge(node("b"), &Samples::new(), UnixMillis(8_000)).await.unwrap();
    assert_eq!((version(&store, "5000").await, all(&metrics).await), (first, bucket));
    metrics.merge(node("a"), &samples(2), UnixMillis(8_000)).await.unwrap();
    assert_ne!(version(&store, "5000").await, first);
    metrics.merge(node("a"), &Samples::new(), UnixMillis(20_000)).await.unwrap();
    assert_eq!(version(&store, "20000").await, None, "nothing measured, nothing kept");
}

#[tokio::test]
async fn buckets_come_in_the_order_of_time_and_not_of_their_digits() {
    let metrics = Metrics::new(store());
    for at in [100_000, 5_000, 95_000, 10_000, 200_000] {
        metrics.merge(node("a"), &samples(at), UnixMillis(at)).await.unwrap();
    }
    let mut starts = Vec::new();
    let mut cursor = None;
    loop {
        let between = metrics.between(UnixMillis(10_000), UnixMillis(200_000), 2, cursor);
        let (page, next) = between.await.unwrap();
        starts.extend(page.iter().map(|bucket| bucket.bucket_start.0.0));
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(starts, [10_000, 95_000, 100_000]);
}
