//! `rota node`: the fleet.

use clap::Subcommand;
use comfy_table::{Cell, Table};
use rota_client::Page;
use rota_model::node::{NodeRole, NodeState};
use rota_model::time::UnixMillis;

use super::Context;
use crate::exit::Failure;
use crate::output::table::{self, optional, short, text};
use crate::output::time::age;

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// List the nodes, those that stopped included
    List,
}

pub(crate) async fn run(context: &Context, command: &NodeCommand) -> Result<(), Failure> {
    match command {
        NodeCommand::List => {
            let page = Page { items: context.client()?.nodes().await?, next: None };
            context.out.list(&page, |nodes| nodes_table(nodes, context.now()))
        }
    }
}

fn nodes_table(nodes: &[NodeState], now: UnixMillis) -> Table {
    let names = ["name", "id", "status", "running", "roles", "last seen", "version"];
    table::table(names, nodes.iter().map(|node| row(node, now)))
}

fn row(node: &NodeState, now: UnixMillis) -> [Cell; 7] {
    let running =
        node.running.zip(node.capacity).map(|(running, capacity)| format!("{running} of {capacity}"));
    let roles: Vec<_> = node.roles.iter().map(|role| role_name(*role)).collect();
    [
        short(&node.name),
        text(node.id),
        table::status(node.status.as_str()),
        optional(running),
        text(roles.join(",")),
        text(age(node.last_seen_at, now)),
        optional(node.version.as_ref()),
    ]
}

fn role_name(role: NodeRole) -> &'static str {
    match role {
        NodeRole::Web => "web",
        NodeRole::Scheduler => "scheduler",
        NodeRole::Processor => "processor",
        NodeRole::Observer => "observer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_is_one_line() {
        let node: NodeState = serde_json::from_value(json!({
            "name": "node_1", "id": "018f0000-0000-7000-8000-000000000001", "jobQueueSection": 0,
            "lastSeenAt": 1_893_456_000_000_i64, "status": "BUSY", "roles": ["web", "processor"], "version": "0.1.0",
            "capacity": 64, "running": 3,
            "metadata": {"createdAt": 1, "updatedAt": 1, "updatedBy": "018f0000-0000-7000-8000-000000000001"},
        }))
        .unwrap();
        let drawn = nodes_table(&[node], UnixMillis(1_893_456_002_000)).trim_fmt();
        let expected = "\
NAME    ID                                    STATUS  RUNNING  ROLES          LAST SEEN  VERSION
node_1  018f0000-0000-7000-8000-000000000001  BUSY    3 of 64  web,processor  2 s ago    0.1.0";
        assert_eq!(drawn, expected);
    }
}
