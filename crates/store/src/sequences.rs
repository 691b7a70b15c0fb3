//! The sequences that Rota takes numbers from. Whoever moves a store moves each of these; those that a backend keeps for
//! itself, such as that of its versions, are not among them.

/// The numbers of jobs.
pub const JOBS: &str = "jobs";

/// Every sequence there is.
pub const ALL: [&str; 1] = [JOBS];
