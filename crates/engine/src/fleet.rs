//! The nodes, for those who look at them and those who tell them what to do. What is wanted of a node stands in its
//! `state` document, and the node does it when it reads that.

use std::time::Duration;

use rota_model::ids::NodeId;
use rota_model::node::{NodeState, NodeStatus, NodeWish};
use rota_store::nodes::Nodes;
use rota_store::repository::Saved;
use rota_store::{StoreError, Versioned};
use tokio::time::sleep;

use crate::patience::{STORE_PAUSE, answered};
use crate::surroundings::Surroundings;

/// How often a wish is written while the node's own beats come between.
const TRIES: usize = 20;
/// Beats are seconds apart: who came between one is alone for a while.
const PAUSE: Duration = Duration::from_millis(5);

/// Why a node was not told.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FleetError {
    #[error("there is no such node")]
    Missing,
    #[error("the node is terminated: only a node that lives can be told what to do")]
    Terminated,
    #[error("the configuration of the node forbids to pause, resume or drain it")]
    Forbidden,
    #[error("others write to the document of this node at this moment; try again")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Clone)]
pub struct Fleet {
    nodes: Nodes,
    surroundings: Surroundings,
    by: NodeId,
}

impl Fleet {
    pub(crate) fn new(nodes: Nodes, surroundings: Surroundings, by: NodeId) -> Self {
        Self { nodes, surroundings, by }
    }

    /// Every node there ever was, by name.
    pub async fn all(&self) -> Result<Vec<NodeState>, StoreError> {
        let mut nodes: Vec<_> = self.nodes.all().await?.into_iter().map(|node| node.document).collect();
        nodes.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        Ok(nodes)
    }

    /// The node begins nothing new, until it is resumed.
    pub async fn pause(&self, id: NodeId) -> Result<Versioned<NodeState>, FleetError> {
        self.want(id, Some(NodeWish::Pause)).await
    }

    /// The node works again.
    pub async fn resume(&self, id: NodeId) -> Result<Versioned<NodeState>, FleetError> {
        self.want(id, None).await
    }

    /// The node begins nothing new, and gives back what it does not finish in the time it has for that.
    pub async fn drain(&self, id: NodeId) -> Result<Versioned<NodeState>, FleetError> {
        self.want(id, Some(NodeWish::Drain)).await
    }

    async fn want(&self, id: NodeId, wish: Option<NodeWish>) -> Result<Versioned<NodeState>, FleetError> {
        let mut last = FleetError::Busy;
        for _ in 0..TRIES {
            match self.try_to_want(id, wish).await {
                Ok(Some(state)) => return Ok(state),
                Ok(None) => {
                    last = FleetError::Busy;
                    sleep(PAUSE).await;
                }
                Err(FleetError::Store(error)) if error.is_passing() => {
                    last = error.into();
                    sleep(STORE_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    async fn try_to_want(
        &self,
        id: NodeId,
        wish: Option<NodeWish>,
    ) -> Result<Option<Versioned<NodeState>>, FleetError> {
        let found = answered("read a node", self.nodes.get(id)).await?;
        let before = found.ok_or(FleetError::Missing)?;
        if !before.document.controllable {
            return Err(FleetError::Forbidden);
        }
        if before.document.status == NodeStatus::Terminated {
            return Err(FleetError::Terminated);
        }
        if before.document.wanted == wish {
            return Ok(Some(before));
        }
        let mut after = before.document.clone();
        after.wanted = wish;
        after.metadata.touch(self.surroundings.now(), self.by);
        let saved = answered("tell a node what to do", self.nodes.save(&before, &after)).await?;
        Ok(match saved {
            Saved::Applied(version) => Some(before.written(after, version)),
            Saved::Overtaken => None,
        })
    }
}
