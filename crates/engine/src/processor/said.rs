//! What a handler says while it runs one attempt: its progress, until somebody writes it down, and lines for the log.
//!
//! An attempt may say so much and no more, so that one that talks without end leaves room for the others. What it says beyond
//! that is counted, and both the end and the number are said in its log.

use std::sync::{Mutex as Lock, PoisonError};

use rota_model::Extra;
use rota_model::job::{Job, Progress};
use rota_model::log::Level;
use tokio::sync::Notify;

use super::run::shortened;
use crate::handler::Reports;
use crate::journal::{About, Journal};

/// How many lines an attempt may say.
const MAX_LINES: u64 = 10_000;
/// How many bytes they may have together.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// No more of one line counts: the rest of it is cut.
const MAX_COUNTED: usize = 64 * 1024;

pub(super) struct Said {
    progress: Lock<Option<Progress>>,
    pub(super) news: Notify,
    pub(super) about: About,
    journal: Journal,
    talk: Lock<Talk>,
}

/// How much was said.
#[derive(Default)]
struct Talk {
    lines: u64,
    bytes: usize,
    left_out: u64,
}

impl Talk {
    /// Whether a line of this length may still be said; says too whether it is the first that may not.
    fn counts(&mut self, bytes: usize) -> (bool, bool) {
        let fits = self.left_out == 0 && self.lines < MAX_LINES && self.bytes + bytes <= MAX_BYTES;
        if fits {
            self.lines += 1;
            self.bytes += bytes;
        } else {
            self.left_out += 1;
        }
        (fits, self.left_out == 1)
    }
}

impl Reports for Said {
    fn progress(&self, percent: f64, message: Option<String>) {
        let progress = Progress { percent, message: message.map(shortened), extra: Extra::new() };
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
        self.news.notify_one();
    }

    fn log(&self, level: Level, text: String) {
        if !self.journal.is_on() {
            return self.trace(level, &text);
        }
        // Whoever reads the process's own log may be slow, and no work waits for that.
        tracing::debug!(job = %self.about.job, %level, "{text}");
        if !self.journal.hears(level) {
            return;
        }
        let (fits, is_first) =
            self.talk.lock().unwrap_or_else(PoisonError::into_inner).counts(text.len().min(MAX_COUNTED));
        if fits {
            self.journal.quote(&self.about, level, &text);
        } else if is_first {
            let title = "this attempt has said too much: what it says from here on is not kept";
            self.journal.tell_of(&self.about, Level::Warn, title, None);
        }
    }
}

impl Said {
    pub(super) fn new(job: &Job, journal: Journal) -> Self {
        let (progress, talk) = (Lock::default(), Lock::default());
        Self { progress, news: Notify::new(), about: About::job(job), journal, talk }
    }

    pub(super) fn take(&self) -> Option<Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// It could not be written: it is said again, unless something newer was.
    pub(super) fn put_back(&self, progress: Progress) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(progress);
        self.news.notify_one();
    }

    /// The attempt is over.
    pub(super) fn close(&self) {
        let left_out = self.talk.lock().unwrap_or_else(PoisonError::into_inner).left_out;
        if left_out > 0 {
            let title = format!("{left_out} lines of this attempt were not kept");
            self.journal.tell_of(&self.about, Level::Warn, &title, None);
        }
    }

    fn trace(&self, level: Level, text: &str) {
        let job = self.about.job;
        match level {
            Level::Error => tracing::error!(%job, "{text}"),
            Level::Warn => tracing::warn!(%job, "{text}"),
            Level::Info => tracing::info!(%job, "{text}"),
            Level::Debug => tracing::debug!(%job, "{text}"),
        }
    }
}
