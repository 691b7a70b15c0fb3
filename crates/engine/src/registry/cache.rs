//! What submissions are checked against, compiled and kept for a while, so that the store is not asked each time.
//!
//! What this process changes it forgets at once. Of what others change it hears by hints, which may be lost; so whatever
//! is kept is read again after [`RENEW`]. One submission does that, and the others go on with what is there meanwhile, but
//! never with anything older than [`OLDEST`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rota_model::job_type::JobType;
use rota_store::StoreError;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::schema::Schema;

const RENEW: Duration = Duration::from_secs(3);
const OLDEST: Duration = Duration::from_secs(10);
/// How long nobody else renews what one is renewing.
const RENEWING: Duration = Duration::from_secs(1);
/// How much is kept, in bytes and in types; beyond that everything is forgotten and what is used is read again.
const MAX_ROOM: usize = 128 * 1024 * 1024;
const MAX_KEPT: usize = 10_000;
/// So many types are told of one by one.
const MAX_TOLD: usize = 1_000;

/// What a domain says of a type, ready for use.
pub(crate) struct Known {
    pub(crate) job_type: JobType,
    pub(crate) schema: Option<Schema>,
}

impl Known {
    /// What is stored was checked before; if it cannot be compiled now, another version of Rota wrote it.
    pub(super) fn compile(job_type: JobType) -> Result<Self, StoreError> {
        let compiled = job_type.schema.as_ref().map(Schema::compile).transpose();
        let schema = compiled
            .map_err(|invalid| StoreError::damaged(format!("use the job type {}", job_type.id()), invalid))?;
        Ok(Self { job_type, schema })
    }

    fn room(&self) -> usize {
        self.schema.as_ref().map_or(0, Schema::room)
    }
}

struct Entry {
    /// None where the domain says nothing.
    known: Option<Arc<Known>>,
    read: Instant,
    renew: Instant,
}

#[derive(Default)]
struct Kept {
    by_id: BTreeMap<String, Entry>,
    room: usize,
    /// Moves on whenever something is forgotten: what was read before that is not kept.
    generation: u64,
    /// What was forgotten since somebody last asked.
    told: Told,
}

/// Types that somebody wrote to, by their ids.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Some(BTreeSet<String>),
    /// Nobody knows which.
    All,
}

impl Default for Told {
    fn default() -> Self {
        Told::Some(BTreeSet::new())
    }
}

impl Told {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Told::Some(ids) if ids.is_empty())
    }

    fn add(&mut self, id: &str) {
        match self {
            Told::Some(ids) if ids.len() < MAX_TOLD => {
                ids.insert(id.to_owned());
            }
            Told::Some(_) | Told::All => *self = Told::All,
        }
    }
}

#[derive(Default)]
pub(super) struct Cache {
    kept: Mutex<Kept>,
    /// Something was told.
    news: Notify,
}

impl Cache {
    /// What is kept of a type; none if it has to be read.
    pub(super) fn look(&self, id: &str) -> Option<Option<Arc<Known>>> {
        let now = Instant::now();
        let mut kept = self.lock();
        let entry = kept.by_id.get_mut(id)?;
        if entry.renew <= now {
            entry.renew = now + RENEWING;
            return None;
        }
        (now.duration_since(entry.read) < OLDEST).then(|| entry.known.clone())
    }

    pub(super) fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// Keeps what was read, unless something was forgotten since.
    pub(super) fn keep(&self, id: String, known: Option<Arc<Known>>, generation: u64) {
        let mut kept = self.lock();
        if kept.generation != generation {
            return;
        }
        let room = known.as_ref().map_or(0, |known| known.room());
        kept.take(&id);
        if kept.by_id.len() >= MAX_KEPT || kept.room + room > MAX_ROOM {
            kept.by_id.clear();
            kept.room = 0;
        }
        kept.room += room;
        let read = Instant::now();
        kept.by_id.insert(id, Entry { known, read, renew: read + RENEW });
    }

    pub(super) fn forget(&self, id: &str) {
        let mut kept = self.lock();
        kept.take(id);
        kept.generation += 1;
        kept.told.add(id);
        self.news.notify_one();
    }

    pub(super) fn forget_all(&self) {
        let mut kept = self.lock();
        let generation = kept.generation + 1;
        *kept = Kept { generation, told: Told::All, ..Kept::default() };
        self.news.notify_one();
    }

    /// What somebody wrote to since this was last asked.
    pub(super) fn take_told(&self) -> Told {
        std::mem::take(&mut self.lock().told)
    }

    pub(super) fn was_told(&self) -> bool {
        !self.lock().told.is_empty()
    }

    /// Until somebody writes to a type.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn take(&mut self, id: &str) {
        let gone = self.by_id.remove(id).and_then(|entry| entry.known);
        self.room = self.room.saturating_sub(gone.map_or(0, |known| known.room()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tokio::time::advance;

    fn known() -> Option<Arc<Known>> {
        let job_type = JobType { schema: Some(json!({"pattern": "a"})), ..JobType::default() };
        Some(Arc::new(Known::compile(job_type).ok()?))
    }

    #[tokio::test(start_paused = true)]
    async fn one_renews_while_the_others_go_on() {
        let cache = Cache::default();
        assert!(cache.look("a:b").is_none());
        cache.keep("a:b".to_owned(), known(), 0);
        assert!(cache.look("a:b").is_some());
        advance(RENEW).await;
        assert!(cache.look("a:b").is_none(), "the first reads it again");
        assert!(cache.look("a:b").is_some(), "the others do not wait for it");
        for _ in 0..10 {
            advance(RENEWING).await;
            assert!(cache.look("a:b").is_none());
        }
        assert!(cache.look("a:b").is_none(), "nobody goes on with what is as old as this");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_read_before_a_change_is_not_kept() {
        let cache = Cache::default();
        let generation = cache.generation();
        cache.forget("a:b");
        cache.keep("a:b".to_owned(), known(), generation);
        assert!(cache.look("a:b").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_written_to_is_told_once() {
        let cache = Cache::default();
        cache.forget("a:b");
        cache.forget("a:b");
        assert!(cache.was_told());
        assert_eq!(cache.take_told(), Told::Some(BTreeSet::from(["a:b".to_owned()])));
        assert!(!cache.was_told());
        (0..=MAX_TOLD).for_each(|nth| cache.forget(&format!("a:{nth}")));
        assert_eq!(cache.take_told(), Told::All);
        cache.forget_all();
        assert_eq!(cache.take_told(), Told::All);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_kept_is_bounded() {
        let (cache, known) = (Cache::default(), known());
        for nth in 0..3_000 {
            cache.keep(format!("a:{nth}"), known.clone(), 0);
            assert!(cache.lock().room <= MAX_ROOM);
        }
        for nth in 0..2 * MAX_KEPT {
            cache.keep(format!("b:{nth}"), None, 0);
        }
        assert!(cache.lock().by_id.len() <= MAX_KEPT);
        cache.forget_all();
        let kept = cache.lock();
        assert_eq!((kept.by_id.len(), kept.room, kept.generation), (0, 0, 1));
    }
}
