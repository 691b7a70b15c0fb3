//! `kill -9` at random moments, on the real program and the real store: nothing acknowledged is missing, every job ends
//! as SUCCESSFUL and is recorded once, and a death of the node costs no attempt.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a surprise is a failure of the test")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rota_client::Client;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{Job, JobStatus, NewJob};
use rota_testkit::process::{Home, KEY, Rota};
use serde_json::json;

const ROUNDS: usize = 6;
const SUBMITTERS: usize = 4;

/// What was acknowledged: the id and what was asked for.
type Acknowledged = Arc<Mutex<BTreeMap<JobId, u64>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_and_nothing_is_recorded_twice() {
    let home = Home::new(env!("CARGO_BIN_EXE_rota"));
    let mut dice = StdRng::seed_from_u64(seed());
    let acknowledged = Acknowledged::default();
    for _ in 0..ROUNDS {
        let rota = home.up();
        let under_load = load(&rota, &acknowledged);
        tokio::time::sleep(Duration::from_millis(dice.random_range(20..900))).await;
        rota.kill();
        under_load.stop().await;
    }
    let rota = home.up();
    let client = client(&rota);
    let acknowledged = acknowledged.lock().unwrap().clone();
    assert!(acknowledged.len() > 50, "there was load: {}", acknowledged.len());
    let mut lost = 0;
    for (id, millis) in &acknowledged {
        let job = client.wait_for_job(&Domain::default(), *id, Duration::from_secs(60)).await.unwrap();
        check(&job, *millis);
        lost += job.lost;
    }
    println!("{} jobs acknowledged, {lost} times a node died with one", acknowledged.len());
    assert!(lost > 0, "the kills hit running jobs");
}

/// Also before it is up: whatever the first start had made by then, the next one goes on from it.
#[test]
fn a_first_start_that_is_killed_can_be_repeated() {
    let mut dice = StdRng::seed_from_u64(seed());
    for _ in 0..25 {
        let home = Home::new(env!("CARGO_BIN_EXE_rota"));
        let mut first = home.command();
        first.args(["up", "--listen", "127.0.0.1:0", "--data"]).arg(home.data());
        let mut first = first.stdout(std::process::Stdio::null()).spawn().unwrap();
        while !home.data().join("rota.db").exists() {
            std::hint::spin_loop();
        }
        std::thread::sleep(Duration::from_micros(dice.random_range(0..20_000)));
        first.kill().unwrap();
        first.wait().unwrap();
        let again = home.up();
        // Whatever the first start had decided: a key that was kept for the command line is good, and finds the job.
        let kept = std::fs::read_to_string(home.path().join("config/rota/credentials.toml")).unwrap();
        let finds_the_job = |key: &str| {
            let mut list = home.command();
            let list =
                list.args(["job", "list", "--url", &again.url]).env("ROTA_API_KEY", key).output().unwrap();
            String::from_utf8_lossy(&list.stdout).contains("first job")
        };
        let mut keys = kept.split('"').filter(|part| part.starts_with("rota_"));
        assert!(keys.any(finds_the_job), "{}", again.banner);
    }
}

fn check(job: &Job, millis: u64) {
    let case = serde_json::to_string(job).unwrap();
    assert_eq!(job.status, JobStatus::Successful, "{case}");
    assert_eq!(job.result.get("waitedMillis"), Some(&json!(millis)), "{case}");
    assert_eq!(job.attempt, 1, "a death costs no attempt: {case}");
    assert_eq!(job.epoch, u64::from(job.lost) + 1, "one epoch for each claim: {case}");
    assert_eq!(job.history.len(), usize::try_from(job.lost).unwrap(), "{case}");
    assert_eq!(job.owner, None, "{case}");
}

struct Load {
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

fn load(rota: &Rota, acknowledged: &Acknowledged) -> Load {
    let stop = Arc::new(AtomicBool::new(false));
    let submit = |nth: usize| {
        let (client, stop, acknowledged) = (client(rota), Arc::clone(&stop), Arc::clone(acknowledged));
        tokio::spawn(async move {
            let mut millis = u64::try_from(nth).unwrap() * 40;
            while !stop.load(Ordering::Relaxed) {
                millis = (millis + 7) % 300;
                let job = NewJob::new("under load", "wait", json!({"millis": millis}));
                if let Ok(job) = client.submit_job(&Domain::default(), &job, None).await {
                    acknowledged.lock().unwrap().insert(job.job_id, millis);
                }
            }
        })
    };
    Load { tasks: (0..SUBMITTERS).map(submit).collect(), stop: Arc::clone(&stop) }
}

fn client(rota: &Rota) -> Client {
    Client::new(&rota.url, KEY).unwrap()
}

/// Another one each time; printed, so that a failure can be tried again.
fn seed() -> u64 {
    let seed = std::env::var("ROTA_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("ROTA_TEST_SEED={seed}");
    seed
}
