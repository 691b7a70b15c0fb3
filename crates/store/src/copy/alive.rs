//! Who works on a store. A node writes its `state` document every two seconds (rule 2): one whose document changes is alive,
//! whatever the document says.

use std::collections::BTreeMap;
use std::time::Duration;

use rota_model::node::NodeStatus;
use serde_json::json;
use tokio::time::sleep;

use super::patiently;
use crate::StoreError;
use crate::collection::STATE;
use crate::query::{Order, Query};
use crate::seam::{Document, Store, Version};

/// How often the documents are looked at, a second apart, before it is said that nobody writes them: as often as nodes look
/// that conclude it of one another.
const LOOKS: usize = 7;
const BEAT: Duration = Duration::from_secs(1);

/// The names of nodes that are at work. Where nobody else can have the store open, and where all have ended in order, it is
/// known at once.
pub async fn nodes(store: &dyn Store) -> Result<Vec<String>, StoreError> {
    if store.promises().exclusive {
        return Ok(Vec::new());
    }
    let first = look(store).await?;
    if first.is_empty() {
        return Ok(Vec::new());
    }
    for _ in 0..LOOKS {
        sleep(BEAT).await;
        let later = look(store).await?;
        let is_alive = |(id, seen): &(&String, &(Version, String))| {
            first.get(*id).is_none_or(|(version, _)| *version != seen.0)
        };
        let alive: Vec<String> = later.iter().filter(is_alive).map(|(_, (_, name))| name.clone()).collect();
        if !alive.is_empty() {
            return Ok(alive);
        }
    }
    Ok(Vec::new())
}

/// Nodes that did not say that they ended.
async fn look(store: &dyn Store) -> Result<BTreeMap<String, (Version, String)>, StoreError> {
    let mut nodes = BTreeMap::new();
    let mut query = Query::new(&STATE, Order::BY_ID);
    loop {
        let page = patiently(|| store.find(query.clone())).await?;
        let at_work = |node: &Document| node.body.get("status") != Some(&json!(NodeStatus::Terminated));
        for node in page.documents.into_iter().filter(at_work) {
            let name =
                node.body.get("name").and_then(|name| name.as_str()).unwrap_or(&node.key.id).to_owned();
            nodes.insert(node.key.id, (node.version, name));
        }
        if page.next.is_none() {
            return Ok(nodes);
        }
        query.after = page.next;
    }
}
