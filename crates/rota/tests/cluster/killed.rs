//! A node is killed, as by `kill -9`: the only one there is, or one of which something is asked at that moment.

use std::collections::BTreeSet;
use std::sync::Arc;

use rota_client::Error;
use rota_testkit::postgres::{Server, run_sql};

use crate::load::Load;
use crate::members::{CONDEMNED, join, start};
use crate::{end_after_one_loss, held_by, run_at};

const CALLERS: usize = 16;

/// Nobody answers until it is started again, in the same place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_only_node_ran_ends_when_it_is_started_again() {
    let server = Server::start(true);
    let store = server.fresh();
    let one = join(&store, "one").await;
    let held = run_at(&one, "outlives the only node", 4_000, 2).await;
    one.rota.kill();
    assert!(held.is_subset(&held_by(&store, one.id)), "it held them when it was killed");
    let nobody = one.client.nodes().await.unwrap_err();
    assert!(matches!(nobody, Error::Unreachable { .. }), "{nobody}");

    let again = start(one.home, &store, "one").await;
    assert_eq!(again.id, one.id, "it is the same node in another life");
    let ran = end_after_one_loss(&held, one.id, &again.client).await;
    assert_eq!(ran, BTreeSet::from([one.id]));
    let recorded = "SELECT count(*), count(*) FILTER (WHERE status = 'SUCCESSFUL' AND lost = 1) FROM jobs \
                    WHERE document->>'jobName' = 'outlives the only node'";
    assert_eq!(run_sql(&store, recorded), "2|2", "each is recorded once");
}

/// Of what is asked at that moment something is done, and nobody was told: who tries once more at another node finds it there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_a_node_that_is_killed_tries_once_more_at_another_and_nothing_is_lost_or_doubled() {
    let server = Server::start(true);
    let store = server.fresh();
    let (one, two) = (join(&store, "one").await, join(&store, "two").await);
    let load = Load::on(&[&one, &two]);
    let callers: Vec<_> = (0..CALLERS).map(|_| tokio::spawn(Arc::clone(&load).run_retrying_once())).collect();
    load.reaches(200).await;
    // Then they all ask the one that stands still: the other answers.
    one.freeze_when("a moment with something done that nobody was told of", || {
        Load::stored(&store) > load.so_far() && load.under_way() == CALLERS
    })
    .await;
    one.rota.kill();
    load.goes_on_by(200).await;
    load.end(callers).await;

    assert_eq!(load.lost(), 0, "no request fails twice");
    // What was done is found, and not made again.
    load.all_ended_once(&store).await;
    assert!(!two.home.log().contains(CONDEMNED), "nobody alive is condemned: {}", two.home.log());
}
