//! A process that writes under load is killed at random moments, again and again: nothing acknowledged is missing and
//! nothing half-written is there; whether or not the disk was waited for, which matters to a loss of power alone.
//!
//! The process is this test itself, started once more with a folder in its environment. It says what the store
//! acknowledged, one line each. `ROTA_KILL_ROUNDS`, `ROTA_KILL_SEED` and `ROTA_KILL_CROWD` make a longer one, another one,
//! and one in a store with many documents.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a surprise is a failure; the child talks to its parent, and a real process is killed in real time"
)]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rota_model::time::UnixMillis;
use rota_store::Store;
use rota_store::collection::JOBS;
use rota_store::cursor::Cursor;
use rota_store::query::{Order, Query};
use rota_store::seam::{Body, Key, Version, Write, Written};
use rota_store_sqlite::SqliteStore;
use rota_store_sqlite::check::check;
use rota_store_sqlite::durability::Durability;
use rota_store_sqlite::holder::Holder;
use serde_json::{Value, json};

const FOLDER: &str = "ROTA_KILL_FOLDER";
const WRITERS: u32 = 8;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder, Holder::take(folder, "a test").unwrap()).unwrap()
}

/// The process that is killed. By itself it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let round = number("ROTA_KILL_ROUND", 0);
    let folder = Path::new(&folder);
    let never = Durability::Within(Duration::from_secs(60 * 60));
    let durability = if round.is_multiple_of(2) { Durability::OnDisk } else { never };
    let holder = Holder::take(folder, "a test").unwrap();
    let store = Arc::new(SqliteStore::open_with(folder, holder, durability).unwrap());
    let writers: Vec<_> =
        (0..WRITERS).map(|writer| tokio::spawn(write_on(Arc::clone(&store), round, writer))).collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

/// Documents of its own: made in batches, changed step by step, some deleted. Each answer is told to the parent.
async fn write_on(store: Arc<SqliteStore>, round: u64, writer: u32) {
    for batch in 0_u32.. {
        let keys: Vec<Key> =
            (0..5).map(|nth| Key::new(&JOBS, format!("{round}-{writer}-{batch}-{nth}"))).collect();
        let creates =
            keys.iter().map(|key| Write::Create { key: key.clone(), body: body(&key.id) }).collect();
        let mut versions = applied(store.write(creates).await.unwrap());
        say(&keys.iter().map(|key| format!("made {}", key.id)).collect::<Vec<_>>());
        for step in 1_u32..4 {
            let change = |(key, version): (&Key, &Version)| {
                let fields = vec![
                    ("epoch", json!(step)),
                    ("status", json!(status(step))),
                    ("result", json!({"step": step})),
                ];
                Write::Change { key: key.clone(), version: *version, fields }
            };
            versions = applied(store.write(keys.iter().zip(&versions).map(change).collect()).await.unwrap());
            say(&keys.iter().map(|key| format!("step {} {step}", key.id)).collect::<Vec<_>>());
        }
        let (key, version) = (keys[0].clone(), versions[0]);
        applied(store.write(vec![Write::Delete { key, version, at: UnixMillis(1) }]).await.unwrap());
        say(&[format!("gone {}", keys[0].id)]);
        let numbers = store.sequence("jobs", 3).await.unwrap();
        say(&[format!("number {}", numbers.end)]);
    }
}

fn status(step: u32) -> &'static str {
    ["QUEUED", "STARTED", "QUEUED", "SUCCESSFUL"][step as usize]
}

fn body(id: &str) -> Body {
    // Some are large enough to stand apart.
    let size = if id.ends_with('3') { 20_000 } else { 300 };
    let body = json!({"jobName": id, "domain": "default", "status": "QUEUED", "input": {"type": "noop"}, "result": {},
        "epoch": 0, "text": "x".repeat(size)});
    body.as_object().unwrap().clone()
}

fn applied(answers: Vec<Written>) -> Vec<Version> {
    let version = |written| match written {
        Written::Applied(version) => version,
        other => panic!("{other:?}"),
    };
    answers.into_iter().map(version).collect()
}

/// In one write, so that a line is whole or not there.
fn say(lines: &[String]) {
    let text = format!("{}\n", lines.join("\n"));
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).unwrap();
    out.flush().unwrap();
}

/// What was acknowledged of a document: how far it got, and whether it is gone.
#[derive(Default)]
struct Acknowledged {
    documents: BTreeMap<String, (u64, bool)>,
    number: u64,
}

