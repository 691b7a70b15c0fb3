//! The `metrics` of seed 003: one document per five seconds, in which each node has its own entries.
//!
//! Rule 18 is kept by the shape. An entry is keyed by metric and node, and a node replaces its own: merging the same
//! samples twice, after an answer that was lost, gives the same document, down to its metadata. Nothing is ever added
//! to a number that somebody else may have written.
//!
//! A node that starts again within a bucket is somebody else in this sense: its samples carry the id of its [`Sample::run`], and
//! an entry with those of several runs keeps each of them ([`parts`]).

mod parts;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Extra;
use crate::check::{Checker, Invalid, escape};
use crate::ids::NodeId;
use crate::metadata::Metadata;
use crate::time::UnixMillis;

/// The length of a bucket, in milliseconds.
pub const BUCKET_MS: i64 = 5_000;
/// How many metrics a bucket holds.
pub const MAX_METRICS: usize = 1_000;
/// The length of the name of a metric, in characters.
pub const MAX_METRIC_NAME_CHARS: usize = 100;
/// The length of a unit, in characters.
pub const MAX_UNITS_CHARS: usize = 40;

/// How many runs of a node within one bucket are told apart.
pub const MAX_PARTS: usize = 100;

/// Unix milliseconds as the seed writes them here: a string.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, example = "1593341660000")]
pub struct BucketTime(pub UnixMillis);

impl BucketTime {
    /// The start of the bucket that an instant falls into. As a string it is the id of the document.
    pub fn of(at: UnixMillis) -> Self {
        Self(UnixMillis(at.0 - at.0.rem_euclid(BUCKET_MS)))
    }

    fn end(self) -> Self {
        Self(UnixMillis(self.0.0.saturating_add(BUCKET_MS)))
    }
}

impl fmt::Display for BucketTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.0.fmt(f)
    }
}

impl From<BucketTime> for String {
    fn from(time: BucketTime) -> Self {
        time.to_string()
    }
}

impl TryFrom<String> for BucketTime {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        let read = text.parse().map(|millis| Self(UnixMillis(millis))).ok();
        // One spelling per instant, since it is the id as well.
        read.filter(|time| time.to_string() == text)
            .ok_or_else(|| Invalid::one("/bucketStart", "must be Unix milliseconds as a string of digits"))
    }
}

/// What a value is, and so what can be done with several of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SampleKind {
    /// How often something happened within the bucket.
    Total,
    /// How full something was at the end of the bucket.
    Level,
    /// How long something took within the bucket, on average.
    Latency,
}

/// One measurement of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Sample {
    /// Of a latency, the mean.
    pub value: i64,
    #[schema(example = "microseconds")]
    pub units: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<SampleKind>,
    /// Of a latency: how many there were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub count: Option<i64>,
    /// Of a latency: half of them took at most this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<i64>,
    /// Of a latency: 99 of 100 took at most this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<i64>,
    /// Of a latency: the longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    /// Which run of the node measured it: a node that starts again begins another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What each run measured, where there were several within the bucket; the rest is then made from these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Object>)]
    pub parts: BTreeMap<String, Sample>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

impl Sample {
    pub fn new(value: i64, units: impl Into<String>) -> Self {
        Self {
            value,
            units: units.into(),
            kind: None,
            count: None,
            p50: None,
            p99: None,
            max: None,
            run: None,
            parts: BTreeMap::new(),
            extra: Extra::new(),
        }
    }

    pub fn of(kind: SampleKind, value: i64, units: impl Into<String>) -> Self {
        Self { kind: Some(kind), ..Self::new(value, units) }
    }

    #[must_use]
    pub fn of_run(self, run: impl Into<String>) -> Self {
        Self { run: Some(run.into()), ..self }
    }
}

impl Sample {
    fn check(&self, pointer: &str, check: &mut Checker) {
        check.line(&format!("{pointer}/units"), &self.units, 0..=MAX_UNITS_CHARS);
        check.range(&format!("{pointer}/parts"), self.parts.len(), 0..=MAX_PARTS);
        for (run, part) in &self.parts {
            let pointer = format!("{pointer}/parts/{}", escape(run));
            check.line(&format!("{pointer}/units"), &part.units, 0..=MAX_UNITS_CHARS);
            check.extra(&pointer, &part.extra);
        }
        check.extra(pointer, &self.extra);
    }
}

/// What one node measured in one bucket, by the names of the metrics.
pub type Samples = BTreeMap<String, Sample>;

