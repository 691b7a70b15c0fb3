//! The fleet: the `state` documents of nodes.

use std::sync::Arc;

use rota_model::ids::NodeId;
use rota_model::node::NodeState;

use crate::StoreError;
use crate::collection::{Collection, STATE};
use crate::hints::Changes;
use crate::query::{Order, Query};
use crate::repository::{Created, Kept, Repository, Saved, Versioned};
use crate::seam::Store;

impl Kept for NodeState {
    const COLLECTION: &'static Collection = &STATE;

    fn id(&self) -> String {
        self.id.to_string()
    }
}

#[derive(Clone)]
pub struct Nodes {
    nodes: Repository<NodeState>,
}

impl Nodes {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { nodes: Repository::new(store) }
    }

    pub async fn get(&self, id: NodeId) -> Result<Option<Versioned<NodeState>>, StoreError> {
        self.nodes.get(id).await
    }

    pub async fn create(&self, state: &NodeState) -> Result<Created, StoreError> {
        self.nodes.create(state).await
    }

    pub async fn save(&self, before: &Versioned<NodeState>, after: &NodeState) -> Result<Saved, StoreError> {
        self.nodes.save(before, after).await
    }

    /// Every node there ever was, by id.
    pub async fn all(&self) -> Result<Vec<Versioned<NodeState>>, StoreError> {
        let mut all = Vec::new();
        let mut query = Query::new(&STATE, Order::BY_ID);
        loop {
            let (nodes, next) = self.nodes.find(query.clone()).await?;
            all.extend(nodes);
            match next {
                Some(cursor) => query.after = Some(cursor),
                None => return Ok(all),
            }
        }
    }

    pub fn changes(&self) -> Changes {
        self.nodes.store().changes(&STATE)
    }
}
