//! `rota node`: the fleet, and what is wanted of its nodes.

use std::time::Duration;

use clap::{Args, Subcommand};
use comfy_table::{Cell, Table};
use rota_client::{Client, Page};
use rota_model::node::{NodeState, NodeStatus, NodeWish};
use rota_model::time::UnixMillis;
use tokio::time::{Instant, sleep};

use super::Context;
use crate::arguments;
use crate::exit::{Exit, Failure};
use crate::output::table::{self, optional, short, text};
use crate::output::time::{age, span};

const LIST_EXAMPLES: &str = "\
Example:
  rota node list --output json";

const PAUSE_EXAMPLES: &str = "\
What runs there goes on to its end. A pause lasts over restarts of the node.

Example:
  rota node pause node_1";

const RESUME_EXAMPLES: &str = "\
Example:
  rota node resume node_1";

const DRAIN_EXAMPLES: &str = "\
What runs there may finish for as long as the node's setting `grace` says; the rest is given back for other nodes to run. A
drain ends when the node is resumed or starts again.

Example:
  rota node drain node_1 --wait";

/// How often a node is looked at that is drained.
const LOOK_EVERY: Duration = Duration::from_millis(250);

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// List the nodes, those that stopped included
    #[command(after_help = LIST_EXAMPLES)]
    List,
    /// Let a node begin nothing new until it is resumed
    #[command(after_help = PAUSE_EXAMPLES)]
    Pause {
        #[command(flatten)]
        which: Which,
    },
    /// Let a node work again that was paused or drained
    #[command(after_help = RESUME_EXAMPLES)]
    Resume {
        #[command(flatten)]
        which: Which,
    },
    /// Let a node begin nothing new, and give back what it does not finish
    #[command(after_help = DRAIN_EXAMPLES)]
    Drain {
        #[command(flatten)]
        which: Which,
        /// Wait until nothing runs there any more
        #[arg(long)]
        wait: bool,
        /// How long to wait at most
        #[arg(long, value_name = "SPAN", default_value = "60s", requires = "wait",
            value_parser = arguments::span)]
        timeout: Duration,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Which {
    /// Name or id of the node, as `rota node list` shows them
    #[arg(value_name = "NAME-OR-ID")]
    node: String,
}

pub(crate) async fn run(context: &Context, command: &NodeCommand) -> Result<(), Failure> {
    let client = context.client()?;
    let state = match command {
        NodeCommand::List => {
            let page = Page { items: client.nodes().await?, next: None };
            return context.out.list(&page, |nodes| nodes_table(nodes, context.now()));
        }
        NodeCommand::Pause { which } => client.pause_node(which.find(&client).await?.id).await?,
        NodeCommand::Resume { which } => client.resume_node(which.find(&client).await?.id).await?,
        NodeCommand::Drain { which, wait, timeout } => {
            let state = client.drain_node(which.find(&client).await?.id).await?;
            if *wait { drained(&client, state, *timeout).await? } else { state }
        }
    };
    context.out.document(&state, |state| node_listing(state, context.now()))
}

impl Which {
    async fn find(&self, client: &Client) -> Result<NodeState, Failure> {
        find(client.nodes().await?, &self.node)
    }
}

/// The node of this id, or the only one of this name; one that lives goes before those that ended.
pub(super) fn find(nodes: Vec<NodeState>, asked: &str) -> Result<NodeState, Failure> {
    let is_meant = |node: &NodeState| node.name == asked || node.id.to_string() == asked;
    let (alive, gone): (Vec<_>, Vec<_>) =
        nodes.into_iter().filter(is_meant).partition(|node| node.status != NodeStatus::Terminated);
    let mut meant = if alive.is_empty() { gone } else { alive };
    match (meant.pop(), meant.len()) {
        (Some(node), 0) => Ok(node),
        (Some(_), _) => Err(Failure::refused(format!("several nodes are called '{asked}': use the id"))),
        (None, _) => {
            let message = format!("there is no node '{asked}': `rota node list` shows those there are");
            Err(Failure::new(Exit::NotFound, message))
        }
    }
}

/// The node once nothing runs there any more.
async fn drained(client: &Client, mut state: NodeState, timeout: Duration) -> Result<NodeState, Failure> {
    let deadline = Instant::now() + timeout;
    while !is_drained(&state) {
        if Instant::now() >= deadline {
            let (name, waited) = (&state.name, span(timeout));
            let message = match state.running {
                Some(running) if running > 0 => {
                    format!("the node {name} still runs {running} of its jobs after {waited}")
                }
                _ => format!("the node {name} did not say within {waited} that nothing runs there"),
            };
            return Err(Failure::new(Exit::Failed, message));
        }
        sleep(LOOK_EVERY).await;
        state = find(client.nodes().await?, &state.id.to_string())?;
        if state.wanted != Some(NodeWish::Drain) && state.status != NodeStatus::Terminated {
            let message =
                format!("the node {} works again: somebody resumed it, or it was started anew", state.name);
            return Err(Failure::new(Exit::Conflict, message));
        }
    }
    Ok(state)
}

