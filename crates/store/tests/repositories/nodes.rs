//! Nodes, as those read them who watch over each other.

use rota_model::node::NodeState;
use rota_store::collection::STATE;
use rota_store::nodes::Nodes;
use rota_store::seam::Key;
use serde_json::json;

use super::{Arc, new, node, put, store};

fn state(name: &str) -> NodeState {
    let document = json!({
        "name": name, "id": node(name), "jobQueueSection": 0, "lastSeenAt": 1, "status": "ACTIVE",
        "metadata": {"createdAt": 1, "updatedAt": 1, "updatedBy": node(name)},
    });
    serde_json::from_value(document).unwrap()
}

#[tokio::test]
async fn nodes_are_read_in_the_order_asked_for() {
    let store = store();
    put(&store, Key::new(&STATE, node("damaged")), json!({"name": "damaged"})).await;
    let nodes = Nodes::new(Arc::clone(&store));
    let a = new(nodes.create(state("a")).await.unwrap());
    let b = new(nodes.create(state("b")).await.unwrap());
    let asked = ["b", "nobody", "damaged", "a"].map(node);
    assert_eq!(nodes.get_each(&asked).await.unwrap(), [Some(b), None, None, Some(a)]);
}
