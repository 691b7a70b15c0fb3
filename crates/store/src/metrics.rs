//! What nodes measured (seed 003, `metrics`): one document per five seconds, which all nodes write.
//!
//! Nobody's entries are lost, whoever writes at the same time: a node puts its own into what it read, writes that on
//! condition that nobody else did, and starts over otherwise. A merge that was repeated after a lost answer finds its
//! entries there and writes nothing (rule 18).

use std::sync::Arc;

use rota_model::ids::NodeId;
use rota_model::metric::{BucketTime, MetricsBucket, Samples};
use rota_model::time::UnixMillis;

use crate::StoreError;
use crate::collection::{Collection, METRICS};
use crate::cursor::Cursor;
use crate::query::{Filter, Order, Query};
use crate::repository::{Created, Kept, Repository, Saved, Versioned};
use crate::seam::{Key, Store};

impl Kept for MetricsBucket {
    const COLLECTION: &'static Collection = &METRICS;
}

const BY_TIME: Order = Order { fields: &["bucketStart"], descending: false };

#[derive(Clone)]
pub struct Metrics {
    buckets: Repository<MetricsBucket>,
}

impl Metrics {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { buckets: Repository::new(store) }
    }

    /// Puts a node's samples into the bucket of the instant at which they were taken. Whoever repeats it gives the same
    /// instant again.
    pub async fn merge(&self, node: NodeId, samples: &Samples, now: UnixMillis) -> Result<(), StoreError> {
        let key = Key::new(&METRICS, BucketTime::of(now));
        loop {
            let before = self.buckets.get(key.clone()).await?;
            let bucket = before.as_ref().map(|before| before.document.clone());
            let bucket = bucket.unwrap_or_else(|| MetricsBucket::empty(now, node));
            let merged = bucket.merge(node, samples, now);
            if merged == bucket || self.put(&key, before, merged).await? {
                return Ok(());
            }
        }
    }

    /// Buckets that begin at `from` or later and before `to`, the oldest first.
    pub async fn between(
        &self,
        from: UnixMillis,
        to: UnixMillis,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<MetricsBucket>, Option<Cursor>), StoreError> {
        let query = Query::new(&METRICS, BY_TIME)
            .filter(Filter::AtLeast("bucketStart", from.0))
            .filter(Filter::AtMost("bucketStart", to.0.saturating_sub(1)))
            .limit(limit)
            .after(after);
        let (buckets, next) = self.buckets.find(query).await?;
        Ok((buckets.into_iter().map(|bucket| bucket.document).collect(), next))
    }

    /// Says whether it was written: not if somebody came first.
    async fn put(
        &self,
        key: &Key,
        before: Option<Versioned<MetricsBucket>>,
        after: MetricsBucket,
    ) -> Result<bool, StoreError> {
        match before {
            None => Ok(matches!(self.buckets.create(key.clone(), after).await?, Created::New(_))),
            Some(before) => Ok(matches!(self.buckets.save(&before, &after).await?, Saved::Applied(_))),
        }
    }
}