/// A node that has heard takes no part in the work and so has no sections; what it says of its jobs from then on is the end
/// of them.
fn is_drained(state: &NodeState) -> bool {
    state.status == NodeStatus::Terminated
        || (state.wanted == Some(NodeWish::Drain) && state.sections.is_empty() && state.running == Some(0))
}

fn nodes_table(nodes: &[NodeState], now: UnixMillis) -> Table {
    let names = ["name", "id", "status", "wanted", "rank", "sections", "running", "last seen", "version"];
    table::table(names, nodes.iter().map(|node| row(node, now)))
}

fn row(node: &NodeState, now: UnixMillis) -> [Cell; 9] {
    let alive = node.status != NodeStatus::Terminated;
    [
        short(&node.name),
        text(node.id),
        table::status(node.status.as_str()),
        optional(node.wanted.map(wish)),
        optional(takes_part(node).then_some(node.job_queue_section)),
        optional(alive.then_some(node.sections.len())),
        optional(running(node).filter(|_| alive)),
        text(age(node.last_seen_at, now)),
        optional(node.version.as_ref()),
    ]
}

fn node_listing(node: &NodeState, now: UnixMillis) -> Table {
    table::listing([
        ("name", text(&node.name)),
        ("id", text(node.id)),
        ("status", table::status(node.status.as_str())),
        ("wanted", optional(node.wanted.map(wish))),
        ("running", optional(running(node))),
        ("last seen", text(age(node.last_seen_at, now))),
    ])
}

fn running(node: &NodeState) -> Option<String> {
    node.running.zip(node.capacity).map(|(running, capacity)| format!("{running} of {capacity}"))
}

/// Only who takes part has a rank among the others.
fn takes_part(node: &NodeState) -> bool {
    node.status != NodeStatus::Terminated && node.wanted.is_none()
}

fn wish(wish: NodeWish) -> &'static str {
    match wish {
        NodeWish::Pause => "PAUSE",
        NodeWish::Drain => "DRAIN",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const ID: &str = "018f0000-0000-7000-8000-000000000001";

    fn node(name: &str, id: &str, more: &Value) -> NodeState {
        let mut node = json!({
            "name": name, "id": id, "jobQueueSection": 1, "lastSeenAt": 1_893_456_000_000_i64, "status": "BUSY",
            "version": "0.1.0", "capacity": 64, "running": 3, "sections": [0, 1],
            "metadata": {"createdAt": 1, "updatedAt": 1, "updatedBy": ID},
        });
        node.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn a_node_is_one_line() {
        let paused = json!({"wanted": "PAUSE", "sections": [], "status": "ACTIVE", "running": 0});
        let nodes = [
            node("node_1", ID, &json!({})),
            node("node_2", ID, &paused),
            node("node_3", ID, &json!({"status": "TERMINATED"})),
        ];
        let drawn = nodes_table(&nodes, UnixMillis(1_893_456_002_000)).trim_fmt();
        let expected = "\
NAME    ID                                    STATUS      WANTED  RANK  SECTIONS  RUNNING  LAST SEEN  VERSION
node_1  018f0000-0000-7000-8000-000000000001  BUSY        -       1     2         3 of 64  2 s ago    0.1.0
node_2  018f0000-0000-7000-8000-000000000001  ACTIVE      PAUSE   -     0         0 of 64  2 s ago    0.1.0
node_3  018f0000-0000-7000-8000-000000000001  TERMINATED  -       -     -         -        2 s ago    0.1.0";
        assert_eq!(drawn, expected);
    }

    #[test]
    fn a_node_is_found_by_its_name_or_its_id() {
        let other = "018f0000-0000-7000-8000-000000000002";
        let nodes = |status: &str| {
            vec![
                node("a", ID, &json!({"status": status})),
                node("a", other, &json!({})),
                node(other, ID, &json!({})),
            ]
        };
        assert_eq!(find(nodes("TERMINATED"), "a").unwrap().id.to_string(), other, "the one that lives");
        assert_eq!(find(nodes("BUSY"), "a").unwrap_err().exit, Exit::Refused);
        assert_eq!(find(nodes("BUSY"), "b").unwrap_err().exit, Exit::NotFound);
        assert_eq!(find(vec![node("a", ID, &json!({}))], ID).unwrap().name, "a");
        assert_eq!(find(vec![node("a", ID, &json!({"status": "TERMINATED"}))], "a").unwrap().name, "a");
    }

    #[test]
    fn a_node_is_drained_once_it_has_heard_and_runs_nothing() {
        let drained = |more: &Value| is_drained(&node("a", ID, more));
        assert!(!drained(&json!({"wanted": "DRAIN", "running": 0})), "it has not heard yet");
        assert!(!drained(&json!({"wanted": "DRAIN", "sections": []})));
        assert!(drained(&json!({"wanted": "DRAIN", "sections": [], "running": 0})));
        assert!(drained(&json!({"status": "TERMINATED"})));
    }
}
