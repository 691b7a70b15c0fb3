//! The schedules of backups: when they run, and the expression in UTC that stands beside them.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use jiff::Timestamp;
use proptest::prelude::*;
use rota_calendar::{Calendar, backup};
use rota_model::backup::schedule::{BackupSchedule, DayOfWeek, Frequency};
use rota_model::ids::ScheduleId;
use rota_model::timer::Schedule;
use serde_json::{Value, json};

fn schedule(zone: &str, fields: &Value) -> BackupSchedule {
    let mut document = json!({
        "scheduleId": ScheduleId::derived(&["s"]), "scheduleName": "nightly", "serverName": "files",
        "createdTime": 1, "lastModifiedTime": 1, "timeZone": zone
    });
    document.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(document).unwrap()
}

/// The next run after an instant, and the expression in force until then.
fn next(schedule: &BackupSchedule, after: &str) -> (String, Option<String>) {
    let after: Timestamp = after.parse().unwrap();
    let next = Calendar::of_backup(schedule).unwrap().next_after(after).unwrap();
    (next.to_string(), backup::utc_expression(schedule, after).unwrap())
}

fn assert_next(schedule: &BackupSchedule, after: &str, run: &str, expression: &str) {
    assert_eq!(next(schedule, after), (run.to_owned(), Some(expression.to_owned())), "after {after}");
}

#[test]
fn daily_stays_at_its_local_time() {
    let daily = schedule("Europe/Berlin", &json!({"frequency": "DAILY", "runAtTime": "02:00"}));
    assert_next(&daily, "2026-01-15T12:00:00Z", "2026-01-16T01:00:00Z", "0 1 * * *");
    assert_next(&daily, "2026-07-15T12:00:00Z", "2026-07-16T00:00:00Z", "0 0 * * *");
    let skipped = schedule("Europe/Berlin", &json!({"frequency": "DAILY", "runAtTime": "02:30"}));
    assert_next(&skipped, "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z", "0 1 * * *");
    assert_next(&skipped, "2026-03-29T12:00:00Z", "2026-03-30T00:30:00Z", "30 0 * * *");
    assert_next(&skipped, "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z", "30 0 * * *");
}

/// After the run at 00:00Z the next is at 01:00Z of the next day: `0 1 * * *` would run again within the hour.
#[test]
fn the_expression_never_runs_before_the_next_run() {
    let daily = schedule("Europe/Berlin", &json!({"frequency": "DAILY", "runAtTime": "02:00"}));
    assert_next(&daily, "2026-10-25T00:00:00Z", "2026-10-26T01:00:00Z", "0 1 26 10 *");
    assert_next(&daily, "2026-10-25T01:00:00Z", "2026-10-26T01:00:00Z", "0 1 * * *");
}

#[test]
fn a_monday_in_berlin_is_a_sunday_in_utc() {
    let fields = json!({"frequency": "WEEKLY", "runAtTime": "00:30", "dayOfWeek": "MONDAY"});
    let weekly = schedule("Europe/Berlin", &fields);
    assert_next(&weekly, "2026-01-01T00:00:00Z", "2026-01-04T23:30:00Z", "30 23 * * 0");
    assert_next(&weekly, "2026-07-01T00:00:00Z", "2026-07-05T22:30:00Z", "30 22 * * 0");
    let fields = json!({"frequency": "WEEKLY", "runAtTime": "20:00", "dayOfWeek": "SATURDAY"});
    let weekly = schedule("America/New_York", &fields);
    assert_next(&weekly, "2026-01-01T00:00:00Z", "2026-01-04T01:00:00Z", "0 1 * * 0");
}

#[test]
fn a_monthly_31st_is_the_last_day_of_a_shorter_month() {
    let fields = json!({"frequency": "MONTHLY", "runAtTime": "02:00", "dayOfMonth": 31});
    let monthly = schedule("Europe/Berlin", &fields);
    assert_next(&monthly, "2026-01-31T12:00:00Z", "2026-02-28T01:00:00Z", "0 1 28 * *");
    assert_next(&monthly, "2026-02-28T12:00:00Z", "2026-03-31T00:00:00Z", "0 0 31 * *");
    assert_next(&monthly, "2026-03-31T12:00:00Z", "2026-04-30T00:00:00Z", "0 0 30 * *");
    assert_next(&monthly, "2028-02-01T12:00:00Z", "2028-02-29T01:00:00Z", "0 1 29 * *");
    let fields = json!({"frequency": "MONTHLY", "runAtTime": "00:30", "dayOfMonth": 1});
    let first = schedule("Europe/Berlin", &fields);
    assert_next(&first, "2026-01-15T12:00:00Z", "2026-01-31T23:30:00Z", "30 23 31 * *");
    assert_next(&first, "2026-02-15T12:00:00Z", "2026-02-28T23:30:00Z", "30 23 28 * *");
}

#[test]
fn once_has_its_instant_and_no_expression() {
    let once = schedule("Europe/Berlin", &json!({"frequency": "ONCE", "runOnceAt": 1_900_000_000_123_i64}));
    assert_eq!(next(&once, "2026-01-01T00:00:00Z"), ("2030-03-17T17:46:40.123Z".to_owned(), None));
    let calendar = Calendar::of_backup(&once).unwrap();
    assert_eq!(calendar.next_after("2030-03-17T17:46:40.123Z".parse().unwrap()), None);
    assert_eq!(backup::utc_expression(&once, "2031-01-01T00:00:00Z".parse().unwrap()), Ok(None));
}

#[test]
fn what_is_at_fault_is_named() {
    let unknown = schedule("Mars/Olympus", &json!({"frequency": "DAILY", "runAtTime": "02:00"}));
    assert_eq!(Calendar::of_backup(&unknown).unwrap_err().0[0].pointer, "/timeZone");
    let without = schedule("UTC", &json!({"frequency": "DAILY"}));
    assert_eq!(Calendar::of_backup(&without).unwrap_err().0[0].pointer, "/runAtTime");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// The expression in force leads to the next run, whatever the zone, the time and the day.
    #[test]
    fn the_expression_in_force_leads_to_the_next_run(
        zone in prop::sample::select(&["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "UTC"][..]),
        frequency in prop::sample::select(&[Frequency::Daily, Frequency::Weekly, Frequency::Monthly][..]),
        (hour, minute) in (0u8..24, 0u8..60),
        weekday in prop::sample::select(DayOfWeek::ALL),
        date in 1u8..32,
        after in 1_000_000_000i64..4_000_000_000,
    ) {
        let mut fields = json!({"frequency": frequency, "runAtTime": format!("{hour:02}:{minute:02}")});
        match frequency {
            Frequency::Weekly => fields["dayOfWeek"] = json!(weekday),
            Frequency::Monthly => fields["dayOfMonth"] = json!(date),
            _ => {}
        }
        let schedule = schedule(zone, &fields);
        let after = Timestamp::from_second(after).unwrap();
        let run = Calendar::of_backup(&schedule).unwrap().next_after(after);
        let expression = backup::utc_expression(&schedule, after).unwrap().unwrap();
        let in_utc = Calendar::of(&Schedule::new(&expression)).unwrap();
        prop_assert_eq!(in_utc.next_after(after), run, "{} {:?}", expression, schedule);
    }
}
