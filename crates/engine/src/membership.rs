//! The life of a node as the others see it: its `state` document, written at every heartbeat under an incarnation that
//! is new at each start (rule 2, from the side of the one who is watched).
//!
//! Whoever else writes to the document is heard: a person who wants the node to pause, and another node that took it for
//! dead. Who finds itself TERMINATED stops what it runs and joins again, as somebody else.
//!
//! A store that one process alone can open says so; then every other incarnation found in it is dead, and its jobs are
//! taken over at once.

use std::sync::Arc;
use std::time::Duration;

use rota_model::Extra;
use rota_model::ids::{Incarnation, NodeId};
use rota_model::job::Holder;
use rota_model::metadata::Metadata;
use rota_model::node::{self, NodeEvent, NodeRole, NodeState, NodeStatus, NodeWish, sections_of_rank};
use rota_store::nodes::Nodes;
use rota_store::repository::{Created, Saved};
use rota_store::{StoreError, Versioned};
use tokio::time::{sleep, timeout};

use crate::flaws::Flaw;
use crate::lease::Lease;
use crate::surroundings::Surroundings;
use crate::watch::{self, Read, Watch};

/// How often a node says that it lives.
pub const HEARTBEAT: Duration = Duration::from_secs(2);
/// After this the answer to a beat is no longer waited for: another is sent.
const ANSWER: Duration = Duration::from_millis(1_500);
/// How long a node that starts waits for a former process under its id to be over.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a goodbye is decided anew while others write to the document.
const TRIES: usize = 5;

/// What a node says about itself.
#[derive(Clone, Debug)]
pub struct Card {
    pub id: NodeId,
    pub name: String,
    pub version: String,
    pub roles: Vec<NodeRole>,
    pub types: Vec<String>,
    pub capacity: u32,
    /// How many sections the queue has.
    pub sections: u32,
    pub controllable: bool,
}

/// What a node is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doing {
    pub(crate) running: u32,
    pub(crate) place: Place,
}

/// Where a node stands among those of its role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) rank: u32,
    /// The sections it looks at first.
    pub(crate) sections: Vec<u32>,
}

impl Place {
    /// Among so many.
    pub(crate) fn of(rank: u32, nodes: u32, sections: u32) -> Self {
        Self { rank, sections: sections_of_rank(rank, nodes, sections) }
    }
}

/// What came of a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    Acknowledged,
    /// Somebody else wrote to our document, or a beat did whose answer was lost: it was read, and is to be beaten again.
    Overtaken,
    /// Others took us for dead.
    Condemned,
    /// Another process lives under our id.
    Superseded,
}

/// What came of joining again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejoined {
    /// By a write that was sent at this instant: the new lease counts from then.
    Now(Duration),
    /// By an earlier write whose answer was lost. Others watch it since nobody knows when: a lease begins with the next beat.
    Before,
    /// Another process lives under our id.
    Superseded,
}

pub(crate) struct Membership {
    nodes: Nodes,
    card: Card,
    surroundings: Surroundings,
    lease: Arc<Lease>,
    state: Versioned<NodeState>,
    incarnation: Incarnation,
    /// The one under which we are about to live on, as long as it is not known whether that was written.
    next: Option<Incarnation>,
}

impl Membership {
    /// Joins the fleet, under a new incarnation.
    pub(crate) async fn join(
        nodes: Nodes,
        card: Card,
        surroundings: Surroundings,
        lease: Arc<Lease>,
        exclusive: bool,
    ) -> Result<Self, StoreError> {
        let incarnation = Incarnation::rising(surroundings.now(), &surroundings.randomness());
        let (sent, state) = loop {
            let former = if exclusive {
                nodes.get(card.id).await?
            } else {
                outlive(&nodes, card.id, &surroundings).await?
            };
            let sent = lease.clock();
            // Whoever wrote since it was taken for dead lives, and is watched anew.
            if let Some(state) = enter(&nodes, &card, &surroundings, incarnation, former, false).await? {
                break (sent, state);
            }
        };
        lease.renew(sent);
        let joined = Self { nodes, card, surroundings, lease, state, incarnation, next: None };
        if exclusive {
            joined.bury_others().await?;
        }
        Ok(joined)
    }

