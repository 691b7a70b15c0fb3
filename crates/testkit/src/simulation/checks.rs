//! What was promised, each promise a function that looks through a run and says where it was broken.
//!
//! - [`endings`]: whatever was acknowledged comes to its end, and nothing is left behind
//! - [`epochs`]: epochs grow, each belongs to one, and results to theirs
//! - [`attempts`]: what costs an attempt, what ends a job, and that no result is forgotten
//! - [`leases`]: handlers act only while their node may
//! - [`deaths`]: who is condemned and when, what becomes of it, how soon others take over
//! - [`keys`]: of twins only one is in scope
//! - [`answers`]: what people were told is so
//! - [`turns`]: that nobody is passed over
//! - [`limits`]: that no more runs or starts than may, and no less than could
//! - [`clearing`]: that what is kept no longer goes, and nothing else
//! - [`buckets`]: that what was counted is stored, and once
//! - [`duties`]: which jobs a node takes, and how it stops

pub mod answers;
pub mod attempts;
pub mod buckets;
pub mod clearing;
pub mod deaths;
pub mod duties;
pub mod endings;
pub mod epochs;
pub mod keys;
pub mod leases;
pub mod limits;
pub mod turns;

use std::time::Duration;

use super::story::Story;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub check: &'static str,
    pub rule: &'static str,
    pub at: Duration,
    /// What happened, and to whom.
    pub what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { check, rule, at, what } = self;
        write!(f, "{:9.3}s  {check} (rule {rule}): {what}", at.as_secs_f64())
    }
}

/// Where a check found its promise broken: when, and what happened.
pub type Finding = (Duration, String);

pub struct Check {
    pub name: &'static str,
    /// The number of the rule behind it.
    pub rule: &'static str,
    look: fn(&Story<'_>) -> Vec<Finding>,
}

const fn check(rule: &'static str, name: &'static str, look: fn(&Story<'_>) -> Vec<Finding>) -> Check {
    Check { name, rule, look }
}

pub const CHECKS: &[Check] = &[
    check("4", "acknowledged_jobs_are_there", endings::acknowledged_jobs_are_there),
    check("1", "no_claim_is_orphaned", endings::no_claim_is_orphaned),
    check("4", "due_jobs_do_not_wait", endings::due_jobs_do_not_wait),
    check("3", "epochs_never_fall", epochs::epochs_never_fall),
    check("3", "an_epoch_is_claimed_once", epochs::an_epoch_is_claimed_once),
    check("3", "a_handler_begins_once_where_it_was_claimed", epochs::a_handler_begins_once),
    check("3", "a_result_is_of_the_last_epoch", epochs::a_result_is_of_the_last_epoch),
    check("4", "only_a_requeue_leads_out_of_an_end", epochs::only_a_requeue_leads_out),
    check("4", "only_failures_cost_attempts", attempts::only_failures_cost_attempts),
    check("4", "every_bad_end_has_its_reason", attempts::every_bad_end_has_its_reason),
    check("4", "nothing_begins_too_late", attempts::nothing_begins_too_late),
    check("3", "no_result_is_forgotten", attempts::no_result_is_forgotten),
    check("2", "handlers_stop_with_their_lease", leases::handlers_stop_with_their_lease),
    check("2", "nothing_begins_without_a_lease", leases::nothing_begins_without_a_lease),
    check("2", "handlers_stop_before_others_begin", leases::handlers_stop_before_others_begin),
    check("21", "the_dead_do_nothing", leases::the_dead_do_nothing),
    check("2", "the_dead_were_watched", deaths::the_dead_were_watched),
    check("2", "nobody_able_is_condemned", deaths::nobody_able_is_condemned),
    check("2", "the_condemned_write_no_more", deaths::the_condemned_write_no_more),
    check("1", "others_take_over_in_time", deaths::others_take_over_in_time),
    check("7", "twins_are_kept_away", keys::twins_are_kept_away),
    check("7", "a_key_names_the_one_in_scope", keys::a_key_names_the_one_in_scope),
    check("7", "what_is_acknowledged_exists", answers::what_is_acknowledged_exists),
    check("7", "a_submission_makes_one_job", answers::a_submission_makes_one_job),
    check("6", "numbers_are_unique", answers::numbers_are_unique),
    check("10", "what_is_deleted_stays_away", answers::what_is_deleted_stays_away),
    check("10", "nothing_running_is_deleted", answers::nothing_running_is_deleted),
    check("5", "nodes_claim_only_their_types", duties::nodes_claim_only_their_types),
    check("5", "who_rests_claims_nothing", duties::who_rests_claims_nothing),
    check("5", "slots_are_kept", duties::slots_are_kept),
    check("8", "nobody_is_passed_over", turns::nobody_is_passed_over),
    check("8", "nobody_jumps_the_queue", turns::nobody_jumps_the_queue),
    check("9", "no_more_run_at_once_than_may", limits::no_more_run_at_once_than_may),
    check("9", "no_more_start_than_may", limits::no_more_start_than_may),
    check("9", "free_slots_are_used", limits::free_slots_are_used),
    check("10", "only_jobs_that_are_over_go", clearing::only_jobs_that_are_over_go),
    check("10", "only_what_is_old_goes", clearing::only_what_is_old_goes),
    check("10", "what_is_over_goes", clearing::what_is_over_goes),
    check("18", "parts_of_buckets_stay", buckets::parts_of_buckets_stay),
    check("18", "buckets_hold_what_was_counted", buckets::buckets_hold_what_was_counted),
    check("21", "nobody_goes_round_in_circles", duties::nobody_goes_round_in_circles),
    check("1", "who_stops_leaves_nothing", duties::who_stops_leaves_nothing),
];

/// Every promise that was broken, in the order of time.
pub fn violations(story: &Story<'_>) -> Vec<Violation> {
    let look = |check: &'static Check| {
        let violation = |(at, what)| Violation { check: check.name, rule: check.rule, at, what };
        (check.look)(story).into_iter().map(violation).collect::<Vec<_>>()
    };
    let mut found: Vec<Violation> = CHECKS.iter().flat_map(look).collect();
    found.sort_by_key(|violation| violation.at);
    found
}
