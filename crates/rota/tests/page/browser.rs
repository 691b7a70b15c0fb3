//! A real browser without a window, and a driver for it, both of their own for each test; they end with it, also if it fails.

use std::io::{BufRead as _, BufReader};
use std::mem::ManuallyDrop;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rota_testkit::process::{KEY, Rota};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use thirtyfour::prelude::*;
use tokio::time::{Instant, sleep};

/// How long something may take that must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// The driver, with the browsers it starts in its process group.
struct Chromedriver(Child);

impl Drop for Chromedriver {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

pub(crate) struct Browser {
    /// Not told to quit in the end: that would wait for an answer, and the driver is killed.
    pub(crate) driver: ManuallyDrop<WebDriver>,
    _chromedriver: Chromedriver,
    _profile: tempfile::TempDir,
}

impl Browser {
    pub(crate) async fn open() -> Self {
        let (chromedriver, port) = start();
        let profile = tempfile::tempdir().unwrap();
        let mut wanted = DesiredCapabilities::chrome();
        for argument in [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1280,900",
            &format!("--user-data-dir={}", profile.path().display()),
        ] {
            wanted.add_arg(argument).unwrap();
        }
        let driver = WebDriver::new(format!("http://127.0.0.1:{port}"), wanted).await.unwrap();
        Self { driver: ManuallyDrop::new(driver), _chromedriver: chromedriver, _profile: profile }
    }

    /// Opens the page by the address that Rota printed.
    pub(crate) async fn sign_in(&self, rota: &Rota) {
        let address = rota.banner.lines().find_map(|line| line.trim().strip_prefix("page")).unwrap();
        self.driver.goto(address.trim()).await.unwrap();
        self.until("#connection", "Live").await;
    }

    /// Opens the page with a key.
    pub(crate) async fn sign_in_as(&self, url: &str, key: &str) {
        self.driver.goto(url).await.unwrap();
        self.until("#sign-in h2", "Sign in").await;
        self.find("#api-key").await.send_keys(key).await.unwrap();
        self.find("#sign-in button").await.click().await.unwrap();
        self.until("#connection", "Live").await;
    }

    /// Shows another place of the page, as a link there would.
    pub(crate) async fn show(&self, place: &str) {
        self.run("location.hash = arguments[0]", vec![json!(place)]).await;
    }

    /// As wide as a phone.
    pub(crate) async fn be_narrow(&self) {
        let metrics = json!({"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true});
        self.driver.cdp().send_raw("Emulation.setDeviceMetricsOverride", metrics).await.unwrap();
    }

    /// In a page that has no workers to share, as some browsers on phones.
    pub(crate) async fn without_shared_workers(&self) {
        let script = json!({"source": "delete globalThis.SharedWorker"});
        self.driver.cdp().send_raw("Page.addScriptToEvaluateOnNewDocument", script).await.unwrap();
    }

    /// In a page that is not told when it is hidden or closed, as one whose process is killed.
    pub(crate) async fn without_farewells(&self) {
        let script = "const deaf = (event) => event.stopImmediatePropagation();
            addEventListener('pagehide', deaf, true);
            addEventListener('visibilitychange', deaf, true);";
        let script = json!({"source": script});
        self.driver.cdp().send_raw("Page.addScriptToEvaluateOnNewDocument", script).await.unwrap();
    }

    pub(crate) async fn find(&self, css: &str) -> WebElement {
        self.driver.find(By::Css(css)).await.unwrap()
    }

    /// Presses what is there to be pressed.
    pub(crate) async fn press(&self, css: &str) {
        self.until_true(css, "element?.checkVisibility() && !element.disabled", "there to be pressed").await;
        self.find(css).await.click().await.unwrap();
    }

    /// What an element says; nothing if it is not there, or hidden.
    pub(crate) async fn text(&self, css: &str) -> String {
        let script = "const found = document.querySelector(arguments[0]); return found?.checkVisibility() ? found.innerText : ''";
        self.run(script, vec![json!(css)]).await.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an element says something.
    pub(crate) async fn until(&self, css: &str, words: &str) {
        let end = Instant::now() + PATIENCE;
        let mut said = self.text(css).await;
        while !said.contains(words) {
            assert!(Instant::now() < end, "{css} must say {words:?}, and says {said:?}");
            sleep(Duration::from_millis(50)).await;
            said = self.text(css).await;
        }
    }

    /// Waits until something holds for an element; it may be null.
    pub(crate) async fn until_true(&self, css: &str, holds: &str, what: &str) {
        let script = format!("const element = document.querySelector(arguments[0]); return Boolean({holds})");
        let end = Instant::now() + PATIENCE;
        while self.run(&script, vec![json!(css)]).await != json!(true) {
            assert!(Instant::now() < end, "{css} must be {what}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn run(&self, script: &str, arguments: Vec<Value>) -> Value {
        self.driver.execute(script, arguments).await.unwrap().json().clone()
    }
}

/// Waits until so many streams of events are open at Rota.
pub(crate) async fn until_listeners(rota: &Rota, wanted: u64) {
    let end = Instant::now() + PATIENCE;
    loop {
        let listeners = listeners(rota);
        if listeners == wanted {
            return;
        }
        assert!(Instant::now() < end, "{wanted} streams must be open, and {listeners} are");
        sleep(Duration::from_millis(50)).await;
    }
}

pub(crate) fn listeners(rota: &Rota) -> u64 {
    let url = format!("{}/api/v1/observer", rota.url);
    let key = format!("Authorization: Bearer {KEY}");
    let answer = Command::new("curl").args(["--silent", "--header", &key, &url]).output().unwrap();
    let observer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    observer.get("listeners").and_then(Value::as_u64).unwrap()
}

/// A driver on a free port, which it says when it is ready.
fn start() -> (Chromedriver, u16) {
    let mut command = Command::new("chromedriver");
    command.arg("--port=0").process_group(0).stdout(Stdio::piped()).stderr(Stdio::null());
    let missing =
        "chromedriver cannot be started: `cargo xtask test` installs it (on Debian: chromium-driver)";
    let mut child = command.spawn().expect(missing);
    let output = child.stdout.take().unwrap();
    let chromedriver = Chromedriver(child);
    let mut lines = BufReader::new(output).lines();
    let ready = |line: String| {
        let port = line.split(" on port ").nth(1).filter(|_| line.contains("started successfully"))?;
        port.trim_end_matches('.').trim().parse().ok()
    };
    let port = lines.by_ref().find_map(|line| ready(line.unwrap())).expect("a port");
    std::thread::spawn(move || lines.for_each(drop));
    (chromedriver, port)
}
