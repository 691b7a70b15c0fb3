//! What decides and runs: the queue, and the nodes that work on it.
//!
//! - [`node`]: one node of the fleet, put together from the parts below
//! - [`membership`]: its `state` document and heartbeat, and the jobs of those that died
//! - [`desk`]: where jobs are submitted, looked up and waited for
//! - [`processor`]: claims due jobs, runs their handlers, settles what came of it
//! - [`handler`], [`handlers`], [`types`]: what a job type does and which payloads it takes
//! - [`surroundings`]: time and chance, passed in, so that a run can be repeated
//!
//! Nothing here knows HTTP, a driver or the system's clock.

pub mod desk;
pub mod flaws;
pub mod handler;
pub mod handlers;
pub mod membership;
pub mod node;
mod numbers;
pub mod processor;
pub mod surroundings;
pub mod types;
mod waiters;
