//! The seeds by which each broken engine is found, and the check that finds it first. `cargo xtask simulate --find-flaws`
//! prints the table anew: whenever the world or the engine changes, the same seed may tell another story.

use rota_engine::flaws::Flaw;

pub const FOUND: [(Flaw, u64, &str); 30] = [
    (Flaw::LostClaimForgotten, 0, "no_claim_is_orphaned"),
    (Flaw::DeadSearchedOnce, 0, "no_claim_is_orphaned"),
    (Flaw::LeaseByWallClock, 98, "handlers_stop_with_their_lease"),
    (Flaw::HandlersOutliveLease, 0, "handlers_stop_with_their_lease"),
    (Flaw::BeginsAfterLease, 1, "nothing_begins_without_a_lease"),
    (Flaw::CountsOwnSleep, 0, "the_dead_were_watched"),
    (Flaw::FailedReadsCount, 1, "the_dead_were_watched"),
    (Flaw::CondemnsBlindly, 13, "the_dead_were_watched"),
    (Flaw::RejoinsAsTheSame, 0, "the_condemned_write_no_more"),
    (Flaw::SettlesWithoutEpoch, 19, "every_bad_end_has_its_reason"),
    (Flaw::ConflictForgetsResult, 2, "no_result_is_forgotten"),
    (Flaw::LossCostsAttempt, 0, "only_failures_cost_attempts"),
    (Flaw::RequeueResetsEpoch, 0, "epochs_never_fall"),
    (Flaw::ClaimsEveryType, 0, "nodes_claim_only_their_types"),
    (Flaw::ClaimsWhilePaused, 2, "who_rests_claims_nothing"),
    (Flaw::BeginsWithoutSlot, 2, "slots_are_kept"),
    (Flaw::RepeatsUnderNewId, 1, "a_key_names_the_one_in_scope"),
    (Flaw::TakesKeyFromSlow, 1, "twins_are_kept_away"),
    (Flaw::RequeuesWithoutKey, 75, "a_key_names_the_one_in_scope"),
    (Flaw::ServesByName, 1, "due_jobs_do_not_wait"),
    (Flaw::ReservesBlindly, 81, "no_more_run_at_once_than_may"),
    (Flaw::SweepsEarly, 154, "no_more_run_at_once_than_may"),
    (Flaw::SweepsNever, 1, "due_jobs_do_not_wait"),
    (Flaw::FreesTwice, 36, "no_more_run_at_once_than_may"),
    (Flaw::SlotsOutliveLife, 81, "no_more_run_at_once_than_may"),
    (Flaw::RatePerNode, 26, "due_jobs_do_not_wait"),
    (Flaw::DeletePurges, 0, "what_is_deleted_stays_away"),
    (Flaw::DeletesRunning, 2, "nothing_running_is_deleted"),
    (Flaw::StopsWithoutRelease, 0, "who_stops_leaves_nothing"),
    (Flaw::AcknowledgesUnknown, 72, "what_is_acknowledged_exists"),
];
