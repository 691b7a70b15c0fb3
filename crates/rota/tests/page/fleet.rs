//! Several nodes on one store in memory, each with a runtime of its own that can be taken from it: as near to processes as nodes on
//! such a store can be. The first of them serves the page.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rota_engine::desk::JobDesk;
use rota_engine::journal::Journal;
use rota_engine::node::{Node, NodeOptions};
use rota_engine::surroundings::{Clock, Surroundings};
use rota_engine::types::JobTypes;
use rota_model::domain::Domain;
use rota_model::ids::{JobId, NodeId};
use rota_model::job::NewJob;
use rota_model::log::Level;
use rota_model::node::NodeRole;
use rota_model::time::UnixMillis;
use rota_store::memory::MemoryStore;
use rota_store::{Store, settings};
use rota_testkit::process::KEY;
use rota_web::accounts::Accounts;
use rota_web::app::App;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

/// The browser has the system's clock, and compares.
struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the browser runs in real time")]
    fn now(&self) -> UnixMillis {
        jiff::Timestamp::now().into()
    }

    fn elapsed(&self) -> Duration {
        rustix::time::clock_gettime(rustix::time::ClockId::Boottime).try_into().unwrap()
    }
}

struct Member {
    id: NodeId,
    desk: Arc<JobDesk>,
    runtime: Option<Runtime>,
}

pub(crate) struct Fleet {
    store: Arc<dyn Store>,
    surroundings: Surroundings,
    pub(crate) url: String,
    members: Vec<Member>,
}

impl Fleet {
    /// The first node serves the page and observes; the others run jobs.
    pub(crate) async fn up(names: &[&str]) -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let surroundings = Surroundings::new(Arc::new(SystemClock), [7; 32]);
        let mut fleet = Self { store, surroundings, url: String::new(), members: Vec::new() };
        for name in names {
            let is_first = fleet.members.is_empty();
            let member = fleet.join(name, is_first).await;
            fleet.members.push(member);
        }
        fleet
    }

    async fn join(&mut self, name: &str, serves: bool) -> Member {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (store, surroundings) = (Arc::clone(&self.store), self.surroundings.clone());
        let options = options(name, serves);
        let id = options.id;
        let begun = runtime.spawn(async move {
            let settings = settings::open(Arc::clone(&store), surroundings.now().to_date()).await.unwrap();
            let types = Arc::new(JobTypes::built_in().unwrap());
            let heard = surroundings.clone().heard_by(Journal::new(options.id, Level::Info, &surroundings));
            let node = Node::join(Arc::clone(&store), &settings, options, types, heard).await.unwrap();
            let (desk, stop) = (Arc::clone(&node.desk), CancellationToken::new());
            let address = if serves { Some(serve(&node, &store, surroundings, &stop).await) } else { None };
            tokio::spawn(node.run(stop));
            (desk, address)
        });
        let (desk, address) = begun.await.unwrap();
        if let Some(address) = address {
            self.url = format!("http://{address}");
        }
        Member { id, desk, runtime: Some(runtime) }
    }

    pub(crate) async fn submit(&self, job: NewJob) -> JobId {
        let submitted = self.members[0].desk.submit(&Domain::default(), job).await.unwrap();
        submitted.job().document.job_id
    }

    /// Which of the nodes runs a job, once one does.
    pub(crate) async fn who_runs(&self, job: JobId) -> usize {
        let desk = &self.members[0].desk;
        loop {
            let owner = desk.get(&Domain::default(), job).await.unwrap().unwrap().document.owner_node;
            if let Some(nth) = self.members.iter().position(|member| Some(member.id) == owner) {
                return nth;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Nothing of it goes on, and it says nothing of it.
    pub(crate) fn kill(&mut self, nth: usize) {
        self.members[nth].runtime.take().unwrap().shutdown_background();
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // A runtime must not wait for its tasks inside another.
        self.members
            .iter_mut()
            .filter_map(|member| member.runtime.take())
            .for_each(Runtime::shutdown_background);
    }
}

fn options(name: &str, serves: bool) -> NodeOptions {
    let roles = if serves { vec![NodeRole::Web, NodeRole::Observer] } else { vec![NodeRole::Processor] };
    NodeOptions {
        id: NodeId::derived(&[name]),
        name: name.to_owned(),
        version: "test".to_owned(),
        capacity: 4,
        roles,
        controllable: true,
        grace: Duration::from_millis(300),
        registry: true,
    }
}

async fn serve(
    node: &Node,
    store: &Arc<dyn Store>,
    surroundings: Surroundings,
    stop: &CancellationToken,
) -> SocketAddr {
    let accounts = Accounts::new(store, surroundings);
    accounts.bootstrap(KEY).await.unwrap();
    let app = Arc::new(App::new(node, accounts, stop.clone()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(rota_web::server::serve(listener, app));
    address
}
