//! What the file holds of documents that were written a moment ago. They are often written again soon: a job is claimed,
//! and ends. Only the writer writes, so it need not look up what it wrote itself.

use hashbrown::HashMap;
use rota_store::seam::Key;

use crate::line::Stored;

/// How many are kept at least; at most it is twice as many.
const KEPT: usize = 4_096;

#[derive(Default)]
pub(crate) struct Heads {
    young: HashMap<Key, Stored>,
    old: HashMap<Key, Stored>,
}

impl Heads {
    pub(crate) fn of(&self, key: &Key) -> Option<Stored> {
        self.young.get(key).or_else(|| self.old.get(key)).copied()
    }

    /// What the file holds from now on; nothing, if the document is gone or hidden.
    pub(crate) fn keep(&mut self, key: Key, stored: Option<Stored>) {
        let Some(stored) = stored else {
            self.young.remove(&key);
            self.old.remove(&key);
            return;
        };
        if self.young.len() >= KEPT {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, stored);
    }
}
