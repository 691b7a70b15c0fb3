//! What goes by itself, and when: ids of deleted jobs, and nodes that ended long ago.

mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rota_engine::desk::{SubmitError, Submitted};
use rota_engine::surroundings::{Clock, Surroundings};
use rota_model::domain::Domain;
use rota_model::ids::NodeId;
use rota_model::job::NewJob;
use rota_model::node::NodeStatus;
use rota_model::time::UnixMillis;
use rota_store::nodes::Nodes;
use rota_testkit::surroundings::BEGINNING;
use serde_json::json;
use stage::{Stage, act};
use tokio::time::{Instant, sleep};

const HOUR: Duration = Duration::from_secs(3_600);

/// A clock that people set.
struct Set {
    began: Instant,
    ahead_ms: AtomicU64,
}

impl Clock for Set {
    fn now(&self) -> UnixMillis {
        let ahead = Duration::from_millis(self.ahead_ms.load(Ordering::Relaxed));
        BEGINNING.plus(self.began.elapsed() + ahead)
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_stays_taken_for_an_hour_whatever_the_clock_is_set_to() {
    let clock = Arc::new(Set { began: Instant::now(), ahead_ms: AtomicU64::new(0) });
    let mut stage = Stage::new();
    stage.surroundings = Surroundings::new(Arc::<Set>::clone(&clock), [7; 32]);
    let node = stage.up("one").await;
    let domain = Domain::default();
    let submit = || {
        let job = NewJob { idempotency_key: Some("once".to_owned()), ..act(json!({})) };
        node.desk.submit(&domain, job)
    };
    let id = submit().await.unwrap().job().document.job_id;
    node.ended(id).await;
    node.desk.delete(&domain, id, None).await.unwrap();
    clock.ahead_ms.store(u64::try_from((2 * HOUR).as_millis()).unwrap(), Ordering::Relaxed);
    sleep(Duration::from_secs(180)).await;
    assert!(matches!(submit().await, Err(SubmitError::Deleted(gone)) if gone == id));
    sleep(HOUR).await;
    assert!(matches!(submit().await, Ok(Submitted::New(_))), "by now nothing of it can be under way");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nodes_that_ended_long_ago_are_forgotten() {
    let stage = Stage::new();
    let nodes = Nodes::new(Arc::clone(&stage.store));
    stage.up("one").await.stop().await;
    let model = stage.state(NodeId::derived(&["one"])).await;
    for (name, days, status) in
        [("lately", 6, NodeStatus::Terminated), ("long ago", 8, NodeStatus::Terminated)]
    {
        let mut state = model.clone();
        let id = NodeId::derived(&[name]);
        (state.id, state.status) = (id, status);
        state.last_seen_at = UnixMillis(BEGINNING.0 - days * 24 * 3_600_000);
        nodes.create(state).await.unwrap();
    }
    let node = stage.up("one").await;
    sleep(Duration::from_secs(120)).await;
    let left: Vec<_> = nodes.all().await.unwrap().into_iter().map(|state| state.document.id).collect();
    assert_eq!(left.len(), 2);
    assert!(left.contains(&node.id) && left.contains(&NodeId::derived(&["lately"])));
    node.stop().await;
}
