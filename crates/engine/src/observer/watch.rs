//! The loop that follows what is listened to: it hears hints, reads what they name once for all, and tells the rooms.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::ids::NodeId;
use rota_model::job::{Job, JobCounts};
use rota_model::node::NodeState;
use rota_model::time::UnixMillis;
use rota_store::StoreError;
use rota_store::hints::Changes;
use serde::Serialize;
use tokio::time::{Instant, sleep, sleep_until};

use super::hearing::Heard;
use super::room::{Moment, PACE, Room, Said};
use super::{Shared, Topic};
use crate::meter::Count;
use crate::patience::{STORE_PAUSE, answered};

/// A moment of more than this, in bytes, is not told document by document: everybody who listens would hold it.
const MAX_BYTES: usize = 1024 * 1024;
/// How long a change waits for company when it comes after a quiet while.
const COMPANY: Duration = Duration::from_millis(25);
/// While more changes than anybody reads, listeners are told so no more often than this.
const FLOOD_PACE: Duration = Duration::from_secs(1);
/// How often everything is read although nothing was lost, as far as anybody knows.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Follows whenever somebody listens, until the store closes.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        while shared.rooms().is_empty() {
            shared.arrived.notified().await;
        }
        if Watch::new(&shared).follow().await == End::Closed {
            return;
        }
    }
}

/// Why following ended.
#[derive(PartialEq)]
enum End {
    NobodyListens,
    Closed,
}

/// One while in which somebody listens.
struct Watch<'a> {
    shared: &'a Shared,
    jobs: Changes,
    nodes: Changes,
    /// What was told last.
    counts: BTreeMap<Domain, JobCounts>,
    states: Option<BTreeMap<NodeId, NodeState>>,
    told: Instant,
    looked: Instant,
    pace: Duration,
    /// A read failed: what was heard then is not known to anybody.
    behind: bool,
}

/// What was heard in a moment.
#[derive(Default)]
struct Hearing {
    jobs: Heard,
    nodes: Heard,
}

impl<'a> Watch<'a> {
    fn new(shared: &'a Shared) -> Self {
        let now = Instant::now();
        Self {
            shared,
            // Listening begins before reading, so that nothing falls in between.
            jobs: shared.jobs.changes(),
            nodes: shared.nodes.changes(),
            counts: BTreeMap::new(),
            states: None,
            told: now,
            looked: now,
            pace: PACE,
            behind: false,
        }
    }

    async fn follow(mut self) -> End {
        loop {
            let Some(hearing) = self.hear().await else { return End::Closed };
            let messages = (hearing.jobs.messages + hearing.nodes.messages) as u64;
            self.shared.surroundings.meter().count(Count::ObserverMessages, messages);
            let rooms = self.shared.rooms().clone();
            if rooms.is_empty() {
                return End::NobodyListens;
            }
            self.counts.retain(|domain, _| rooms.contains_key(&Topic::Queue(domain.clone())));
            let looks = self.behind || self.looked.elapsed() >= LOOK_EVERY;
            match self.tell(&rooms, &hearing, looks).await {
                Ok(()) => self.behind = false,
                Err(_) => {
                    self.behind = true;
                    sleep(STORE_PAUSE).await;
                }
            }
            if looks {
                self.looked = Instant::now();
            }
            let flood = hearing.jobs.too_much || hearing.nodes.too_much;
            self.pace = if flood { FLOOD_PACE } else { PACE };
            self.told = Instant::now();
        }
    }

    /// Waits for a hint, a newcomer or the time to look, and gathers what else is told until listeners may hear again.
    async fn hear(&mut self) -> Option<Hearing> {
        let mut hearing = Hearing::default();
        let soonest = self.told + self.pace;
        let mut end = soonest.max(self.looked + LOOK_EVERY);
        let mut waits = !self.behind;
        if self.behind {
            end = Instant::now();
        }
        loop {
            let now = self.shared.surroundings.now();
            let is_open = tokio::select! {
                biased;
                () = sleep_until(end) => return Some(hearing),
                news = self.jobs.next() => hearing.jobs.take(&news, now),
                news = self.nodes.next() => hearing.nodes.take(&news, now),
                () = self.shared.arrived.notified() => true,
            };
            if !is_open {
                return None;
            }
            if waits {
                waits = false;
                end = soonest.max(Instant::now() + COMPANY);
            }
        }
    }

