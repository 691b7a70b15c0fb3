//! Each check of the simulator can fail: for each there is a run, made up by hand, in which its promise is broken. And a run
//! in which nothing is wrong passes all of them.
//!
//! - [`tale`]: how runs are made up
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a surprise is a failure of the test")]

mod tale;

use std::collections::BTreeSet;
use std::str::FromStr;

use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{JobStatus, Unique};
use rota_model::node::{NodeStatus, NodeWish};
use rota_testkit::simulation::checks::CHECKS;
use rota_testkit::simulation::record::{Accepted, Deed, Ending, Event, Reply, Wish};
use serde_json::json;
use tale::{HOUR, ONE, TWO, Tale, end, node};

/// A tale in which one thing goes wrong.
fn found(tell: impl FnOnce(&mut Tale)) -> BTreeSet<&'static str> {
    let mut tale = Tale::begin();
    tale.pass(1_000);
    tell(&mut tale);
    tale.pass(20_000);
    tale.ends()
}

type Tell = fn(&mut Tale);

/// For each check, something that it must find.
const FAULTS: [(&str, Tell); 47] = [
    ("acknowledged_jobs_are_there", |tale| {
        let job = tale.submit(1);
        tale.told(Reply::Submitted(vec![Accepted::New(job)]));
        tale.delete(job);
    }),
    ("no_claim_is_orphaned", |tale| {
        let job = tale.submit(1);
        tale.claim(ONE, job);
    }),
    ("due_jobs_do_not_wait", |tale| {
        tale.submit(1);
    }),
    ("epochs_never_fall", |tale| {
        let job = tale.submit(1);
        tale.runs(ONE, job);
        tale.job(ONE, job, |job| job.epoch = 0);
    }),
    ("an_epoch_is_claimed_once", |tale| {
        let job = tale.submit(1);
        tale.claim(ONE, job);
        tale.job(ONE, job, |job| {
            end(job, JobStatus::Queued);
            job.epoch = 0;
        });
        tale.claim(TWO, job);
    }),
    ("a_handler_begins_once_where_it_was_claimed", |tale| {
        let job = tale.submit(1);
        tale.claim(ONE, job);
        tale.handler(TWO, job, Deed::Begins);
    }),
    ("a_result_is_of_the_last_epoch", |tale| {
        let job = tale.submit(1);
        tale.claim(ONE, job);
        tale.job(TWO, job, |job| {
            end(job, JobStatus::Successful);
            job.result.insert("epoch".to_owned(), json!(0));
        });
    }),
    ("only_a_requeue_leads_out_of_an_end", |tale| {
        let job = tale.submit(1);
        tale.runs(ONE, job);
        tale.job(ONE, job, |job| end(job, JobStatus::Failed));
    }),
    ("only_failures_cost_attempts", |tale| {
        let job = tale.submit(1);
        tale.claim(ONE, job);
        tale.job(TWO, job, |job| {
            end(job, JobStatus::Queued);
            job.attempt += 1;
        });
    }),
    ("every_bad_end_has_its_reason", |tale| {
        let job = tale.submit(1);
        tale.job(ONE, job, |job| end(job, JobStatus::Error));
    }),
    ("nothing_begins_too_late", |tale| {
        let job = tale.submit(1);
        tale.job(ONE, job, |job| job.expires_at = Some(job.run_at));
        tale.claim(ONE, job);
        tale.job(ONE, job, |job| job.release(1, job.run_at, node(ONE)).unwrap());
        tale.pass(100);
        tale.runs(ONE, job);
    }),
    ("no_result_is_forgotten", |tale| {
        let job = tale.submit(1);
        tale.claim(ONE, job);
        tale.handler(ONE, job, Deed::Begins);
        tale.pass(100);
        tale.handler(ONE, job, Deed::Ends(Ending::Succeeded));
        tale.pass(500);
        tale.job(ONE, job, |job| end(job, JobStatus::Queued));
    }),
    ("handlers_stop_with_their_lease", |tale| {
        let job = tale.submit(1);
        tale.claim(ONE, job);
        tale.handler(ONE, job, Deed::Begins);
        tale.falls_silent(ONE);
        tale.pass(6_600);
        tale.handler(ONE, job, Deed::Acts);
    }),
    ("nothing_begins_without_a_lease", |tale| {
        let job = tale.submit(1);
        tale.claim(ONE, job);
        tale.falls_silent(ONE);
        tale.pass(6_600);
        tale.handler(ONE, job, Deed::Begins);
    }),
    ("handlers_stop_before_others_begin", |tale| {
        let job = tale.submit(1);
        tale.claim(ONE, job);
        tale.handler(ONE, job, Deed::Begins);
        tale.pass(100);
        tale.job(TWO, job, |job| end(job, JobStatus::Queued));
        tale.claim(TWO, job);
        tale.pass(100);
        tale.acts_under(ONE, job, 1);
    }),
    ("the_dead_do_nothing", |tale| {
        let job = tale.submit(1);
        tale.claim(ONE, job);
        tale.handler(ONE, job, Deed::Begins);
        tale.crashes(ONE);
        tale.pass(100);
        tale.handler(ONE, job, Deed::Acts);
    }),
    ("the_dead_were_watched", |tale| {
        tale.crashes(ONE);
        condemn_after(tale, &[true, true, true, true, true, true]);
    }),
    ("the_dead_were_watched", |tale| {
        tale.crashes(ONE);
        condemn_after(tale, &[true, true, true, true, false, true, true, true, true]);
    }),
    ("nobody_able_is_condemned", |tale| {
        tale.pass(20_000);
        tale.state(TWO, ONE, |state| state.status = NodeStatus::Terminated);
    }),
    ("the_condemned_write_no_more", |tale| {
        tale.state(TWO, ONE, |state| state.status = NodeStatus::Terminated);
        tale.state(ONE, ONE, |state| state.status = NodeStatus::Active);
    }),
    ("others_take_over_in_time", |tale| {
        let job = tale.submit(1);
        tale.claim(ONE, job);
        tale.crashes(ONE);
    }),
    ("twins_are_kept_away", |tale| {
        for serial in 1..=2 {
            tale.submit_as(&serial.to_string(), serial, |job| job.unique = Some(unique()));
        }
    }),
    ("a_key_names_the_one_in_scope", |tale| {
        tale.key("key", JobId::derived(&["another"]));
        tale.submit_as("1", 1, |job| job.unique = Some(unique()));
    }),
    ("what_is_acknowledged_exists", |tale| {
        tale.told(Reply::Submitted(vec![Accepted::New(JobId::derived(&["none"]))]));
    }),
    ("a_submission_makes_one_job", |tale| {
        tale.submit_as("one", 1, |_| {});
        tale.submit_as("two", 1, |_| {});
    }),
    ("numbers_are_unique", |tale| {
        tale.submit_as("1", 1, |job| job.job_number = 7);
        tale.submit_as("2", 2, |job| job.job_number = 7);
    }),
    ("what_is_deleted_stays_away", |tale| {
        let job = tale.submit(1);
        tale.delete(job);
        tale.purge(job);
    }),
    ("nothing_running_is_deleted", |tale| {
        let job = tale.submit(1);
        tale.claim(ONE, job);
        tale.delete(job);
    }),
    ("nodes_claim_only_their_types", |tale| {
        let job = tale.submit_as("1", 1, |job| job.input.kind = "beta".to_owned());
        tale.claim(ONE, job);
    }),
    ("who_rests_claims_nothing", |tale| {
        tale.falls_silent(ONE);
        tale.state(TWO, ONE, |state| state.wanted = Some(NodeWish::Pause));
        tale.reads(ONE, ONE, true);
        tale.pass(100);
        let job = tale.submit(1);
        tale.claim(ONE, job);
    }),
    ("slots_are_kept", |tale| {
        // Each node has four.
        for number in 1..=5 {
            let job = tale.submit(number);
            tale.claim(ONE, job);
            tale.handler(ONE, job, Deed::Begins);
        }
    }),
    ("nobody_jumps_the_queue", |tale| {
        let due = tale.submit(1);
        tale.pass(100);
        tale.seat(2);
        tale.pass(100);
        tale.runs(TWO, due);
    }),
    ("nobody_is_passed_over", |tale| {
        let others: Vec<_> = (10..16).map(|serial| tale.submit(serial)).collect();
        let passed = tale.submit_as("job 1", 1, |job| job.domain = "other".parse().unwrap());
        tale.pass(15_000);
        for other in others {
            tale.claim(TWO, other);
            tale.pass(100);
        }
        tale.claim(TWO, passed);
    }),
    ("no_more_run_at_once_than_may", |tale| {
        tale.limits(Some(1), None);
        for (life, serial) in [(ONE, 1), (TWO, 2)] {
            let job = tale.submit(serial);
            tale.claim(life, job);
            tale.handler(life, job, Deed::Begins);
        }
    }),
    ("no_more_run_at_once_than_may", |tale| {
        // One that falls holds as soon as all have heard of it.
        tale.limits(Some(2), None);
        for (life, serial) in [(ONE, 1), (TWO, 2)] {
            let job = tale.submit(serial);
            tale.claim(life, job);
            tale.handler(life, job, Deed::Begins);
        }
        tale.limits_now(Some(1), None);
        tale.pass(9_000);
        let third = tale.submit(3);
        tale.claim(ONE, third);
        tale.handler(ONE, third, Deed::Begins);
    }),
    ("no_more_start_than_may", |tale| {
        tale.limits(None, Some(1.0));
        for serial in 0..16 {
            let job = tale.submit(serial);
            tale.runs(if serial % 2 == 0 { ONE } else { TWO }, job);
        }
    }),
    ("free_slots_are_used", |tale| {
        tale.limits(Some(2), None);
        tale.event(Event::Calms);
        tale.pass(35_000);
        let job = tale.submit(1);
        tale.pass(16_000);
        tale.runs(ONE, job);
    }),
    ("only_jobs_that_are_over_go", |tale| {
        let job = tale.ended_ago(1, 2 * HOUR, |_| {});
        tale.clear(job);
    }),
    ("only_jobs_that_are_over_go", |tale| {
        tale.keeps_for_an_hour();
        let job = tale.ended_ago(1, HOUR / 2, |_| {});
        tale.clear(job);
    }),
    ("only_jobs_that_are_over_go", |tale| {
        tale.keeps_for_an_hour();
        let job =
            tale.ended_ago(1, 2 * HOUR, |job| (job.status, job.finished_at) = (JobStatus::Queued, None));
        tale.clear(job);
    }),
    ("only_jobs_that_are_over_go", |tale| {
        tale.keeps_for_an_hour();
        tale.key("key", JobId::derived(&["job 1"]));
        let for_ms = Some(3 * 3_600_000);
        let job = tale.ended_ago(1, 2 * HOUR, |job| job.unique = Some(Unique { for_ms, ..unique() }));
        tale.clear(job);
    }),
    ("only_what_is_old_goes", |tale| {
        tale.keeps_for_an_hour();
        tale.clear_line(HOUR / 2);
    }),
    ("what_is_over_goes", |tale| {
        tale.keeps_for_an_hour();
        tale.ended_ago(1, 2 * HOUR, |_| {});
        tale.event(Event::Calms);
        tale.pass(75_000);
    }),
    ("parts_of_buckets_stay", |tale| {
        tale.merges(ONE, &[("a", 1)]);
        tale.merges(ONE, &[("a", 2)]);
    }),
    ("buckets_hold_what_was_counted", |tale| {
        tale.merges(ONE, &[("a", 1)]);
        tale.merges(ONE, &[("a", 1), ("b", 1)]);
        tale.counted(ONE, 1);
    }),
    ("buckets_hold_what_was_counted", |tale| {
        tale.counted(ONE, 2);
        tale.merges(ONE, &[("a", 1)]);
    }),
    ("who_stops_leaves_nothing", |tale| {
        let job = tale.submit(1);
        tale.claim(ONE, job);
        tale.pass(10_000);
        tale.event(Event::IsToStop { life: ONE });
        tale.event(Event::Ends { life: ONE });
    }),
];

