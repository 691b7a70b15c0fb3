//! The life of a node as the others see it: its `state` document, written at every heartbeat under an incarnation that
//! is new at each start.
//!
//! A store that one process alone can open says so; then every other incarnation found in it is dead, and its jobs are
//! taken over at once.

use std::collections::BTreeSet;
use std::time::Duration;

use rota_model::Extra;
use rota_model::ids::{Incarnation, NodeId};
use rota_model::job::Holder;
use rota_model::metadata::Metadata;
use rota_model::node::{self, NodeEvent, NodeRole, NodeState, NodeStatus, sections_of_rank};
use rota_store::nodes::Nodes;
use rota_store::repository::{Created, Saved};
use rota_store::{StoreError, Versioned};

use crate::surroundings::Surroundings;

/// How often a node says that it lives.
pub const HEARTBEAT: Duration = Duration::from_secs(2);

/// What a node says about itself.
#[derive(Clone, Debug)]
pub struct Card {
    pub id: NodeId,
    pub name: String,
    pub version: String,
    pub roles: Vec<NodeRole>,
    pub types: Vec<String>,
    pub capacity: u32,
    pub sections: u32,
}

pub struct Membership {
    nodes: Nodes,
    card: Card,
    surroundings: Surroundings,
    exclusive: bool,
    state: Versioned<NodeState>,
    incarnation: Incarnation,
}

impl Membership {
    /// Joins the fleet, under a new incarnation.
    pub async fn join(
        nodes: Nodes,
        card: Card,
        surroundings: Surroundings,
        exclusive: bool,
    ) -> Result<Self, StoreError> {
        let incarnation = Incarnation::rising(surroundings.now(), &surroundings.randomness());
        let state = enter(&nodes, &card, &surroundings, incarnation).await?;
        let mut joined = Self { nodes, card, surroundings, exclusive, state, incarnation };
        if exclusive {
            joined.bury_others().await?;
        }
        Ok(joined)
    }

    pub fn holder(&self) -> Holder {
        Holder { node: self.card.id, incarnation: self.incarnation }
    }

    /// Says that the node lives, and how busy it is.
    pub async fn beat(&mut self, running: u32) -> Result<(), StoreError> {
        let full = running >= self.card.capacity;
        let now = self.surroundings.now();
        let mut after = self.state.document.clone();
        let event = if full { NodeEvent::Fill } else { NodeEvent::Free };
        after.status = node::TRANSITIONS.next(after.status, event).unwrap_or(after.status);
        after.last_seen_at = now;
        after.running = Some(running);
        after.metadata.touch(now, self.card.id);
        self.write(after).await
    }

    /// Says goodbye.
    pub async fn leave(&mut self) -> Result<(), StoreError> {
        let mut after = self.state.document.clone();
        terminate(&mut after, &self.surroundings, self.card.id);
        after.running = Some(0);
        self.write(after).await
    }

    /// The incarnations that are alive, as far as is known: whoever else holds a job is dead.
    pub async fn alive(&self) -> Result<BTreeSet<Incarnation>, StoreError> {
        let mut alive = BTreeSet::from([self.incarnation]);
        if !self.exclusive {
            let live = |state: &NodeState| state.status != NodeStatus::Terminated && state.id != self.card.id;
            let others = self.nodes.all().await?;
            let others = others.iter().map(|node| &node.document).filter(|state| live(state));
            alive.extend(others.filter_map(|state| state.incarnation));
        }
        Ok(alive)
    }

    /// Writes our state. Who finds it changed by someone else reads it and writes on top: the incarnation is ours.
    async fn write(&mut self, after: NodeState) -> Result<(), StoreError> {
        if let Saved::Applied(version) = self.nodes.save(&self.state, &after).await? {
            self.state = self.state.written(after, version);
            return Ok(());
        }
        self.state = enter(&self.nodes, &self.card, &self.surroundings, self.incarnation).await?;
        Ok(())
    }

    /// Nobody else can have the store open: what others left in it is their last word.
    async fn bury_others(&mut self) -> Result<(), StoreError> {
        for other in self.nodes.all().await? {
            let state = &other.document;
            if state.id != self.card.id && state.status != NodeStatus::Terminated {
                let mut after = state.clone();
                terminate(&mut after, &self.surroundings, self.card.id);
                self.nodes.save(&other, &after).await?;
            }
        }
        Ok(())
    }
}

fn terminate(state: &mut NodeState, surroundings: &Surroundings, by: NodeId) {
    state.status = node::TRANSITIONS.next(state.status, NodeEvent::Terminate).unwrap_or(state.status);
    state.metadata.touch(surroundings.now(), by);
}

/// Writes the state of a node that starts, over whatever its former life left.
async fn enter(
    nodes: &Nodes,
    card: &Card,
    surroundings: &Surroundings,
    incarnation: Incarnation,
) -> Result<Versioned<NodeState>, StoreError> {
    loop {
        let before = nodes.get(card.id).await?;
        let state = fresh_state(card, surroundings, incarnation, before.as_ref());
        let Some(before) = before else {
            if let Created::New(state) = nodes.create(state).await? {
                return Ok(state);
            }
            continue;
        };
        if let Saved::Applied(version) = nodes.save(&before, &state).await? {
            return Ok(before.written(state, version));
        }
    }
}

fn fresh_state(
    card: &Card,
    surroundings: &Surroundings,
    incarnation: Incarnation,
    before: Option<&Versioned<NodeState>>,
) -> NodeState {
    let now = surroundings.now();
    let mut metadata = Metadata::new(now, card.id);
    if let Some(before) = before {
        metadata.created_at = before.document.metadata.created_at;
    }
    NodeState {
        name: card.name.clone(),
        id: card.id,
        job_queue_section: 0,
        last_seen_at: now,
        status: NodeStatus::Active,
        incarnation: Some(incarnation),
        roles: card.roles.clone(),
        types: card.types.clone(),
        sections: sections_of_rank(0, 1, card.sections),
        version: Some(card.version.clone()),
        capacity: Some(card.capacity),
        running: Some(0),
        wanted: before.and_then(|before| before.document.wanted),
        controllable: true,
        metadata,
        extra: before.map_or_else(Extra::new, |before| before.document.extra.clone()),
    }
}
