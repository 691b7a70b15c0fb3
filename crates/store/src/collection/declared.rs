//! The collections of Rota.

use std::time::Duration;

use super::{Collection, DOMAIN, Deleting, Field, Index, Kind, Reach, Retention};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// An index is paid for at every change of what it holds. So there is none by status as such: what is rare (failures)
/// has a small index of its own, and what waits or runs is found by the index that claims use. Few jobs expire, and only
/// those stand in the index of what expires. A type never changes and few are in use, so that an index by it grows in few
/// places; names are many, and are found by their words.
pub static JOBS: Collection = Collection {
    name: "jobs",
    fields: &[
        Field::fixed("domain", Kind::Keyword),
        Field::fixed("jobName", Kind::Keyword),
        Field::fixed("jobNumber", Kind::Integer),
        Field::fixed("input.type", Kind::Keyword),
        Field::fixed("priority", Kind::Integer),
        Field::fixed("lane", Kind::Keyword),
        Field::fixed("section", Kind::Integer),
        Field::fixed("metadata.createdAt", Kind::Integer),
        Field::fixed("expiresAt", Kind::Integer),
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
        Index::new("due", &["lane", "runAt", "jobNumber"]).only("status", "QUEUED"),
        Index::new("held", &["owner"]).only("status", "STARTED"),
        Index::new("newest", NEWEST),
        Index::new("of_type", &["domain", "input.type", "metadata.createdAt", "jobNumber"]),
        Index::new("failed", NEWEST).only("status", "FAILED"),
        Index::new("error", NEWEST).only("status", "ERROR"),
        Index::new("expiring", &["expiresAt"]).only("status", "QUEUED").sparse(),
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
        Field::changing("wanted", Kind::Keyword),
        Field::changing("metadata.updatedAt", Kind::Integer),
        Field::changing("metadata.updatedBy", Kind::Keyword),
    ],
    urgent: true,
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
    indexes: &[
        Index::new("of_section", &["section"]).only("status", "ACTIVE"),
        Index::new("of_type", &[DOMAIN, "task.type"]),
    ],
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
        Index::new("of_timer", &["timer_uuid", "due"]),
        Index::new("newest", &[DOMAIN, "due"]),
        Index::new("of_job", &["job_id"]),
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
    indexes: &[Index::new("due", &["next_due"])],
    ..Collection::PLAIN
};

pub static JOB_TYPES: Collection = Collection {
    name: "job-types",
    fields: &[
        Field::fixed("domain", Kind::Keyword),
        Field::fixed("type", Kind::Keyword),
        Field::fixed("limited", Kind::Integer),
    ],
    indexes: &[Index::new("of_domain", &["domain", "type"]), Index::new("limited", &["limited"]).sparse()],
    ..Collection::PLAIN
};

/// Its documents are small and change as a whole.
pub static UNIQUE_KEYS: Collection = Collection {
    name: "unique-keys",
    fields: &[Field::fixed("domain", Kind::Keyword), Field::fixed("metadata.updatedAt", Kind::Integer)],
    indexes: &[Index::new("by_age", &["metadata.updatedAt"])],
    ..Collection::PLAIN
};

/// Its documents are small and change as a whole. Only those that somebody holds stand in the index by which the dead among
/// the holders are found.
pub static LIMITS: Collection = Collection {
    name: "limits",
    fields: &[
        Field::fixed("domain", Kind::Keyword),
        Field::fixed("held", Kind::Integer),
        Field::fixed("metadata.updatedAt", Kind::Integer),
    ],
    indexes: &[Index::new("by_holders", &["held"]).sparse(), Index::new("by_age", &["metadata.updatedAt"])],
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
        Index::new("newest", &["metadata.createdAt"]),
        Index::new("of_domain", &["domain", "metadata.createdAt"]),
        Index::new("of_job", &["jobId", "metadata.createdAt"]),
    ],
    text: &["title", "message"],
    kept: Retention::For { since: "metadata.createdAt", span: DAY.saturating_mul(30) },
    ..Collection::PLAIN
};

pub static METRICS: Collection = Collection {
    name: "metrics",
    fields: &[Field::fixed("bucketStart", Kind::Date)],
    indexes: &[Index::new("by_time", &["bucketStart"])],
    kept: Retention::For { since: "bucketStart", span: DAY.saturating_mul(7) },
    ..Collection::PLAIN
};

/// Every collection there is.
pub static ALL: [&Collection; 13] = [
    &JOBS,
    &STATE,
    &USERS,
    &DOMAINS,
    &SETTINGS,
    &TIMERS,
    &EXECUTIONS,
    &PROGRESS,
    &JOB_TYPES,
    &UNIQUE_KEYS,
    &LIMITS,
    &LOGS,
    &METRICS,
];
