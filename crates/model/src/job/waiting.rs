//! Why a job that waits is not running: one reason, in words and as a code that programs can rely on.
//!
//! The first that applies is told, from what no node can change to what the next free slot changes:
//!
//! ```text
//! its time ─▶ pause between attempts ─▶ no node runs its type ─▶ all of them rest ─▶ a limit ─▶ no free slot ─▶ its turn
//! ```
//!
//! How many nodes and slots there are is not said: whoever asks may see its own domain and nothing else.
//!
//! Nodes say how many slots they have free with every heartbeat, so the answer may be some seconds old.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::job::{HistoryEntry, Job, JobEvent, JobStatus};
use crate::node::{NodeRole, NodeState, NodeStatus, NodeWish};
use crate::time::UnixMillis;

/// What holds a job up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WaitingReason {
    /// It does not wait: it runs, or has ended.
    NotWaiting,
    /// It is to run later.
    Time,
    /// An attempt failed, or its nodes died with it again and again, and the pause before the next is not over.
    BetweenAttempts,
    /// No node that lives runs its type.
    NoNode,
    /// Every node that runs its type is paused or drained.
    NodesRest,
    /// A limit is reached.
    Limit,
    /// All slots of the nodes that run its type are taken.
    NoSlot,
    /// A slot is free: it is about to begin, or others are before it.
    Turn,
}

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    pub reason: WaitingReason,
    /// The same as a sentence.
    #[schema(example = "All slots of the nodes that run wait are taken.")]
    pub detail: String,
    /// When it can begin at the earliest, if that is what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
    /// How many other jobs of its type wait in its domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<u64>,
    /// It ends as ERROR if no node has begun with it by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixMillis>,
}

/// What is known beside the job and the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    /// How many other jobs of its type wait in its domain.
    pub others: Option<u64>,
    /// The limit that holds it up, as a sentence.
    pub limit: Option<String>,
}

/// Why a job is not running at this moment.
pub fn why(job: &Job, nodes: &[NodeState], known: &Circumstances, now: UnixMillis) -> Waiting {
    let (reason, detail) = reason(job, nodes, known, now);
    let waits = reason != WaitingReason::NotWaiting;
    let by_time = matches!(reason, WaitingReason::Time | WaitingReason::BetweenAttempts);
    // Whoever has begun once does not expire.
    let expires = waits && !job.has_begun();
    Waiting {
        reason,
        detail,
        until: by_time.then_some(job.run_at),
        others: known.others.filter(|_| waits),
        expires_at: job.expires_at.filter(|_| expires),
    }
}

fn reason(job: &Job, nodes: &[NodeState], known: &Circumstances, now: UnixMillis) -> (WaitingReason, String) {
    if job.status != JobStatus::Queued {
        return (WaitingReason::NotWaiting, format!("It does not wait: it is {}.", job.status.as_str()));
    }
    if job.run_at > now {
        return by_time(job);
    }
    let kind = &job.input.kind;
    let runs = |node: &&NodeState| {
        node.status != NodeStatus::Terminated
            && node.roles.contains(&NodeRole::Processor)
            && node.types.contains(kind)
    };
    let able: Vec<&NodeState> = nodes.iter().filter(runs).collect();
    let working: Vec<&&NodeState> = able.iter().filter(|node| node.wanted.is_none()).collect();
    if able.is_empty() {
        let detail = format!("No node that lives runs {kind}: start one that does.");
        return (WaitingReason::NoNode, detail);
    }
    if working.is_empty() {
        return (WaitingReason::NodesRest, resting(kind, &able));
    }
    if let Some(limit) = &known.limit {
        return (WaitingReason::Limit, limit.clone());
    }
    let slots = |field: fn(&NodeState) -> Option<u32>| -> u64 {
        working.iter().map(|node| u64::from(field(node).unwrap_or(0))).sum()
    };
    let (capacity, running) = (slots(|node| node.capacity), slots(|node| node.running));
    let others = match known.others {
        None | Some(0) => String::new(),
        Some(1) => " Another job of its type waits, too.".to_owned(),
        Some(count) => format!(" {count} other jobs of its type wait, too."),
    };
    if running >= capacity {
        let detail = format!("All slots of the nodes that run {kind} are taken.{others}");
        return (WaitingReason::NoSlot, detail);
    }
    (WaitingReason::Turn, format!("It is due, and begins when it is its turn.{others}"))
}

fn by_time(job: &Job) -> (WaitingReason, String) {
    let at = job.run_at;
    let failed = match job.history.last() {
        Some(failed) if failed.event == JobEvent::Retry => failed,
        Some(lost) if lost.event == JobEvent::Lose => {
            let detail =
                format!("Its node died {} times while running it. It may run again at {at}.", job.lost);
            return (WaitingReason::BetweenAttempts, detail);
        }
        _ => return (WaitingReason::Time, format!("It is to run at {at}.")),
    };
    let (before, attempts) = (job.attempt.saturating_sub(1), job.attempts);
    let why = error(failed).map(|error| format!(": {error}")).unwrap_or_default();
    let detail = format!("Attempt {before} of {attempts} failed{why}. The next one is at {at}.");
    (WaitingReason::BetweenAttempts, detail)
}

fn error(entry: &HistoryEntry) -> Option<&str> {
    let said = entry.result.get("error").and_then(Value::as_str)?;
    Some(said.trim_end_matches('.'))
}

