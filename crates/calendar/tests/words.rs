//! What a person is shown before anything is saved: the next instants with their notes, and the schedule in plain words.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use rota_calendar::Calendar;
use rota_model::timer::{DstGap, DstOverlap, Schedule};

fn in_zone(cron: &str, zone: &str) -> Schedule {
    let mut schedule = Schedule::new(cron);
    schedule.time_zone = zone.to_owned();
    schedule
}

/// `local time` or `local time: note`.
fn shown(schedule: &Schedule, from: &str, count: u32) -> Vec<String> {
    let calendar = Calendar::of(schedule).unwrap();
    let preview = calendar.preview(from.parse().unwrap(), count);
    preview
        .into_iter()
        .map(|one| one.note.map_or(one.local.clone(), |note| format!("{}: {note}", one.local)))
        .collect()
}

#[test]
fn what_comes_twice_is_marked() {
    let mut nightly = in_zone("30 2 * * *", "Europe/Berlin");
    let note = "02:30 comes twice on 2026-10-25: clocks go back from 03:00 to 02:00; this is the";
    assert_eq!(
        shown(&nightly, "2026-10-23T22:00:00Z", 3),
        [
            "2026-10-24T02:30:00+02:00".to_owned(),
            format!("2026-10-25T02:30:00+02:00: {note} first"),
            "2026-10-26T02:30:00+01:00".to_owned()
        ]
    );
    nightly.dst_overlap = DstOverlap::Both;
    assert_eq!(
        shown(&nightly, "2026-10-25T00:30:00Z", 2),
        [
            format!("2026-10-25T02:30:00+02:00: {note} first"),
            format!("2026-10-25T02:30:00+01:00: {note} second")
        ]
    );
}

#[test]
fn what_does_not_exist_is_marked() {
    let mut nightly = in_zone("30 2 * * *", "Europe/Berlin");
    let note = "02:30 does not exist on 2026-03-29: clocks go from 02:00 to 03:00";
    assert_eq!(
        shown(&nightly, "2026-03-28T12:00:00Z", 2),
        [
            format!("2026-03-29T03:00:00+02:00: {note}; due right after"),
            "2026-03-30T02:30:00+02:00".to_owned()
        ]
    );
    nightly.dst_gap = DstGap::Skip;
    assert_eq!(
        shown(&nightly, "2026-03-28T12:00:00Z", 2),
        [
            format!("2026-03-30T02:30:00+02:00: {note}; left out before this"),
            "2026-03-31T02:30:00+02:00".to_owned()
        ]
    );
    let once = in_zone("@at 2026-03-29T02:30", "Europe/Berlin");
    assert_eq!(
        shown(&once, "2026-01-01T00:00:00Z", 2),
        [format!("2026-03-29T03:00:00+02:00: {note}; due right after")]
    );
    let noon = in_zone("0 12 * * *", "Pacific/Apia");
    assert_eq!(
        shown(&noon, "2011-12-30T00:00:00Z", 1),
        [
            "2011-12-31T00:00:00+14:00: 12:00 does not exist on 2011-12-30: clocks go from 2011-12-30 00:00 to 2011-12-31 \
          00:00; due right after"
        ]
    );
}

#[test]
fn a_rhythm_goes_on_and_says_where() {
    let quarters = in_zone("*/15 * * * *", "Europe/Berlin");
    assert_eq!(
        shown(&quarters, "2026-03-29T00:45:00Z", 3),
        [
            "2026-03-29T01:45:00+01:00",
            "2026-03-29T03:00:00+02:00: 02:00 does not exist on 2026-03-29: clocks go from 02:00 to 03:00; left out before this",
            "2026-03-29T03:15:00+02:00"
        ]
    );
    assert_eq!(
        shown(&in_zone("@every 1h", "Europe/Berlin"), "2026-10-25T00:00:00Z", 1),
        ["2026-10-25T02:00:00+02:00"]
    );
}

#[test]
fn a_preview_ends_with_the_schedule() {
    let mut twice = Schedule::new("@daily");
    twice.max_executions = Some(2);
    assert_eq!(
        shown(&twice, "2026-01-01T00:00:00Z", 5),
        ["2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"]
    );
    let calendar = Calendar::of(&twice).unwrap();
    let at = "2026-01-01T00:00:00Z".parse().unwrap();
    assert!(calendar.next_due(at, 1).is_some());
    assert_eq!(calendar.next_due(at, 2), None);
}

#[test]
fn schedules_are_told_in_plain_words() {
    let changes = " A time that the clocks jump over is due right after the change; one that they show twice is due the first time.";
    for (cron, zone, words) in [
        (
            "0 9 * * 1-5",
            "Europe/Berlin",
            format!("At 09:00, on Monday to Friday, in Europe/Berlin.{changes}"),
        ),
        ("30 2 * * *", "UTC", "At 02:30, every day, in UTC.".to_owned()),
        (
            "*/15 * * * *",
            "Europe/Berlin",
            "Every 15 minutes, every day, in Europe/Berlin. When clocks change it goes on by elapsed time."
                .to_owned(),
        ),
        ("* * * * *", "UTC", "Every minute, every day, in UTC.".to_owned()),
        ("*/10 * * * * *", "UTC", "Every 10 seconds, every day, in UTC.".to_owned()),
        ("@hourly", "UTC", "At minute 0 of every hour, every day, in UTC.".to_owned()),
        (
            "5,35 */2 * * *",
            "UTC",
            "At minutes 5 and 35 of every 2nd hour from 0 on, every day, in UTC.".to_owned(),
        ),
        ("*/20 9-17 * * *", "UTC", "Every 20 minutes in hours 9 to 17, every day, in UTC.".to_owned()),
        ("0 0,12 1,15 * *", "UTC", "At 00:00 and 12:00, on days 1 and 15 of the month, in UTC.".to_owned()),
        ("15 30 9 * * *", "UTC", "At 09:30:15, every day, in UTC.".to_owned()),
        (
            "0 0 13 * 5",
            "UTC",
            "At 00:00, on day 13 of the month and on Friday, whichever it is, in UTC.".to_owned(),
        ),
        ("0 0 L * *", "UTC", "At 00:00, on the last day of the month, in UTC.".to_owned()),
        (
            "0 0 15W,LW * ?",
            "UTC",
            "At 00:00, on the weekday nearest to the 15th and the last weekday of the month, in UTC."
                .to_owned(),
        ),
        (
            "0 0 * * 5#2,1L",
            "UTC",
            "At 00:00, on the 2nd Friday of the month and the last Monday of the month, in UTC.".to_owned(),
        ),
        (
            "0 0 1 JAN,JUL *",
            "UTC",
            "At 00:00, on day 1 of the month, in January and July, in UTC.".to_owned(),
        ),
        (
            "@every 90s",
            "UTC",
            "Every 1m 30s, counted from 1970-01-01T00:00:00Z, whatever the clocks show.".to_owned(),
        ),
        (
            "@at 2030-01-31T08:00",
            "Europe/Berlin",
            "Once, on 2030-01-31 at 08:00:00 in Europe/Berlin.".to_owned(),
        ),
    ] {
        assert_eq!(Calendar::of(&in_zone(cron, zone)).unwrap().explain(), words, "{cron}");
    }
}

#[test]
fn the_window_is_told_too() {
    let mut schedule = Schedule::new("@daily");
    schedule.start_time = Some("2026-01-01T00:00:00Z".parse().unwrap());
    schedule.max_executions = Some(3);
    let words = Calendar::of(&schedule).unwrap().explain();
    assert!(words.ends_with("Only from 2026-01-01T00:00:00Z on, 3 times at most."), "{words}");
}