/// A stored bucket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricsBucket {
    pub bucket_start: BucketTime,
    pub bucket_end: BucketTime,
    /// By name of the metric, then by id of the node.
    #[schema(value_type = BTreeMap<String, BTreeMap<String, Sample>>)]
    pub metrics: BTreeMap<String, BTreeMap<NodeId, Sample>>,
    pub metadata: Metadata,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

impl MetricsBucket {
    /// The empty bucket that an instant falls into.
    pub fn empty(now: UnixMillis, by: NodeId) -> Self {
        let bucket_start = BucketTime::of(now);
        Self {
            bucket_start,
            bucket_end: bucket_start.end(),
            metrics: BTreeMap::new(),
            metadata: Metadata::new(now, by),
            extra: Extra::new(),
        }
    }

    pub fn id(&self) -> String {
        self.bucket_start.to_string()
    }

    /// The bucket after a node put its samples into it, in place of those it had there under the same names; beside those
    /// of another run of it. Samples that are there already leave the bucket as it is.
    #[must_use]
    pub fn merge(&self, node: NodeId, samples: &Samples, now: UnixMillis) -> Self {
        let mut merged = self.clone();
        for (name, sample) in samples {
            let by_node = merged.metrics.entry(name.clone()).or_default();
            let after = sample.clone().beside(by_node.get(&node));
            by_node.insert(node, after);
        }
        if merged.metrics != self.metrics {
            merged.metadata.touch(now, node);
        }
        merged
    }

    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check.range("/metrics", self.metrics.len(), 0..=MAX_METRICS);
        for (name, by_node) in &self.metrics {
            let pointer = format!("/metrics/{}", escape(name));
            check.line(&pointer, name, 1..=MAX_METRIC_NAME_CHARS);
            for (node, sample) in by_node {
                sample.check(&format!("{pointer}/{node}"), &mut check);
            }
        }
        check.extra("", &self.extra);
        check.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> NodeId {
        NodeId::derived(&[name])
    }

    #[test]
    fn buckets_are_five_seconds_long_and_do_not_overlap() {
        assert_eq!(BucketTime::of(UnixMillis(1_593_341_664_912)).to_string(), "1593341660000");
        assert_eq!(BucketTime::of(UnixMillis(4_999)), BucketTime::of(UnixMillis(0)));
        assert_eq!(BucketTime::of(UnixMillis(-1)).0, UnixMillis(-5_000));
        let bucket = MetricsBucket::empty(UnixMillis(7_123), node("a"));
        assert_eq!((bucket.id().as_str(), bucket.bucket_end.0), ("5000", UnixMillis(10_000)));
    }

    #[test]
    fn a_repeated_merge_changes_nothing_and_nodes_keep_apart() {
        let empty = MetricsBucket::empty(UnixMillis(5_000), node("a"));
        let samples = Samples::from([("jobs".to_owned(), Sample::new(3, "jobs"))]);
        let once = empty.merge(node("a"), &samples, UnixMillis(5_100));
        assert_eq!(once.merge(node("a"), &samples, UnixMillis(5_200)), once);
        let both = once.merge(node("b"), &samples, UnixMillis(5_300));
        assert_eq!(both.metrics["jobs"].len(), 2);
        assert_eq!(both.merge(node("a"), &samples, UnixMillis(5_400)), both);
        let newer = Samples::from([("jobs".to_owned(), Sample::new(5, "jobs"))]);
        let replaced = both.merge(node("a"), &newer, UnixMillis(5_500));
        assert_eq!(replaced.metrics["jobs"][&node("a")].value, 5);
        assert_eq!(replaced.metrics["jobs"][&node("b")].value, 3);
    }

    #[test]
    fn what_a_newer_node_adds_to_its_entries_survives() {
        let mut bucket = MetricsBucket::empty(UnixMillis(5_000), node("a"));
        let mut sample = Sample::new(1, "jobs");
        sample.extra.insert("p999".to_owned(), 7.into());
        bucket = bucket.merge(node("a"), &Samples::from([("m".to_owned(), sample)]), UnixMillis(5_001));
        let written = serde_json::to_value(&bucket).unwrap();
        assert_eq!(serde_json::from_value::<MetricsBucket>(written).unwrap(), bucket);
    }

    #[test]
    fn an_instant_has_one_spelling() {
        for text in ["", "05000", "+5000", "5000.0", "x"] {
            assert!(BucketTime::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
