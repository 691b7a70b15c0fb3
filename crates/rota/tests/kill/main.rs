//! The real program on its embedded store, treated as the world treats programs: killed at random moments under load, frozen
//! and woken, told to stop while it works. Nothing acknowledged is missing, nothing is recorded twice, and no attempt is spent
//! on what happened to the program.
//!
//! - [`rounds`]: `kill -9`, again and again, under [`load`]. What its callers ask for stands in [`requests`], what they were
//!   told is kept in [`ledger`], and what the store holds in the end is held against it by [`verdict`]
//! - [`first_start`]: `kill -9` before it was ever up
//! - [`half_done`]: what a kill leaves between two writes
//! - [`freeze`]: SIGSTOP and SIGCONT
//! - [`termination`]: SIGTERM while jobs run
//!
//! `ROTA_KILL_ROUNDS` and `ROTA_KILL_SEED` make a longer one and one that was before.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a surprise is a failure of the test; what was measured is told"
)]

mod first_start;
mod freeze;
mod half_done;
mod ledger;
mod load;
mod requests;
mod rounds;
mod termination;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rota_client::{Client, JobFilter};
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{Job, JobStatus, NewJob};
use rota_store::Store;
use rota_store_sqlite::SqliteStore;
use rota_store_sqlite::holder::Holder;
use rota_testkit::process::{Home, KEY, Rota};
use serde_json::json;
use tokio::time::{sleep, timeout};

/// How long what must happen may take before a test says that it does not.
const PATIENCE: Duration = Duration::from_secs(120);

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_rota"))
}

fn client(rota: &Rota) -> Client {
    Client::new(&rota.url, KEY).unwrap()
}

fn wait(name: &str, millis: u64) -> NewJob {
    NewJob::new(name, "wait", json!({"millis": millis}))
}

async fn submit(client: &Client, job: &NewJob) -> Job {
    client.submit_job(&Domain::default(), job, None).await.unwrap()
}

/// The job once it has ended.
async fn ended(client: &Client, id: JobId) -> Job {
    let job = client.wait_for_job(&Domain::default(), id, PATIENCE).await.unwrap();
    assert!(job.status.is_terminal(), "it does not end: {job:?}");
    job
}

/// The job once a node runs it, or it has ended.
async fn begun(client: &Client, id: JobId) -> Job {
    let begun = async {
        loop {
            let job = client.job(&Domain::default(), id).await.unwrap();
            if job.status != JobStatus::Queued {
                return job;
            }
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(PATIENCE, begun).await.unwrap_or_else(|_| panic!("no node begins with {id}"))
}

/// The job that every first start makes is out of the way.
async fn first_job_ended(client: &Client) {
    let named = JobFilter { name: Some("first job".to_owned()), ..JobFilter::default() };
    for job in client.jobs(&Domain::default(), &named).await.unwrap().items {
        ended(client, job.job_id).await;
    }
}

/// The store of a program that does not run.
fn stored(home: &Home) -> Arc<dyn Store> {
    let holder = Holder::take(&home.data(), "a test").unwrap();
    Arc::new(SqliteStore::open(&home.data(), holder).unwrap())
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Another one each time; printed, so that a failure can be tried again.
fn dice() -> StdRng {
    let seed = number("ROTA_KILL_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("ROTA_KILL_SEED={seed}");
    StdRng::seed_from_u64(seed)
}
