//! The documents of Rota: what each collection holds, under the names that the requirement gave them, and how it may
//! change. Nothing here reads a clock, rolls a die or touches a file: whatever is decided here is decided by the
//! arguments.
//!
//! - [`ids`], [`time`], [`keep`], [`check`], [`transition`], [`metadata`], [`backoff`]: the parts that documents share
//! - [`json_text`], [`secret`]: what comes in, and what must not go out
//! - [`domain`], [`user`]: tenants, people and programs
//! - [`job`], [`node`]: the queue and the fleet of seeds 003 and 004
//! - [`job_type`], [`log`], [`metric`], [`trace`]: what jobs are expected to be, and what was seen of them
//! - [`limit`], [`unique_key`]: what keeps jobs apart
//! - [`timer`], [`execution`], [`progress`], [`messaging_key`]: the timers of seed 000 and their ledger
//! - [`placement`]: the services, nodes and assignments of seed 002
//! - [`backup`]: the backups of seed 001
//!
//! Names on the wire are the seeds', to the letter. Each document keeps fields it does not know in `extra`, so that a
//! newer writer's fields survive an older reader's change.

pub mod backoff;
pub mod backup;
pub mod check;
mod digest;
pub mod domain;
pub mod execution;
pub mod ids;
pub mod job;
pub mod job_type;
pub mod json_text;
pub mod keep;
pub mod limit;
pub mod log;
pub mod messaging_key;
pub mod metadata;
pub mod metric;
pub mod node;
pub mod object_only;
pub mod placement;
pub mod progress;
pub mod secret;
pub mod settings;
pub mod time;
pub mod timer;
pub mod trace;
pub mod transition;
pub mod unique_key;
pub mod user;
mod words;

/// Fields of a document that this version does not know: kept as they came.
pub type Extra = serde_json::Map<String, serde_json::Value>;
