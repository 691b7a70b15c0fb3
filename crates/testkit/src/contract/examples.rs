//! Documents to try promises with.

use rota_model::domain::Domain;
use rota_model::ids::ClaimToken;
use rota_model::time::UnixMillis;
use rota_store::collection::{EXECUTIONS, JOBS, LOGS, STATE, TIMERS, USERS};
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Claim, Fields, Key, Version, Write};
use serde_json::{Value, json};

pub(super) const BY_NUMBER: Order = Order { fields: &["jobNumber"], descending: false };
/// Due work, as those who claim look for it.
pub(super) const BY_RUN_AT: Order = Order { fields: &["runAt", "jobNumber"], descending: false };

pub(super) fn body(value: Value) -> Body {
    value.as_object().unwrap().clone()
}

/// With every part that a job has: fixed and changing fields, nested ones, and what nobody declared.
pub(super) fn job(number: i64) -> Body {
    body(json!({
        "jobName": "a job", "jobNumber": number, "domain": "default", "status": "QUEUED", "priority": 5,
        "runAt": 1_000 - number, "input": {"type": "noop", "payload": {"nothing": null}}, "result": {},
        "metadata": {"createdAt": number / 10, "updatedAt": 0, "updatedBy": "somebody"},
    }))
}

/// A job of which some members differ.
pub(super) fn job_with(number: i64, differing: Value) -> Body {
    let mut job = job(number);
    job.extend(body(differing));
    job
}

/// The key of a job by its id.
pub(super) fn named(id: impl ToString) -> Key {
    Key::new(&JOBS, id)
}

/// The key of a job by its number; such keys sort like the numbers.
pub(super) fn numbered(number: i64) -> Key {
    named(format!("job-{number:04}"))
}

pub(super) fn create(number: i64) -> Write {
    Write::Create { key: numbered(number), body: job(number) }
}

pub(super) fn user(id: &str) -> Key {
    Key::new(&USERS, id)
}

pub(super) fn state(id: &str) -> Key {
    Key::new(&STATE, id)
}

pub(super) fn log(id: &str) -> Key {
    Key::new(&LOGS, id)
}

pub(super) fn domain(name: &str) -> Domain {
    name.parse().unwrap()
}

pub(super) fn timer(domain: &Domain, id: &str) -> Key {
    Key::in_domain(&TIMERS, domain, id)
}

pub(super) fn execution(domain: &Domain, id: &str) -> Key {
    Key::in_domain(&EXECUTIONS, domain, id)
}

/// Its id stands in it, so that one taken for another would show.
pub(super) fn timer_body(domain: &Domain, id: &str, section: i64) -> Body {
    body(
        json!({"name": format!("{domain} {id}"), "status": "ACTIVE", "section": section, "task": {"type": "job"}}),
    )
}

pub(super) fn change(key: Key, version: Version, fields: Fields) -> Write {
    Write::Change { key, version, fields }
}

/// At an instant that tests about something else need not think of.
pub(super) fn delete(key: Key, version: Version) -> Write {
    Write::Delete { key, version, at: UnixMillis(1) }
}

pub(super) fn jobs() -> Query {
    Query::new(&JOBS, BY_NUMBER)
}

pub(super) fn queued() -> Query {
    Query::new(&JOBS, BY_RUN_AT).filter(Filter::Is("status", json!("QUEUED")))
}

/// Takes queued jobs.
pub(super) fn claim(max: usize, token: ClaimToken) -> Claim {
    let due = queued().filter(Filter::Is("priority", json!(5))).filter(Filter::AtMost("runAt", 2_000));
    Claim {
        collection: &JOBS,
        from: vec![due.limit(max)],
        max,
        set: vec![("status", json!("STARTED")), ("owner", json!("me")), ("metadata.updatedAt", json!(5))],
        add_one: Some("epoch"),
        token: ("claimToken", token),
    }
}

pub(super) fn token(number: u8) -> ClaimToken {
    ClaimToken::rising(UnixMillis(0), &[number; 10])
}
