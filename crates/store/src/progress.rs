//! How far each timer has come (seed 000, `progress`), and what is next for it.
//!
//! The recorder writes it, the scheduler reads it, and nobody does both with one value: the two types here share no
//! verb, and [`crate::access`] alone makes them. The scheduler fires only the `next_due` that stands here (rule 13), so
//! what it read must be what the recorder's next write replaces: versions travel from the one to the other.

use rota_model::progress::Progress;
use rota_model::time::UnixMillis;

use crate::StoreError;
use crate::collection::{Collection, PROGRESS};
use crate::cursor::Cursor;
use crate::hints::Changes;
use crate::query::{Filter, Order, Query};
use crate::repository::{Created, Kept, Repository, Saved, Versioned};
use crate::seam::Key;
use crate::timers::TimerKey;

impl Kept for Progress {
    const COLLECTION: &'static Collection = &PROGRESS;
}

const DUE_FIRST: Order = Order { fields: &["next_due"], descending: false };

fn key(timer: &TimerKey) -> Key {
    Key::new(&PROGRESS, timer)
}

impl Versioned<Progress> {
    /// Whose progress it is: the document itself does not say.
    pub fn timer_key(&self) -> Result<TimerKey, StoreError> {
        self.key.id.parse().map_err(|error| StoreError::damaged(format!("read {}", self.key), error))
    }
}

/// The recorder's side: it writes and does not read. The version that a write needs comes from whoever read.
#[derive(Clone)]
pub struct ProgressWriter {
    progress: Repository<Progress>,
}

impl ProgressWriter {
    pub(crate) fn new(progress: Repository<Progress>) -> Self {
        Self { progress }
    }

    pub async fn create(
        &self,
        timer: &TimerKey,
        progress: Progress,
    ) -> Result<Created<Progress>, StoreError> {
        self.progress.create(key(timer), progress).await
    }

    /// Moves a timer on, if nobody did since its progress was read.
    pub async fn save(&self, before: &Versioned<Progress>, after: &Progress) -> Result<Saved, StoreError> {
        self.progress.save(before, after).await
    }

    /// Forgets how far a timer had come, when the timer is gone.
    pub async fn delete(&self, progress: &Versioned<Progress>, at: UnixMillis) -> Result<Saved, StoreError> {
        self.progress.delete(progress, at).await
    }
}

/// The scheduler's side.
#[derive(Clone)]
pub struct ProgressReader {
    progress: Repository<Progress>,
}

impl ProgressReader {
    pub(crate) fn new(progress: Repository<Progress>) -> Self {
        Self { progress }
    }

    pub async fn get(&self, timer: &TimerKey) -> Result<Option<Versioned<Progress>>, StoreError> {
        self.progress.get(key(timer)).await
    }

    /// Those that are there and can be understood, in the order given.
    pub async fn get_all(&self, timers: &[TimerKey]) -> Result<Vec<Versioned<Progress>>, StoreError> {
        self.progress.get_all(timers.iter().map(key).collect()).await
    }

    /// What is due at an instant or before, the longest overdue first. Timers with nothing next are not among it.
    pub async fn due_before(
        &self,
        at: UnixMillis,
        limit: usize,
        after: Option<Cursor>,
    ) -> Result<(Vec<Versioned<Progress>>, Option<Cursor>), StoreError> {
        let query = Query::new(&PROGRESS, DUE_FIRST)
            .filter(Filter::AtMost("next_due", at.0))
            .limit(limit)
            .after(after);
        self.progress.find(query).await
    }

    pub fn changes(&self) -> Changes {
        self.progress.store().changes(&PROGRESS)
    }
}
