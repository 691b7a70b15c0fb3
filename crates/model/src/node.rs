//! The `state` document of a node (seeds 003 and 004): who it is, that it lives, and what it is doing.
//!
//! Unresponsive is not a status: a dead node cannot write. The others conclude it from a `state` that no longer
//! changes, and then write TERMINATED.

use serde::{Deserialize, Serialize};

use crate::Extra;
use crate::ids::{Incarnation, NodeId};
use crate::metadata::Metadata;
use crate::time::UnixMillis;
use crate::transition::Table;

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum NodeStatus {
    /// Lives, and has room for work.
    Active,
    /// Lives, and all its slots are taken.
    Busy,
    /// Stopped, or was found dead.
    Terminated,
}

impl NodeStatus {
    pub const ALL: [NodeStatus; 3] = [NodeStatus::Active, NodeStatus::Busy, NodeStatus::Terminated];

    pub fn as_str(self) -> &'static str {
        match self {
            NodeStatus::Active => "ACTIVE",
            NodeStatus::Busy => "BUSY",
            NodeStatus::Terminated => "TERMINATED",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeEvent {
    /// Its last free slot was taken.
    Fill,
    /// A slot became free.
    Free,
    /// It stopped, or others found it dead.
    Terminate,
    /// It starts again, under a new incarnation: the only way out of TERMINATED.
    Join,
}

pub const TRANSITIONS: Table<NodeStatus, NodeEvent> = Table::new(
    "node",
    &[
        (NodeStatus::Active, NodeEvent::Fill, NodeStatus::Busy),
        (NodeStatus::Busy, NodeEvent::Free, NodeStatus::Active),
        (NodeStatus::Active, NodeEvent::Terminate, NodeStatus::Terminated),
        (NodeStatus::Busy, NodeEvent::Terminate, NodeStatus::Terminated),
        (NodeStatus::Active, NodeEvent::Join, NodeStatus::Active),
        (NodeStatus::Busy, NodeEvent::Join, NodeStatus::Active),
        (NodeStatus::Terminated, NodeEvent::Join, NodeStatus::Active),
    ],
);

/// What a node does for the others.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum NodeRole {
    Web,
    Scheduler,
    Processor,
    Observer,
}

/// What a person wants of a node that would work otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum NodeWish {
    /// To begin nothing new, until it is resumed.
    Pause,
    /// To give back what it runs, too, once that had time to finish; until it is resumed or starts again.
    Drain,
}

/// A stored node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", from = "Wire")]
pub struct NodeState {
    #[schema(example = "node_1")]
    pub name: String,
    #[schema(value_type = String, format = "uuid")]
    pub id: NodeId,
    /// The rank of the node among the live, unpaused ones of its role.
    pub job_queue_section: u32,
    pub last_seen_at: UnixMillis,
    pub status: NodeStatus,

    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub incarnation: Option<Incarnation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<NodeRole>,
    /// The job types it runs, and so the only ones it claims.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// The sections of the queue it looks at first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<u32>,
    /// The version of Rota it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How many jobs it runs at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
    /// How many jobs it runs now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<u32>,
    /// What a person wants of it; left out while it is to work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted: Option<NodeWish>,
    /// Whether a person may pause and drain it.
    #[serde(skip_serializing_if = "is_true")]
    pub controllable: bool,

    pub metadata: Metadata,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// As others may have written it: seed 004 spells `job_queue_section`, and a reader accepts both.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    name: String,
    id: NodeId,
    job_queue_section: Option<u32>,
    #[serde(rename = "job_queue_section")]
    job_queue_section_004: Option<u32>,
    last_seen_at: UnixMillis,
    status: NodeStatus,
    incarnation: Option<Incarnation>,
    #[serde(default)]
    roles: Vec<NodeRole>,
    #[serde(default)]
    types: Vec<String>,
    #[serde(default)]
    sections: Vec<u32>,
    version: Option<String>,
    capacity: Option<u32>,
    running: Option<u32>,
    wanted: Option<NodeWish>,
    #[serde(default = "yes")]
    controllable: bool,
    metadata: Metadata,
    #[serde(flatten)]
    extra: Extra,
}

impl From<Wire> for NodeState {
    fn from(wire: Wire) -> Self {
        Self {
            name: wire.name,
            id: wire.id,
            job_queue_section: wire.job_queue_section.or(wire.job_queue_section_004).unwrap_or(0),
            last_seen_at: wire.last_seen_at,
            status: wire.status,
            incarnation: wire.incarnation,
            roles: wire.roles,
            types: wire.types,
            sections: wire.sections,
            version: wire.version,
            capacity: wire.capacity,
            running: wire.running,
            wanted: wire.wanted,
            controllable: wire.controllable,
            metadata: wire.metadata,
            extra: wire.extra,
        }
    }
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_true(value: &bool) -> bool {
    *value
}

impl NodeState {
    /// Whether it takes part in the work: it lives, as far as its document says, and nobody wants it to rest.
    pub fn takes_part(&self, role: NodeRole) -> bool {
        self.status != NodeStatus::Terminated && self.wanted.is_none() && self.roles.contains(&role)
    }
}

/// The sections that the node of this rank looks at first, among `nodes` of its role.
pub fn sections_of_rank(rank: u32, nodes: u32, sections: u32) -> Vec<u32> {
    let step = usize::try_from(nodes.max(1)).unwrap_or(1);
    (rank..sections).step_by(step).collect()
}
