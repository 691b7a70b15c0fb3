//! SIGTERM while jobs run: those that end within the grace have ended, the others are given back and run after the next
//! start. Nothing is lost, and no attempt is spent.

use rota_client::Client;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{Job, JobEvent, JobStatus, NewJob};
use rota_store::jobs::Jobs;

use crate::{begun, client, ended, first_job_ended, home, stored, submit, wait};

/// Longer than the grace.
const LONG: u64 = 4_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_told_to_stop_gives_back_what_runs() {
    let home = home();
    let rota = home.up_with(&["--capacity", "4", "--grace", "1s"]);
    let client = client(&rota);
    first_job_ended(&client).await;
    let long = [begin(&client, "long", LONG).await, begin(&client, "long too", LONG).await];
    let soon = [begin(&client, "ends soon", 300).await, begin(&client, "ends soon too", 200).await];
    // If one that ends soon has made room for it by now, it is given back like the others.
    let behind = submit(&client, &wait("behind", LONG)).await.job_id;
    assert!(rota.terminate().success());

    let jobs = Jobs::new(stored(&home));
    let read = async |id: JobId| jobs.get(&Domain::default(), id).await.unwrap().unwrap().document;
    for id in long {
        is_given_back(&read(id).await);
    }
    for id in soon {
        let job = read(id).await;
        assert_eq!((job.status, job.epoch, job.history.len()), (JobStatus::Successful, 1, 0), "{job:?}");
    }
    let job = read(behind).await;
    if job.epoch > 0 {
        is_given_back(&job);
    } else {
        assert_eq!((job.status, job.history.len()), (JobStatus::Queued, 0), "{job:?}");
    }
    drop(jobs);

    let rota = home.up();
    let client = crate::client(&rota);
    for id in long.into_iter().chain(soon).chain([behind]) {
        let job = ended(&client, id).await;
        assert_eq!((job.status, job.lost, job.attempt), (JobStatus::Successful, 0, 1), "{job:?}");
        crate::verdict::claims_are_accounted_for(&job);
    }
}

/// Submits a job, and returns when it has begun.
async fn begin(client: &Client, name: &str, millis: u64) -> JobId {
    let job = NewJob { priority: Some(9), ..wait(name, millis) };
    begun(client, submit(client, &job).await.job_id).await.job_id
}

fn is_given_back(job: &Job) {
    let events: Vec<JobEvent> = job.history.iter().map(|entry| entry.event).collect();
    assert_eq!((job.status, job.epoch, events), (JobStatus::Queued, 1, vec![JobEvent::Release]), "{job:?}");
    assert_eq!((job.lost, job.attempt, job.owner), (0, 1, None), "{job:?}");
}
