//! Hints that documents changed: from whoever writes to whoever waits. A hint may be late, doubled or lost.

use std::sync::Arc;

use tokio::sync::broadcast;

use crate::collection::Collection;
use crate::seam::{Key, Write};

/// How many commits a slow listener may fall behind before hints are lost to it.
const BACKLOG: usize = 1_024;

/// A document that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Hint {
    pub key: Key,
    /// Whether it was made just now: whoever looks for new work need not look at the rest.
    pub is_new: bool,
}

impl Hint {
    /// What listeners are told if a write is applied; nothing of what was hidden before, since nobody sees a difference.
    pub fn of(write: &Write) -> Option<Self> {
        let is_seen = !matches!(write, Write::Purge { .. });
        is_seen.then(|| Self { key: write.key().clone(), is_new: matches!(write, Write::Create { .. }) })
    }
}

/// The sending side, one per store: a message holds what one commit changed; nothing, where that is not known.
#[derive(Clone, Debug)]
pub struct HintSender(broadcast::Sender<Arc<[Hint]>>);

impl Default for HintSender {
    fn default() -> Self {
        Self(broadcast::channel(BACKLOG).0)
    }
}

impl HintSender {
    /// Nobody listening is fine.
    pub fn send(&self, hints: Vec<Hint>) {
        if !hints.is_empty() {
            let _ = self.0.send(hints.into());
        }
    }

    /// Something changed, and nobody knows what: whoever listens is told so.
    pub fn lose(&self) {
        let _ = self.0.send(Arc::new([]));
    }

    pub fn listen(&self, collection: &'static Collection) -> Changes {
        Changes { collection, commits: self.0.subscribe() }
    }
}

/// The listening side.
#[derive(Debug)]
pub struct Changes {
    collection: &'static Collection,
    commits: broadcast::Receiver<Arc<[Hint]>>,
}

/// What a listener learns.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// These documents changed.
    Of(Arc<[Hint]>),
    /// Hints were lost: look at everything that matters to you.
    Lost,
    /// The store is closed.
    Closed,
}

impl Changes {
    /// The next change in the collection.
    pub async fn next(&mut self) -> News {
        loop {
            match self.commits.recv().await {
                Ok(commit) if commit.is_empty() => return News::Lost,
                Ok(commit) => {
                    let mine = self.in_collection(commit);
                    if !mine.is_empty() {
                        return News::Of(mine);
                    }
                }
                Err(broadcast::error::RecvError::Lagged(_)) => return News::Lost,
                Err(broadcast::error::RecvError::Closed) => return News::Closed,
            }
        }
    }

    /// A change that was told already; none if there is nothing new.
    pub fn told(&mut self) -> Option<News> {
        loop {
            match self.commits.try_recv() {
                Ok(commit) if commit.is_empty() => return Some(News::Lost),
                Ok(commit) => {
                    let mine = self.in_collection(commit);
                    if !mine.is_empty() {
                        return Some(News::Of(mine));
                    }
                }
                Err(broadcast::error::TryRecvError::Lagged(_)) => return Some(News::Lost),
                Err(broadcast::error::TryRecvError::Empty) => return None,
                Err(broadcast::error::TryRecvError::Closed) => return Some(News::Closed),
            }
        }
    }

    /// Most commits are about one collection: then nothing is copied.
    fn in_collection(&self, commit: Arc<[Hint]>) -> Arc<[Hint]> {
        let mine = |hint: &&Hint| hint.key.collection == self.collection;
        if commit.iter().all(|hint| mine(&hint)) {
            commit
        } else {
            commit.iter().filter(mine).cloned().collect()
        }
    }
}
