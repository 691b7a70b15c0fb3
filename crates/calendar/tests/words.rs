//! What a person is shown before anything is saved: the next instants with their notes, and the schedule in plain words.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use jiff::Timestamp;
use rota_calendar::Calendar;
use rota_model::timer::{DstGap, DstOverlap, Schedule};

fn in_zone(cron: &str, zone: &str) -> Schedule {
    let mut schedule = Schedule::new(cron);
    schedule.time_zone = zone.to_owned();
    schedule
}

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
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
        ("*/20 9-17 * * *", "UTC", "Every 20 minutes from 09:00 to 17:40, every day, in UTC.".to_owned()),
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
            "Every 1 minute and 30 seconds, counted from 1970-01-01T00:00:00Z, whatever the clocks show."
                .to_owned(),
        ),
        (
            "@at 2030-01-31T08:00",
            "Europe/Berlin",
            "Once, on 2030-01-31 at 08:00:00 in Europe/Berlin.".to_owned(),
        ),
    ] {
        assert_eq!(Calendar::of(&in_zone(cron, zone)).unwrap().explain(now()), words, "{cron}");
    }
}

#[test]
fn every_part_of_a_time_is_told() {
    for (cron, words) in [
        ("* 0 * * *", "Every minute from 00:00 to 00:59, every day"),
        ("*/10 2 * * *", "Every 10 minutes from 02:00 to 02:50, every day"),
        ("*/30 9,17 * * *", "Every 30 minutes in hours 9 and 17, every day"),
        ("*/30 */6 * * *", "Every 30 minutes in every 6th hour from 0 on, every day"),
        ("0 0/23 * * *", "At minute 0 of hours 0 and 23, every day"),
        ("30 * * * * *", "At second 30 of every minute, every day"),
        ("30 0 * * * *", "At second 30 of minute 0 of every hour, every day"),
        ("30 */5 * * * *", "At second 30 of every 5th minute, every day"),
        ("30 * 9 * * *", "At second 30 of every minute from 09:00 to 09:59, every day"),
        ("*/20 * 9-17 * * *", "Every 20 seconds from 09:00 to 17:59, every day"),
        ("* 5 * * * *", "Every second of minute 5 of every hour, every day"),
        ("0 0 * * 1,2", "At 00:00, on Monday and Tuesday"),
        ("0 0 * * 1,2,5", "At 00:00, on Monday, Tuesday and Friday"),
        ("0 0 1,2 * *", "At 00:00, on days 1 and 2 of the month"),
        ("0 0 * * MON-WED,SAT", "At 00:00, on Monday to Wednesday and Saturday"),
    ] {
        let calendar = Calendar::of(&Schedule::new(cron)).unwrap();
        assert_eq!(calendar.explain(now()), format!("{words}, in UTC."), "{cron}");
    }
    for (cron, words) in [
        ("@every 7d", "Every 7 days, counted"),
        ("@every 24h", "Every day, counted"),
        ("@every 1h1m1s", "Every 1 hour, 1 minute and 1 second, counted"),
    ] {
        let told = Calendar::of(&Schedule::new(cron)).unwrap().explain(now());
        assert!(told.starts_with(words), "{told}");
    }
}

#[test]
fn a_rhythm_says_what_changes_of_the_clocks_do_to_it() {
    let goes_on = "When clocks change it goes on by elapsed time.";
    let follows = "A time that the clocks jump over is left out; one that they show twice is due both times.";
    for (cron, zone, words) in [
        ("*/10 * * * *", "Europe/Berlin", goes_on),
        ("@hourly", "Europe/Berlin", goes_on),
        ("*/10 2 * * *", "Europe/Berlin", follows),
        ("0 */2 * * *", "Europe/Berlin", follows),
        ("@hourly", "Australia/Lord_Howe", follows),
    ] {
        let told = Calendar::of(&in_zone(cron, zone)).unwrap().explain(now());
        assert!(told.ends_with(words), "{cron} {told}");
    }
    let once = Calendar::of(&in_zone("@at 2026-03-29T02:30", "Europe/Berlin")).unwrap().explain(now());
    assert_eq!(
        once,
        "Once, on 2026-03-29 at 03:00:00 in Europe/Berlin, since 02:30 does not exist there that day."
    );
}

