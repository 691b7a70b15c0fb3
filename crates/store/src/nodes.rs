//! The fleet: the `state` documents of nodes.

use std::sync::Arc;

use rota_model::ids::NodeId;
use rota_model::node::NodeState;
use rota_model::time::UnixMillis;

use crate::StoreError;
use crate::collection::{Collection, STATE};
use crate::hints::Changes;
use crate::query::{Order, Query};
use crate::repository::{Created, Kept, Repository, Saved, Versioned, decode};
use crate::seam::{Document, Key, Store};

impl Kept for NodeState {
    const COLLECTION: &'static Collection = &STATE;
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
        self.nodes.get(Key::new(&STATE, id)).await
    }

    /// One for each id, in the order given: none where there is no such node, or its document cannot be understood.
    pub async fn get_each(&self, ids: &[NodeId]) -> Result<Vec<Option<Versioned<NodeState>>>, StoreError> {
        self.nodes.get_each(ids.iter().map(|id| Key::new(&STATE, id)).collect()).await
    }

    /// Those of the nodes whose document is there and cannot be understood: a newer version may have written it.
    pub async fn unreadable(&self, ids: &[NodeId]) -> Result<Vec<NodeId>, StoreError> {
        let keys = ids.iter().map(|id| Key::new(&STATE, id)).collect();
        let found = self.nodes.store().read(keys).await?;
        let unreadable = |document: &Option<Document>| {
            document.as_ref().is_some_and(|document| decode::<NodeState>(document.clone()).is_err())
        };
        Ok(ids.iter().zip(found).filter(|(_, found)| unreadable(found)).map(|(id, _)| *id).collect())
    }

    pub async fn create(&self, state: NodeState) -> Result<Created<NodeState>, StoreError> {
        self.nodes.create(Key::new(&STATE, state.id), state).await
    }

    pub async fn save(&self, before: &Versioned<NodeState>, after: &NodeState) -> Result<Saved, StoreError> {
        self.nodes.save(before, after).await
    }

    /// Forgets a node, if nobody wrote since it was read.
    pub async fn delete(&self, state: &Versioned<NodeState>, at: UnixMillis) -> Result<Saved, StoreError> {
        self.nodes.delete(state, at).await
    }

    /// Every node, by id.
    pub async fn all(&self) -> Result<Vec<Versioned<NodeState>>, StoreError> {
        self.nodes.find_all(Query::new(&STATE, Order::BY_ID)).await
    }

    pub fn changes(&self) -> Changes {
        self.nodes.store().changes(&STATE)
    }
}
