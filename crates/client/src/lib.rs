//! A typed client of Rota's HTTP interface, for the command line and for programs.
//!
//! - [`Client`]: where Rota is and who asks; one method per route
//! - [`jobs`], [`job_types`], [`logs`], [`metrics`], [`nodes`], [`domains`], [`users`], [`keys`], [`session`], [`timers`]: the routes, each with what it sends and gets
//! - [`page`]: lists that come in pages; [`change`]: documents of which a part is changed
//! - [`error`]: why a call gave no answer; a refusal of Rota is told apart from Rota being out of reach
//!
//! Documents are those of [`rota_model`]. Cloning a client is cheap: clones share their connections.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use rota_client::Client;
//! use rota_model::domain::Domain;
//! use rota_model::job::NewJob;
//! use serde_json::json;
//!
//! # async fn example() -> Result<(), rota_client::Error> {
//! let rota = Client::new("http://127.0.0.1:7682", "rota_…")?;
//! let domain = Domain::default();
//!
//! let new = NewJob::new("first job", "wait", json!({"millis": 200}));
//! let job = rota.submit_job(&domain, &new, Some("order-4711")).await?;
//! let job = rota.wait_for_job(&domain, job.job_id, Duration::from_secs(60)).await?;
//! println!("job {} is {}", job.job_number, job.status.as_str());
//! # Ok(())
//! # }
//! ```

mod address;
mod call;
mod change;
mod client;
pub mod domains;
pub mod error;
pub mod job_types;
pub mod jobs;
pub mod keys;
pub mod logs;
pub mod metrics;
pub mod nodes;
pub mod page;
pub mod session;
pub mod timers;
pub mod users;

#[cfg(test)]
mod responder;

pub use address::Address;
pub use client::Client;
pub use error::{Error, Problem};
pub use jobs::batch::Accepted;
pub use jobs::changes::Deleted;
pub use jobs::{JobFilter, Submitted};
pub use keys::CreatedKey;
pub use logs::LogFilter;
pub use logs::tail::Tail;
pub use metrics::MetricFilter;
pub use page::Page;
