//! Nodes of a cluster, each with a place of its own.

use std::path::Path;
use std::time::Duration;

use rota_client::Client;
use rota_model::ids::NodeId;
use rota_testkit::process::{Home, KEY, Rota};
use tokio::time::{sleep, timeout};

pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// What a node says that was taken for dead.
pub(crate) const CONDEMNED: &str = "others took this node for dead";

pub(crate) struct Member {
    pub(crate) home: Home,
    pub(crate) rota: Rota,
    pub(crate) client: Client,
    pub(crate) id: NodeId,
}

impl Member {
    /// Stops it where it stands, at a moment at which something holds. At another it goes on, and is stopped again.
    pub(crate) async fn freeze_when(&self, what: &str, holds: impl Fn() -> bool) {
        until(what, || async {
            self.rota.freeze();
            // What it had sent has arrived by then, be it at the store or at a client.
            sleep(Duration::from_millis(200)).await;
            let held = holds();
            if !held {
                self.rota.wake();
            }
            held
        })
        .await;
    }
}

/// A node of this version.
pub(crate) async fn join(store: &str, name: &str) -> Member {
    join_as(Path::new(env!("CARGO_BIN_EXE_rota")), store, name).await
}

pub(crate) async fn join_as(program: &Path, store: &str, name: &str) -> Member {
    let home = Home::new(program);
    start(home, store, name).await
}

/// Starts a node in its place, be it the first time or not.
pub(crate) async fn start(home: Home, store: &str, name: &str) -> Member {
    let rota = home.serve(store, &["--name", name, "--capacity", "16"]);
    let client = Client::new(&rota.url, KEY).unwrap();
    let nodes = client.nodes().await.unwrap();
    let id = nodes.iter().find(|node| node.name == name).unwrap().id;
    Member { home, rota, client, id }
}

/// Until something holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let held = async {
        while !holds().await {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, held).await.unwrap_or_else(|_| panic!("{what} does not happen"));
}