fn resting(kind: &str, nodes: &[&NodeState]) -> String {
    let draining = nodes.iter().filter(|node| node.wanted == Some(NodeWish::Drain)).count();
    let how = match draining {
        0 => "paused",
        all if all == nodes.len() => "drained",
        _ => "paused or drained",
    };
    format!("All nodes that run {kind} are {how}: it begins when one of them is resumed.")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: UnixMillis = UnixMillis(1_893_456_000_000);
    const ID: &str = "018f0000-0000-7000-8000-000000000001";

    fn job(fields: Value) -> Job {
        let mut job = json!({
            "jobName": "a job", "jobId": ID, "jobNumber": 17, "status": "QUEUED", "runAt": NOW.0 - 10,
            "input": {"type": "wait", "payload": {}}, "result": {},
            "metadata": {"createdAt": NOW.0 - 20, "updatedAt": NOW.0 - 20, "updatedBy": ID},
        });
        let Value::Object(fields) = fields else { panic!("fields") };
        job.as_object_mut().unwrap().extend(fields);
        serde_json::from_value(job).unwrap()
    }

    fn node(fields: Value) -> NodeState {
        let mut node = json!({
            "name": "n", "id": ID, "jobQueueSection": 0, "lastSeenAt": NOW.0, "status": "ACTIVE",
            "roles": ["processor"], "types": ["wait"], "capacity": 4, "running": 1,
            "metadata": {"createdAt": NOW.0, "updatedAt": NOW.0, "updatedBy": ID},
        });
        let Value::Object(fields) = fields else { panic!("fields") };
        node.as_object_mut().unwrap().extend(fields);
        serde_json::from_value(node).unwrap()
    }

    fn told(job: &Job, nodes: &[NodeState], others: u64) -> (WaitingReason, String) {
        let told = why(job, nodes, &Circumstances { others: Some(others), limit: None }, NOW);
        (told.reason, told.detail)
    }

    #[test]
    fn each_reason_is_told_in_its_order() {
        let due = job(json!({}));
        let (free, full) = (node(json!({})), node(json!({"running": 4, "status": "BUSY"})));
        let (paused, drained) = (node(json!({"wanted": "PAUSE"})), node(json!({"wanted": "DRAIN"})));
        let gone = node(json!({"status": "TERMINATED"}));
        let other = node(json!({"types": ["http"]}));
        let web = node(json!({"roles": ["web"]}));
        let no_node = (WaitingReason::NoNode, "No node that lives runs wait: start one that does.");
        let one_paused = "All nodes that run wait are paused: it begins when one of them is resumed.";
        let both = "All nodes that run wait are paused or drained: it begins when one of them is resumed.";
        let full_only = "All slots of the nodes that run wait are taken. 2 other jobs of its type wait, too.";
        let turn = "It is due, and begins when it is its turn. 2 other jobs of its type wait, too.";
        let cases = [
            (vec![], no_node),
            (vec![gone.clone(), other, web], no_node),
            (vec![paused.clone(), gone], (WaitingReason::NodesRest, one_paused)),
            (vec![paused.clone(), drained], (WaitingReason::NodesRest, both)),
            (vec![full.clone(), paused], (WaitingReason::NoSlot, full_only)),
            (vec![full, free], (WaitingReason::Turn, turn)),
        ];
        for (nodes, (reason, detail)) in cases {
            assert_eq!(told(&due, &nodes, 2), (reason, detail.to_owned()));
        }
    }

    #[test]
    fn time_comes_first_and_says_until_when() {
        let later = NOW.plus(std::time::Duration::from_secs(60));
        let told = why(
            &job(json!({"runAt": later.0, "expiresAt": later.0 + 5})),
            &[],
            &Circumstances::default(),
            NOW,
        );
        assert_eq!((told.reason, told.until), (WaitingReason::Time, Some(later)));
        assert_eq!(told.detail, "It is to run at 2030-01-01T00:01:00Z.");
        assert_eq!(told.expires_at, Some(UnixMillis(later.0 + 5)));
        let again = job(json!({
            "runAt": later.0, "attempt": 2, "attempts": 3, "epoch": 1, "expiresAt": later.0,
            "history": [{"at": NOW.0, "event": "RETRY", "epoch": 1, "result": {"error": "no route."}}],
        }));
        let told = why(&again, &[], &Circumstances::default(), NOW);
        assert_eq!((told.reason, told.expires_at), (WaitingReason::BetweenAttempts, None));
        assert_eq!(told.detail, "Attempt 1 of 3 failed: no route. The next one is at 2030-01-01T00:01:00Z.");
        let lost = job(json!({
            "runAt": later.0, "lost": 4, "epoch": 4, "history": [{"at": NOW.0, "event": "LOSE", "epoch": 4}],
        }));
        let told = why(&lost, &[], &Circumstances::default(), NOW);
        assert_eq!((told.reason, told.until), (WaitingReason::BetweenAttempts, Some(later)));
        let detail = "Its node died 4 times while running it. It may run again at 2030-01-01T00:01:00Z.";
        assert_eq!(told.detail, detail);
    }

    #[test]
    fn a_limit_is_told_before_slots_and_what_does_not_wait_says_so() {
        let limit = Circumstances { others: None, limit: Some("3 of at most 3 run at once.".to_owned()) };
        let full = node(json!({"running": 4}));
        let told = why(&job(json!({})), &[full], &limit, NOW);
        assert_eq!(
            (told.reason, told.detail.as_str()),
            (WaitingReason::Limit, "3 of at most 3 run at once.")
        );
        let ended = why(&job(json!({"status": "SUCCESSFUL"})), &[], &limit, NOW);
        assert_eq!((ended.reason, ended.others), (WaitingReason::NotWaiting, None));
        assert_eq!(ended.detail, "It does not wait: it is SUCCESSFUL.");
    }
}
