//! What was measured, for whoever looks: this node's figures now, and the buckets of all nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_model::job::JobStatus;
use rota_model::metric::MetricsBucket;
use rota_model::node::NodeStatus;
use rota_model::time::UnixMillis;
use rota_store::cursor::Cursor;
use rota_store::jobs::Jobs;
use rota_store::metrics::Metrics;
use rota_store::nodes::Nodes;
use rota_store::{Store, StoreError};

use super::{Meter, Reading};
use crate::patience::answered;
use crate::surroundings::Surroundings;

#[derive(Clone)]
pub struct Board {
    meter: Meter,
    metrics: Metrics,
    jobs: Jobs,
    nodes: Nodes,
    version: String,
    began: UnixMillis,
}

/// What the store knows at this moment.
/// So many pages without the metric that was asked for are passed over in one go.
const MOST_PAGES: usize = 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub jobs: BTreeMap<JobStatus, u64>,
    pub nodes: Vec<(NodeStatus, u64)>,
}

impl Board {
    pub(crate) fn new(store: &Arc<dyn Store>, surroundings: &Surroundings, version: String) -> Self {
        Self {
            meter: surroundings.meter().clone(),
            metrics: Metrics::new(Arc::clone(store)),
            jobs: Jobs::new(Arc::clone(store)),
            nodes: Nodes::new(Arc::clone(store)),
            version,
            began: surroundings.now(),
        }
    }

    /// What this node measured until now; none if it measures nothing.
    pub fn reading(&self) -> Option<Reading> {
        self.meter.reading()
    }

    /// How many jobs and nodes have each status.
    pub async fn standing(&self) -> Result<Standing, StoreError> {
        let jobs = answered("count jobs", self.jobs.totals(None)).await?;
        let nodes = answered("read the nodes", self.nodes.all()).await?;
        let count = |status| nodes.iter().filter(|node| node.document.status == status).count() as u64;
        Ok(Standing {
            jobs,
            nodes: NodeStatus::ALL.into_iter().map(|status| (status, count(status))).collect(),
        })
    }

    /// Buckets that begin at `from` or later and before `to`, the oldest first; of one metric alone, if one is named.
    pub async fn buckets(
        &self,
        from: UnixMillis,
        to: UnixMillis,
        name: Option<&str>,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<MetricsBucket>, Option<Cursor>), StoreError> {
        let mut after = after;
        for _ in 0..MOST_PAGES {
            let between = self.metrics.between(from, to, limit, after);
            let (mut buckets, next) = answered("read metrics", between).await?;
            if let Some(name) = name {
                buckets.iter_mut().for_each(|bucket| bucket.metrics.retain(|known, _| known == name));
                buckets.retain(|bucket| !bucket.metrics.is_empty());
            }
            if !buckets.is_empty() || next.is_none() {
                return Ok((buckets, next));
            }
            after = next;
        }
        Ok((Vec::new(), after))
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    /// When the node began.
    pub fn began(&self) -> UnixMillis {
        self.began
    }
}
