//! The handlers that are built in.

mod noop;
mod wait;

pub use noop::Noop;
pub use wait::Wait;
