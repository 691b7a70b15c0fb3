//! What a node makes of the `state` documents of all: who is dead, where it stands among the living, and what people want of
//! it.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use rota_model::ids::{Incarnation, NodeId};
use rota_model::log::Level;
use rota_model::node::{NodeRole, NodeState, NodeStatus};
use rota_store::{StoreError, Versioned};

use crate::membership::{Place, condemn};
use crate::node::Life;
use crate::patience::answered;
use crate::surroundings::Surroundings;
use crate::watch::{Read, Watch};

pub(crate) struct Watching {
    own: NodeId,
    sections: u32,
    surroundings: Surroundings,
    known: BTreeSet<NodeId>,
    watch: Watch,
}

impl Watching {
    pub(crate) fn new(own: NodeId, sections: u32, surroundings: Surroundings) -> Self {
        let watch = Watch::new(surroundings.clone());
        Self { own, sections, surroundings, known: BTreeSet::from([own]), watch }
    }

    /// Reads every document once, and does what follows from it.
    pub(crate) async fn look(&mut self, life: &Arc<Life>) -> Result<(), StoreError> {
        let sent = self.surroundings.elapsed();
        let beats = life.calls.beats.load(Ordering::Relaxed);
        let (read, states) = match self.read(life).await {
            Ok(read) => read,
            Err(error) => {
                self.watch.failed(sent);
                return Err(error);
            }
        };
        for state in &states {
            self.hear(life, state, beats);
        }
        let mut dead = false;
        let own = self.own;
        for other in states.iter().filter(|state| state.document.id != own) {
            dead |= self.judge(life, other, read).await?;
        }
        self.take_place(life, &states);
        if dead {
            life.calls.recover_now.notify_one();
        }
        Ok(())
    }

    /// Nodes that are not known yet are looked for each time: who joins and dies at once is found out no later than others.
    /// Lists may lag, and so nobody is judged by one.
    async fn read(&mut self, life: &Life) -> Result<(Read, Vec<Versioned<NodeState>>), StoreError> {
        if !life.exclusive {
            let all = answered("list the nodes", life.nodes.all()).await?;
            let alive = all.iter().filter(|state| state.document.status != NodeStatus::Terminated);
            self.known.extend(alive.map(|state| state.document.id));
        }
        let ids: Vec<NodeId> = self.known.iter().copied().collect();
        let sent = self.surroundings.elapsed();
        let states = answered("read the state of the nodes", life.nodes.get_each(&ids)).await?;
        Ok((Read { sent, answered: self.surroundings.elapsed() }, states.into_iter().flatten().collect()))
    }

    /// Does what people want of us, and beats at once if our document is no longer ours.
    fn hear(&self, life: &Arc<Life>, state: &Versioned<NodeState>, beats: u64) {
        if state.document.id != self.own {
            return;
        }
        if state.document.status == NodeStatus::Terminated {
            life.calls.beat_now.notify_one();
        }
        // A beat that was answered meanwhile may know better that nothing is wanted any more; who is to rest rests in any case,
        // and learns a second later if it need not.
        let wanted = state.document.wanted;
        if wanted.is_some() || life.calls.beats.load(Ordering::Relaxed) == beats {
            life.obey(wanted);
        }
    }

    /// Whether another node is found dead, and that was written down.
    async fn judge(
        &mut self,
        life: &Life,
        other: &Versioned<NodeState>,
        read: Read,
    ) -> Result<bool, StoreError> {
        let id = other.document.id;
        if other.document.status == NodeStatus::Terminated {
            self.known.remove(&id);
            self.watch.forget(id);
            return Ok(false);
        }
        if !self.watch.saw(id, other.version, read) {
            return Ok(false);
        }
        let condemned = condemn(&life.nodes, other, &self.surroundings, self.own);
        let condemned = answered("write that a node is dead", condemned).await?;
        if condemned {
            let title = format!("the node {} is dead; what it ran is queued again", other.document.name);
            self.surroundings.journal().tell_with(Level::Warn, &title, id);
            self.watch.forget(id);
        }
        Ok(condemned)
    }

    /// Takes our place among those who take part in the work. They stand in the order in which they joined, so that a newcomer
    /// moves nobody.
    fn take_place(&self, life: &Life, states: &[Versioned<NodeState>]) {
        let part = states.iter().map(|state| &state.document);
        let mut lives: Vec<(Option<Incarnation>, NodeId)> = part
            .filter(|state| state.takes_part(NodeRole::Processor))
            .map(|state| (state.incarnation, state.id))
            .collect();
        lives.sort_unstable();
        let count = u32::try_from(lives.len()).unwrap_or(u32::MAX);
        let rank = lives.iter().position(|(_, id)| *id == self.own);
        let place = match rank.and_then(|rank| u32::try_from(rank).ok()) {
            Some(rank) => Place::of(rank, count, self.sections),
            // Who takes no part stands behind all others.
            None => Place { rank: count, sections: Vec::new() },
        };
        let alone = count <= 1;
        life.processor.set_sections((!alone).then(|| place.sections.clone()));
        let mut held = life.place.lock().unwrap_or_else(PoisonError::into_inner);
        if *held != place {
            let title = match place.sections.len() {
                0 => "this node takes no part in the work".to_owned(),
                sections => format!("this node has rank {} of {count}, and {sections} sections", place.rank),
            };
            self.surroundings.journal().tell(Level::Info, &title);
            *held = place;
            life.calls.beat_now.notify_one();
        }
    }
}
