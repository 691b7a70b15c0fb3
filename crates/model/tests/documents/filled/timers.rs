//! The documents of seed 000.

use rota_model::Extra;
use rota_model::execution::{Cause, Execution, Outcome};
use rota_model::ids::{JobId, TimerId};
use rota_model::progress::Progress;
use rota_model::timer::{DstGap, DstOverlap, Misfire, Overlap, Schedule, Task, Timer, TimerStatus};
use serde_json::json;

use super::{Filled, date, later};

pub(super) fn documents() -> Vec<Filled> {
    vec![
        Filled::new("timers", &timer(), &["", "/task", "/schedule"]),
        Filled::new("executions", &execution(), &[""]),
        Filled::new("progress", &progress(), &[""]),
    ]
}

fn timer() -> Timer {
    Timer {
        task: Task { kind: Some("http".to_owned()), payload: Some(json!({"url": "x"})), extra: Extra::new() },
        schedule: Schedule {
            cron: "30 2 * * *".to_owned(),
            start_time: Some(date()),
            stop_time: Some(later()),
            max_executions: Some(100),
            time_zone: "Europe/Berlin".to_owned(),
            dst_gap: DstGap::Skip,
            dst_overlap: DstOverlap::Both,
            misfire: Misfire::FireEach,
            overlap: Overlap::Wait,
            jitter_ms: 250,
            extra: Extra::new(),
        },
        name: Some("nightly".to_owned()),
        status: TimerStatus::Paused,
        section: Some(17),
        extra: Extra::new(),
    }
}

fn execution() -> Execution {
    Execution {
        timer_uuid: TimerId::derived(&["timer"]),
        data: Some("{\"ok\":true}".to_owned()),
        due: date(),
        until: Some(later()),
        count: Some(365),
        cause: Cause::Request("backfill-1".to_owned()),
        started: Some(date()),
        finished: Some(later()),
        outcome: Some(Outcome::Late),
        reason: Some("the scheduler was away".to_owned()),
        fired_so_far: 41,
        timer_version: Some(3),
        job_id: Some(JobId::derived(&["job"])),
        extra: Extra::new(),
    }
}

fn progress() -> Progress {
    Progress {
        last_execution: Some(date()),
        completed_executions: 41,
        next_due: Some(later()),
        zone_data_version: Some("2026a".to_owned()),
        extra: Extra::new(),
    }
}
