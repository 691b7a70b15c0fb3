//! The nodes of the installation.

use rota_model::node::NodeState;

use crate::{Client, Error};

impl Client {
    /// Every node, dead ones included. For administrators of the installation.
    pub async fn nodes(&self) -> Result<Vec<NodeState>, Error> {
        self.all(&["api", "v1", "nodes"]).await
    }
}