/// The second node reads the state of the first once a second, and then condemns it.
fn condemn_after(tale: &mut Tale, reads: &[bool]) {
    for succeeds in reads {
        tale.pass(1_000);
        tale.reads(TWO, ONE, *succeeds);
    }
    tale.state(TWO, ONE, |state| state.status = NodeStatus::Terminated);
}

fn unique() -> Unique {
    serde_json::from_value(json!({"key": "key"})).unwrap()
}

#[test]
fn each_check_finds_what_it_is_there_for() {
    for (check, tell) in FAULTS {
        let found = found(tell);
        assert!(found.contains(check), "{check} finds nothing; found by {found:?}");
    }
}

/// The one check without a fault here is about a clock that stands still, and a broken engine shows that it works.
#[test]
fn no_check_is_left_out() {
    let shown: BTreeSet<_> = FAULTS.iter().map(|(check, _)| *check).collect();
    let left: Vec<_> = CHECKS.iter().map(|check| check.name).filter(|name| !shown.contains(name)).collect();
    assert_eq!(left, ["nobody_goes_round_in_circles"]);
}

#[test]
fn where_all_is_well_nothing_is_found() {
    let none = found(|tale| {
        let job = tale.submit(1);
        tale.told(Reply::Submitted(vec![Accepted::New(job)]));
        tale.runs(ONE, job);
        tale.key("key", JobId::derived(&["2"]));
        let twin = tale.submit_as("2", 2, |job| job.unique = Some(unique()));
        tale.runs(TWO, twin);
    });
    assert_eq!(none, BTreeSet::new());
}

