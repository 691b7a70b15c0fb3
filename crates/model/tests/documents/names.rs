//! Names are those of the seeds, and fields of a newer version survive.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::filled;

/// Collection, object in its document, the names that the seed gives it, the names that Rota adds.
#[rustfmt::skip] // One line per name would hide the table.
const NAMES: &[(&str, &str, &[&str], &[&str])] = &[
    ("users", "", &["hashed_api_key"], &[
        "id", "keys", "domains", "installation_admin", "display_name", "email", "created",
    ]),
    ("progress", "", &["last_execution", "completed_executions"], &["next_due", "zone_data_version"]),
    ("executions", "", &["timer_uuid", "data"], &[
        "due", "until", "count", "cause", "started", "finished", "outcome", "reason", "fired_so_far",
        "timer_version", "job_id",
    ]),
    ("timers", "", &["task", "schedule"], &["name", "status", "section"]),
    ("timers", "/task", &[], &["type", "payload"]),
    ("timers", "/schedule", &["cron", "start_time", "stop_time", "max_executions"], &[
        "time_zone", "dst_gap", "dst_overlap", "misfire", "overlap", "jitter_ms",
    ]),
    ("backup-schedules", "", &[
        "scheduleId", "scheduleName", "serverName", "vendor", "model", "frequency", "cronExpression", "runOnceAt",
        "runAtTime", "dayOfWeek", "dayOfMonth", "status", "createdTime", "lastModifiedTime", "createdByUser",
        "lastModifiedByUser", "lastRunTime", "nextRunTime", "timeZone", "forceUpload",
    ], &["domain"]),
    ("backup-job-execution", "", &[
        "jobId", "jobName", "scheduleId", "status", "totalNEs", "succeededNEs", "abortedNEs", "failedNEs",
        "startTime", "endTime", "jobCreatedTime", "jobUpdatedTime", "abortedByUser",
    ], &["kind", "domain"]),
    ("backup-job-ne-executions", "", &[
        "jobId", "neId", "status", "retryAttempt", "retryEligible", "startTime", "endTime", "errorMessage",
        "backupFileStoredPath",
    ], &["contentHash", "sizeBytes", "epoch", "domain"]),
    ("server-configuration", "", &[
        "username-at-file-server", "password-at-file-server", "destination-uri", "serverName", "serverId", "ssh-key",
        "retention-period",
    ], &["domain"]),
    ("network-elements", "", &["neId", "vendor", "model"], &[
        "name", "address", "port", "group", "credentialsRef", "domain",
    ]),
    ("services", "", &["service", "pattern"], &[]),
    ("nodes", "", &["service", "node", "available", "current_load", "capacity", "downed", "backoff"], &[]),
    ("assignments", "", &[
        "service", "email", "node", "generation", "client_state", "created_at", "replaced_at", "uid",
    ], &[]),
    ("logs", "", &["title", "message", "origin", "context", "metadata"], &["level", "jobId", "domain"]),
    ("logs", "/metadata", &["createdAt", "updatedAt", "updatedBy"], &[]),
    ("metrics", "", &["bucketStart", "bucketEnd", "metrics", "metadata"], &[]),
    ("job-types", "", &[], &[
        "domain", "type", "schema", "attempts", "backoff", "timeoutMs", "concurrency", "startsPerSecond", "perKey",
    ]),
    ("job-types", "/perKey", &[], &["concurrency", "startsPerSecond"]),
    ("limits", "", &[], &["domain", "type", "key", "holders", "held", "clockUs", "startedUs", "metadata"]),
    ("limits", "/holders/0", &[], &["incarnation", "node", "slots", "wants"]),
    ("job-types", "/backoff", &[], &["delayMs", "factor", "maxDelayMs"]),
];

#[test]
fn every_name_is_spelled_as_it_was_given() {
    for (document, pointer, seed, added) in NAMES {
        let written = filled::document(document);
        let fields = written.pointer(pointer).and_then(Value::as_object).unwrap();
        let names: BTreeSet<&str> = fields.keys().map(String::as_str).collect();
        let expected: BTreeSet<&str> = seed.iter().chain(*added).copied().collect();
        assert_eq!(names, expected, "{document}{pointer}");
    }
}

#[test]
fn every_document_comes_back_as_it_was_written() {
    for filled in filled::documents() {
        let back = (filled.through)(filled.written.clone()).unwrap();
        assert_eq!(back, filled.written, "{}", filled.name);
    }
}

#[test]
fn fields_of_a_newer_version_survive() {
    for filled in filled::documents() {
        for pointer in filled.open {
            let mut newer = filled.written.clone();
            let open = newer.pointer_mut(pointer).and_then(Value::as_object_mut).unwrap();
            open.insert("notYetKnown".to_owned(), json!({"a": [1, 2.5, null, "ä"], "b": {}}));
            let back = (filled.through)(newer.clone()).unwrap();
            assert_eq!(back, newer, "{}{pointer}", filled.name);
        }
    }
}

#[test]
fn no_secret_is_written_in_clear() {
    for filled in filled::documents() {
        assert!(!filled.written.to_string().contains("hunter2"), "{}", filled.name);
    }
}

/// The statuses of seed 001, which the documents spell in capitals.
#[test]
fn statuses_are_those_of_the_seed() {
    use rota_model::backup::{element_execution::ElementStatus, job::BackupStatus, schedule};
    let words = |all: Vec<&'static str>| all.into_iter().collect::<BTreeSet<_>>();
    let schedules = words(schedule::ScheduleStatus::ALL.iter().map(|status| status.as_str()).collect());
    assert_eq!(schedules, BTreeSet::from(["SCHEDULED", "PAUSED", "COMPLETED", "CANCELLED"]));
    let frequencies = words(schedule::Frequency::ALL.iter().map(|frequency| frequency.as_str()).collect());
    assert_eq!(frequencies, BTreeSet::from(["ONCE", "WEEKLY", "DAILY", "MONTHLY"]));
    let jobs = words(BackupStatus::ALL.iter().map(|status| status.as_str()).collect());
    assert_eq!(jobs, BTreeSet::from(["PENDING", "IN_PROGRESS", "SUCCEEDED", "ABORTED", "FAILED", "PARTIAL"]));
    let elements = words(ElementStatus::ALL.iter().map(|status| status.as_str()).collect());
    assert_eq!(elements, BTreeSet::from(["IDLE", "ONGOING", "COMPLETED", "FAILED", "ABORTED"]));
}