    /// Joins once more, as somebody else.
    pub(crate) async fn rejoin(&mut self) -> Result<Rejoined, StoreError> {
        let rejoined = timeout(ANSWER * 2, self.live_on()).await;
        rejoined.unwrap_or_else(|_| Err(no_answer("join")))
    }

    async fn live_on(&mut self) -> Result<Rejoined, StoreError> {
        loop {
            let sent = self.lease.clock();
            let found = self.nodes.get(self.card.id).await?;
            let written = found.as_ref().and_then(|found| found.document.incarnation);
            if written.is_some() && written == self.next {
                // A try of ours whose answer was lost.
                self.incarnation = self.next.take().unwrap_or(self.incarnation);
            } else if written.is_some_and(|written| written != self.incarnation) {
                return Ok(Rejoined::Superseded);
            }
            match found {
                Some(found) if found.document.status != NodeStatus::Terminated => {
                    self.state = found;
                    return Ok(Rejoined::Before);
                }
                former => {
                    let next = *self.next.get_or_insert_with(|| {
                        Incarnation::rising(self.surroundings.now(), &self.surroundings.randomness())
                    });
                    let same = self.surroundings.has(Flaw::RejoinsAsTheSame);
                    let next = if same { self.incarnation } else { next };
                    let entered =
                        enter(&self.nodes, &self.card, &self.surroundings, next, former, true).await?;
                    if let Some(state) = entered {
                        (self.state, self.incarnation, self.next) = (state, next, None);
                        return Ok(Rejoined::Now(sent));
                    }
                }
            }
        }
    }

    pub(crate) fn holder(&self) -> Holder {
        Holder { node: self.card.id, incarnation: self.incarnation }
    }

    pub(crate) fn wanted(&self) -> Option<NodeWish> {
        self.state.document.wanted
    }

    /// Says that the node lives, and what it is doing.
    pub(crate) async fn beat(&mut self, doing: &Doing) -> Result<Beat, StoreError> {
        let mut after = self.state.document.clone();
        self.describe(&mut after, doing);
        let sent = self.lease.clock();
        match self.save(&after).await? {
            Saved::Applied(version) => {
                self.state = self.state.written(after, version);
                self.lease.renew(sent);
                Ok(Beat::Acknowledged)
            }
            Saved::Overtaken => self.look().await,
        }
    }

    fn describe(&self, state: &mut NodeState, doing: &Doing) {
        let full = doing.running >= self.card.capacity;
        let event = if full { NodeEvent::Fill } else { NodeEvent::Free };
        state.status = node::TRANSITIONS.next(state.status, event).unwrap_or(state.status);
        state.last_seen_at = self.surroundings.now();
        state.running = Some(doing.running);
        state.job_queue_section = doing.place.rank;
        if state.sections != doing.place.sections {
            state.sections.clone_from(&doing.place.sections);
        }
        state.metadata.touch(self.surroundings.now(), self.card.id);
    }

    /// Reads what became of our document. Ours, changed by somebody else or by a beat whose answer was lost, is taken as
    /// it is.
    async fn look(&mut self) -> Result<Beat, StoreError> {
        let found = timeout(ANSWER, self.nodes.get(self.card.id)).await;
        let Some(found) = found.unwrap_or_else(|_| Err(no_answer("read the state of this node")))? else {
            return Ok(Beat::Condemned);
        };
        if found.document.incarnation != Some(self.incarnation) {
            return Ok(Beat::Superseded);
        }
        if found.document.status == NodeStatus::Terminated {
            return Ok(Beat::Condemned);
        }
        self.state = found;
        Ok(Beat::Overtaken)
    }

    async fn save(&self, after: &NodeState) -> Result<Saved, StoreError> {
        let saved = timeout(ANSWER, self.nodes.save(&self.state, after)).await;
        saved.unwrap_or_else(|_| Err(no_answer("beat")))
    }

