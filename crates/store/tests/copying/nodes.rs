//! Who works on a store is known by who writes.

use std::time::Duration;

use rota_store::collection::STATE;
use rota_store::copy::alive;
use rota_store::seam::Key;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{create, memory, replace};

#[tokio::test(start_paused = true)]
async fn a_node_whose_document_changes_is_alive() {
    let store = memory();
    for (id, name, status) in
        [("1", "beats", "ACTIVE"), ("2", "killed", "BUSY"), ("3", "stopped", "TERMINATED")]
    {
        create(&*store, Key::new(&STATE, id), &json!({"name": name, "status": status})).await;
    }
    let began = Instant::now();
    assert_eq!(alive::nodes(&*store).await.unwrap(), Vec::<String>::new());
    assert_eq!(began.elapsed(), Duration::from_secs(7), "others conclude it after as long");

    let beating = async {
        for beat in 0.. {
            replace(&*store, Key::new(&STATE, "1"), &json!({"name": "beats", "lastSeenAt": beat})).await;
            sleep(Duration::from_millis(2_500)).await;
        }
    };
    tokio::select! {
        alive = alive::nodes(&*store) => assert_eq!(alive.unwrap(), ["beats"]),
        () = beating => {}
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_waited_for_who_ended_in_order() {
    let store = memory();
    create(&*store, Key::new(&STATE, "1"), &json!({"name": "stopped", "status": "TERMINATED"})).await;
    let began = Instant::now();
    assert!(alive::nodes(&*store).await.unwrap().is_empty());
    assert_eq!(began.elapsed(), Duration::ZERO);
}
