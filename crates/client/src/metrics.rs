//! What nodes measured, in buckets of five seconds.

use rota_model::metric::MetricsBucket;
use rota_model::time::UnixMillis;
use serde::Serialize;

use crate::{Client, Error, Page};

/// Which buckets are meant; every field that is set narrows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MetricFilter {
    /// Those that begin then or later.
    pub from: Option<UnixMillis>,
    /// Those that begin earlier than this.
    pub to: Option<UnixMillis>,
    /// Only this metric.
    pub name: Option<String>,
    /// How many a page holds: 50 if not set, at most 1,000.
    pub limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    pub cursor: Option<String>,
}

impl Client {
    /// One page of buckets, the oldest first; for whoever has a role in every domain.
    pub async fn metrics(&self, filter: &MetricFilter) -> Result<Page<MetricsBucket>, Error> {
        self.get(&["api", "v1", "metrics"]).query(filter).document().await
    }
}
