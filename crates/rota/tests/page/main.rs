//! The page in a real browser, against the real program: what people see without pressing reload.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a surprise is a failure of the test"
)]

mod browser;
mod fleet;

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use browser::{Browser, listeners, until_listeners};
use fleet::Fleet;
use rota_model::job::NewJob;
use rota_testkit::process::{Home, KEY, Rota, json};
use serde_json::Value;

const NEVER: &str = "2099-12-31T23:59:59Z";

fn home() -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_rota"));
    fs::write(home.path().join("rota.toml"), "[exec]\nprograms = { sh = \"/bin/sh\" }\n").unwrap();
    home
}

fn submit(home: &Home, arguments: &[&str]) -> Value {
    json(&home.run(&[&["job", "submit"], arguments].concat()))
}

fn id(job: &Value) -> &str {
    job["jobId"].as_str().unwrap()
}

/// The row of a job on the board.
fn row(name: &str) -> String {
    format!("#jobs tbody:has(a[href*='{name}'])")
}

/// A job that says lines and goes on when a file is there.
fn talker(home: &Home) -> (Value, std::path::PathBuf) {
    let go_on = home.path().join("go on");
    let script =
        format!("echo first words; until [ -e '{}' ]; do sleep 0.05; done; echo last words", go_on.display());
    let payload = serde_json::json!({"program": "sh", "args": ["-c", script]}).to_string();
    (submit(home, &["exec", "--name", "talker", "--payload", &payload]), go_on)
}

