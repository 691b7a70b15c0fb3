//! In which fields a job differs from what it was, without writing both out: jobs are what changes most.

use rota_model::job::Job;
use serde::Serialize;
use serde_json::{Value, json};

use crate::seam::Fields;

/// The declared changing fields that differ; none if something else does.
pub(super) fn fields(before: &Job, after: &Job) -> Option<Fields> {
    if !same_otherwise(before, after) {
        return None;
    }
    let mut fields = Fields::new();
    let mut set = |path, differs: bool, value: &dyn Fn() -> Value| {
        if differs {
            fields.push((path, value()));
        }
    };
    set("status", before.status != after.status, &|| json!(after.status));
    set("runAt", before.run_at != after.run_at, &|| json!(after.run_at));
    set("attempt", before.attempt != after.attempt, &|| json!(after.attempt));
    set("lost", before.lost != after.lost, &|| json!(after.lost));
    set("epoch", before.epoch != after.epoch, &|| json!(after.epoch));
    set("owner", before.owner != after.owner, &|| json!(after.owner));
    set("ownerNode", before.owner_node != after.owner_node, &|| json!(after.owner_node));
    set("claimToken", before.claim_token != after.claim_token, &|| json!(after.claim_token));
    set("startedAt", before.started_at != after.started_at, &|| json!(after.started_at));
    set("finishedAt", before.finished_at != after.finished_at, &|| json!(after.finished_at));
    set("progress", before.progress != after.progress, &|| json!(after.progress));
    // A list without entries is left out of the document.
    set("history", before.history != after.history, &|| some(&after.history, after.history.is_empty()));
    set("result", before.result != after.result, &|| json!(after.result));
    let (old, new) = (&before.metadata, &after.metadata);
    set("metadata.updatedAt", old.updated_at != new.updated_at, &|| json!(new.updated_at));
    set("metadata.updatedBy", old.updated_by != new.updated_by, &|| json!(new.updated_by));
    Some(fields)
}

fn some(value: &impl Serialize, absent: bool) -> Value {
    if absent { Value::Null } else { json!(value) }
}

/// Every field that is not declared to change. Taken apart without a rest, so that a field that is new has to be placed.
fn same_otherwise(before: &Job, after: &Job) -> bool {
    let Job {
        job_name,
        job_id,
        job_number,
        status: _,
        input,
        result: _,
        domain,
        section,
        priority,
        lane,
        run_at: _,
        attempt: _,
        attempts,
        backoff,
        timeout_ms,
        expires_at,
        lost: _,
        epoch: _,
        owner: _,
        owner_node: _,
        claim_token: _,
        started_at: _,
        finished_at: _,
        progress: _,
        history: _,
        unique,
        limit_key,
        idempotency_key,
        request_digest,
        reserved,
        metadata,
        extra,
    } = before;
    *job_name == after.job_name
        && *job_id == after.job_id
        && *job_number == after.job_number
        && *input == after.input
        && *domain == after.domain
        && (*section, *priority, lane) == (after.section, after.priority, &after.lane)
        && (*attempts, backoff, *timeout_ms) == (after.attempts, &after.backoff, after.timeout_ms)
        && *expires_at == after.expires_at
        && (unique, limit_key) == (&after.unique, &after.limit_key)
        && (idempotency_key, request_digest) == (&after.idempotency_key, &after.request_digest)
        && *reserved == after.reserved
        && (metadata.created_at, &metadata.extra) == (after.metadata.created_at, &after.metadata.extra)
        && *extra == after.extra
}

#[cfg(test)]
mod tests {
    use rota_model::domain::Domain;
    use rota_model::ids::{ClaimToken, Incarnation, JobId, NodeId};
    use rota_model::job::submission::Place;
    use rota_model::job::{Holder, NewJob, Progress};
    use rota_model::time::UnixMillis;
    use serde_json::Map;

    use super::*;
    use crate::collection::JOBS;
    use crate::repository::encode;

    type Act<'a> = Box<dyn Fn(&mut Job) + 'a>;

    fn new_job() -> Job {
        let place = Place {
            domain: Domain::default(),
            job_id: JobId::derived(&["a job"]),
            job_number: 7,
            sections: 64,
            accepted_by: NodeId::derived(&["a node"]),
        };
        NewJob::new("a job", "wait", json!({"millis": 1})).into_job(place, UnixMillis(1))
    }

    /// What is said to differ, set in what was, makes what is: through a life with everything that happens to jobs.
    #[test]
    fn the_fields_that_differ_make_the_one_of_the_other() {
        let node = NodeId::derived(&["a node"]);
        let holder = Holder { node, incarnation: Incarnation::derived(&["a life"]) };
        let claim = |job: &mut Job| job.claim(holder, ClaimToken::derived(&["a claim"]), UnixMillis(2));
        let progress = Progress { percent: 5.0, message: None, extra: Map::new() };
        let acts: Vec<Act<'_>> = vec![
            Box::new(|job| claim(job).unwrap()),
            Box::new(|job| job.report(job.epoch, progress.clone(), UnixMillis(3), node).unwrap()),
            Box::new(|job| job.fail(job.epoch, "no", Some(UnixMillis(9)), UnixMillis(4), node).unwrap()),
            Box::new(|job| claim(job).unwrap()),
            Box::new(|job| job.lose(job.epoch, 0.0, UnixMillis(5), node).unwrap()),
            Box::new(|job| claim(job).unwrap()),
            Box::new(|job| {
                job.succeed(job.epoch, Map::from_iter([("a".into(), json!(1))]), UnixMillis(6), node)
                    .unwrap();
            }),
            Box::new(|job| job.requeue(UnixMillis(7), node).unwrap()),
            Box::new(|job| job.history.clear()),
            Box::new(|job| job.cancel("no more", UnixMillis(8), node).unwrap()),
        ];
        let mut before = new_job();
        for act in acts {
            let mut after = before.clone();
            act(&mut after);
            let mut made = encode(&before).unwrap();
            for (path, value) in fields(&before, &after).unwrap() {
                JOBS.field(path).unwrap().set(&mut made, value);
            }
            assert_eq!(Value::Object(made), Value::Object(encode(&after).unwrap()));
            before = after;
        }
    }

    #[test]
    fn what_else_differs_is_not_left_out() {
        let before = new_job();
        let mut after = before.clone();
        after.expires_at = Some(UnixMillis(5));
        assert_eq!(fields(&before, &after), None);
        after = before.clone();
        after.metadata.extra.insert("new".to_owned(), json!(1));
        assert_eq!(fields(&before, &after), None);
    }
}