/// Whatever a person asks for may happen.
#[test]
fn what_people_ask_for_is_no_fault() {
    let none = found(|tale| {
        let (job, gone) = (tale.submit(1), tale.submit(2));
        tale.told(Reply::Submitted(vec![Accepted::New(job), Accepted::New(gone)]));
        tale.asks(Wish::DeleteMatching(Domain::from_str("other").unwrap()));
        tale.asks(Wish::Delete(gone));
        tale.delete(gone);
        tale.runs(ONE, job);
        tale.asks(Wish::Requeue(job));
        let now = tale.wall();
        tale.job(ONE, job, |job| job.requeue(now, node(ONE)).unwrap());
        tale.asks(Wish::Cancel(job));
        tale.job(TWO, job, |job| job.cancel("by a person", now, node(TWO)).unwrap());
    });
    assert_eq!(none, BTreeSet::new());
}

/// What a limit allows is no fault: one after the other, those of another domain, and what is no longer its holder's.
#[test]
fn what_limits_let_through_is_no_fault() {
    let none = found(|tale| {
        tale.limits(Some(1), Some(2.0));
        for serial in 0..4 {
            let job = tale.submit(serial);
            tale.runs(if serial % 2 == 0 { ONE } else { TWO }, job);
        }
        let (mine, others) =
            (tale.submit(10), tale.submit_as("job 11", 11, |job| job.domain = "other".parse().unwrap()));
        tale.claim(ONE, mine);
        tale.handler(ONE, mine, Deed::Begins);
        tale.runs(TWO, others);
        tale.crashes(ONE);
        condemn_after(tale, &[true; 7]);
        let now = tale.wall();
        tale.job(TWO, mine, |job| job.lose(1, 0.0, now, node(TWO)).unwrap());
        tale.runs(TWO, mine);
    });
    assert_eq!(none, BTreeSet::new());
}