impl Acknowledged {
    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["made", id] => drop(self.documents.insert((*id).to_owned(), (0, false))),
            ["step", id, step] => self.documents.get_mut(*id).unwrap().0 = step.parse().unwrap(),
            ["gone", id] => self.documents.get_mut(*id).unwrap().1 = true,
            ["number", end] => self.number = self.number.max(end.parse().unwrap()),
            _ => {}
        }
    }
}

#[tokio::test]
async fn nothing_acknowledged_is_missing_after_a_kill() {
    let (rounds, seed) = (number("ROTA_KILL_ROUNDS", 10), number("ROTA_KILL_SEED", 7));
    let mut dice = StdRng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    crowd(folder.path(), number("ROTA_KILL_CROWD", 0)).await;
    let mut all = Acknowledged::default();
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        let mut acknowledged = Acknowledged::default();
        run_and_kill(
            folder.path(),
            round,
            Duration::from_millis(dice.random_range(30..400)),
            &mut acknowledged,
        );
        let began = Instant::now();
        let store = open(folder.path());
        slowest = slowest.max(began.elapsed());
        verify(&store, &acknowledged, Some(round)).await;
        assert!(!acknowledged.documents.is_empty());
        if rounds > 10 {
            let count = acknowledged.documents.len();
            println!("round {round}: {count} documents acknowledged, {} before", all.documents.len());
        }
        all.documents.append(&mut acknowledged.documents);
        all.number = all.number.max(acknowledged.number);
    }
    verify(&open(folder.path()), &all, None).await;
    let findings = check(folder.path(), &mut |_| {}).unwrap();
    assert!(findings.is_sound(), "seed {seed}: {:?}", findings.faults);
    println!("{rounds} kills, {} documents acknowledged, slowest open {slowest:?}", all.documents.len());
    assert!(all.documents.len() > 100);
}

/// Documents that are there from the beginning, and sort behind all others.
async fn crowd(folder: &Path, count: u64) {
    let store = open(folder);
    for first in (0..count).step_by(1_000) {
        let create = |n: u64| Write::Create { key: Key::new(&JOBS, format!("~{n}")), body: body("crowd") };
        store.write((first..first + 1_000).map(create).collect()).await.unwrap();
    }
}

fn run_and_kill(folder: &Path, round: u64, after: Duration, acknowledged: &mut Acknowledged) {
    let mut child: Child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .env("ROTA_KILL_ROUND", round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The moment counts from the first answer, so that every round comes to writing.
    let first = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("made"))).unwrap().unwrap();
    acknowledged.hear(&first);
    let killer = std::thread::spawn(move || {
        std::thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap();
    });
    for line in lines {
        acknowledged.hear(&line.unwrap());
    }
    killer.join().unwrap();
}

/// Everything that was acknowledged is there, as it was or one step further; nothing is half of one thing.
async fn verify(store: &SqliteStore, acknowledged: &Acknowledged, round: Option<u64>) {
    let mut stored: BTreeMap<String, Body> = BTreeMap::new();
    let (first, prefix) =
        round.map_or((String::new(), String::new()), |round| (format!("{round}-"), format!("{round}-")));
    let mut query = Query::new(&JOBS, Order::BY_ID).after(Some(Cursor::behind_id(&first, &JOBS)));
    loop {
        let page = store.find(query.clone()).await.unwrap();
        let of_round = |id: &str| id.starts_with(&prefix) && !id.starts_with('~');
        let before = stored.len();
        let found = page.documents.into_iter().filter(|document| of_round(&document.key.id));
        stored.extend(found.map(|document| (document.key.id, document.body)));
        let Some(next) = page.next.filter(|_| stored.len() > before) else { break };
        query.after = Some(next);
    }
    for (id, (step, gone)) in &acknowledged.documents {
        let Some(document) = stored.get(id) else {
            assert!(*gone || (*step == 3 && id.ends_with("-0")), "{id} is missing at step {step}");
            continue;
        };
        assert!(!gone, "{id} was deleted and is there");
        assert!(document["epoch"].as_u64().unwrap() >= *step, "{id} was acknowledged at step {step}");
    }
    for (id, document) in &stored {
        let step = document["epoch"].as_u64().unwrap();
        let mut whole = body(id);
        whole.insert("epoch".to_owned(), json!(step));
        whole.insert("status".to_owned(), json!(status(u32::try_from(step).unwrap())));
        let result = if step == 0 { json!({}) } else { json!({"step": step}) };
        whole.insert("result".to_owned(), result);
        assert_eq!(Value::Object(document.clone()), Value::Object(whole));
    }
    assert!(store.sequence("jobs", 1).await.unwrap().start >= acknowledged.number);
}
