//! Where documents are kept, and what is promised about it.
//!
//! # The seam
//!
//! A store is small: a few verbs, no transactions. That is all that a cluster of search nodes can promise, and it is
//! enough, because every caller is written for the following.
//!
//! - **Each document on its own.** A batch is many writes and not one: any of them may be applied and its neighbour
//!   not. A create happens if the id is free; a replace, a change of fields or a delete happens if the version is
//!   still the one that was read. Whoever comes second is told so and decides again from what is there now.
//! - **On return it is durable.** An applied write survives the loss of power.
//! - **An answer may be lost.** [`StoreError::Unknown`] means that a write may have happened, or may yet. Ids are
//!   derived or chosen before the write, so that a create repeated is the same create.
//! - **A read decides nothing.** It shows the newest version as far as the store knows; the compare-and-set of the
//!   write that follows decides.
//! - **A find may lag** behind what was written, by a bound that the store states in [`Promises`].
//! - **A claim is exclusive.** No two callers get the same document, and the caller's token finds again what was
//!   claimed when the answer was lost.
//! - **Hints are hints.** What [`Store::changes`] says may be late, doubled or lost. Speed depends on it, correctness
//!   never.
//!
//! # The rooms
//!
//! - [`seam`]: the verbs; [`query`]: what can be asked; [`error`]: what can go wrong
//! - [`collection`]: what is declared about each collection, once, for every backend
//! - [`memory`]: the store that is obviously right, and the model for the others
//! - [`jobs`], [`nodes`], [`users`], [`domains`], [`settings`]: what the rest of Rota says instead of queries, built
//!   on [`repository`]

pub mod collection;
pub mod cursor;
pub mod domains;
pub mod error;
pub mod hints;
pub mod jobs;
pub mod memory;
pub mod nodes;
pub mod query;
pub mod repository;
pub mod seam;
pub mod settings;
pub mod users;

pub use error::StoreError;
pub use repository::Versioned;
pub use seam::{Promises, Store};
