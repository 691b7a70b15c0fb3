//! What decides and runs: the queue, and the nodes that work on it.
//!
//! - [`node`]: one node of the fleet, put together from the parts below
//! - [`membership`], [`lease`]: its `state` document and heartbeat, and how long it may count on them
//! - [`watch`], [`watching`]: telling the dead from the living, and its place among these
//! - [`fleet`]: the nodes, for people who look at them and tell them what to do
//! - [`desk`]: where jobs are submitted, looked up, waited for and changed
//! - [`processor`]: claims due jobs, runs their handlers, settles what came of it
//! - [`handler`], [`handlers`], [`types`], [`schema`]: what a job type does and which payloads it takes
//! - [`registry`]: the types that domains define for themselves
//! - [`journal`], [`logbook`]: what nodes and handlers say, and how it is read and followed
//! - [`observer`]: follows nodes and queues for all who look at them
//! - [`meter`]: what nodes measure, and how it is stored
//! - [`traces`]: which work caused which, for whoever wants to know
//! - [`maintenance`], [`retention`]: what has to be done now and then, and what is kept no longer
//! - [`surroundings`]: time, chance and life, passed in, so that a run can be repeated
//! - [`flaws`]: how an engine can be wrong, for testing the tests
//!
//! Nothing here knows HTTP, a driver or the system's clock.

pub mod desk;
pub mod flaws;
pub mod fleet;
pub mod handler;
pub mod handlers;
pub mod journal;
pub mod lease;
pub mod logbook;
mod maintenance;
pub mod membership;
pub mod meter;
pub mod node;
mod numbers;
pub mod observer;
mod patience;
pub mod processor;
pub mod registry;
mod retention;
pub mod schema;
pub mod surroundings;
pub mod traces;
pub mod types;
mod waiters;
mod watch;
mod watching;