/// What is old goes, and what was merged may be merged again.
#[test]
fn what_goes_in_its_time_is_no_fault() {
    let none = found(|tale| {
        tale.keeps_for_an_hour();
        let job = tale.ended_ago(1, 2 * HOUR, |_| {});
        tale.clear(job);
        tale.clear_line(2 * HOUR);
        tale.counted(ONE, 1);
        tale.merges(ONE, &[("a", 1)]);
        tale.merges(ONE, &[("a", 1)]);
        tale.merges(ONE, &[("a", 1), ("b", 4)]);
        tale.counted(ONE, 6);
        tale.crashes(ONE);
    });
    assert_eq!(none, BTreeSet::new());
}

/// Who runs when a limit comes runs on, and what begins before everybody has heard of it may.
#[test]
fn what_runs_when_a_limit_comes_is_no_fault() {
    let none = found(|tale| {
        let jobs: Vec<_> = (1..=3).map(|serial| tale.submit(serial)).collect();
        for job in &jobs {
            tale.claim(ONE, *job);
            tale.handler(ONE, *job, Deed::Begins);
        }
        tale.limits_now(Some(1), Some(1.0));
        let late = tale.submit(4);
        tale.runs(TWO, late);
        tale.pass(9_000);
        for job in jobs {
            tale.handler(ONE, job, Deed::Ends(Ending::Succeeded));
            tale.job(ONE, job, |job| {
                job.result.insert("epoch".to_owned(), json!(1));
                end(job, JobStatus::Successful);
            });
        }
        let after = tale.submit(5);
        tale.runs(TWO, after);
    });
    assert_eq!(none, BTreeSet::new());
}

/// A node that died is condemned after seven reads, and its job is taken over.
#[test]
fn a_death_that_is_noticed_in_time_is_no_fault() {
    let none = found(|tale| {
        let job = tale.submit(1);
        tale.claim(ONE, job);
        tale.handler(ONE, job, Deed::Begins);
        tale.crashes(ONE);
        condemn_after(tale, &[true; 7]);
        let now = tale.wall();
        tale.job(TWO, job, |job| job.lose(1, 0.0, now, node(TWO)).unwrap());
        tale.runs(TWO, job);
    });
    assert_eq!(none, BTreeSet::new());
}

/// Nothing can stop a handler in the instant in which its process thaws.
#[test]
fn who_thaws_in_the_middle_of_an_act_is_no_fault() {
    let acts_late = |tale: &mut Tale, after_ms| {
        let job = tale.submit(1);
        tale.claim(ONE, job);
        tale.handler(ONE, job, Deed::Begins);
        tale.falls_silent(ONE);
        tale.event(Event::Freezes { life: ONE });
        tale.pass(8_000);
        tale.event(Event::Thaws { life: ONE });
        tale.pass(after_ms);
        tale.handler(ONE, job, Deed::Acts);
        tale.handler(ONE, job, Deed::Ends(Ending::Dropped));
        tale.job(TWO, job, |job| end(job, JobStatus::Queued));
        tale.runs(TWO, job);
    };
    assert_eq!(found(|tale| acts_late(tale, 0)), BTreeSet::new());
    assert_eq!(found(|tale| acts_late(tale, 1)), BTreeSet::from(["handlers_stop_with_their_lease"]));
}