#[test]
fn the_window_is_told_too() {
    let mut schedule = Schedule::new("@daily");
    schedule.start_time = Some("2026-01-01T00:00:00Z".parse().unwrap());
    schedule.max_executions = Some(3);
    let words = Calendar::of(&schedule).unwrap().explain(now());
    assert!(words.ends_with("Only from 2026-01-01T00:00:00Z on, 3 times at most."), "{words}");
    schedule.max_executions = Some(1);
    let words = Calendar::of(&schedule).unwrap().explain(now());
    assert!(words.ends_with("on, once at most."), "{words}");
}

#[test]
fn a_start_brings_no_note_about_changes_before_it() {
    let mut hourly = in_zone("@hourly", "Asia/Kathmandu");
    hourly.start_time = Some("2025-12-31T18:15:00Z".parse().unwrap());
    assert_eq!(shown(&hourly, "2025-12-31T18:15:00Z", 1), ["2026-01-01T00:00:00+05:45"]);
    let mut quarters = in_zone("*/15 * * * *", "Europe/Berlin");
    quarters.start_time = Some("2026-05-31T22:00:00Z".parse().unwrap());
    assert_eq!(shown(&quarters, "2026-01-01T00:00:00Z", 1), ["2026-06-01T00:00:00+02:00"]);
    let mut yearly = in_zone("30 2 29 3 *", "Europe/Berlin");
    yearly.dst_gap = DstGap::Skip;
    yearly.start_time = Some("2026-04-01T00:00:00Z".parse().unwrap());
    assert_eq!(shown(&yearly, "2026-03-01T00:00:00Z", 1), ["2027-03-29T02:30:00+02:00"]);
}

#[test]
fn what_is_left_out_is_marked_however_late_the_next_instant_is() {
    let mut yearly = in_zone("30 2 29 3 *", "Europe/Berlin");
    yearly.dst_gap = DstGap::Skip;
    let note = "02:30 does not exist on 2026-03-29: clocks go from 02:00 to 03:00; left out before this";
    assert_eq!(
        shown(&yearly, "2026-03-01T00:00:00Z", 2),
        [format!("2027-03-29T02:30:00+02:00: {note}"), "2028-03-29T02:30:00+02:00".to_owned()]
    );
    assert_eq!(shown(&yearly, "2026-04-01T00:00:00Z", 1), ["2027-03-29T02:30:00+02:00"]);
    // Last Sundays that are a 29th: in February of 2032 and 2060, and in March of four years between.
    let mut rare = in_zone("30 2 */28 2,3 0L", "Europe/Berlin");
    rare.dst_gap = DstGap::Skip;
    assert_eq!(
        shown(&rare, "2033-01-01T00:00:00Z", 1),
        [
            "2060-02-29T02:30:00+01:00: 02:30 does not exist on 2037-03-29: clocks go from 02:00 to 03:00; left out before this, and on \
          3 more days"
        ]
    );
}

#[test]
fn several_that_are_left_out_and_one_that_comes_twice_are_one_note() {
    let mut schedule = in_zone("30 2 * 3,10 0L", "Europe/Berlin");
    schedule.dst_gap = DstGap::Skip;
    assert_eq!(
        shown(&schedule, "2026-01-01T00:00:00Z", 1),
        [
            "2026-10-25T02:30:00+02:00: 02:30 does not exist on 2026-03-29: clocks go from 02:00 to 03:00; left out before this. \
          02:30 comes twice on 2026-10-25: clocks go back from 03:00 to 02:00; this is the first"
        ]
    );
}

#[test]
fn what_is_never_due_again_says_so() {
    let mut schedule = in_zone("30 2 * 3 0L", "Europe/Berlin");
    schedule.dst_gap = DstGap::Skip;
    let calendar = Calendar::of(&schedule).unwrap();
    let now = now();
    let words = "Never due from 2026-01-01T00:00:00Z on; the clocks jump over every later time, and dst_gap is skip; \
                 the last time was 1980-03-30T01:30:00Z.";
    assert_eq!(calendar.why_never(now).as_deref(), Some(words));
    assert!(calendar.explain(now).ends_with(words), "{}", calendar.explain(now));
    assert_eq!(calendar.why_never("1980-03-30T01:30:00Z".parse().unwrap()), None);
}
