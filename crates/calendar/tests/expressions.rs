//! What is refused and how it is told; and whatever text comes, an answer, soon.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use jiff::Timestamp;
use proptest::prelude::*;
use rota_calendar::{Calendar, Expression, Zone};
use rota_model::check::Invalid;
use rota_model::timer::{DstGap, Schedule};

fn refusal(text: &str) -> String {
    text.parse::<Expression>().map(|read| format!("{read:?}")).unwrap_err().to_string()
}

#[test]
fn a_refusal_names_the_field_the_part_and_what_is_allowed() {
    for (text, sentence) in [
        ("61 * * * *", r#"minute field, "61": must be from 0 to 59; 61 is not"#),
        ("0 24 * * *", r#"hour field, "24": must be from 0 to 23; 24 is not"#),
        ("0 9,25 * * *", r#"hour field, "25": must be from 0 to 23; 25 is not"#),
        ("0 0 0 * *", r#"day-of-month field, "0": must be from 1 to 31; 0 is not"#),
        ("0 0 32W * *", r#"day-of-month field, "32W": must be from 1 to 31; 32 is not"#),
        ("0 0 L-31 * *", r#"day-of-month field, "L-31": must be from 0 to 30; 31 is not"#),
        ("0 0 * 13 *", r#"month field, "13": must be from 1 to 12; 13 is not"#),
        ("0 0 * * 8", r#"day-of-week field, "8": must be from 0 to 7; 8 is not"#),
        ("0 0 * * 5#6", r##"day-of-week field, "5#6": after # must stand 1 to 5, such as 5#2"##),
        (
            "0 0 * * L",
            r#"day-of-week field, "L": must say which day is meant, such as 5L for the last Friday of the month"#,
        ),
        ("60 * * * * *", r#"second field, "60": must be from 0 to 59; 60 is not"#),
        (
            "*/90 * * * *",
            r#"minute field, "*/90": a step must be from 1 to 59; for every 90m of elapsed time write @every 90m"#,
        ),
        ("*/0 * * * *", r#"minute field, "*/0": a step must be from 1 to 59"#),
        (
            "30-10 * * * *",
            r#"minute field, "30-10": must not go backwards; to go on past the end write 30-59,0-10"#,
        ),
        (
            "x * * * *",
            r#"minute field, "x": cannot be read; allowed are 0 to 59, *, ranges (1-5), steps (*/15) and lists (1,2) of these"#,
        ),
        (
            "0 0 * JANUARY *",
            r#"month field, "JANUARY": cannot be read; allowed are 1 to 12 or JAN to DEC, *, ranges (1-6), steps (*/3) and lists (JAN,JUL) of these"#,
        ),
        (
            "* * *",
            "must have 5 fields (minute, hour, day of month, month, day of week), or 6 with the second before them; it has 3",
        ),
        ("0 0 30 2 *", "can never fire: no month of the field has such a day"),
        ("@daily now", r#""now": nothing may follow @daily"#),
    ] {
        assert_eq!(refusal(text), sentence, "{text}");
    }
}

#[test]
fn a_refusal_says_what_to_write_instead() {
    for (text, sentence) in [
        (
            "0 */24 * * *",
            r#"hour field, "*/24": a step must be from 1 to 23; for every day write one hour, such as 0 0 * * *"#,
        ),
        (
            "*/99999999999999999999 * * * *",
            r#"minute field, "*/99999999999999999999": a step must be from 1 to 59"#,
        ),
        (
            "99999999999999999999999 * * * *",
            r#"minute field, "99999999999999999999999": must be from 0 to 59; 99999999999999999999999 is not"#,
        ),
        (
            "0 0 ?,1 * *",
            r#"day-of-month field, "?,1": ? must stand alone in its field: it is no part of a list or step"#,
        ),
        (
            "0 0 * * 1,?",
            r#"day-of-week field, "1,?": ? must stand alone in its field: it is no part of a list or step"#,
        ),
        (
            "30 9 25 12 * 2026",
            r#""2026": there is no field for the year; give start_time and stop_time, or --start and --stop"#,
        ),
        (
            "0 9 * * * 2026-2028",
            r#""2026-2028": there is no field for the year; give start_time and stop_time, or --start and --stop"#,
        ),
        (
            "CRON_TZ=Europe/Berlin 0 9 * * *",
            r#""CRON_TZ=Europe/Berlin": the time zone is no part of the expression; give it as time_zone, or with --zone"#,
        ),
        (
            "@at 2030-01-31T08:00[Asia/Tokyo]",
            r#""2030-01-31T08:00[Asia/Tokyo]": a time zone in brackets is no part of the expression; give it as time_zone, or with --zone"#,
        ),
        (
            "TZ=UTC @daily",
            r#""TZ=UTC": the time zone is no part of the expression; give it as time_zone, or with --zone"#,
        ),
        (
            "0 0 12 * * ? 2026",
            "must have 5 fields (minute, hour, day of month, month, day of week), or 6 with the second before them; it has 7; \
             there is no field for the year",
        ),
    ] {
        assert_eq!(refusal(text), sentence, "{text}");
    }
}

#[test]
fn a_character_that_no_field_has_is_told_with_the_field() {
    for (cron, words) in [
        (
            "0 9 * * MON–FRI",
            "day-of-week field, \"MON–FRI\": cannot be read; allowed are 0 to 7 or SUN to SAT",
        ),
        ("1|2 * * * *", "minute field, \"1|2\": cannot be read; allowed are 0 to 59"),
        ("é * * * *", "minute field, \"é\": cannot be read; allowed are 0 to 59"),
        ("0 9\u{a0}* * * *", "hour field, \"9\\u{a0}*\": cannot be read; allowed are 0 to 23"),
        ("0 9 * * `", "day-of-week field, \"`\": cannot be read; allowed are"),
        ("0\u{0} * * * *", "must not contain control characters"),
    ] {
        let Invalid(errors) = Calendar::of(&Schedule::new(cron)).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors.iter().all(|error| error.detail.starts_with(words)), "{errors:?}");
    }
}

#[test]
fn white_space_around_an_expression_and_tabs_in_it_are_fine() {
    for cron in ["0\t9\t*\t*\t1-5", "  0 9 * * 1-5  ", "\t0  9 \t * * 1-5\n", "@every\t90s", " @daily\r\n"] {
        assert!(Calendar::of(&Schedule::new(cron)).is_ok(), "{cron:?}");
    }
}

/// The advice is an expression that is read, and means the days and hours that were meant.
#[test]
fn a_range_that_goes_backwards_is_advised_to_go_on_past_the_end() {
    for (cron, advice) in [
        ("0 0 * * FRI-MON", "FRI-SUN,MON"),
        ("0 0 * * 5-2", "5-7,1-2"),
        ("0 0 * * 7-2", "7,1-2"),
        ("0 22-2 * * *", "22-23,0-2"),
        ("0 23-0 * * *", "23,0"),
        ("0 22-4/2 * * *", "22,0,2,4"),
        ("0 0 25-5 * *", "25-31,1-5"),
        ("0 0 1 NOV-FEB *", "NOV-DEC,JAN-FEB"),
    ] {
        let told = refusal(cron);
        assert!(
            told.ends_with(&format!("must not go backwards; to go on past the end write {advice}")),
            "{told}"
        );
        let written = cron.split(' ').find(|part| part.contains('-')).unwrap();
        assert!(cron.replace(written, advice).parse::<Expression>().is_ok(), "{advice}");
    }
}

#[test]
fn a_moment_out_of_range_says_so() {
    for cron in ["@at 9999-12-31T23:59", "@at 3000-01-01T00:00:00Z", "@at 1950-01-01T00:00"] {
        for gap in [DstGap::Next, DstGap::Skip] {
            let mut schedule = Schedule::new(cron);
            schedule.dst_gap = gap;
            let Invalid(errors) = Calendar::of(&schedule).unwrap_err();
            let told: Vec<_> = errors.iter().map(|error| error.detail.as_str()).collect();
            assert_eq!(told, ["must be from 1970-01-01T00:00:00Z to 2999-12-31T23:59:59.999Z"], "{cron}");
        }
    }
}

#[test]
fn what_is_no_expression_is_refused() {
    for text in [
        "",
        " ",
        "@",
        "@fortnightly",
        "@reboot",
        "@every",
        "@every 0s",
        "@every -5s",
        "@every 90",
        "@every 1.5h",
        "@every 9999999999999999999s",
        "@every 4000d",
        "@at",
        "@at noon",
        "@at 2030-01-31",
        "@at 2030-13-01T00:00:00Z",
        "* * * * * * *",
        "1- * * * *",
        "-1 * * * *",
        "1-2-3 * * * *",
        "1,, * * * *",
        ", * * * *",
        "*/ * * * *",
        "/5 * * * *",
        "*/*/2 * * * *",
        "** * * * *",
        "*5 * * * *",
        "? * * * *",
        "* * ?/2 * *",
        "* * 1,? * *",
        "+5 * * * *",
        "1.5 * * * *",
        "99999999999 * * * *",
        "MON * * * *",
        "* * * MON *",
        "* * * * JAN",
        "* * W * *",
        "* * WL * *",
        "* * L-x * *",
        "* * 1-5W * *",
        "* * * * #1",
        "* * * * 1#",
        "* * * * 1#0",
        "* * * * MONDAY",
        "* * * * 1-5L",
        "١ * * * *",
        "0\u{0} * * * *",
    ] {
        assert!(text.parse::<Expression>().is_err(), "{text:?}");
    }
}

#[test]
fn an_expression_that_can_never_fire_is_refused_when_it_is_made() {
    for never in [
        "0 0 30 2 *",
        "0 0 31 2,4,6,9,11 *",
        "0 0 30-31 FEB *",
        "0 0 L-29 2 *",
        "0 0 31W 4 *",
        "0 0 30 2 ?",
        "0 0 */29 2 1#5",
    ] {
        assert!(refusal(never).contains("can never fire"), "{never}");
    }
    for rare in ["0 0 29 2 *", "0 0 29 2 */7", "0 0 30 2 1", "0 0 L-28 2 *", "0 0 29W 2 *", "0 0 */29 * 1#5"]
    {
        assert!(rare.parse::<Expression>().is_ok(), "{rare}");
    }
}

#[test]
fn a_schedule_that_can_never_fire_is_refused_too() {
    let pointers = |schedule: &Schedule| {
        let Invalid(errors) = Calendar::of(schedule).unwrap_err();
        errors.into_iter().map(|error| error.pointer).collect::<Vec<_>>()
    };
    let mut empty = Schedule::new("0 0 29 2 *");
    empty.start_time = Some("2026-03-01T00:00:00Z".parse().unwrap());
    empty.stop_time = Some("2028-02-29T00:00:00Z".parse().unwrap());
    assert_eq!(pointers(&empty), ["/schedule/stop_time"]);
    empty.stop_time = Some("2028-02-29T00:00:01Z".parse().unwrap());
    assert!(Calendar::of(&empty).is_ok());
    let mut skipped = Schedule::new("@at 2026-03-29T02:30");
    skipped.time_zone = "Europe/Berlin".to_owned();
    assert!(Calendar::of(&skipped).is_ok());
    skipped.dst_gap = DstGap::Skip;
    assert_eq!(pointers(&skipped), ["/schedule/cron"]);
    let mut over = Schedule::new("@at 2026-03-29T02:30:00Z");
    over.start_time = Some("2027-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(pointers(&over), ["/schedule/start_time"]);
}

#[test]
fn every_field_at_fault_of_a_schedule_is_named_once() {
    let mut schedule = Schedule::new("0 25 * * *");
    schedule.time_zone = "Europe/Berln".to_owned();
    schedule.jitter_ms = u32::MAX;
    let Invalid(errors) = Calendar::of(&schedule).unwrap_err();
    let told: Vec<_> = errors.iter().map(|error| (error.pointer.as_str(), error.detail.as_str())).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(
        told.iter().any(|(pointer, detail)| *pointer == "/schedule/cron" && detail.starts_with("hour field"))
    );
    let zone = told.iter().find(|(pointer, _)| *pointer == "/schedule/time_zone").unwrap().1;
    assert!(
        zone.starts_with("\"Europe/Berln\" is no time zone") && zone.ends_with("did you mean Europe/Berlin?")
    );
    assert!(told.iter().any(|(pointer, _)| *pointer == "/schedule/jitter_ms"), "{told:?}");
}

#[test]
fn zones_are_those_that_are_built_in() {
    assert_eq!(Zone::named("europe/berlin").unwrap().name(), "Europe/Berlin");
    assert!(Zone::named("Berlin").unwrap_err().to_string().ends_with("did you mean Europe/Berlin?"));
    assert!(
        Zone::named("xyzzy").unwrap_err().to_string().ends_with("write a name such as Europe/Berlin or UTC")
    );
    let version = rota_calendar::zone::data_version();
    assert!(version.starts_with("20") && version.len() == 5, "{version}");
}

/// A rule whose every local time is skipped for ever, from some year on, ends the search at the end of time.
#[test]
fn a_search_that_finds_nothing_ends() {
    let mut schedule = Schedule::new("30 2 * 3 0L");
    schedule.time_zone = "Europe/Berlin".to_owned();
    schedule.dst_gap = DstGap::Skip;
    let calendar = Calendar::of(&schedule).unwrap();
    assert_eq!(calendar.next_after("2026-01-01T00:00:00Z".parse().unwrap()), None);
    assert_eq!(calendar.count("2026-01-01T00:00:00Z".parse().unwrap(), Timestamp::MAX), 0);
    let before = calendar.previous_before("2026-01-01T00:00:00Z".parse().unwrap()).unwrap();
    assert!(before < "1981-04-01T00:00:00Z".parse().unwrap(), "{before}");
}

#[test]
fn the_ends_of_time_are_no_trouble() {
    for cron in ["* * * * * *", "0 0 29 2 *", "30 2 * * *", "@every 3650d", "@at 2030-01-31T08:00"] {
        for zone in ["UTC", "Etc/GMT+12", "Etc/GMT-14", "Pacific/Apia", "Europe/Berlin"] {
            let mut schedule = Schedule::new(cron);
            schedule.time_zone = zone.to_owned();
            let calendar = Calendar::of(&schedule).unwrap();
            for at in [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH] {
                let (next, previous) = (calendar.next_after(at), calendar.previous_before(at));
                assert!(next.is_none_or(|next| next > at) && previous.is_none_or(|previous| previous < at));
            }
            assert!(calendar.count(Timestamp::MIN, Timestamp::MAX) >= 1, "{cron} {zone}");
        }
    }
}

/// Whatever is read has a next instant and a previous one, and they lie where they should.
fn try_out(text: &str, zone: &str) {
    let mut schedule = Schedule::new(text);
    schedule.time_zone = zone.to_owned();
    let Ok(calendar) = Calendar::of(&schedule) else { return };
    let at: Timestamp = "2026-10-24T00:00:00Z".parse().unwrap();
    let next = calendar.next_after(at);
    assert!(
        next.is_none_or(|next| next > at && calendar.previous_before(next).is_none_or(|before| before <= at))
    );
    assert!(!calendar.explain(at).is_empty());
    calendar.preview(at, 3);
    calendar.count(at, "2100-01-01T00:00:00Z".parse().unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_text_comes_has_an_answer(text in ".{0,60}") {
        let _ = text.parse::<Expression>();
        try_out(&text, "Europe/Berlin");
    }

    #[test]
    fn text_that_looks_like_an_expression_has_an_answer(
        text in "(@every |@at |@)?[0-9*/,?#LWlwMONJAT: \\-]{0,40}",
        zone in prop::sample::select(&["UTC", "Europe/Berlin", "Pacific/Apia"][..]),
    ) {
        try_out(&text, zone);
    }

    #[test]
    fn fields_put_together_at_random_have_an_answer(
        fields in prop::collection::vec(
            "(\\*|\\?|L|LW|[0-9]{1,2}|[0-9]{1,2}-[0-9]{1,2}|[0-9]{1,2}W|[0-7]#[1-5]|[0-7]L)(/[0-9]{1,2})?(,[0-9]{1,2})?", 5..7),
        zone in prop::sample::select(&["UTC", "Europe/Berlin", "Pacific/Apia"][..]),
    ) {
        try_out(&fields.join(" "), zone);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_called_a_zone_has_an_answer(text in ".{0,200}") {
        let _ = Zone::named(&text);
    }
}
