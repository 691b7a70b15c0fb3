//! What a node and its handlers say, on its way to the `logs` documents.
//!
//! **Work never waits for it.** Whoever says something puts it into a buffer of bounded size and goes on. One task takes
//! batches from there and stores them, each under ids that were given when its lines were said: a batch whose answer was lost
//! is handed over again and doubles nothing. While the store is slow or away the buffer fills, and then lines are dropped and
//! counted; how many, and about which job, is said in their place as soon as there is room.
//!
//! ```text
//!  handlers ─┐
//!            ├─▶ buffer (bounded, drops and counts) ─▶ writer ─▶ logs documents
//!  the node ─┘
//! ```
//!
//! - [`buffer`]: the lines that wait, and their ids
//! - [`writer`]: the task that stores them
//!
//! A journal is off unless a node is given one ([`crate::surroundings::Surroundings::heard_by`]): then what the node says goes
//! to the process's own log alone.

mod buffer;
mod writer;

use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rota_model::domain::Domain;
use rota_model::ids::{JobId, NodeId};
use rota_model::job::Job;
use rota_model::log::{Level, Log};
use tokio::sync::Notify;

use crate::meter::Count;
use crate::patience::Complaint;
use crate::surroundings::Surroundings;

use buffer::{Buffer, Speaker};

/// Where lines are said. Clones are the same journal.
#[derive(Clone, Default)]
pub struct Journal(Option<Arc<Inner>>);

struct Inner {
    origin: NodeId,
    /// What matters less than this is not kept.
    least: Level,
    surroundings: Surroundings,
    buffer: Mutex<Buffer>,
    /// Something was said.
    news: Notify,
    /// A whole batch waits.
    batch: Notify,
}

/// Which job a line is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct About {
    pub(crate) domain: Domain,
    pub(crate) job: JobId,
}

impl About {
    pub(crate) fn job(job: &Job) -> Self {
        Self { domain: job.domain.clone(), job: job.job_id }
    }
}

impl Journal {
    /// What this node says from this level on.
    pub fn new(origin: NodeId, least: Level, surroundings: &Surroundings) -> Self {
        let surroundings = surroundings.clone().heard_by(Journal::default());
        let (buffer, news, batch) = (Mutex::default(), Notify::new(), Notify::new());
        Self(Some(Arc::new(Inner { origin, least, surroundings, buffer, news, batch })))
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a line of this level would be kept: who has to work for a line asks before.
    pub(crate) fn hears(&self, level: Level) -> bool {
        self.0.as_ref().is_some_and(|inner| level >= inner.least)
    }

    /// Something that happened to the node. The process's own log has it too.
    pub(crate) fn tell(&self, level: Level, title: &str) {
        trace(level, title);
        self.keep(None, level, Speaker::Node, |log| Log { title: title.to_owned(), ..log }.within_limits());
    }

    /// The same, with what is to be said about it.
    pub(crate) fn tell_with(&self, level: Level, title: &str, detail: impl Display) {
        let detail = detail.to_string();
        trace(level, &format!("{title}: {detail}"));
        self.keep(None, level, Speaker::Node, |log| with(log, title, detail));
    }

    /// Something that goes wrong again and again: said when it begins, and now and then.
    pub(crate) fn complain(&self, complaint: &mut Complaint, title: &str, error: impl Display) {
        match complaint.is_due() {
            None => {}
            Some(0) => self.tell_with(Level::Warn, title, error),
            Some(kept_back) => {
                self.tell_with(
                    Level::Warn,
                    title,
                    format!("{error} ({kept_back} times more since it was told)"),
                );
            }
        }
    }

    /// Something that happened to a job. Only its log has it: there may be many jobs.
    pub(crate) fn tell_of(&self, about: &About, level: Level, title: &str, detail: Option<String>) {
        self.keep(Some(about), level, Speaker::Node, |log| match detail {
            Some(detail) => with(log, title, detail),
            None => Log { title: title.to_owned(), ..log }.within_limits(),
        });
    }

    /// What a handler says about its job.
    pub(crate) fn quote(&self, about: &About, level: Level, text: &str) {
        self.keep(Some(about), level, Speaker::Handler, |log| log.saying(text));
    }

    fn keep(&self, about: Option<&About>, level: Level, speaker: Speaker, say: impl FnOnce(Log) -> Log) {
        let Some(inner) = self.0.as_ref().filter(|inner| level >= inner.least) else { return };
        let now = inner.surroundings.now();
        let mut log = say(Log::new(level, "", inner.origin, now));
        log.job_id = about.map(|about| about.job);
        log.domain = about.map(|about| about.domain.clone());
        let (is_kept, is_batch) = {
            let mut buffer = inner.buffer();
            let is_kept = buffer.push(log, speaker, inner.surroundings.randomness());
            (is_kept, buffer.has_batch())
        };
        if !is_kept {
            inner.surroundings.meter().count(Count::LogLinesDropped, 1);
        }
        inner.news.notify_one();
        if is_batch {
            inner.batch.notify_one();
        }
    }
}

impl Inner {
    fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn with(log: Log, title: &str, detail: String) -> Log {
    Log { title: title.to_owned(), message: Some(detail), ..log }.within_limits()
}

fn trace(level: Level, text: &str) {
    match level {
        Level::Error => tracing::error!("{text}"),
        Level::Warn => tracing::warn!("{text}"),
        Level::Info => tracing::info!("{text}"),
        Level::Debug => tracing::debug!("{text}"),
    }
}
