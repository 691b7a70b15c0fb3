//! The routes, one file per noun. Each is declared once, with its path, what it needs, what it takes and answers.

pub mod domains;
pub mod events;
pub mod job_types;
pub mod jobs;
pub mod keys;
pub mod logs;
pub mod metrics;
pub mod nodes;
pub mod observer;
pub mod openapi;
pub mod ping;
pub mod session;
pub mod timers;
pub mod users;

mod etag;
mod list;
