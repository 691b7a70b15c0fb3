//! That the buckets hold what was counted: each run of a process has a part of its own, which nobody changes once it is there,
//! however often it is merged; and all parts together are what the processes counted.

use std::collections::BTreeMap;
use std::time::Duration;

use rota_model::ids::NodeId;
use rota_model::metric::{BucketTime, MetricsBucket, Sample, SampleKind};

use super::Finding;
use crate::simulation::record::{Document, Life, What};
use crate::simulation::story::Story;

/// What was counted is stored by then: the bucket ends, and is stored within a second after it.
const BOOKED: Duration = Duration::from_secs(10);

/// One part of an entry: of which metric and node, and of which run.
type Part<'a> = (&'a str, NodeId, &'a str);

/// The parts of a bucket.
fn parts(bucket: Option<&MetricsBucket>) -> BTreeMap<Part<'_>, &Sample> {
    let mut all = BTreeMap::new();
    for (metric, by_node) in bucket.into_iter().flat_map(|bucket| &bucket.metrics) {
        for (node, sample) in by_node {
            if let Some(run) = &sample.run {
                all.insert((metric.as_str(), *node, run.as_str()), sample);
            }
            all.extend(sample.parts.iter().map(|(run, part)| ((metric.as_str(), *node, run.as_str()), part)));
        }
    }
    all
}

/// Each change of a bucket that took effect.
fn merges<'a>(
    story: &Story<'a>,
) -> impl Iterator<Item = (Duration, Option<Life>, Option<&'a MetricsBucket>, &'a MetricsBucket)> {
    story.entries.iter().filter_map(|entry| {
        let What::Landed(caller, change) = &entry.what else { return None };
        let Document::Bucket { before, after } = &change.document else { return None };
        Some((entry.at, caller.map(|caller| caller.life), before.as_deref(), after.as_deref()?))
    })
}

/// A merge adds the parts of who merges, and leaves every other as it is: one that is repeated changes nothing.
pub fn parts_of_buckets_stay(story: &Story<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (at, life, before, after) in merges(story) {
        let (former, parts, id) = (parts(before), parts(Some(after)), after.id());
        let value = |part: &Sample| (part.value, part.count);
        for (part, sample) in &former {
            if parts.get(part).map(|sample| value(sample)) != Some(value(sample)) {
                found.push((at, format!("{part:?} of bucket {id} is not what it was")));
            }
        }
        let node = life.and_then(|life| story.lives.get(&life)).map(|lived| lived.node);
        for (_, other, run) in parts.keys().filter(|part| !former.contains_key(*part)) {
            if node.is_some_and(|node| node != *other) {
                found.push((at, format!("the part {run} of bucket {id} is written by another node")));
            }
        }
    }
    found
}

/// What all parts of a life say together, by metric.
fn stored(story: &Story<'_>) -> BTreeMap<Life, BTreeMap<String, u64>> {
    let mut lives: BTreeMap<String, Life> = BTreeMap::new();
    let mut last: BTreeMap<BucketTime, &MetricsBucket> = BTreeMap::new();
    for (_, life, before, after) in merges(story) {
        let former = parts(before);
        let after_parts = parts(Some(after));
        let new = after_parts.keys().filter(|part| !former.contains_key(*part));
        lives.extend(new.filter_map(|(_, _, run)| Some(((*run).to_owned(), life?))));
        last.insert(after.bucket_start, after);
    }
    let mut sums: BTreeMap<Life, BTreeMap<String, u64>> = BTreeMap::new();
    for bucket in last.into_values() {
        for ((metric, _, run), sample) in parts(Some(bucket)) {
            let Some(life) = lives.get(run).filter(|_| sample.kind == Some(SampleKind::Total)) else {
                continue;
            };
            let sum = sums.entry(*life).or_default().entry(metric.to_owned()).or_default();
            *sum += u64::try_from(sample.value).unwrap_or(0);
        }
    }
    sums
}

/// No more is stored than was counted, and no less where nothing kept it from being stored.
pub fn buckets_hold_what_was_counted(story: &Story<'_>) -> Vec<Finding> {
    let (stored, none, mut found) = (stored(story), BTreeMap::new(), Vec::new());
    for (life, counted) in &story.counted {
        let Some((node, (_, last))) = story.lives.get(life).map(|lived| &lived.name).zip(counted.last())
        else {
            continue;
        };
        let stored = stored.get(life).unwrap_or(&none);
        let more = stored.iter().filter_map(|(what, sum)| Some((what, sum, last.get(what.as_str())?)));
        for (what, sum, count) in more.filter(|(_, sum, count)| sum > count) {
            found.push((story.end, format!("{node} counted {count} {what}, and {sum} are stored")));
        }
        let was_dropped = last.get("bucketsDropped").is_some_and(|dropped| *dropped > 0);
        let booked = |(at, _): &&(Duration, _)| !was_dropped && story.is_untroubled(*life, *at, *at + BOOKED);
        for (at, counts) in counted.iter().filter(booked).filter(|(at, _)| *at + BOOKED <= story.end) {
            for (what, count) in *counts {
                let sum = stored.get(*what).copied().unwrap_or(0);
                if sum < *count {
                    found.push((*at, format!("{node} had counted {count} {what}, and {sum} are stored")));
                }
            }
        }
    }
    found
}
