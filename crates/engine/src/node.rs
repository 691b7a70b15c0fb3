//! One node of the fleet: its membership, its desk and its processor, started and stopped together.

use std::sync::Arc;
use std::time::Duration;

use rota_model::ids::NodeId;
use rota_model::node::{NodeRole, NodeState};
use rota_model::settings::Settings;
use rota_store::hints::Changes;
use rota_store::jobs::Jobs;
use rota_store::nodes::Nodes;
use rota_store::{Store, StoreError};
use tokio_util::sync::CancellationToken;

use crate::desk::JobDesk;
use crate::membership::{Card, HEARTBEAT, Membership};
use crate::processor::Processor;
use crate::surroundings::Surroundings;
use crate::types::JobTypes;
use crate::waiters::Waiters;

/// Who the node is and how much it takes on.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    pub id: NodeId,
    pub name: String,
    pub version: String,
    /// How many jobs it runs at once.
    pub capacity: u32,
}

pub struct Node {
    pub desk: Arc<JobDesk>,
    pub fleet: Fleet,
    membership: Membership,
    processor: Arc<Processor>,
    waiters: Waiters,
    jobs: Jobs,
}

impl Node {
    /// Joins the fleet and takes over what dead nodes left; work begins with [`Node::run`].
    pub async fn join(
        store: Arc<dyn Store>,
        settings: &Settings,
        options: NodeOptions,
        types: Arc<JobTypes>,
        surroundings: Surroundings,
    ) -> Result<Self, StoreError> {
        let (jobs, nodes) = (Jobs::new(Arc::clone(&store)), Nodes::new(Arc::clone(&store)));
        let card = Card {
            id: options.id,
            name: options.name,
            version: options.version,
            roles: vec![NodeRole::Web, NodeRole::Processor],
            types: types.names(),
            capacity: options.capacity,
            sections: settings.sections,
        };
        let exclusive = store.promises().exclusive;
        let membership = Membership::join(nodes.clone(), card, surroundings.clone(), exclusive).await?;
        let waiters = Waiters::default();
        let capacity = usize::try_from(options.capacity).unwrap_or(usize::MAX);
        let holder = membership.holder();
        let processor =
            Processor::new(jobs.clone(), Arc::clone(&types), surroundings.clone(), holder, capacity);
        let desk =
            JobDesk::new(jobs.clone(), types, waiters.clone(), surroundings, settings.sections, options.id);
        let taken = processor.take_over(&membership.alive().await?).await?;
        if taken > 0 {
            tracing::info!(taken, "jobs whose holder is gone were queued again");
        }
        let fleet = Fleet { nodes };
        Ok(Self { desk: Arc::new(desk), fleet, membership, processor: Arc::new(processor), waiters, jobs })
    }

    /// Lives until told to stop, then says goodbye.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut waiters = tokio::spawn(self.waiters.clone().run(self.jobs.changes()));
        let mut work = tokio::spawn(Arc::clone(&self.processor).run(stop.clone()));
        let mut tick = tokio::time::interval(HEARTBEAT);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = tick.tick() => self.beat().await,
                _ = &mut waiters => {
                    tracing::error!("nobody passes hints on to those who wait; the node stops");
                    break;
                }
                // It ends when told to, or by a fault of its own: then the node must not go on as if it worked.
                ended = &mut work => {
                    if ended.is_err() {
                        tracing::error!("the processor ended; the node stops");
                    }
                    break;
                }
            }
        }
        stop.cancel();
        if !work.is_finished() {
            let _ = work.await;
        }
        waiters.abort();
        if let Ok(Err(error)) = tokio::time::timeout(Duration::from_secs(1), self.membership.leave()).await {
            tracing::warn!(%error, "cannot say goodbye");
        }
    }

    /// One heartbeat: says that the node lives, and looks for jobs whose holder does not.
    async fn beat(&mut self) {
        let running = u32::try_from(self.processor.running()).unwrap_or(u32::MAX);
        if let Err(error) = self.membership.beat(running).await {
            tracing::warn!(%error, "the heartbeat was not recorded");
        }
        let taken = match self.membership.alive().await {
            Ok(alive) => self.processor.take_over(&alive).await,
            Err(error) => Err(error),
        };
        match taken {
            Ok(0) => {}
            Ok(taken) => tracing::info!(taken, "jobs whose holder is gone were queued again"),
            Err(error) => tracing::warn!(%error, "cannot look for jobs of dead nodes"),
        }
    }
}

/// The nodes, for those who look.
#[derive(Clone)]
pub struct Fleet {
    nodes: Nodes,
}

impl Fleet {
    /// Every node there ever was, by name.
    pub async fn all(&self) -> Result<Vec<NodeState>, StoreError> {
        let mut nodes: Vec<_> = self.nodes.all().await?.into_iter().map(|node| node.document).collect();
        nodes.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        Ok(nodes)
    }

    pub fn changes(&self) -> Changes {
        self.nodes.changes()
    }
}
