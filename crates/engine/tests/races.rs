//! Two things at the same moment: each comes out as if one had been first.

mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rota_engine::handler::{Context, Handler, HandlerError};
use rota_engine::node::{Node, NodeOptions};
use rota_engine::types::JobTypes;
use rota_model::domain::Domain;
use rota_model::job::{JobStatus, NewJob};
use rota_model::job_type::JobTypeSettings;
use rota_store::memory::MemoryStore;
use rota_store::{Store, settings};
use rota_testkit::faults::{Call, Fate, FaultyStore, Lot, Truth};
use serde_json::{Map, Value, json};
use stage::{Stage, act};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Claims are answered late, once that is switched on.
#[derive(Default)]
struct SlowClaims(AtomicBool);

impl Fate for SlowClaims {
    fn of(&self, call: &Call<'_>) -> Lot {
        let is_slow = matches!(call, Call::Claim(_)) && self.0.load(Ordering::Relaxed);
        Lot { after: if is_slow { Duration::from_secs(2) } else { Duration::ZERO }, ..Lot::CALM }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_being_claimed_when_a_limit_comes_counts_under_it() {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let (stage, slow) = (Stage::on(Arc::clone(truth.store())), Arc::<SlowClaims>::default());
    let store = FaultyStore::new(&truth, Arc::clone(&slow) as Arc<dyn Fate>);
    let node = stage.up_on(Arc::new(store), Stage::options("one")).await;
    slow.0.store(true, Ordering::Relaxed);
    let long = vec![act(json!({"steps": 200})); 4];
    let held = node.desk.submit_all(&Domain::default(), long).await;
    let held: Vec<_> = held.into_iter().map(|answer| answer.unwrap().job_id).collect();
    sleep(Duration::from_millis(500)).await;
    let settings: JobTypeSettings = serde_json::from_value(json!({"concurrency": 1})).unwrap();
    let limited = settings.into_type(Domain::default(), "act").unwrap();
    node.desk.types().put(&Domain::default(), limited, None, false).await.unwrap();
    sleep(Duration::from_secs(3)).await;
    slow.0.store(false, Ordering::Relaxed);
    let began = stage.record().iter().filter(|(word, ..)| *word == "begun").count();
    assert_eq!(began, 4, "they were claimed before anything limited them");
    let next = node.ended(node.submit(act(json!({}))).await).await;
    for id in held {
        let held = node.ended(id).await;
        assert!(next.started_at >= held.finished_at, "it began beside {}", held.job_number);
    }
    node.stop().await;
}

/// Computes without ever waiting, and looks now and then whether it should go on.
struct Computes(Arc<AtomicBool>);

#[async_trait]
impl Handler for Computes {
    async fn run(&self, job: Context) -> Result<Map<String, Value>, HandlerError> {
        self.0.store(true, Ordering::Relaxed);
        // The thread's other tasks go elsewhere meanwhile.
        tokio::task::block_in_place(|| {
            while !job.cancelled.is_cancelled() {
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Err(HandlerError::Stopped)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_is_stopped_before_it_first_waits_has_not_failed() {
    let stage = Stage::new();
    let settings =
        settings::open(Arc::clone(&stage.store), stage.surroundings.now().to_date()).await.unwrap();
    let (mut types, began) = (JobTypes::built_in().unwrap(), Arc::<AtomicBool>::default());
    types.add("compute", &json!({}), Arc::new(Computes(Arc::clone(&began)))).unwrap();
    let options = NodeOptions { grace: Duration::from_millis(50), ..Stage::options("one") };
    let store: Arc<dyn Store> = Arc::clone(&stage.store);
    let node =
        Node::join(store, &settings, options, Arc::new(types), stage.surroundings.clone()).await.unwrap();
    let (desk, stop) = (Arc::clone(&node.desk), CancellationToken::new());
    let runs = tokio::spawn(node.run(stop.clone()));
    let job = NewJob { attempts: Some(1), ..NewJob::new("a job", "compute", json!({})) };
    let id = desk.submit(&Domain::default(), job).await.unwrap().job().document.job_id;
    while !began.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(5)).await;
    }
    stop.cancel();
    runs.await.unwrap();
    let job = stage.job(id).await.document;
    assert_eq!((job.status, job.result.get("error")), (JobStatus::Queued, None), "it is for others now");
}
