//! The collections of Rota.

use std::time::Duration;

use super::{Collection, DOMAIN, Deleting, Field, Index, Kind, Reach, Retention};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// An index is paid for at every change of what it holds. So there is none by status as such: what is rare (failures)
/// has a small index of its own, and what waits or runs is found by the index that claims use.
pub static JOBS: Collection = Collection {
    name: "jobs",
    fields: &[
        Field::fixed("domain", Kind::Keyword),
        Field::fixed("jobName", Kind::Keyword),
        Field::fixed("jobNumber", Kind::Integer),
        Field::fixed("input.type", Kind::Keyword),
        Field::fixed("priority", Kind::Integer),
        Field::fixed("section", Kind::Integer),
        Field::fixed("metadata.createdAt", Kind::Integer),
        Field::changing("status", Kind::Keyword),
        Field::changing("runAt", Kind::Integer),
        Field::changing("attempt", Kind::Integer),
        Field::changing("lost", Kind::Integer),
        Field::changing("epoch", Kind::Integer),
        Field::changing("owner", Kind::Keyword),
        Field::changing("ownerNode", Kind::Keyword),
        Field::changing("claimToken", Kind::Keyword),
        Field::changing("startedAt", Kind::Integer),
        Field::changing("finishedAt", Kind::Integer),
        Field::changing("progress", Kind::Json),
        Field::changing("history", Kind::Json),
        Field::changing("result", Kind::Json),
        Field::changing("metadata.updatedAt", Kind::Integer),
        Field::changing("metadata.updatedBy", Kind::Keyword),
    ],
    indexes: &[
        Index { name: "due", fields: &["priority", "runAt", "jobNumber"], only: Some(("status", "QUEUED")) },
        Index { name: "held", fields: &["owner"], only: Some(("status", "STARTED")) },
        Index { name: "newest", fields: NEWEST, only: None },
        Index { name: "failed", fields: NEWEST, only: Some(("status", "FAILED")) },
        Index { name: "error", fields: NEWEST, only: Some(("status", "ERROR")) },
    ],
    text: &["jobName", "result.error"],
    counted: &["domain", "status", "input.type"],
    deleting: Deleting::Hides(HOUR),
    ..Collection::PLAIN
};

const NEWEST: &[&str] = &["domain", "metadata.createdAt", "jobNumber"];

pub static STATE: Collection = Collection {
    name: "state",
    fields: &[
        Field::fixed("name", Kind::Keyword),
        Field::changing("status", Kind::Keyword),
        Field::changing("lastSeenAt", Kind::Integer),
        Field::changing("jobQueueSection", Kind::Integer),
        Field::changing("running", Kind::Integer),
        Field::changing("metadata.updatedAt", Kind::Integer),
        Field::changing("metadata.updatedBy", Kind::Keyword),
    ],
    ..Collection::PLAIN
};

pub static USERS: Collection = Collection {
    name: "users",
    fields: &[Field::fixed("hashed_api_key", Kind::Keywords)],
    ..Collection::PLAIN
};

pub static DOMAINS: Collection = Collection { name: "domains", ..Collection::PLAIN };

pub static SETTINGS: Collection = Collection { name: "settings", ..Collection::PLAIN };

pub static TIMERS: Collection = Collection {
    name: "timers",
    reach: Reach::Domain,
    fields: &[
        Field::fixed("name", Kind::Keyword),
        Field::fixed("task.type", Kind::Keyword),
        Field::fixed("status", Kind::Keyword),
        Field::fixed("section", Kind::Integer),
    ],
    indexes: &[Index { name: "of_section", fields: &["section"], only: Some(("status", "ACTIVE")) }],
    text: &["name"],
    counted: &["status"],
    deleting: Deleting::Hides(HOUR),
    ..Collection::PLAIN
};

pub static EXECUTIONS: Collection = Collection {
    name: "executions",
    reach: Reach::Domain,
    fields: &[
        Field::fixed("timer_uuid", Kind::Keyword),
        Field::fixed("due", Kind::Date),
        Field::fixed("outcome", Kind::Keyword),
        Field::fixed("finished", Kind::Date),
        Field::fixed("job_id", Kind::Keyword),
    ],
    indexes: &[
        Index { name: "of_timer", fields: &["timer_uuid", "due"], only: None },
        Index { name: "newest", fields: &[DOMAIN, "due"], only: None },
        Index { name: "of_job", fields: &["job_id"], only: None },
    ],
    counted: &["outcome"],
    deleting: Deleting::Hides(HOUR),
    ..Collection::PLAIN
};

/// Its documents are small and change as a whole.
pub static PROGRESS: Collection = Collection {
    name: "progress",
    fields: &[
        Field::fixed("last_execution", Kind::Date),
        Field::fixed("completed_executions", Kind::Integer),
        Field::fixed("next_due", Kind::Date),
    ],
    indexes: &[Index { name: "due", fields: &["next_due"], only: None }],
    ..Collection::PLAIN
};

pub static JOB_TYPES: Collection = Collection {
    name: "job-types",
    fields: &[Field::fixed("domain", Kind::Keyword), Field::fixed("type", Kind::Keyword)],
    indexes: &[Index { name: "of_domain", fields: &["domain", "type"], only: None }],
    ..Collection::PLAIN
};

pub static LOGS: Collection = Collection {
    name: "logs",
    fields: &[
        Field::fixed("domain", Kind::Keyword),
        Field::fixed("jobId", Kind::Keyword),
        Field::fixed("origin", Kind::Keyword),
        Field::fixed("level", Kind::Keyword),
        Field::fixed("metadata.createdAt", Kind::Integer),
    ],
    indexes: &[
        Index { name: "newest", fields: &["metadata.createdAt"], only: None },
        Index { name: "of_domain", fields: &["domain", "metadata.createdAt"], only: None },
        Index { name: "of_job", fields: &["jobId", "metadata.createdAt"], only: None },
    ],
    text: &["title", "message"],
    kept: Retention::For { since: "metadata.createdAt", span: DAY.saturating_mul(30) },
    ..Collection::PLAIN
};

pub static METRICS: Collection = Collection {
    name: "metrics",
    fields: &[Field::fixed("bucketStart", Kind::Date)],
    indexes: &[Index { name: "by_time", fields: &["bucketStart"], only: None }],
    kept: Retention::For { since: "bucketStart", span: DAY.saturating_mul(7) },
    ..Collection::PLAIN
};

/// Every collection there is.
pub static ALL: [&Collection; 11] = [
    &JOBS,
    &STATE,
    &USERS,
    &DOMAINS,
    &SETTINGS,
    &TIMERS,
    &EXECUTIONS,
    &PROGRESS,
    &JOB_TYPES,
    &LOGS,
    &METRICS,
];
