//! The documents of seeds 003 and 004.

use std::collections::BTreeMap;

use rota_model::Extra;
use rota_model::backoff::Backoff;
use rota_model::domain::Domain;
use rota_model::ids::{ClaimToken, Incarnation, JobId, NodeId};
use rota_model::job::submission::Place;
use rota_model::job::{Holder, Job, NewJob, Scope, Unique};
use rota_model::job_type::{JobType, KeyLimits};
use rota_model::limit::{Holding, Limit};
use rota_model::log::{Level, Log};
use rota_model::metric::{MetricsBucket, Sample, SampleKind, Samples};
use rota_model::node::{NodeRole, NodeState, NodeStatus, NodeWish};
use rota_model::time::UnixMillis;
use rota_model::unique_key::UniqueKey;
use serde_json::json;

use super::{Filled, NOW, metadata, node};

pub(super) fn documents() -> Vec<Filled> {
    vec![
        Filled::new("jobs", &job(), &["", "/metadata", "/input"]),
        Filled::new("state", &state(), &["", "/metadata"]),
        Filled::new("logs", &log(), &["", "/metadata"]),
        Filled::new("metrics", &bucket(), &["", "/metadata"]),
        Filled::new("job-types", &job_type(), &["", "/backoff", "/perKey"]),
        Filled::new("limits", &limit(), &["", "/holders/0", "/metadata"]),
        Filled::new("unique-keys", &unique_key(), &["", "/metadata"]),
    ]
}

/// A job on its second attempt.
fn job() -> Job {
    let place = Place {
        domain: Domain::default(),
        job_id: JobId::derived(&["job"]),
        job_number: 30,
        sections: 64,
        accepted_by: node(),
    };
    let submission = NewJob {
        idempotency_key: Some("order-17".to_owned()),
        attempts: Some(3),
        backoff: Some(Backoff::default()),
        timeout_ms: Some(60_000),
        expires_at: Some(UnixMillis::MAX),
        unique: Some(Unique { key: "order 17".to_owned(), scope: Scope::Unfinished, for_ms: Some(1_000) }),
        ..NewJob::new("test_job", "wait", json!({"millis": 5000}))
    };
    let mut job = submission.into_job(place, NOW);
    let holder = Holder { node: node(), incarnation: Incarnation::derived(&["life"]) };
    let token = ClaimToken::derived(&["claim"]);
    job.claim(holder, token, NOW).unwrap();
    job.fail(1, "exit status 1", Some(NOW), NOW, node()).unwrap();
    job.claim(holder, token, NOW).unwrap();
    job
}

fn unique_key() -> UniqueKey {
    UniqueKey {
        domain: Domain::default(),
        key: "order 17".to_owned(),
        job_id: JobId::derived(&["job"]),
        requeue: Some(3),
        metadata: metadata(),
        extra: Extra::new(),
    }
}

fn state() -> NodeState {
    NodeState {
        name: "node_1".to_owned(),
        id: node(),
        job_queue_section: 2,
        last_seen_at: NOW,
        status: NodeStatus::Busy,
        incarnation: Some(Incarnation::derived(&["life"])),
        roles: vec![NodeRole::Processor, NodeRole::Web],
        types: vec!["wait".to_owned()],
        sections: vec![2, 5, 8],
        version: Some("0.1.0".to_owned()),
        capacity: Some(8),
        running: Some(8),
        wanted: Some(NodeWish::Drain),
        controllable: false,
        metadata: metadata(),
        extra: Extra::new(),
    }
}

fn log() -> Log {
    Log {
        title: "attempt failed".to_owned(),
        message: Some("exit status 1\nno such file".to_owned()),
        origin: node(),
        context: Some(vec!["attempt 1".to_owned()]),
        level: Some(Level::Warn),
        job_id: Some(JobId::derived(&["job"])),
        domain: Some(Domain::default()),
        metadata: metadata(),
        extra: Extra::new(),
    }
}

fn bucket() -> MetricsBucket {
    let samples = |run: &str| {
        Samples::from([
            ("jobs_finished".to_owned(), Sample::new(12, "jobs")),
            ("claim_latency_max".to_owned(), Sample::new(-3, "milliseconds")),
            ("queueWait".to_owned(), latency(run)),
        ])
    };
    let first = MetricsBucket::empty(NOW, node()).merge(node(), &samples("1"), NOW);
    let other = NodeId::derived(&["another node"]);
    first.merge(node(), &samples("2"), NOW).merge(other, &samples("3"), NOW)
}

fn latency(run: &str) -> Sample {
    Sample {
        value: 900,
        units: "microseconds".to_owned(),
        kind: Some(SampleKind::Latency),
        count: Some(7),
        p50: Some(800),
        p99: Some(2_000),
        max: Some(2_100),
        run: Some(run.to_owned()),
        parts: BTreeMap::new(),
        extra: Extra::new(),
    }
}

fn job_type() -> JobType {
    JobType {
        domain: Some(Domain::default()),
        kind: "send-invoice".to_owned(),
        schema: Some(json!({"type": "object", "required": ["to"]})),
        attempts: Some(5),
        backoff: Some(Backoff { delay_ms: 500, factor: 3, max_delay_ms: 60_000, extra: Extra::new() }),
        timeout_ms: Some(30_000),
        concurrency: Some(8),
        starts_per_second: Some(0.5),
        per_key: Some(KeyLimits { concurrency: Some(1), starts_per_second: Some(7.25), extra: Extra::new() }),
        extra: Extra::new(),
    }
}

fn limit() -> Limit {
    let holding = Holding {
        incarnation: Incarnation::derived(&["life"]),
        node: node(),
        slots: 2,
        wants: true,
        extra: Extra::new(),
    };
    Limit {
        domain: Domain::default(),
        kind: "send-invoice".to_owned(),
        key: Some("customer-7".to_owned()),
        holders: vec![holding],
        held: Some(1),
        clock_us: Some(1_593_341_664_912_000),
        started_us: Some(1_593_341_664_912_500),
        metadata: metadata(),
        extra: Extra::new(),
    }
}
