//! Who may touch what (seed 000), as values that one must have been given.
//!
//! | collection | web service | recorder | scheduler |
//! |---|---|---|---|
//! | `users` | reads, writes | | |
//! | `timers-{domain}` | reads one domain's | writes | reads all |
//! | `executions-{domain}` | reads one domain's | writes | reads single records, to finish them |
//! | `progress` | | writes | reads |
//!
//! Whoever wires the program makes these three and hands each to the part that needs it. What they give out has no
//! verbs but its own, and comes from nowhere else, so code that must not write cannot. To replace a document the
//! recorder needs the version that the scheduler or the web service read, and gets it from them.
//!
//! # What cannot be said
//!
//! The reader of progress reads:
//!
//! ```
//! use rota_store::{StoreError, timers::TimerKey, progress::ProgressReader};
//!
//! async fn look(progress: ProgressReader, timer: &TimerKey) -> Result<bool, StoreError> {
//!     Ok(progress.get(timer).await?.is_some())
//! }
//! ```
//!
//! Its writer does not:
//!
//! ```compile_fail,E0599
//! use rota_store::{StoreError, timers::TimerKey, progress::ProgressWriter};
//!
//! async fn look(progress: ProgressWriter, timer: &TimerKey) -> Result<bool, StoreError> {
//!     Ok(progress.get(timer).await?.is_some())
//! }
//! ```
//!
//! The writer writes:
//!
//! ```
//! use rota_model::progress::Progress;
//! use rota_store::{StoreError, repository::Created, timers::TimerKey, progress::ProgressWriter};
//!
//! async fn begin(progress: ProgressWriter, timer: &TimerKey) -> Result<Created<Progress>, StoreError> {
//!     progress.create(timer, Progress::default()).await
//! }
//! ```
//!
//! The reader does not:
//!
//! ```compile_fail,E0599
//! use rota_model::progress::Progress;
//! use rota_store::{StoreError, repository::Created, timers::TimerKey, progress::ProgressReader};
//!
//! async fn begin(progress: ProgressReader, timer: &TimerKey) -> Result<Created<Progress>, StoreError> {
//!     progress.create(timer, Progress::default()).await
//! }
//! ```
//!
//! Timers are changed by the recorder:
//!
//! ```
//! use rota_model::{time::UnixMillis, timer::Timer};
//! use rota_store::{StoreError, Versioned, repository::Saved, timers::TimerWriter};
//!
//! async fn hide(timers: TimerWriter, timer: &Versioned<Timer>) -> Result<Saved, StoreError> {
//!     timers.delete(timer, UnixMillis(0)).await
//! }
//! ```
//!
//! and only looked at by the web service:
//!
//! ```compile_fail,E0599
//! use rota_model::{time::UnixMillis, timer::Timer};
//! use rota_store::{StoreError, Versioned, repository::Saved, timers::TimersOfDomain};
//!
//! async fn hide(timers: TimersOfDomain, timer: &Versioned<Timer>) -> Result<Saved, StoreError> {
//!     timers.delete(timer, UnixMillis(0)).await
//! }
//! ```
//!
//! Users come from the web service:
//!
//! ```
//! use std::sync::Arc;
//! use rota_model::user::User;
//! use rota_store::{Store, access::WebService, repository::Repository, users::Users};
//!
//! fn users(store: Arc<dyn Store>) -> Users {
//!     WebService::new(store).users()
//! }
//! ```
//!
//! and nobody gets at them without it:
//!
//! ```compile_fail,E0624
//! use std::sync::Arc;
//! use rota_model::user::User;
//! use rota_store::{Store, access::WebService, repository::Repository, users::Users};
//!
//! fn users(store: Arc<dyn Store>) -> Repository<User> {
//!     Repository::new(store)
//! }
//! ```

use std::sync::Arc;

use rota_model::domain::Domain;

use crate::Store;
use crate::executions::{ExecutionReader, ExecutionWriter, ExecutionsOfDomain};
use crate::progress::{ProgressReader, ProgressWriter};
use crate::repository::{Kept, Repository};
use crate::timers::{TimerReader, TimerWriter, TimersOfDomain};
use crate::users::Users;

/// Serves people and programs from outside.
pub struct WebService {
    store: Arc<dyn Store>,
}

impl WebService {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    pub fn users(&self) -> Users {
        Users::new(over(&self.store))
    }

    /// The timers of the domain that the user is signed in to.
    pub fn timers(&self, domain: &Domain) -> TimersOfDomain {
        TimersOfDomain::new(over(&self.store), domain.clone())
    }

    /// The executions of the domain that the user is signed in to.
    pub fn executions(&self, domain: &Domain) -> ExecutionsOfDomain {
        ExecutionsOfDomain::new(over(&self.store), domain.clone())
    }
}

/// Writes down what users want of timers and what became of these. The seed calls it the elastic consumer.
pub struct Recorder {
    store: Arc<dyn Store>,
}

impl Recorder {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    pub fn timers(&self) -> TimerWriter {
        TimerWriter::new(over(&self.store))
    }

    pub fn executions(&self) -> ExecutionWriter {
        ExecutionWriter::new(over(&self.store))
    }

    pub fn progress(&self) -> ProgressWriter {
        ProgressWriter::new(over(&self.store))
    }
}

/// Decides what is due. The seed calls it runtimers.
pub struct Scheduler {
    store: Arc<dyn Store>,
}

impl Scheduler {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    pub fn timers(&self) -> TimerReader {
        TimerReader::new(over(&self.store))
    }

    /// Single records of the ledger. The seed does not foresee it; why it is needed stands at [`ExecutionReader`].
    pub fn executions(&self) -> ExecutionReader {
        ExecutionReader::new(over(&self.store))
    }

    pub fn progress(&self) -> ProgressReader {
        ProgressReader::new(over(&self.store))
    }
}

fn over<T: Kept>(store: &Arc<dyn Store>) -> Repository<T> {
    Repository::new(Arc::clone(store))
}
