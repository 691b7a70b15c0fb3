//! Backups of device configurations (seed 001): when, of what, to where, and how it went for each element.
//!
//! - [`schedule`]: what a user wants, and when
//! - [`job`]: one run of a schedule, over many elements; its numbers are derived, never counted up
//! - [`element_execution`]: what became of one element in a run
//! - [`network_element`]: the inventory
//! - [`server`]: where files are kept, with its secrets sealed
//!
//! The names of the seed are kept to the letter, with its three ways of spelling. Every document carries `domain`,
//! which the seed does not have: without it a tenant would see another's devices.

pub mod element_execution;
pub mod job;
pub mod network_element;
pub mod schedule;
pub mod server;

/// The length of the name of a user in these documents, in characters.
pub const MAX_USER_CHARS: usize = 200;
/// The length of the name of a vendor, a model or a group, in characters.
pub const MAX_LABEL_CHARS: usize = 100;
