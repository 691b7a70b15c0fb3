//! The typed repositories, each by what it is for, on the in-memory store.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a surprise is a failure of the test")]

mod crowded;
mod executions;
mod job_limits;
mod job_types;
mod jobs;
mod logs;
mod metrics;
mod nodes;
mod progress;
mod queue;
mod sweep;
mod timers;
mod unique_keys;

use std::sync::Arc;

use rota_model::domain::Domain;
use rota_model::ids::{NodeId, TimerId};
use rota_store::memory::MemoryStore;
use rota_store::repository::Created;
use rota_store::seam::{Body, Key, Version, Write, Written};
use rota_store::timers::TimerKey;
use rota_store::{Store, Versioned};
use serde_json::Value;

fn store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

fn domain(name: &str) -> Domain {
    name.parse().unwrap()
}

fn timer(domain_name: &str, name: &str) -> TimerKey {
    TimerKey { domain: domain(domain_name), uuid: TimerId::derived(&[name]) }
}

fn node(name: &str) -> NodeId {
    NodeId::derived(&[name])
}

fn instant(text: &str) -> jiff::Timestamp {
    text.parse().unwrap()
}

fn new<T: std::fmt::Debug>(created: Created<T>) -> Versioned<T> {
    match created {
        Created::New(document) => document,
        Created::Exists(document) => panic!("its id is taken: {document:?}"),
    }
}

/// Stores a document that no type here would write.
async fn put(store: &Arc<dyn Store>, key: Key, body: Value) -> Version {
    let body: Body = body.as_object().unwrap().clone();
    match store.write(vec![Write::Create { key, body }]).await.unwrap().first() {
        Some(Written::Applied(version)) => *version,
        other => panic!("it was not stored: {other:?}"),
    }
}
