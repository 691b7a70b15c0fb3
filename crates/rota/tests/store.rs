//! `rota store` with the real program: a backup of a Rota that is busy becomes another Rota with all that was
//! acknowledged, nothing that is there is lost, and what is damaged is named.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rota_client::Client;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{JobStatus, NewJob};
use rota_testkit::process::{Home, KEY, Rota, code, complaint, json};
use serde_json::{Value, json};

const SUBMITTERS: usize = 4;

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_rota"))
}

/// `rota store …` on a folder.
fn store(home: &Home, data: &Path, arguments: &[&str]) -> Output {
    home.command().arg("store").args(arguments).arg("--data").arg(data).output().unwrap()
}

fn assert_refused(output: &Output, expected: i32, words: &str) {
    let complaint = complaint(output);
    assert_eq!(code(output), expected, "{complaint}");
    assert!(complaint.contains(words), "{complaint}");
}

fn up(home: &Home, data: &Path) -> Rota {
    let mut command = home.command();
    command.args(["up", "--listen", "127.0.0.1:0", "--data"]).arg(data).env("ROTA_BOOTSTRAP_KEY", KEY);
    Rota::start(command)
}

type Acknowledged = Arc<Mutex<BTreeSet<JobId>>>;

/// Submits with several callers until told to stop, and notes what was acknowledged.
struct Load {
    acknowledged: Acknowledged,
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    fn on(rota: &Rota) -> Self {
        let (acknowledged, stop) = (Acknowledged::default(), Arc::new(AtomicBool::new(false)));
        let submit = |_| {
            let client = Client::new(&rota.url, KEY).unwrap();
            let (acknowledged, stop) = (Arc::clone(&acknowledged), Arc::clone(&stop));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let job = NewJob::new("under load", "noop", json!({"text": "x".repeat(2_000)}));
                    let job = client.submit_job(&Domain::default(), &job, None).await.unwrap();
                    acknowledged.lock().unwrap().insert(job.job_id);
                }
            })
        };
        let tasks = (0..SUBMITTERS).map(submit).collect();
        Self { acknowledged, stop, tasks }
    }

    fn acknowledged(&self) -> BTreeSet<JobId> {
        self.acknowledged.lock().unwrap().clone()
    }

    fn goes_on(&self) -> bool {
        self.tasks.iter().all(|task| !task.is_finished())
    }

    async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_busy_rota_becomes_another_with_all_that_was_acknowledged() {
    let home = home();
    let (rota, data, other) = (home.up(), home.data(), home.path().join("new/other"));
    let load = Load::on(&rota);
    while load.acknowledged().len() < 200 {
        assert!(load.goes_on());
        tokio::task::yield_now().await;
    }
    let before = load.acknowledged();
    let made = tokio::task::block_in_place(|| json(&store(&home, &data, &["backup", "busy.db"])));
    let checked = tokio::task::block_in_place(|| json(&store(&home, &data, &["check"])));
    assert!(load.acknowledged().len() > before.len(), "it was busy all the time");
    load.stop().await;
    assert_eq!((&checked["sound"], &checked["faults"]), (&json!(true), &json!([])));
    let file = home.path().join("busy.db");
    assert_eq!(made["file"], json!(file));
    assert_eq!(made["bytes"], file.metadata().unwrap().len());
    assert!(!home.path().join("busy.db.partial").exists());

    let restored = json(&store(&home, &other, &["restore", "busy.db"]));
    assert_eq!((&restored["data"], &restored["kept"]), (&json!(other), &Value::Null));
    assert_eq!(json(&store(&home, &other, &["check"]))["sound"], true);
    let copy = up(&home, &other);
    let client = Client::new(&copy.url, KEY).unwrap();
    for id in &before {
        let job = client.wait_for_job(&Domain::default(), *id, Duration::from_secs(60)).await.unwrap();
        assert_eq!(job.status, JobStatus::Successful);
    }
    let node = |data: &Path| fs::read_to_string(data.join("node-id")).unwrap();
    assert_ne!(node(&data), node(&other), "it is another node");

    let stats = json(&store(&home, &other, &["stats"]));
    let jobs = stats["collections"].as_array().unwrap().iter().find(|one| one["name"] == "jobs").unwrap();
    assert!(jobs["documents"].as_u64().unwrap() > u64::try_from(before.len()).unwrap(), "{stats}");
    assert!(jobs["documentBytes"].as_u64().unwrap() > 2_000 * 200, "{stats}");
    for number in ["schema", "pageBytes", "fileBytes", "freeBytes", "logBytes", "textBytes"] {
        assert!(stats[number].is_u64(), "{number} in {stats}");
    }
}

#[test]
fn nothing_that_is_there_is_lost() {
    let home = home();
    let (rota, data) = (home.up(), home.data());
    json(&store(&home, &data, &["backup", "early.db"]));
    assert_refused(&store(&home, &data, &["backup", "early.db"]), 2, "there is such a file");
    json(&home.run(&["job", "submit", "noop", "--name", "after the backup"]));
    let holder = format!("is in use by Rota with process id {}", rota.id());
    assert_refused(&store(&home, &data, &["restore", "early.db", "--replace"]), 4, &holder);
    rota.kill();
    assert_refused(&store(&home, &data, &["restore", "early.db"]), 2, "--replace");
    let replaced = json(&store(&home, &data, &["restore", "early.db", "--replace"]));
    let kept = Path::new(replaced["kept"].as_str().unwrap()).to_owned();
    assert!(kept.is_file() && kept.starts_with(&data), "{replaced}");

    // What was set aside was a store that had been killed; it is a backup like any other.
    let old = home.path().join("old");
    json(&store(&home, &old, &["restore", kept.to_str().unwrap()]));
    assert_eq!(names(&home, &data), ["first job"]);
    assert_eq!(names(&home, &old), ["after the backup", "first job"]);
}

