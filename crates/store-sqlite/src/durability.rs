//! When what was acknowledged is on disk: before that, or a moment later.
//!
//! A commit that does not wait for the disk stands in the log of writes, in the memory of the operating system: a crash of
//! the process takes nothing from it, a loss of power may. A thread syncs the log once for all commits of a moment. What
//! is lost is always the end of the log: nothing survives of which something earlier was lost.
//!
//! ```text
//!  COMMIT ──▶ committed ──▶ answer
//!                 └──────▶ half the span later: sync
//! ```
//!
//! Some must not be taken back, and wait: numbers that were given out, and what the text index learns from. And where the
//! disk is late or failed, commits wait for it as they would otherwise, so that what may be lost does not grow.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rota_store::StoreError;

use crate::stopwatch;
use crate::text::companion;

/// When an acknowledged write is on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When it is acknowledged.
    #[default]
    OnDisk,
    /// At the latest this long after. What was acknowledged in the last span may be lost with the machine's power, never
    /// by a crash of the process.
    Within(Duration),
}

/// The log of writes, as far as it is known to be on disk.
pub(crate) struct Log {
    span: Duration,
    sync: Box<dyn Fn() -> io::Result<()> + Send + Sync>,
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    commits: u64,
    synced: u64,
    /// When the first commit that is not on disk happened, or a little before.
    unsynced_since: Option<Instant>,
    /// Whether the disk refused the last time.
    failed: bool,
    stop: bool,
}

impl Log {
    /// The log beside a file that SQLite has open. It carries no locks, so that opening it twice loses none.
    pub(crate) fn open(documents: &Path, span: Duration) -> Result<Arc<Self>, StoreError> {
        let opened = OpenOptions::new().read(true).write(true).open(companion(documents, "-wal"));
        let file = opened.map_err(|error| StoreError::unavailable("open the log of writes", error))?;
        Ok(Self::new(span, move || file.sync_data()))
    }

    fn new(span: Duration, sync: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { span, sync: Box::new(sync), progress: Mutex::default(), changed: Condvar::new() })
    }

    /// Says that a commit happened, and waits for the disk if it must.
    pub(crate) fn committed(&self, must_stay: bool) -> io::Result<()> {
        let mut progress = self.progress();
        // Otherwise the thread knows already.
        let is_first = progress.commits == progress.synced;
        progress.commits += 1;
        let since = *progress.unsynced_since.get_or_insert_with(stopwatch);
        let waits = must_stay || progress.failed || since.elapsed() >= self.span;
        drop(progress);
        if waits {
            return self.sync();
        }
        if is_first {
            self.changed.notify_one();
        }
        Ok(())
    }

    /// On return every commit that happened before is on disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let (commits, began) = (self.progress().commits, stopwatch());
        let done = (self.sync)();
        let mut progress = self.progress();
        progress.failed = done.is_err();
        if done.is_ok() && commits > progress.synced {
            progress.synced = commits;
            progress.unsynced_since = (progress.commits > commits).then_some(began);
        }
        done
    }

    /// How many commits are not known to be on disk.
    pub(crate) fn unsynced(&self) -> u64 {
        let progress = self.progress();
        progress.commits - progress.synced
    }

    /// Half the span after a commit, which leaves the other half to the disk; at once when it is told to stop.
    fn keep_synced(&self) {
        loop {
            let progress = self.progress();
            let idle = |progress: &mut Progress| progress.commits == progress.synced && !progress.stop;
            let progress = self.changed.wait_while(progress, idle).unwrap_or_else(PoisonError::into_inner);
            let waited = self.changed.wait_timeout_while(progress, self.span / 2, |progress| !progress.stop);
            let (progress, _) = waited.unwrap_or_else(PoisonError::into_inner);
            let (is_behind, stop) = (progress.commits > progress.synced, progress.stop);
            drop(progress);
            if is_behind && let Err(error) = self.sync() {
                tracing::error!(%error, "the log of writes cannot be synced; writes wait for the disk until it can");
            }
            if stop {
                return;
            }
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that syncs. When this is dropped, everything is on disk.
pub(crate) struct Syncer {
    log: Arc<Log>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    pub(crate) fn start(log: Arc<Log>) -> Result<Self, StoreError> {
        let kept = Arc::clone(&log);
        let thread =
            std::thread::Builder::new().name("store-syncer".to_owned()).spawn(move || kept.keep_synced());
        let thread = thread.map_err(|error| StoreError::unavailable("start the syncer", error))?;
        Ok(Self { log, thread: Some(thread) })
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.log.progress().stop = true;
        self.log.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{self, Receiver};

    use super::*;

    const NEVER: Duration = Duration::from_secs(60 * 60);

    /// A log whose disk says when it was asked.
    fn log(span: Duration) -> (Arc<Log>, Receiver<()>) {
        let (sender, syncs) = mpsc::channel();
        (Log::new(span, move || sender.send(()).map_err(io::Error::other)), syncs)
    }

    #[test]
    fn a_commit_is_synced_without_another_coming() {
        let (log, syncs) = log(Duration::from_millis(10));
        let _syncer = Syncer::start(Arc::clone(&log)).unwrap();
        for _ in 0..3 {
            log.committed(false).unwrap();
            syncs.recv().unwrap();
        }
    }

    #[test]
    fn what_is_not_on_disk_is_synced_at_the_end_and_nothing_else() {
        for commits in [0, 3] {
            let (log, syncs) = log(NEVER);
            let syncer = Syncer::start(Arc::clone(&log)).unwrap();
            (0..commits).for_each(|_| log.committed(false).unwrap());
            assert_eq!((log.unsynced(), syncs.try_iter().count()), (commits, 0));
            drop(syncer);
            assert_eq!((log.unsynced(), syncs.try_iter().count()), (0, usize::from(commits > 0)));
        }
    }

    #[test]
    fn what_must_stay_waits_for_the_disk() {
        let (log, syncs) = log(NEVER);
        log.committed(false).unwrap();
        log.committed(true).unwrap();
        assert_eq!((log.unsynced(), syncs.try_iter().count()), (0, 1));
    }

    #[test]
    fn who_comes_when_the_span_is_over_waits_for_the_disk() {
        let (log, syncs) = log(Duration::ZERO);
        log.committed(false).unwrap();
        assert_eq!((log.unsynced(), syncs.try_iter().count()), (0, 1));
    }

    #[test]
    fn while_the_disk_refuses_commits_are_told() {
        let full = Arc::new(AtomicBool::new(true));
        let is_full = Arc::clone(&full);
        let refuse =
            move || if is_full.load(Ordering::SeqCst) { Err(io::Error::other("full")) } else { Ok(()) };
        let log = Log::new(NEVER, refuse);
        log.committed(false).unwrap();
        log.sync().unwrap_err();
        log.committed(false).unwrap_err();
        assert_eq!(log.unsynced(), 2);
        full.store(false, Ordering::SeqCst);
        log.committed(false).unwrap();
        assert_eq!(log.unsynced(), 0);
        log.committed(false).unwrap();
        assert_eq!(log.unsynced(), 1, "it is as before");
    }
}
