//! What is fixed for an installation when its store is made: one document, `settings` / `installation`.

use serde::{Deserialize, Serialize};

use crate::Extra;

/// The version of the documents that this program writes.
pub const SCHEMA: u32 = 1;
/// The number of sections of the queue of a new store.
pub const DEFAULT_SECTIONS: u32 = 64;
/// The id of the one document.
pub const SETTINGS_ID: &str = "installation";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// A job's section is its number modulo this; it never changes.
    pub sections: u32,
    pub schema: u32,
    /// The oldest version of a program that understands what is stored (rule 20): additive changes keep it.
    pub oldest_reader: u32,
    pub created: jiff::Timestamp,
    /// Whether the first administrator was made. It is made once, whoever is removed later.
    #[serde(default)]
    pub bootstrapped: bool,
    #[serde(flatten)]
    pub extra: Extra,
}

impl Settings {
    pub fn new(now: jiff::Timestamp) -> Self {
        Self {
            sections: DEFAULT_SECTIONS,
            schema: SCHEMA,
            oldest_reader: SCHEMA,
            created: now,
            bootstrapped: false,
            extra: Extra::new(),
        }
    }

    /// Whether this program may work on the store.
    pub fn is_readable(&self) -> bool {
        self.oldest_reader <= SCHEMA
    }
}
