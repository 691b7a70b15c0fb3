//! A node with its web service in this process.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rota_engine::desk::JobDesk;
use rota_engine::fleet::Fleet;
use rota_engine::handler::{Context, Handler, HandlerError};
use rota_engine::journal::Journal;
use rota_engine::meter::Meter;
use rota_engine::node::{Node, NodeOptions};
use rota_engine::types::JobTypes;
use rota_model::domain::{Domain, DomainDocument, DomainSettings};
use rota_model::ids::{JobId, NodeId};
use rota_model::job::submission::Place;
use rota_model::job::{Job, JobStatus};
use rota_model::log::Level;
use rota_model::node::NodeRole;
use rota_store::domains::Domains;
use rota_store::jobs::Jobs;
use rota_store::settings;
use rota_store_sqlite::durability::Durability;
use rota_testkit::process::KEY;
use rota_testkit::surroundings::{BEGINNING, surroundings};
use rota_web::accounts::Accounts;
use rota_web::app::App;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{noop, per_second};
use crate::ground::{Ground, On};

pub(super) struct Stage {
    pub(super) desk: Arc<JobDesk>,
    pub(super) address: String,
    /// When each job of type `stamp` was begun with.
    pub(super) started: Mutex<UnboundedReceiver<Instant>>,
    fleet: Fleet,
    id: NodeId,
    pub(super) jobs: Jobs,
    domains: Domains,
    _ground: Ground,
}

/// Says when it was started.
struct Stamp(UnboundedSender<Instant>);

#[async_trait]
impl Handler for Stamp {
    async fn run(&self, _: Context) -> Result<Map<String, Value>, HandlerError> {
        let _ = self.0.send(Instant::now());
        Ok(Map::new())
    }
}

/// Whether logs and metrics are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Watched {
    /// As `rota up` has it.
    Yes,
    No,
}

impl Stage {
    pub(super) async fn new(on: On, durability: Durability, crowd: usize) -> Self {
        Self::watched(on, durability, crowd, Watched::Yes).await
    }

    pub(super) async fn watched(on: On, durability: Durability, crowd: usize, watched: Watched) -> Self {
        let ground = Ground::new(on, durability).await;
        let store = Arc::clone(&ground.store);
        let (jobs, domains) = (Jobs::new(Arc::clone(&store)), Domains::new(Arc::clone(&store)));
        finished(&jobs, crowd).await;
        let surroundings = surroundings();
        let settings = settings::open(Arc::clone(&store), surroundings.now().to_date()).await.unwrap();
        let (stamp, started) = unbounded_channel();
        let mut types = JobTypes::built_in().unwrap();
        types.add("stamp", &json!({}), Arc::new(Stamp(stamp))).unwrap();
        let options = options();
        let id = options.id;
        let observed = match watched {
            Watched::Yes => {
                let measured = surroundings.clone().measured_by(Meter::new());
                measured.clone().heard_by(Journal::new(id, Level::Info, &measured))
            }
            Watched::No => surroundings.clone(),
        };
        let joined = Node::join(Arc::clone(&store), &settings, options, Arc::new(types), observed).await;
        let node = joined.unwrap();
        let accounts = Accounts::new(&store, surroundings);
        accounts.bootstrap(KEY).await.unwrap();
        let (desk, fleet) = (Arc::clone(&node.desk), node.fleet.clone());
        let app = App::new(&node, accounts, CancellationToken::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(rota_web::server::serve(listener, Arc::new(app)));
        tokio::spawn(node.run(CancellationToken::new()));
        Self { desk, address, started: Mutex::new(started), fleet, id, jobs, domains, _ground: ground }
    }

    /// Makes a domain with these settings.
    pub(super) async fn make_domain(&self, domain: &Domain, settings: DomainSettings) {
        let document = DomainDocument::new(domain.clone(), BEGINNING.to_date(), settings);
        self.domains.create(document).await.unwrap();
    }

    /// How many jobs have ended well.
    pub(super) async fn ended(&self) -> u64 {
        let totals = self.jobs.totals(Some(&Domain::default())).await.unwrap();
        totals.get(&JobStatus::Successful).copied().unwrap_or(0)
    }

    pub(super) async fn until_ended(&self, goal: u64) {
        // Not so often that asking is a part of what is measured.
        while self.ended().await < goal {
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Prepares a queue while the node rests, and lets it work: jobs per second.
    pub(super) async fn drain(&self, jobs: usize) -> f64 {
        self.fleet.pause(self.id).await.unwrap();
        sleep(Duration::from_millis(1_500)).await;
        let goal = self.ended().await + jobs as u64;
        super::produce(Arc::clone(&self.desk), noop(), jobs, 1_000).await;
        self.fleet.resume(self.id).await.unwrap();
        // From the first job on: until then the node has not read that it may work.
        while self.ended().await + jobs as u64 == goal {
            sleep(Duration::from_micros(200)).await;
        }
        let (began, before) = (Instant::now(), self.ended().await);
        self.until_ended(goal).await;
        per_second(usize::try_from(goal - before).unwrap(), began.elapsed())
    }
}

pub(super) fn options() -> NodeOptions {
    NodeOptions {
        id: NodeId::derived(&["bench"]),
        name: "bench".to_owned(),
        version: "bench".to_owned(),
        roles: vec![NodeRole::Web, NodeRole::Processor, NodeRole::Observer],
        capacity: 64,
        controllable: true,
        grace: Duration::from_millis(300),
        registry: true,
    }
}

/// Stores jobs that ended long ago.
async fn finished(jobs: &Jobs, count: usize) {
    fill(jobs, &Domain::default(), count, |place| {
        let mut job = noop().into_job(place, BEGINNING);
        (job.status, job.epoch, job.started_at) = (JobStatus::Successful, 1, Some(BEGINNING));
        job.finished_at = Some(BEGINNING);
        job
    })
    .await;
}

/// Stores many jobs of a domain, past the desk.
pub(super) async fn fill(jobs: &Jobs, domain: &Domain, count: usize, make: impl Fn(Place) -> Job) {
    let node = NodeId::derived(&["long ago"]);
    let job = |nth: usize| -> Job {
        let number = nth as u64 + 1;
        make(Place {
            domain: domain.clone(),
            job_id: JobId::rising(BEGINNING, &nth.to_be_bytes().repeat(2)[..10].try_into().unwrap()),
            job_number: number,
            sections: 64,
            accepted_by: node,
        })
    };
    for begin in (0..count).step_by(10_000) {
        let end = (begin + 10_000).min(count);
        jobs.create_all(&(begin..end).map(job).collect::<Vec<_>>()).await.unwrap();
    }
    if count > 0 {
        jobs.numbers(count as u64).await.unwrap();
    }
}
