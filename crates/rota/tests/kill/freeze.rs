//! SIGSTOP and SIGCONT. A node that was frozen for longer than its lease cannot know whose its jobs are by now: it stops what
//! runs, and then carries on. After a moment nothing has happened.

use std::time::Duration;

use rota_client::Client;
use rota_model::domain::Domain;
use rota_model::job::{Job, JobEvent, JobStatus, NewJob};
use rota_model::node::NodeStatus;
use serde_json::json;
use tokio::time::sleep;

use crate::{begun, client, ended, first_job_ended, home, submit, verdict, wait};

/// Longer than a lease of six seconds.
const LONG: Duration = Duration::from_secs(8);
const SHORT: Duration = Duration::from_secs(1);
/// What the node says when it stops all it runs.
const STOPPED: &str = "what ran here was stopped";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_frozen_for_longer_than_its_lease_carries_on() {
    let home = home();
    let rota = home.up_with(&["--capacity", "3"]);
    let client = client(&rota);
    first_job_ended(&client).await;
    let long = begun(&client, submit(&client, &wait("outlasts the freeze", 10_000)).await.job_id).await;
    assert_eq!((long.status, long.epoch), (JobStatus::Started, 1));
    let others = submit_each(&client, &["over meanwhile", "over meanwhile too"], 1_500).await;
    let queued = submit_each(&client, &["waits", "waits too", "waits as well"], 50).await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { ended(&client, long.job_id).await }
    });
    rota.freeze();
    sleep(LONG).await;
    rota.wake();
    let further = submit(&client, &NewJob::new("comes later", "noop", json!({}))).await;
    for job in others.into_iter().chain(queued).chain([further]) {
        ended_once(&ended(&client, job.job_id).await);
    }
    let long = waiting.await.unwrap();
    ended_once(&long);
    let given_back = |event| matches!(event, JobEvent::Release | JobEvent::Lose);
    assert!(long.epoch > 1 && long.history.iter().all(|entry| given_back(entry.event)), "{long:?}");
    assert!(home.log().contains(STOPPED), "the node does not say that it stopped what ran");
    let nodes = client.nodes().await.unwrap();
    assert!(nodes.len() == 1 && nodes.iter().all(|node| node.status == NodeStatus::Active), "{nodes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moment_of_standing_still_changes_nothing() {
    let home = home();
    let rota = home.up();
    let client = client(&rota);
    let job = begun(&client, submit(&client, &wait("outlasts the moment", 2_500)).await.job_id).await;
    rota.freeze();
    sleep(SHORT).await;
    rota.wake();
    let job = ended(&client, job.job_id).await;
    ended_once(&job);
    assert_eq!((job.epoch, job.history.len()), (1, 0), "{job:?}");
    assert!(!home.log().contains(STOPPED), "{}", home.log());
}

async fn submit_each(client: &Client, names: &[&str], millis: u64) -> Vec<Job> {
    let mut jobs = Vec::new();
    for name in names {
        jobs.push(submit(client, &wait(name, millis)).await);
    }
    jobs
}

/// No attempt is spent, and every claim is accounted for.
fn ended_once(job: &Job) {
    assert_eq!((job.status, job.attempt), (JobStatus::Successful, 1), "{job:?}");
    assert_eq!(job.domain, Domain::default());
    verdict::claims_are_accounted_for(job);
}