/// The printed address signs in; a job comes, runs and ends before one's eyes; what its name says is text.
#[tokio::test]
async fn a_job_comes_and_ends_while_one_looks() {
    let home = home();
    let rota = home.up();
    let browser = Browser::open().await;
    browser.sign_in(&rota).await;
    assert!(!browser.run("return location.hash", vec![]).await.as_str().unwrap().contains("signin"));
    browser.until("#nodes", "1 live").await;
    browser.run("globalThis.isTheSamePage = true", vec![]).await;

    let (job, go_on) = talker(&home);
    let row = row(id(&job));
    browser.until(&row, "Started").await;
    browser.until("#queue [data-type=exec] [data-status=STARTED]", "1").await;
    fs::write(go_on, "").unwrap();
    browser.until(&row, "Successful").await;
    browser.until("#queue [data-type=exec] [data-status=SUCCESSFUL]", "1").await;
    browser.until("#queue [data-type=exec] [data-status=STARTED]", "0").await;

    let markup = "<img src=x onerror='document.title = 1'><b>bold</b>";
    let marked = submit(&home, &["noop", "--name", markup]);
    browser.until(&format!("#jobs tbody:has(a[href*='{}']) .c-name", id(&marked)), markup).await;
    browser.show(&format!("#domain=default&job={}", id(&marked))).await;
    browser.until("#job-name", markup).await;
    let made = browser.run("return document.querySelectorAll('main img, main b').length", vec![]).await;
    assert_eq!(made, 0, "nothing of it became an element");

    browser.show("#domain=default&status=FAILED").await;
    browser.until("#jobs-none", "No job matches").await;
    let failing = submit(
        &home,
        &["exec", "--attempts", "1", "--payload", r#"{"program": "sh", "args": ["-c", "exit 3"]}"#],
    );
    browser.until(&format!("#jobs tbody:has(a[href*='{}'])", id(&failing)), "Failed").await;
    assert_eq!(browser.run("return globalThis.isTheSamePage", vec![]).await, true, "nothing was loaded anew");
}

/// A job's own page: its log as it is said, its attempts, its result, and its buttons.
#[tokio::test]
async fn one_job_is_followed_on_its_page() {
    let home = home();
    let rota = home.up();
    let browser = Browser::open().await;
    browser.sign_in(&rota).await;
    let (job, go_on) = talker(&home);
    browser.press(&format!("{} a", row(id(&job)))).await;
    browser.until("#job-name", "talker").await;
    browser.until("[data-part=log]", "first words").await;
    assert!(!browser.text("[data-part=log]").await.contains("last words"));
    fs::write(&go_on, "").unwrap();
    browser.until("[data-part=log]", "last words").await;
    browser.until(".job-head .pill", "Successful").await;
    browser.until("[data-part=timeline]", "It succeeded").await;
    browser.until("[data-part=result]", "exitCode").await;
    browser.press("[data-action=requeue]").await;
    browser.until("[data-part=timeline]", "It was to run once more").await;

    let failing = r#"{"program": "sh", "args": ["-c", "echo no luck >&2; exit 3"]}"#;
    let failing = submit(&home, &["exec", "--payload", failing, "--attempts", "2", "--backoff", "10ms"]);
    browser.show(&format!("#domain=default&job={}", id(&failing))).await;
    browser.until("[data-part=timeline]", "Attempt 1 failed: sh ended with exit code 3").await;
    browser.until("[data-part=error]", "sh ended with exit code 3").await;
    browser.until(".job-head .pill", "Failed").await;
}

/// Why a job waits is told, and changes while one looks: its time, its node, its turn.
#[tokio::test]
async fn a_job_says_why_it_waits_and_a_node_is_paused_with_a_button() {
    let home = home();
    let rota = home.up();
    let browser = Browser::open().await;
    browser.sign_in(&rota).await;
    let later = submit(&home, &["noop", "--name", "later", "--run-at", NEVER]);
    browser.show(&format!("#domain=default&job={}", id(&later))).await;
    browser.until("[data-part=waiting]", "It is to run at").await;
    browser.press("[data-action=cancel]").await;
    browser.until("[data-part=timeline]", "It was cancelled").await;
    browser.until_true("[data-part=waiting]", "element.hidden", "gone").await;

    browser.show("#domain=default").await;
    browser.press("#nodes [data-action=pause]").await;
    browser.until("#nodes tbody", "paused").await;
    let nodes = json(&home.run(&["node", "list"]));
    assert_eq!(nodes["items"][0]["wanted"], "PAUSE");
    // It does so when it has read that it should.
    while !home.log().contains("this node is paused") {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let held = submit(&home, &["noop", "--name", "held up"]);
    browser.show(&format!("#domain=default&job={}", id(&held))).await;
    browser.until("[data-part=waiting]", "All nodes that run noop are paused").await;
    json(&home.run(&["node", "resume", nodes["items"][0]["id"].as_str().unwrap()]));
    browser.until(".job-head .pill", "Successful").await;
    assert!(browser.text("[data-part=waiting]").await.is_empty());
}

/// Rota is killed and started again on the same port: the page says so, and comes back by itself.
#[tokio::test]
async fn a_restart_is_told_and_survived() {
    let home = home();
    let rota = home.up();
    let browser = Browser::open().await;
    browser.sign_in(&rota).await;
    let address = rota.url.trim_start_matches("http://").to_owned();
    rota.kill();
    browser.until("#connection", "Connection lost").await;
    let _rota = again(&home, &address);
    browser.until("#connection", "Live").await;
    let job = submit(&home, &["noop", "--name", "after"]);
    browser.until(&row(id(&job)), "Successful").await;
    browser.until("#nodes", "1 live").await;
}

fn again(home: &Home, address: &str) -> Rota {
    let mut command = home.command();
    command.args(["up", "--listen", address, "--data"]).arg(home.data()).stderr(Stdio::null());
    Rota::start(command)
}

/// Tabs of one browser share one stream: by a worker, and where there is none by one of the tabs, which another replaces.
#[tokio::test]
async fn two_tabs_share_one_stream() {
    let home = home();
    let rota = home.up();
    let browser = Browser::open().await;
    browser.sign_in(&rota).await;
    for has_workers in [true, false] {
        if !has_workers {
            browser.without_shared_workers().await;
            browser.driver.refresh().await.unwrap();
            browser.until("#connection", "Live").await;
        }
        let first = browser.driver.window().await.unwrap();
        let second = browser.driver.new_tab().await.unwrap();
        browser.driver.switch_to_window(second.clone()).await.unwrap();
        if !has_workers {
            browser.without_shared_workers().await;
        }
        browser.driver.goto(&rota.url).await.unwrap();
        browser.until("#connection", "Live").await;
        let both = "return [document.hidden, typeof SharedWorker]";
        let seen = browser.run(both, vec![]).await;
        assert_eq!(seen[1], if has_workers { "function" } else { "undefined" });
        until_listeners(&rota, 1).await;
        let job = submit(&home, &["noop"]);
        browser.until(&row(id(&job)), "Successful").await;
        browser.driver.switch_to_window(first.clone()).await.unwrap();
        browser.until(&row(id(&job)), "Successful").await;
        assert_eq!(listeners(&rota), 1, "one stream for both");

        // The first goes, and with it the one that has the stream, where it is a tab.
        browser.driver.close_window().await.unwrap();
        browser.driver.switch_to_window(second).await.unwrap();
        let job = submit(&home, &["noop"]);
        browser.until(&row(id(&job)), "Successful").await;
        until_listeners(&rota, 1).await;
    }
}

/// Who may only look sees no nodes and no buttons.
#[tokio::test]
async fn a_viewer_has_no_buttons() {
    let home = home();
    let rota = home.up();
    json(&home.run(&["user", "create", "local:vera", "--grant", "default=viewer"]));
    let made = json(&home.run(&["key", "create", "page", "--user", "local:vera"]));
    let job = submit(&home, &["noop", "--name", "seen", "--run-at", NEVER]);
    let browser = Browser::open().await;
    browser.sign_in_as(&rota.url, made["key"].as_str().unwrap()).await;
    browser.until(&row(id(&job)), "Queued").await;
    assert!(browser.text("#nodes").await.is_empty());
    browser.show(&format!("#domain=default&job={}", id(&job))).await;
    browser.until("[data-part=waiting]", "It is to run at").await;
    let buttons =
        "return [...document.querySelectorAll('main button')].filter((b) => b.checkVisibility()).length";
    assert_eq!(browser.run(buttons, vec![]).await, 0);
}

/// A node dies: its row says so, another has its sections, and its job goes on there. Nobody pressed reload.
#[tokio::test]
async fn a_node_that_dies_is_told_and_its_work_moves_on() {
    let names = ["anna", "bert", "cleo"];
    let mut fleet = Fleet::up(&names).await;
    let browser = Browser::open().await;
    browser.sign_in_as(&fleet.url, KEY).await;
    browser.until("#nodes", "3 live").await;
    // Rows stand in the order of their names, and those of the dead behind the others.
    let node = |place: usize, cell: &str| format!("#nodes tbody:nth-of-type({place}) {cell}");
    for (nth, name) in names.iter().enumerate() {
        browser.until(&node(nth + 1, ".c-name"), name).await;
    }
    for place in [2, 3] {
        browser.until(&node(place, ".c-sections"), "32: ").await;
        browser.until(&node(place, ".c-age"), "just now").await;
    }
    browser.run("globalThis.isTheSamePage = true", vec![]).await;
    let long = NewJob::new("outlives its node", "wait", serde_json::json!({"millis": 3_600_000}));
    let job = fleet.submit(long).await;
    let holder = fleet.who_runs(job).await;
    let job = job.to_string();
    browser.until(&row(&job), "Started").await;
    browser.until(&node(holder + 1, ".c-running"), "1 of 4").await;

    fleet.kill(holder);
    browser.until(&node(3, ".c-status"), "Terminated").await;
    assert_eq!(browser.text(&node(3, ".c-name")).await, names[holder]);
    browser.until("#nodes", "2 live").await;
    browser.until(&node(2, ".c-sections"), "0–63").await;
    browser.until(&row(&job), "lost 1×").await;
    browser.until(&row(&job), "Started").await;
    browser.until(&node(2, ".c-running"), "1 of 4").await;
    browser.show(&format!("#domain=default&job={job}")).await;
    browser.until("[data-part=timeline]", "Its node died; it was queued again").await;
    browser.until("#connection", "Live").await;
    assert_eq!(browser.run("return globalThis.isTheSamePage", vec![]).await, true, "nothing was loaded anew");
}

/// What a line of the log is about and what it says of it are both there; a text that somebody printed is there once.
#[tokio::test]
async fn a_line_of_the_log_has_its_title() {
    let home = home();
    let rota = home.up();
    let browser = Browser::open().await;
    browser.sign_in(&rota).await;
    let long = "many words ".repeat(40);
    let script = format!("echo '{long}'; exit 3");
    let payload = serde_json::json!({"program": "sh", "args": ["-c", script]}).to_string();
    let job = submit(&home, &["exec", "--attempts", "1", "--payload", &payload]);
    browser.show(&format!("#domain=default&job={}", id(&job))).await;
    let told = "attempt 1 of 1 failed; it ended as FAILED: sh ended with exit code 3";
    browser.until("[data-part=log] [data-level=ERROR]", told).await;
    let printed = browser.text("[data-part=log] [data-level=INFO] span").await;
    assert_eq!(printed.trim(), long.trim());
}

/// A tab that goes without a word leaves no stream behind: the lock that it held tells of it. So does one whose lock comes late: it
/// would be taken for gone, and hear nothing.
#[tokio::test]
async fn a_tab_that_vanishes_leaves_no_stream_behind() {
    let home = home();
    let rota = home.up();
    json(&home.run(&["domain", "create", "blue"]));
    let browser = Browser::open().await;
    browser.sign_in(&rota).await;
    browser.without_farewells().await;
    for has_workers in [true, false] {
        if !has_workers {
            browser.without_shared_workers().await;
        }
        browser.driver.refresh().await.unwrap();
        browser.until("#connection", "Live").await;
        until_listeners(&rota, 1).await;
        let first = browser.driver.window().await.unwrap();
        let second = browser.driver.new_tab().await.unwrap();
        browser.driver.switch_to_window(second).await.unwrap();
        browser.without_farewells().await;
        if !has_workers {
            browser.without_shared_workers().await;
        }
        browser.driver.goto(&format!("{}/#domain=blue", rota.url)).await.unwrap();
        browser.until("#connection", "Live").await;
        until_listeners(&rota, 2).await;
        let job = submit(&home, &["noop", "--domain", "blue"]);
        browser.until(&row(id(&job)), "Successful").await;
        browser.driver.close_window().await.unwrap();
        browser.driver.switch_to_window(first).await.unwrap();
        until_listeners(&rota, 1).await;
        let job = submit(&home, &["noop"]);
        browser.until(&row(id(&job)), "Successful").await;
    }
}

/// At the width of a phone nothing is cut off, a long type can be read, and no dash stands alone; a job names its limit key.
#[tokio::test]
async fn a_narrow_screen_shows_it_all() {
    let home = home();
    let rota = home.up();
    let browser = Browser::open().await;
    browser.be_narrow().await;
    browser.sign_in(&rota).await;
    json(&home.run(&["type", "put", "send-invoice-reminder-by-mail", "--schema", "{}"]));
    let waiting =
        submit(&home, &["send-invoice-reminder-by-mail", "--name", "4711", "--limit-key", "customer-7"]);
    browser.until(&row(id(&waiting)), "Queued").await;
    let fits = "element.checkVisibility() && element.getBoundingClientRect().height < 32";
    browser.until_true("#queue [data-type^=send] th", fits, "on one line").await;
    browser
        .until_true("body", "document.documentElement.scrollWidth <= 390", "no wider than the screen")
        .await;
    let dashes =
        "return [...document.querySelectorAll('main *')].filter((element) => element.childElementCount === 0
        && element.textContent === '–' && element.checkVisibility()).length";
    assert_eq!(browser.run(dashes, vec![]).await, 0);
    browser.show(&format!("#domain=default&job={}", id(&waiting))).await;
    browser.until("[data-part=limit-key]", "customer-7").await;
    browser.until("[data-part=waiting]", "No node that lives runs").await;
    assert_eq!(browser.run(dashes, vec![]).await, 0);
    let other = submit(&home, &["noop", "--name", "without"]);
    browser.show(&format!("#domain=default&job={}", id(&other))).await;
    browser.until("#job-name", "without").await;
    browser.until_true("[data-part=limit-key]", "element.hidden", "hidden").await;
}
