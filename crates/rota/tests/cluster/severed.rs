//! The way between a node and the store is gone, or the store itself, for longer than a lease lasts.

use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::job::JobStatus;
use rota_testkit::postgres::{Server, run_sql};
use rota_testkit::relay::Relay;
use tokio::time::{Instant, sleep};

use crate::load::wait;
use crate::members::{CONDEMNED, PATIENCE, join, until};
use crate::{end_after_one_loss, job, run_at, taken_over};

/// A lease ends six seconds after the last beat that was acknowledged.
const LONGER_THAN_A_LEASE: Duration = Duration::from_secs(8);

/// Its handlers finish while nobody hears of it: others take the jobs over, and what it says afterwards is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_cut_off_is_taken_over_and_its_answer_refused() {
    let server = Server::start(true);
    let store = server.fresh();
    let port: u16 = run_sql(&store, "SHOW port").parse().unwrap();
    let relay = Relay::before(port);
    let far = store.replace(&format!(":{port}"), &format!(":{}", relay.port));
    let (one, two) = (join(&store, "one").await, join(&far, "two").await);
    let held = run_at(&two, "ends while it is cut off", 3_000, 3).await;
    relay.sever();
    let took = taken_over(&held, two.id, &one.client, Instant::now()).await;
    println!("cut off: {} jobs were taken over after {:.1} s", held.len(), took.as_secs_f64());
    assert!(took < Duration::from_secs(10), "{took:?}");
    let (far, near) = (two.client.nodes().await, one.client.nodes().await);
    assert_eq!(far.unwrap_err().status(), Some(503), "who is cut off says so");
    assert_eq!(near.unwrap().len(), 2, "the others answer");
    assert!(!end_after_one_loss(&held, two.id, &one.client).await.contains(&two.id), "the other ran them");
    relay.mend();
    for said in ["a late answer was refused", CONDEMNED] {
        until(said, || async { two.home.log().contains(said) }).await;
    }
    for id in held {
        let after = job(&one.client, id).await;
        assert_eq!((after.status, after.epoch), (JobStatus::Successful, 2), "recorded once");
    }
    assert!(!one.home.log().contains(CONDEMNED), "nobody alive is condemned: {}", one.home.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_away_for_a_moment_stops_nothing() {
    let mut server = Server::start(true);
    let store = server.fresh();
    let one = join(&store, "one").await;
    let ends_meanwhile = run_at(&one, "ends while the store is away", 600, 1).await;
    let goes_on = run_at(&one, "runs on", 6_000, 1).await;
    server.stop();
    sleep(Duration::from_millis(500)).await;
    server.resume();
    for id in ends_meanwhile.into_iter().chain(goes_on) {
        let ended = one.client.wait_for_job(&Domain::default(), id, PATIENCE).await.unwrap();
        assert_eq!(
            (ended.status, ended.attempt, ended.lost, ended.epoch),
            (JobStatus::Successful, 1, 0, 1),
            "it went on, and its result was kept until it could be written"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_away_for_longer_than_a_lease_condemns_nobody() {
    let mut server = Server::start(true);
    let store = server.fresh();
    let (one, two) = (join(&store, "one").await, join(&store, "two").await);
    let mut held = run_at(&one, "runs when the store goes", 9_000, 2).await;
    held.extend(run_at(&two, "runs when the store goes", 9_000, 2).await);
    server.stop();
    let refused = one.client.submit_job(&Domain::default(), &wait("meanwhile", 1), None).await.unwrap_err();
    assert_eq!(refused.status(), Some(503), "{refused}");
    sleep(LONGER_THAN_A_LEASE).await;
    server.resume();
    until("that it answers", || async { two.client.nodes().await.is_ok() }).await;
    for id in held {
        let ended = two.client.wait_for_job(&Domain::default(), id, PATIENCE).await.unwrap();
        assert_eq!(
            (ended.status, ended.attempt),
            (JobStatus::Successful, 1),
            "it begins again, and that costs no attempt"
        );
    }
    let stopped = "SELECT count(*) > 0 FROM logs WHERE document->>'title' LIKE 'its handler was stopped: its node cannot be sure%'";
    until("that the log says why", || async { run_sql(&store, stopped) == "t" }).await;
    for member in [&one, &two] {
        assert!(!member.home.log().contains(CONDEMNED), "nobody alive is condemned: {}", member.home.log());
    }
}
