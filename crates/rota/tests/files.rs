//! Files of jobs from the command line: each line once, whoever is killed on the way.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Child, Command, Output, Stdio};

use rota_testkit::process::{Home, KEY, Rota, code, complaint, json};
use serde_json::{Value, json};

/// Later than the test.
const LATER: &str = "4102444799000";

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_rota"))
}

fn command(home: &Home, line: &str) -> Command {
    let mut command = home.command();
    command.env("ROTA_API_KEY", KEY).args(line.split(' '));
    command
}

fn run(home: &Home, line: &str) -> Output {
    command(home, line).output().unwrap()
}

fn lines(numbers: std::ops::Range<u32>) -> String {
    let mut text = String::new();
    for nth in numbers {
        writeln!(text, r#"{{"jobName": "job {nth}", "input": {{"type": "noop"}}, "runAt": {LATER}}}"#)
            .unwrap();
    }
    text
}

/// Rota where it was before.
fn up_at(home: &Home, url: &str) -> Rota {
    let mut up = home.command();
    up.args(["up", "--listen", url.trim_start_matches("http://"), "--data"]).arg(home.data());
    up.env("ROTA_BOOTSTRAP_KEY", KEY);
    Rota::start(up)
}

/// Until so many jobs are there; numbers rise.
fn until_there_are(home: &Home, url: &str, count: u64) {
    let newest = || {
        let list = run(home, &format!("job list --limit 1 --url {url}"));
        list.status.success().then(|| json(&list)["items"][0]["jobNumber"].as_u64().unwrap_or(0))
    };
    while newest().is_none_or(|number| number < count) {}
}

fn begin(home: &Home, url: &str) -> Child {
    let mut submit = command(home, &format!("job submit --file jobs.ndjson --url {url}"));
    submit.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_file_goes_on_whoever_is_killed_and_no_job_is_made_twice() {
    const COUNT: u32 = 20_000;
    let home = home();
    let rota = home.up();
    let url = rota.url.clone();
    std::fs::write(home.path().join("jobs.ndjson"), lines(0..COUNT)).unwrap();

    let mut first = begin(&home, &url);
    until_there_are(&home, &url, 1_000);
    first.kill().unwrap();
    assert!(!first.wait().unwrap().success(), "it was killed on the way");

    let second = begin(&home, &url);
    until_there_are(&home, &url, 9_000);
    rota.kill();
    let _rota = up_at(&home, &url);
    let done = second.wait_with_output().unwrap();
    assert_eq!(code(&done), 0, "{}", complaint(&done));
    let told = json(&done);
    assert_eq!((&told["sent"], &told["refused"]), (&json!(COUNT), &json!(0)));
    assert!(told["existing"].as_u64().unwrap() >= 1_000, "{told}");

    let listed = run(&home, &format!("job list --all --status QUEUED --output ndjson --url {url}"));
    let listed = String::from_utf8(listed.stdout).unwrap();
    let names: Vec<Value> =
        listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["jobName"].clone()).collect();
    assert_eq!(names.len(), COUNT as usize);
    assert_eq!(names.iter().map(Value::to_string).collect::<BTreeSet<_>>().len(), COUNT as usize);
}

#[test]
fn the_same_file_makes_nothing_new_but_what_it_grew_by() {
    let home = home();
    let rota = home.up();
    let submit = |flags: &str| json(&run(&home, &format!("job submit --file jobs.ndjson{flags}")));
    let told = |new: u32, existing: u32| json!({"sent": new + existing, "new": new, "existing": existing, "refused": 0});
    std::fs::write(home.path().join("jobs.ndjson"), lines(0..1_500)).unwrap();
    assert_eq!(submit(""), told(1_500, 0));
    assert_eq!(submit(""), told(0, 1_500));
    std::fs::write(home.path().join("jobs.ndjson"), lines(0..1_700)).unwrap();
    assert_eq!(submit(""), told(200, 1_500));
    assert_eq!(submit(" --again second"), told(1_700, 0));
    assert_eq!(submit(" --again second"), told(0, 1_700));
    let mut piped = command(&home, "job submit --file -");
    let mut piped = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    piped.stdin.take().unwrap().write_all(lines(0..1_700).as_bytes()).unwrap();
    assert_eq!(json(&piped.wait_with_output().unwrap()), told(0, 1_700), "wherever it comes from");

    rota.kill();
    let away = run(&home, "job submit --file jobs.ndjson --retry-for 1s");
    assert_eq!(code(&away), 5, "{}", complaint(&away));
    assert!(complaint(&away).contains("the same command again goes on"), "{}", complaint(&away));
}

#[test]
fn a_file_of_jobs_is_taken_line_by_line() {
    let home = home();
    let _rota = home.up();
    let mut text = String::new();
    for nth in 1..=2_500 {
        match nth {
            7 => text.push_str("{oops\n"),
            8 => text.push('\n'),
            1_200 => text.push_str("{\"jobName\": \"x\", \"input\": {\"type\": \"unheard-of\"}}\n"),
            2_100 => text.push_str("[1]\n"),
            _ => text.push_str(&lines(nth..nth + 1)),
        }
    }
    std::fs::write(home.path().join("jobs.ndjson"), &text).unwrap();
    let done = run(&home, "job submit --file jobs.ndjson");
    assert_eq!(code(&done), 2, "{}", complaint(&done));
    let told: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(told, json!({"sent": 2_498, "new": 2_496, "existing": 0, "refused": 3}));
    let complaint_of_few = complaint(&done);
    let lines_of_few: Vec<_> = complaint_of_few.lines().collect();
    assert_eq!(lines_of_few.len(), 4, "{complaint_of_few}");
    assert!(lines_of_few[0].starts_with("line 7: column 2: not JSON"), "{complaint_of_few}");
    assert!(
        lines_of_few[1].starts_with("line 1200: /input/type: no type 'unheard-of'"),
        "{complaint_of_few}"
    );
    assert!(lines_of_few[2].starts_with("line 2100: "), "{complaint_of_few}");

    std::fs::write(home.path().join("many.ndjson"), "[1]\n".repeat(1_500)).unwrap();
    let done = run(&home, "job submit --file many.ndjson");
    assert_eq!(code(&done), 2);
    assert_eq!(complaint(&done).lines().count(), 21, "{}", complaint(&done));
    assert!(complaint(&done).ends_with("1500 lines were refused; the first 20 are named above"));
    assert_eq!(code(&run(&home, "job submit --file nowhere.ndjson")), 2);
    let nobody =
        command(&home, "job submit --file jobs.ndjson").env("ROTA_API_KEY", "rota_nobody").output().unwrap();
    assert_eq!(code(&nobody), 6, "{}", complaint(&nobody));
}

/// On a terminal one sees how far it is, how fast and how long it still takes; elsewhere nothing of it stands in the way.
#[test]
fn a_terminal_shows_a_bar() {
    let home = home();
    let _rota = home.up();
    std::fs::write(home.path().join("jobs.ndjson"), lines(0..20_000)).unwrap();
    let submit = command(&home, "job submit --file jobs.ndjson");
    let line = std::iter::once(submit.get_program()).chain(submit.get_args());
    let line = line.map(|part| part.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(home.path());
    terminal.envs(submit.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
    let shown = terminal.stdin(Stdio::null()).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(["Submitting [", " lines, ", "/s, ", " left"].iter().all(|part| shown.contains(part)), "{shown}");
    assert!(shown.contains("20000 sent: 20000 new"), "{shown}");
    let piped = run(&home, "job submit --file jobs.ndjson");
    assert_eq!((code(&piped), complaint(&piped)), (0, String::new()));
}
