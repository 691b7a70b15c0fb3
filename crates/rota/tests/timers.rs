//! What a schedule comes to, on the command line, with no Rota running.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use rota_testkit::process::{Home, code, complaint, json};

const PREVIEW: [&str; 9] =
    ["timer", "preview", "30 2 * * *", "--zone", "Europe/Berlin", "--from", "2026-10-24", "--count", "5"];

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_rota"))
}

fn said(home: &Home, arguments: &[&str]) -> String {
    let output = home.run(arguments);
    assert_eq!(code(&output), 0, "{}", complaint(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_preview_is_an_array_of_instants_with_notes() {
    let home = home();
    let preview = json(&home.run(&[&PREVIEW[..], &["--output", "json"]].concat()));
    let preview = preview.as_array().unwrap();
    let instants: Vec<_> = preview.iter().map(|one| one["at"].as_str().unwrap()).collect();
    assert_eq!(
        instants,
        [
            "2026-10-24T00:30:00Z",
            "2026-10-25T00:30:00Z",
            "2026-10-26T01:30:00Z",
            "2026-10-27T01:30:00Z",
            "2026-10-28T01:30:00Z"
        ]
    );
    assert_eq!(preview[1]["local"], "2026-10-25T02:30:00+02:00");
    assert!(preview[1]["note"].as_str().unwrap().contains("comes twice on 2026-10-25"));
    assert!(preview.iter().all(|one| one["zone"] == "Europe/Berlin"));
    assert_eq!(preview.iter().filter(|one| one.get("note").is_some()).count(), 1);
}

#[test]
fn a_table_shows_local_time_utc_and_why() {
    let table = said(&home(), &[&PREVIEW[..], &["--output", "table"]].concat());
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines.len(), 6, "{table}");
    assert!(
        lines[0].starts_with("LOCAL") && lines[0].contains("UTC") && lines[0].ends_with("NOTE"),
        "{table}"
    );
    assert!(
        lines[2]
            .starts_with("2026-10-25T02:30:00+02:00  2026-10-25T00:30:00Z  Europe/Berlin  02:30 comes twice")
    );
    let lines = said(&home(), &[&PREVIEW[..], &["--output", "ndjson"]].concat());
    assert!(lines.lines().count() == 5 && lines.lines().all(|line| line.starts_with("{\"at\":")), "{lines}");
}

#[test]
fn a_schedule_is_explained_in_plain_words() {
    let arguments = ["timer", "explain", "0 9 * * 1-5", "--zone", "Europe/Berlin"];
    let words = said(&home(), &[&arguments[..], &["--output", "table"]].concat());
    assert!(
        words
            .starts_with("At 09:00, on Monday to Friday, in Europe/Berlin. A time that the clocks jump over"),
        "{words}"
    );
    let document = json(&home().run(&arguments));
    assert_eq!((&document["cron"], &document["zone"]), (&"0 9 * * 1-5".into(), &"Europe/Berlin".into()));
    assert_eq!(document["explanation"], words.trim_end());
}

#[test]
fn what_is_refused_says_where_and_ends_with_2() {
    let home = home();
    for (arguments, words) in [
        (&["0 25 * * *"][..], "'0 25 * * *': hour field, \"25\": must be from 0 to 23; 25 is not"),
        (&["0 0 30 2 *"], "can never fire"),
        (&["@daily", "--zone", "Europe/Berln"], "--zone: \"Europe/Berln\" is no time zone"),
        (&["@daily", "--stop", "2026-01-01", "--start", "2026-01-02"], "--stop: must lie after start_time"),
        (&["@daily", "--start", "soon"], "--start: write a date"),
        (
            &["@daily", "--start", "2026"],
            "--start: 2026 is too small a number for Unix milliseconds; write a date",
        ),
        (&["@daily", "--stop", "1969-01-01"], "--stop: must be from 1970-01-01T00:00:00Z to 2999-12-31"),
        (&["-5 * * * *"], "'-5 * * * *': minute field, \"-5\": cannot be read; allowed are 0 to 59"),
        (&["--zon", "UTC", "@daily"], "unexpected argument '--zon' found"),
        (
            &["0 9 * * * 2026"],
            "there is no field for the year; give start_time and stop_time, or --start and --stop",
        ),
        (&["TZ=UTC 0 9 * * *"], "give it as time_zone, or with --zone"),
    ] {
        for verb in ["preview", "explain"] {
            let output = home.run(&[&["timer", verb], arguments].concat());
            assert_eq!(code(&output), 2, "{arguments:?}");
            assert!(complaint(&output).contains(words), "{}", complaint(&output));
        }
    }
}

#[test]
fn a_refusal_repeats_the_beginning_of_what_is_long() {
    let long = "9,".repeat(2_000);
    let output = home().run(&["timer", "preview", &long]);
    assert_eq!(code(&output), 2);
    let complaint = complaint(&output);
    assert!(complaint.contains("9,9,…': must have 1 to 200 characters; it has 4000"), "{complaint}");
    assert!(complaint.chars().count() < 200, "{complaint}");
}

#[test]
fn what_is_never_due_again_says_so() {
    let arguments = ["30 2 * 3 0L", "--zone", "Europe/Berlin", "--dst-gap", "skip"];
    let output = home().run(&[&["timer", "preview"], &arguments[..], &["--from", "2026-01-01"]].concat());
    assert_eq!((code(&output), json(&output)), (0, serde_json::json!([])));
    assert!(complaint(&output).contains("Never due from 2025-12-31T23:00:00Z on; the clocks jump over"));
    let words = said(&home(), &[&["timer", "explain"], &arguments[..], &["--output", "table"]].concat());
    assert!(words.contains("Never due from 20"), "{words}");
}

#[test]
fn an_instant_follows_the_zone_it_is_written_with_and_the_rule_about_gaps() {
    let first = |from: &str| {
        let arguments =
            ["timer", "preview", "30 2 * * *", "--zone", "Europe/Berlin", "--count", "1", "--from", from];
        json(&home().run(&arguments))[0]["at"].as_str().unwrap().to_owned()
    };
    assert_eq!(first("2026-03-29T02:30"), "2026-03-29T01:00:00Z");
    assert_eq!(first("2026-06-01T20:00[America/New_York]"), "2026-06-02T00:30:00Z");
    assert_eq!(first("2026-06-01T20:31[America/New_York]"), "2026-06-03T00:30:00Z");
}

#[test]
fn policies_and_windows_are_flags() {
    let instants = |arguments: &[&str]| {
        let preview = json(&home().run(&[&["timer", "preview"], arguments].concat()));
        preview
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["at"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let berlin = ["30 2 * * *", "--zone", "Europe/Berlin", "--from", "2026-03-29", "--count", "1"];
    assert_eq!(instants(&berlin), ["2026-03-29T01:00:00Z"]);
    assert_eq!(instants(&[&berlin[..], &["--dst-gap", "skip"]].concat()), ["2026-03-30T00:30:00Z"]);
    let window = [
        "@daily",
        "--start",
        "2026-01-02",
        "--stop",
        "2026-01-09",
        "--max-executions",
        "2",
        "--from",
        "2026-01-01",
    ];
    assert_eq!(instants(&window), ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"]);
    assert!(instants(&["@at 2020-01-01T00:00:00Z", "--from", "2021-01-01"]).is_empty());
}

#[test]
fn the_version_names_the_zone_data() {
    let version = json(&home().run(&["version"]));
    let zones = version["zoneDataVersion"].as_str().unwrap();
    assert!(zones.len() == 5 && zones.starts_with("20"), "{version}");
    let text = said(&home(), &["version", "--output", "table"]);
    assert_eq!(text, format!("rota {}, time zone data {zones}\n", version["version"].as_str().unwrap()));
}
