//! One job from HTTP to its handler, every job on disk when it is acknowledged.
//!
//! Throughput is measured on the real program in a process of its own, the clients beside it on the same machine. The
//! time from submit to handler start is measured inside one process, since only there both ends read one clock.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rota_engine::desk::JobDesk;
use rota_engine::handler::{Context, Handler, HandlerError};
use rota_engine::node::{Node, NodeOptions};
use rota_engine::types::JobTypes;
use rota_model::domain::Domain;
use rota_model::ids::NodeId;
use rota_model::job::NewJob;
use rota_model::node::NodeRole;
use rota_store::{Store, settings};
use rota_store_sqlite::SqliteStore;
use rota_store_sqlite::holder::Holder;
use rota_testkit::process::{Home, KEY};
use rota_testkit::surroundings::surroundings;
use rota_web::accounts::Accounts;
use rota_web::app::App;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::connection::Connection;
use crate::report::{Measurement, percentile};

const PATH: &str = "/api/v1/domains/default/jobs";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds per case
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Runs of each case; the median is reported
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Jobs whose time from submit to handler start is measured
    #[arg(long, default_value_t = 1_000)]
    jobs: usize,
}

pub(crate) async fn run(options: &Options) -> Vec<Measurement> {
    let mut measurements = throughput(options).await;
    measurements.extend(latency(options).await);
    measurements
}

/// What is submitted: jobs that wait for tomorrow, so that submitting is all there is to do, or jobs that the same process
/// runs meanwhile.
const LOADS: [(&str, bool); 2] = [("submissions over HTTP", false), ("the same, each job also run", true)];

async fn throughput(options: &Options) -> Vec<Measurement> {
    let mut measurements = Vec::new();
    for (load, runs_too) in LOADS {
        let mut alone = None;
        for connections in [1, 8, 64] {
            let mut rates = Vec::new();
            for run in 0..options.runs {
                eprintln!("{load}, {connections} connections, run {}", run + 1);
                rates.push(submissions(connections, runs_too, Duration::from_secs(options.seconds)).await);
            }
            let value = percentile(&mut rates, 0.5);
            let alone = *alone.get_or_insert(value);
            measurements.push(Measurement {
                bench: "walk",
                case: format!("{load}, {connections} connections"),
                value,
                unit: "jobs/s",
                against: (connections > 1).then(|| "1 connection".to_owned()),
                ratio: (connections > 1).then_some(value / alone),
            });
        }
    }
    measurements
}

/// The end of the year 2099.
const LATER: i64 = 4_102_444_799_000;

/// A fresh installation each time, so that every run does the same work.
async fn submissions(connections: usize, runs_too: bool, span: Duration) -> f64 {
    let home = Home::new(program());
    let rota = home.up();
    let address = rota.url.trim_start_matches("http://").to_owned();
    let run_at = if runs_too { 0 } else { LATER };
    let body =
        json!({"jobName": "bench", "input": {"type": "noop", "payload": {}}, "runAt": run_at}).to_string();
    let end = Instant::now() + span;
    let callers: Vec<_> = (0..connections)
        .map(|_| {
            let (address, body) = (address.clone(), body.clone());
            tokio::spawn(async move {
                let mut connection = Connection::open(&address, KEY, PATH, &body).await;
                let mut count = 0_u32;
                while Instant::now() < end {
                    connection.call().await;
                    count += 1;
                }
                count
            })
        })
        .collect();
    let mut total = 0_u32;
    for caller in callers {
        total += caller.await.unwrap();
    }
    f64::from(total) / span.as_secs_f64()
}

/// The program that was built beside this one.
fn program() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("rota")
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

async fn latency(options: &Options) -> Vec<Measurement> {
    let stage = Stage::new().await;
    let mut measurements = Vec::new();
    let Stage { desk, address, mut started, .. } = stage;
    eprintln!("submit to handler start, {} jobs in process, then over HTTP", options.jobs);
    let mut samples = Vec::new();
    for _ in 0..options.jobs {
        let began = Instant::now();
        desk.submit(&Domain::default(), NewJob::new("bench", "stamp", json!({}))).await.unwrap();
        samples.push(millis(began, started.recv().await.unwrap()));
        sleep(IDLE).await;
    }
    measurements.extend(percentiles("submit to handler start, in process", &mut samples));
    let body = json!({"jobName": "bench", "input": {"type": "stamp", "payload": {}}}).to_string();
    let mut connection = Connection::open(&address, KEY, PATH, &body).await;
    let mut samples = Vec::new();
    for _ in 0..options.jobs {
        let began = Instant::now();
        connection.call().await;
        samples.push(millis(began, started.recv().await.unwrap()));
        sleep(IDLE).await;
    }
    measurements.extend(percentiles("submit to handler start, over HTTP", &mut samples));
    measurements
}

/// Between two jobs, so that the node is idle when the next one comes.
const IDLE: Duration = Duration::from_millis(3);

fn millis(from: Instant, to: Instant) -> f64 {
    to.duration_since(from).as_secs_f64() * 1_000.0
}

fn percentiles(case: &str, samples: &mut [f64]) -> Vec<Measurement> {
    let shares = [("p50", 0.5), ("p99", 0.99)];
    let measure = |(name, share): (&str, f64)| Measurement {
        bench: "walk",
        case: format!("{case}, {name}"),
        value: percentile(samples, share),
        unit: "ms",
        against: None,
        ratio: None,
    };
    shares.map(measure).into()
}

/// A node with its web service in this process, on the embedded store.
struct Stage {
    desk: Arc<JobDesk>,
    address: String,
    started: UnboundedReceiver<Instant>,
    _folder: tempfile::TempDir,
}

impl Stage {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let holder = Holder::take(folder.path(), "a bench").unwrap();
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path(), holder).unwrap());
        let surroundings = surroundings();
        let settings = settings::open(Arc::clone(&store), surroundings.now().to_date()).await.unwrap();
        let (stamp, started) = unbounded_channel();
        let mut types = JobTypes::built_in().unwrap();
        types.add("stamp", &json!({}), Arc::new(Stamp(stamp))).unwrap();
        let (id, name, version) = (NodeId::derived(&["bench"]), "bench".to_owned(), "bench".to_owned());
        let options = NodeOptions {
            id,
            name,
            version,
            capacity: 64,
            roles: vec![NodeRole::Web, NodeRole::Processor],
            controllable: true,
            grace: Duration::from_millis(300),
        };
        let joined =
            Node::join(Arc::clone(&store), &settings, options, Arc::new(types), surroundings.clone()).await;
        let node = joined.unwrap();
        let accounts = Accounts::new(&store, surroundings);
        accounts.bootstrap(KEY).await.unwrap();
        let desk = Arc::clone(&node.desk);
        let app = App::new(Arc::clone(&desk), node.fleet.clone(), accounts, CancellationToken::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(rota_web::server::serve(listener, Arc::new(app)));
        tokio::spawn(node.run(CancellationToken::new()));
        Self { desk, address, started, _folder: folder }
    }
}
