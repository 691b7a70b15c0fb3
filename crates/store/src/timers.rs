//! Timers (seed 000, `timers-{domain}`), in three pairs of hands.
//!
//! The recorder writes them, the web service reads those of the domain its user is signed in to, the scheduler reads
//! those of every domain. Each has a type of its own with no verbs but these, and [`crate::access`] alone makes them.
//! What is next for a timer stands in [`crate::progress`], so that its version moves only when its user changes it.

use std::collections::BTreeMap;

use rota_model::domain::Domain;
use rota_model::ids::TimerId;
/// Names a timer across domains. It is called otherwise here, since every document of the seam has a key.
pub use rota_model::messaging_key::Key as TimerKey;
use rota_model::time::UnixMillis;
use rota_model::timer::{Timer, TimerStatus};
use serde_json::json;

use crate::StoreError;
use crate::collection::{Collection, TIMERS};
use crate::cursor::Cursor;
use crate::hints::Changes;
use crate::query::{Filter, Order, Query};
use crate::repository::{Created, Kept, Repository, Saved, Versioned};
use crate::seam::Key;

impl Kept for Timer {
    const COLLECTION: &'static Collection = &TIMERS;
}

const BY_SECTION: Order = Order { fields: &["section"], descending: false };

fn key(timer: &TimerKey) -> Key {
    Key::in_domain(&TIMERS, &timer.domain, timer.uuid)
}

impl Versioned<Timer> {
    /// Which timer it is: the document itself does not say.
    pub fn timer_key(&self) -> Result<TimerKey, StoreError> {
        let uuid = self.key.id.parse().ok();
        let named = self.key.domain.clone().zip(uuid).map(|(domain, uuid)| TimerKey { domain, uuid });
        named
            .ok_or_else(|| StoreError::damaged(format!("read {}", self.key), "its id is not that of a timer"))
    }
}

/// The recorder's side: it writes and does not read. The version that a write needs comes from whoever read.
#[derive(Clone)]
pub struct TimerWriter {
    timers: Repository<Timer>,
}

impl TimerWriter {
    pub(crate) fn new(timers: Repository<Timer>) -> Self {
        Self { timers }
    }

    /// Stores a new timer. The id of one that was deleted a moment ago is still taken.
    pub async fn create(&self, timer: &TimerKey, document: Timer) -> Result<Created<Timer>, StoreError> {
        self.timers.create(key(timer), document).await
    }

    /// Writes a change of a timer, if nobody wrote since it was read.
    pub async fn save(&self, before: &Versioned<Timer>, after: &Timer) -> Result<Saved, StoreError> {
        self.timers.save(before, after).await
    }

    /// Hides a timer, if nobody wrote since it was read.
    pub async fn delete(&self, timer: &Versioned<Timer>, at: UnixMillis) -> Result<Saved, StoreError> {
        self.timers.delete(timer, at).await
    }
}

/// What a list of timers is narrowed to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimerFilter {
    pub status: Option<TimerStatus>,
    /// The type of the jobs they make.
    pub kind: Option<String>,
    pub name: Option<String>,
    /// Words in the name.
    pub text: Option<String>,
}

/// The web service's side: the timers of one domain, to be looked at.
#[derive(Clone)]
pub struct TimersOfDomain {
    timers: Repository<Timer>,
    domain: Domain,
}

impl TimersOfDomain {
    pub(crate) fn new(timers: Repository<Timer>, domain: Domain) -> Self {
        Self { timers, domain }
    }

    pub async fn get(&self, id: TimerId) -> Result<Option<Versioned<Timer>>, StoreError> {
        self.timers.get(Key::in_domain(&TIMERS, &self.domain, id)).await
    }

    /// Timers by id. They are what somebody set up and no history: the order only has to stay as it is.
    pub async fn list(
        &self,
        filter: &TimerFilter,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<Versioned<Timer>>, Option<Cursor>), StoreError> {
        let mut query = self.query().limit(limit).after(after);
        query.filters.extend(filter.status.map(|status| Filter::Is("status", json!(status))));
        query.filters.extend(filter.kind.as_ref().map(|kind| Filter::Is("task.type", json!(kind))));
        query.filters.extend(filter.name.as_ref().map(|name| Filter::Is("name", json!(name))));
        query.filters.extend(filter.text.clone().map(Filter::Text));
        self.timers.find(query).await
    }

    /// How many timers have each status; those that no timer has are left out.
    pub async fn totals(&self) -> Result<BTreeMap<TimerStatus, u64>, StoreError> {
        self.timers.totals(self.query(), "status").await
    }

    fn query(&self) -> Query {
        Query::new(&TIMERS, Order::BY_ID).in_domain(&self.domain)
    }
}

/// The scheduler's side: the timers of every domain.
#[derive(Clone)]
pub struct TimerReader {
    timers: Repository<Timer>,
}

impl TimerReader {
    pub(crate) fn new(timers: Repository<Timer>) -> Self {
        Self { timers }
    }

    pub async fn get(&self, timer: &TimerKey) -> Result<Option<Versioned<Timer>>, StoreError> {
        self.timers.get(key(timer)).await
    }

    /// Those of the timers that are there and can be understood, in the order given. Before one that is left out is
    /// taken for deleted, [`TimerReader::get`] must have said so: it tells the missing from the damaged.
    pub async fn get_all(&self, timers: &[TimerKey]) -> Result<Vec<Versioned<Timer>>, StoreError> {
        self.timers.get_all(timers.iter().map(key).collect()).await
    }

    /// Timers that fire, of these sections and of every domain, section by section.
    pub async fn active_in(
        &self,
        sections: &[u32],
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<Versioned<Timer>>, Option<Cursor>), StoreError> {
        let query = Query::new(&TIMERS, BY_SECTION)
            .filter(Filter::Is("status", json!(TimerStatus::Active)))
            .filter(Filter::In("section", sections.iter().map(|section| json!(section)).collect()))
            .limit(limit)
            .after(after);
        self.timers.find(query).await
    }

    pub fn changes(&self) -> Changes {
        self.timers.store().changes(&TIMERS)
    }
}