    async fn tell(
        &mut self,
        rooms: &BTreeMap<Topic, Arc<Room>>,
        hearing: &Hearing,
        looks: bool,
    ) -> Result<(), StoreError> {
        if let Some(room) = rooms.get(&Topic::Nodes) {
            self.tell_of_nodes(room, &hearing.nodes, looks).await?;
        } else {
            self.states = None;
        }
        let queues = rooms.iter().filter_map(|(topic, room)| match topic {
            Topic::Queue(domain) => Some((domain, room)),
            Topic::Nodes => None,
        });
        let queues: Vec<_> = queues.collect();
        if queues.is_empty() {
            return Ok(());
        }
        let changed = self.changed_jobs(&hearing.jobs).await?;
        for (domain, room) in queues {
            self.tell_of_jobs(domain, room, &changed, looks).await?;
        }
        Ok(())
    }

    /// The jobs that were told of, as they are now.
    async fn changed_jobs(&self, heard: &Heard) -> Result<Changed, StoreError> {
        if heard.too_much || self.behind {
            return Ok(Changed { jobs: Vec::new(), unknown: true });
        }
        if heard.ids.is_empty() {
            return Ok(Changed::default());
        }
        let ids: Vec<String> = heard.ids.keys().cloned().collect();
        let found = answered("read jobs", self.shared.jobs.get_all(ids)).await?;
        let jobs: Vec<Job> = found.into_iter().map(|job| job.document).collect();
        for job in &jobs {
            if let Some(at) = heard.ids.get(&job.job_id.to_string()) {
                self.measure(job.metadata.updated_at, *at);
            }
        }
        // Nobody knows any more whose a job was that is gone.
        let unknown = jobs.len() < heard.ids.len();
        Ok(Changed { jobs, unknown })
    }

    async fn tell_of_jobs(
        &mut self,
        domain: &Domain,
        room: &Room,
        changed: &Changed,
        looks: bool,
    ) -> Result<(), StoreError> {
        let mine = changed.jobs.iter().filter(|job| job.domain == *domain);
        let mut jobs: BTreeMap<_, _> =
            mine.filter_map(|job| Some((job.job_id.to_string(), said("job", job)?))).collect();
        let is_large = jobs.values().map(|said| said.json.len()).sum::<usize>() > MAX_BYTES;
        if is_large {
            jobs.clear();
        }
        let is_told = changed.unknown || is_large || !jobs.is_empty();
        if !is_told && !looks && room.knows_counts() {
            return Ok(());
        }
        let counts = answered("count jobs", self.shared.jobs.counts(domain)).await?;
        let differs = self.counts.get(domain) != Some(&counts);
        // Changes that nobody told of: hints were lost.
        let lost = looks && !is_told && differs && self.counts.contains_key(domain);
        let new = (differs || !room.knows_counts()).then(|| said("counts", &counts)).flatten();
        self.counts.insert(domain.clone(), counts);
        // What others did where the numbers are as before is nothing to read for.
        let unknown = changed.unknown && differs;
        room.tell(Moment::of(jobs, new, unknown || is_large || lost));
        Ok(())
    }

    /// The nodes are few: all are read, and those told that changed.
    async fn tell_of_nodes(&mut self, room: &Room, heard: &Heard, looks: bool) -> Result<(), StoreError> {
        if !heard.is_something() && !looks && self.states.is_some() {
            return Ok(());
        }
        let nodes = answered("read the nodes", self.shared.nodes.all()).await?;
        let now: BTreeMap<NodeId, NodeState> =
            nodes.into_iter().map(|node| (node.document.id, node.document)).collect();
        for (id, state) in &now {
            if let Some(at) = heard.ids.get(&id.to_string()) {
                self.measure(state.metadata.updated_at, *at);
            }
        }
        let before = self.states.take().unwrap_or_default();
        let changed = now.iter().filter(|(id, state)| before.get(id) != Some(state));
        let said = changed.filter_map(|(id, state)| Some((id.to_string(), said("node", state)?))).collect();
        let gone = before.keys().any(|id| !now.contains_key(id));
        room.tell(Moment::of(said, None, gone));
        self.states = Some(now);
        Ok(())
    }

    /// A message is as old as the change that it tells of.
    fn measure(&self, changed: UnixMillis, heard: UnixMillis) {
        self.shared.surroundings.meter().observer_received(heard.since(changed));
    }
}

/// What became of jobs.
#[derive(Default)]
struct Changed {
    jobs: Vec<Job>,
    /// Whether there is more, of which nobody knows whose it is.
    unknown: bool,
}

fn said(kind: &'static str, document: &impl Serialize) -> Option<Said> {
    Some(Said { kind, json: serde_json::to_string(document).ok()?.into() })
}
