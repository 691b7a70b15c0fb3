//! What holds for the documents as they are written: their names, what survives, and that the seeds would accept them.

mod filled;
mod names;
mod seeds;
