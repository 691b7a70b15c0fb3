//! The nodes of the installation: who is there, and what is wanted of one. For administrators of the installation.

use rota_model::ids::NodeId;
use rota_model::node::NodeState;

use crate::{Client, Error};

impl Client {
    /// Every node, dead ones included.
    pub async fn nodes(&self) -> Result<Vec<NodeState>, Error> {
        self.all(&["api", "v1", "nodes"]).await
    }

    /// Lets a node begin nothing new until it is resumed; status 403 if its configuration forbids that, 409 if it is
    /// terminated.
    pub async fn pause_node(&self, id: NodeId) -> Result<NodeState, Error> {
        self.tell_node(id, "pause").await
    }

    /// Lets a node work again that was paused or drained.
    pub async fn resume_node(&self, id: NodeId) -> Result<NodeState, Error> {
        self.tell_node(id, "resume").await
    }

    /// Lets a node begin nothing new, and give back what it does not finish in time, until it is resumed or starts again.
    pub async fn drain_node(&self, id: NodeId) -> Result<NodeState, Error> {
        self.tell_node(id, "drain").await
    }

    async fn tell_node(&self, id: NodeId, verb: &str) -> Result<NodeState, Error> {
        self.post(&["api", "v1", "nodes", &id.to_string(), verb]).document().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responder::{Answer, answer};
    use rota_model::node::NodeWish;
    use serde_json::json;

    #[tokio::test]
    async fn a_node_is_told_at_its_own_address() {
        let id = "018f0000-0000-7000-8000-000000000001";
        let state = json!({
            "name": "n", "id": id, "jobQueueSection": 0, "lastSeenAt": 1, "status": "ACTIVE", "wanted": "PAUSE",
            "metadata": {"createdAt": 1, "updatedAt": 1, "updatedBy": id},
        });
        let (url, asked) = answer((0..3).map(|_| Answer::json(200, state.to_string())).collect()).await;
        let (client, node) = (Client::new(&url, "rota_key").unwrap(), id.parse().unwrap());
        assert_eq!(client.pause_node(node).await.unwrap().wanted, Some(NodeWish::Pause));
        client.resume_node(node).await.unwrap();
        client.drain_node(node).await.unwrap();
        for (asked, verb) in asked.await.unwrap().iter().zip(["pause", "resume", "drain"]) {
            assert!(asked.starts_with(&format!("POST /api/v1/nodes/{id}/{verb} HTTP")), "{asked}");
        }
    }
}