    /// Says goodbye.
    pub(crate) async fn leave(&mut self) -> Result<(), StoreError> {
        self.lease.end();
        for _ in 0..TRIES {
            let mut after = self.state.document.clone();
            terminate(&mut after, &self.surroundings, self.card.id);
            after.running = Some(0);
            match self.save(&after).await {
                Ok(Saved::Applied(_)) => return Ok(()),
                Ok(Saved::Overtaken) => {}
                Err(error) if error.is_passing() => {}
                Err(error) => return Err(error),
            }
            if self.look().await? != Beat::Overtaken {
                return Ok(());
            }
        }
        Err(StoreError::unavailable("say goodbye", "others keep writing to the document of this node"))
    }

    /// Nobody else can have the store open: what others left in it is their last word.
    async fn bury_others(&self) -> Result<(), StoreError> {
        for other in self.nodes.all().await? {
            if other.document.id != self.card.id {
                condemn(&self.nodes, &other, &self.surroundings, self.card.id).await?;
            }
        }
        Ok(())
    }
}

/// Writes TERMINATED over the version that was seen: who lives after all has written another by then. Says whether it was
/// written.
pub(crate) async fn condemn(
    nodes: &Nodes,
    other: &Versioned<NodeState>,
    surroundings: &Surroundings,
    by: NodeId,
) -> Result<bool, StoreError> {
    if other.document.status == NodeStatus::Terminated {
        return Ok(false);
    }
    let newest =
        if surroundings.has(Flaw::CondemnsBlindly) { nodes.get(other.document.id).await? } else { None };
    let other = newest.as_ref().unwrap_or(other);
    let mut after = other.document.clone();
    terminate(&mut after, surroundings, by);
    Ok(matches!(nodes.save(other, &after).await?, Saved::Applied(_)))
}

fn terminate(state: &mut NodeState, surroundings: &Surroundings, by: NodeId) {
    state.status = node::TRANSITIONS.next(state.status, NodeEvent::Terminate).unwrap_or(state.status);
    state.metadata.touch(surroundings.now(), by);
}

/// Waits until a former process under our id is certainly over: until then it may count on its lease, and run jobs. What it
/// left is its last word.
async fn outlive(
    nodes: &Nodes,
    id: NodeId,
    surroundings: &Surroundings,
) -> Result<Option<Versioned<NodeState>>, StoreError> {
    let mut watch = Watch::new(surroundings.clone());
    let began = surroundings.elapsed();
    let mut told = false;
    loop {
        let sent = surroundings.elapsed();
        let found = nodes.get(id).await?;
        let read = Read { sent, answered: surroundings.elapsed() };
        let lives = found.as_ref().filter(|state| state.document.status != NodeStatus::Terminated);
        let Some(former) = lives else { return Ok(found) };
        if watch.saw(id, former.version, read) {
            return Ok(found);
        }
        if read.answered.saturating_sub(began) > PATIENCE {
            let why = "another process lives under the id of this node: stop it first";
            return Err(StoreError::refused("join the fleet", why));
        }
        if !told {
            tracing::info!(
                "a former process of this node did not say goodbye; waiting until it is certainly over"
            );
            told = true;
        }
        sleep(watch::EVERY).await;
    }
}

/// Writes the state of a node that starts, over what its former life left. None if somebody wrote since that was read.
async fn enter(
    nodes: &Nodes,
    card: &Card,
    surroundings: &Surroundings,
    incarnation: Incarnation,
    former: Option<Versioned<NodeState>>,
    lives_on: bool,
) -> Result<Option<Versioned<NodeState>>, StoreError> {
    let mut state = fresh_state(card, surroundings, incarnation, former.as_ref());
    // A pause lasts until somebody ends it; a drain was meant for the process that is over.
    let wanted = former.as_ref().and_then(|former| former.document.wanted);
    state.wanted = wanted.filter(|wanted| card.controllable && (lives_on || *wanted == NodeWish::Pause));
    let Some(former) = former else {
        return Ok(match nodes.create(state).await? {
            Created::New(state) => Some(state),
            Created::Exists(_) => None,
        });
    };
    Ok(match nodes.save(&former, &state).await? {
        Saved::Applied(version) => Some(former.written(state, version)),
        Saved::Overtaken => None,
    })
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
        wanted: None,
        controllable: card.controllable,
        metadata,
        extra: before.map_or_else(Extra::new, |before| before.document.extra.clone()),
    }
}

fn no_answer(what: &str) -> StoreError {
    StoreError::unknown(what, "no answer came in time")
}