/// Names of the jobs in a folder, the newest first.
fn names(home: &Home, data: &Path) -> Vec<String> {
    let rota = up(home, data);
    let mut list = home.command();
    list.env("ROTA_API_KEY", KEY).args(["job", "list", "--url", &rota.url]);
    let list = json(&list.output().unwrap());
    list["items"].as_array().unwrap().iter().map(|job| job["jobName"].as_str().unwrap().to_owned()).collect()
}

/// The log of a file that is gone must not be taken for that of the backup; and the log beside a file that was copied
/// from elsewhere belongs to it.
#[test]
fn a_log_stays_with_its_file() {
    let home = home();
    let (rota, data) = (home.up(), home.data());
    json(&store(&home, &data, &["backup", "early.db"]));
    json(&home.run(&["job", "submit", "noop", "--name", "after the backup"]));
    rota.kill();
    let copied = home.path().join("copied");
    fs::create_dir(&copied).unwrap();
    for file in ["rota.db", "rota.db-wal"] {
        fs::copy(data.join(file), copied.join(file)).unwrap();
    }
    fs::remove_file(data.join("rota.db")).unwrap();
    json(&store(&home, &data, &["restore", "early.db"]));
    assert_eq!(json(&store(&home, &data, &["check"]))["sound"], true);
    assert_eq!(names(&home, &data), ["first job"]);
    let from_copy = home.path().join("from-copy");
    json(&store(&home, &from_copy, &["restore", "copied/rota.db"]));
    assert_eq!(names(&home, &from_copy), ["after the backup", "first job"]);
}

#[test]
fn what_is_damaged_is_named() {
    let home = home();
    let rota = home.up();
    json(&home.run(&["job", "submit", "noop", "--name", "nightly report", "--wait"]));
    json(&store(&home, &home.data(), &["backup", "whole.db"]));
    rota.kill();
    let whole = fs::read(home.path().join("whole.db")).unwrap();
    let checked = |bytes: &[u8]| {
        let data = home.path().join("damaged");
        let _ = fs::remove_dir_all(&data);
        fs::create_dir(&data).unwrap();
        fs::write(data.join("rota.db"), bytes).unwrap();
        store(&home, &data, &["check"])
    };
    assert_eq!(json(&checked(&whole))["sound"], true);

    let name = b"nightly report";
    let at = whole.windows(name.len()).position(|window| window == name).unwrap();
    let mut other_name = whole.clone();
    other_name[at] = b'N';
    let found = checked(&other_name);
    assert_refused(&found, 1, "has 1 fault");
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(found["sound"], false);
    assert!(found["faults"][0].as_str().unwrap().contains("the column of jobName"), "{found}");

    let mut page_lost = whole.clone();
    page_lost[8_192..16_384].fill(0xff);
    assert_refused(&checked(&page_lost), 1, "faults");
    assert_refused(&checked(&whole[..whole.len() / 2]), 2, "cut short");
    assert_refused(&checked(b"something else"), 2, "not a store of Rota");
    fs::write(home.path().join("page-lost.db"), page_lost).unwrap();
    let new = home.path().join("new");
    assert_refused(&store(&home, &new, &["restore", "page-lost.db"]), 2, "the backup is damaged");
    assert!(!new.join("rota.db").exists());
}

#[test]
fn what_is_not_there_is_told_so_and_nothing_is_made() {
    let home = home();
    let data = home.data();
    for arguments in [&["backup", "x.db"] as &[&str], &["check"], &["stats"]] {
        assert_refused(&store(&home, &data, arguments), 3, "there is no Rota in the folder");
    }
    assert_refused(&store(&home, &data, &["restore", "x.db"]), 2, "there is no backup x.db");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    drop(home.up());
    assert_refused(&store(&home, &data, &["backup", "no/such/x.db"]), 2, "make it first");
}

#[test]
fn people_are_told_what_was_done_and_what_to_do_next() {
    let home = home();
    let rota = home.up();
    let shown = |arguments: &[&str]| {
        let output = store(&home, &home.data(), &[arguments, &["--output", "table"]].concat());
        assert!(output.status.success(), "{}", complaint(&output));
        format!("{}{}", String::from_utf8_lossy(&output.stdout), complaint(&output))
    };
    let folder = home.path().to_str().unwrap();
    let backup = shown(&["backup", "a backup.db"]);
    assert!(backup.contains(" KiB") && !backup.contains('\u{1b}'), "{backup}");
    assert!(backup.contains(&format!("`rota store restore '{folder}/a backup.db' --data DIR`")), "{backup}");
    assert!(shown(&["check"]).starts_with("The store is sound: "));
    let stats = shown(&["stats"]);
    assert!(stats.contains("COLLECTION") && stats.contains("\njobs ") && stats.contains(" KiB"), "{stats}");
    rota.kill();
    let restored = shown(&["restore", "a backup.db", "--replace"]);
    assert!(restored.contains(&format!("`rota up --data {folder}/data`")), "{restored}");
    assert!(restored.contains(&format!("is kept in {folder}/data/rota.db.before-")), "{restored}");
}
