//! Cases as files: an expression, a zone, an instant, and the instants that come after it. A line that is added to a file in
//! `fixtures/cases` is a test. Where the expected values come from stands at the head of each file and in
//! `fixtures/naive.py`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a surprise is a failure of the test"
)]

use std::path::Path;

use jiff::Timestamp;
use rota_calendar::Calendar;
use rota_model::timer::Schedule;

struct Case {
    place: String,
    schedule: Schedule,
    from: Timestamp,
    expected: Vec<Timestamp>,
    /// Nothing comes after what is expected.
    ends: bool,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/cases");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.flat_map(|path| cases_of(&path)).collect()
}

fn cases_of(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| case(format!("{name}:{number}: {line}"), line)).collect()
}

fn case(place: String, line: &str) -> Case {
    let columns: Vec<_> = line.split('|').map(str::trim).collect();
    let [cron, zone, from, expected, options @ ..] = columns.as_slice() else { panic!("{place}") };
    let mut schedule = serde_json::json!({"cron": cron, "time_zone": zone});
    for option in options.iter().flat_map(|options| options.split(' ')) {
        let (name, value) = option.split_once('=').unwrap();
        schedule[name] = value.into();
    }
    let (expected, ends) = match expected.strip_suffix("end") {
        Some(expected) => (expected, true),
        None => (*expected, false),
    };
    Case {
        schedule: serde_json::from_value(schedule).unwrap(),
        from: from.parse().unwrap(),
        expected: expected.split_whitespace().map(|at| at.parse().unwrap()).collect(),
        place,
        ends,
    }
}

#[test]
fn every_case_has_the_instants_that_it_expects() {
    let cases = cases();
    assert!(cases.len() >= 150, "{} cases", cases.len());
    for case in cases {
        let calendar =
            Calendar::of(&case.schedule).unwrap_or_else(|refused| panic!("{}: {refused}", case.place));
        let mut at = case.from;
        for expected in &case.expected {
            assert_eq!(calendar.next_after(at), Some(*expected), "{}", case.place);
            at = *expected;
        }
        assert!(!case.ends || calendar.next_after(at).is_none(), "{}", case.place);
    }
}

#[test]
fn a_range_its_length_and_the_way_back_agree_with_the_way_ahead() {
    for Case { place, schedule, from, expected, .. } in cases() {
        let calendar = Calendar::of(&schedule).unwrap();
        let Some(last) = expected.last() else { continue };
        let second = jiff::SignedDuration::from_secs(1);
        let (from, until) = (from + second, *last + second);
        assert_eq!(calendar.instants(from, until).collect::<Vec<_>>(), expected, "{place}");
        assert_eq!(calendar.count(from, until), expected.len() as u64, "{place}");
        let mut back = Vec::new();
        let mut at = until;
        while let Some(before) = calendar.previous_before(at).filter(|before| *before >= from) {
            back.push(before);
            at = before;
        }
        back.reverse();
        assert_eq!(back, expected, "{place}");
    }
}
