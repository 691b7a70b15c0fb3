//! `http`: calls a URL, and tells what it answered.
//!
//! - [`settings`]: what the operator allows
//! - [`payload`]: what a job asks for, read into a [`payload::Call`]
//! - [`headers`]: which headers a job may give, and those that Rota sets
//! - [`signature`]: by which a receiver knows that Rota called
//! - [`addresses`]: what may be connected to
//! - [`resolver`]: from names to addresses, and nothing but those that may be
//! - [`exchange`]: one request and its answer, over a connection of its own
//! - [`redirects`]: from one exchange to the next
//! - [`answer`]: what an answer means for the job
//!
//! **The address that is checked is the one that is connected to.** A name is resolved once for each exchange, what may not
//! be reached is taken out, and the connection goes to one of the rest. Nothing resolves a name a second time, and no proxy of
//! the environment stands in between. A redirect is a new exchange, and everything is checked anew.
//!
//! **A call is bounded**: in time by its limit, which covers everything from the first look at the name to the last byte, and
//! in memory by how much of an answer is read.

mod addresses;
mod answer;
mod exchange;
mod headers;
mod payload;
mod redirects;
mod resolver;
mod settings;
mod signature;

use std::sync::Arc;

use async_trait::async_trait;
use rota_engine::handler::{Context, Handler, HandlerError};
use rota_engine::surroundings::Surroundings;
use rota_model::log::Level;
use serde_json::{Map, Value};
use tokio::time::Instant;

pub use addresses::{AllowedHost, NoAllowedHost};
pub use exchange::Trust;
pub use resolver::{Resolver, SystemResolver};
pub use settings::HttpSettings;
pub use signature::{Secret, WeakSecret};

use crate::http::answer::Verdict;
use crate::http::exchange::Exchanger;
use crate::http::payload::Call;
use crate::http::redirects::follow;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum CallError {
    /// The same would happen again.
    #[error("{0}")]
    Refused(String),
    /// It may go well another time.
    #[error("{0}")]
    Broken(String),
}

impl From<CallError> for HandlerError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(why) => HandlerError::Fatal(why),
            CallError::Broken(why) => HandlerError::Failed(why),
        }
    }
}

/// Runs jobs of the type `http`.
pub struct Http {
    exchanger: Exchanger,
    settings: HttpSettings,
    surroundings: Surroundings,
}

impl Http {
    pub fn new(settings: HttpSettings, surroundings: Surroundings) -> Self {
        Self::with(settings, surroundings, Arc::new(SystemResolver), Trust::System)
    }

    /// With another way to resolve names, and another idea of whom to trust.
    pub fn with(
        settings: HttpSettings,
        surroundings: Surroundings,
        resolver: Arc<dyn Resolver>,
        trust: Trust,
    ) -> Self {
        let exchanger = Exchanger::new(settings.permitted(), resolver, trust);
        Self { exchanger, settings, surroundings }
    }

    pub fn payload_schema() -> Value {
        payload::schema()
    }

    async fn call(&self, job: &Context, call: &Call) -> Result<Verdict, HandlerError> {
        let began = Instant::now();
        let answer = follow(&self.exchanger, &self.settings, job, call, || self.surroundings.now());
        let limit = call.limit;
        let answer = tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| {
            let why = format!("{call} did not answer within {} ms", limit.as_millis());
            Err(CallError::Broken(why))
        })?;
        let took = began.elapsed();
        job.log(Level::Info, format!("{call} answered {} after {} ms", answer.status, took.as_millis()));
        Ok(answer::judge(call, answer, took, self.surroundings.now()))
    }
}

#[async_trait]
impl Handler for Http {
    async fn run(&self, job: Context) -> Result<Map<String, Value>, HandlerError> {
        let call = Call::read(&job.payload).map_err(HandlerError::Fatal)?;
        tokio::select! {
            biased;
            () = job.cancelled.cancelled() => Err(HandlerError::Stopped),
            verdict = self.call(&job, &call) => verdict?,
        }
    }
}
