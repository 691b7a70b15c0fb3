//! The seeds by which each broken engine is found, and the check that finds it first. `cargo xtask simulate --find-flaws`
//! prints the table anew: whenever the world or the engine changes, the same seed may tell another story.

use rota_engine::flaws::Flaw;

pub const FOUND: [(Flaw, u64, &str); 1] = [(Flaw::LostClaimForgotten, 2, "no_claim_is_orphaned")];
