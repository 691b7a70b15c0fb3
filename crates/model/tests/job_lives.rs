//! Random lives of a job, with answers from holders that lost it long ago. Whatever happens: a requeue is the only way out
//! of a terminal status, epochs only grow, a late answer changes nothing, and a node's death costs no attempt.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use std::time::Duration;

use proptest::prelude::*;
use rota_model::domain::Domain;
use rota_model::ids::{ClaimToken, Incarnation, JobId, NodeId};
use rota_model::job::lifecycle::{MAX_HISTORY, MAX_LOST};
use rota_model::job::submission::Place;
use rota_model::job::{Holder, Job, JobStatus, NewJob, Refusal};
use rota_model::time::UnixMillis;
use serde_json::{Map, json};

/// What somebody tries. `back` is how many epochs ago the caller claimed.
#[derive(Clone, Debug)]
enum Act {
    Claim,
    Succeed { back: u64 },
    Fail { back: u64, again: bool },
    Lose { back: u64 },
    Release { back: u64 },
    Cancel,
    GiveUp,
    Requeue,
}

fn act() -> impl Strategy<Value = Act> {
    let back = || prop_oneof![3 => Just(0_u64), 1 => 1..4_u64];
    prop_oneof![
        4 => Just(Act::Claim),
        2 => back().prop_map(|back| Act::Succeed { back }),
        2 => (back(), any::<bool>()).prop_map(|(back, again)| Act::Fail { back, again }),
        3 => back().prop_map(|back| Act::Lose { back }),
        1 => back().prop_map(|back| Act::Release { back }),
        1 => Just(Act::Cancel),
        1 => Just(Act::GiveUp),
        1 => Just(Act::Requeue),
    ]
}

fn new_job() -> Job {
    let place = Place {
        domain: Domain::default(),
        job_id: JobId::derived(&["a job"]),
        job_number: 130,
        sections: 64,
        accepted_by: NodeId::derived(&["web"]),
    };
    NewJob::new("a job", "wait", json!({"millis": 1})).into_job(place, UnixMillis(1_000))
}

fn try_it(job: &mut Job, act: &Act, now: UnixMillis) -> Result<(), Refusal> {
    let node = NodeId::derived(&["a node"]);
    let holder = Holder { node, incarnation: Incarnation::derived(&["a life"]) };
    let epoch = |back: u64| job.epoch.wrapping_sub(back);
    match *act {
        Act::Claim => job.claim(holder, ClaimToken::derived(&["a claim"]), now),
        Act::Succeed { back } => {
            job.succeed(epoch(back), Map::from_iter([("ok".into(), json!(1))]), now, node)
        }
        Act::Fail { back, again } => job.fail(epoch(back), "no", again.then_some(now), now, node),
        Act::Lose { back } => job.lose(epoch(back), 0.5, now, node),
        Act::Release { back } => job.release(epoch(back), now, node),
        Act::Cancel => job.cancel("not wanted", now, node),
        Act::GiveUp => job.give_up("hopeless", now, node),
        Act::Requeue => job.requeue(now, node),
    }
}

fn is_late(act: &Act) -> bool {
    matches!(act, Act::Succeed { back } | Act::Fail { back, .. } | Act::Lose { back } | Act::Release { back } if *back > 0)
}

proptest! {
    #[test]
    fn a_job_lives_by_its_rules(acts in prop::collection::vec(act(), 0..120)) {
        let mut job = new_job();
        for (nth, act) in acts.iter().enumerate() {
            let now = UnixMillis(2_000 + i64::try_from(nth).unwrap());
            let before = job.clone();
            let done = try_it(&mut job, act, now);
            match done {
                Err(_) => prop_assert_eq!(&job, &before, "what is refused changes nothing: {:?}", act),
                Ok(()) => {
                    prop_assert!(!is_late(act), "{:?} came from an old epoch", act);
                    check_step(&before, &job, act)?;
                }
            }
            prop_assert!(job.epoch >= before.epoch);
            prop_assert!(job.history.len() <= MAX_HISTORY);
        }
    }
}

fn check_step(before: &Job, after: &Job, act: &Act) -> Result<(), TestCaseError> {
    if before.status.is_terminal() {
        prop_assert!(matches!(act, Act::Requeue), "{:?} left {:?}", act, before.status);
        prop_assert_eq!(&after.history.last().unwrap().result, &before.result, "the old result is kept");
    }
    if matches!(act, Act::Claim | Act::Requeue) {
        prop_assert_eq!(after.epoch, before.epoch + 1);
    }
    if matches!(act, Act::Lose { .. }) {
        prop_assert_eq!((after.attempt, after.lost), (before.attempt, before.lost + 1));
        prop_assert_eq!(after.status == JobStatus::Error, after.lost >= MAX_LOST);
        prop_assert!(
            after.lost > 2 || after.run_at == before.run_at,
            "the first losses are made up for at once"
        );
    }
    if matches!(act, Act::Fail { again: true, .. }) {
        prop_assert_eq!(after.attempt, before.attempt + 1);
    }
    prop_assert_eq!(after.owner.is_some(), after.status == JobStatus::Started, "only what runs has an owner");
    prop_assert_eq!(after.finished_at.is_some(), after.status.is_terminal());
    Ok(())
}

/// It expires until an attempt was begun: a claim that was given back is none.
#[test]
fn a_job_expires_until_it_has_begun() {
    let (soon, late) = (UnixMillis(5_000), UnixMillis(6_000));
    let node = NodeId::derived(&["a node"]);
    let after = |acts: &[Act]| {
        let mut job = Job { expires_at: Some(soon), ..new_job() };
        acts.iter().for_each(|act| try_it(&mut job, act, UnixMillis(2_000)).unwrap());
        job
    };
    let release = Act::Release { back: 0 };
    for acts in
        [vec![], vec![Act::Claim], vec![Act::Claim, release.clone()], vec![Act::Claim, release, Act::Claim]]
    {
        let job = after(&acts);
        assert!(!job.is_expired(UnixMillis(4_999)) && job.is_expired(late), "{acts:?}");
    }
    for last in [Act::Lose { back: 0 }, Act::Fail { back: 0, again: true }] {
        let mut job = after(&[Act::Claim, last.clone()]);
        assert!(!job.is_expired(late), "{last:?}");
        try_it(&mut job, &Act::Claim, UnixMillis(3_000)).unwrap();
        assert!(!job.is_expired(late), "{last:?}, and claimed again");
    }
    let mut stopped = after(&[Act::Claim]);
    stopped.interrupt(1, UnixMillis(3_000), node).unwrap();
    assert_eq!((stopped.status, stopped.is_expired(late)), (JobStatus::Queued, false));
    assert_eq!((stopped.attempt, stopped.lost), (1, 0), "it costs nothing");
    let mut late_answer = after(&[Act::Claim, Act::Release { back: 0 }, Act::Claim]);
    assert!(late_answer.interrupt(1, late, node).is_err());
    assert!(late_answer.is_expired(late), "who comes late changes nothing");
}

#[test]
fn a_job_that_keeps_killing_its_nodes_is_given_up() {
    let mut job = new_job();
    for _ in 0..MAX_LOST {
        try_it(&mut job, &Act::Claim, UnixMillis(0)).unwrap();
        try_it(&mut job, &Act::Lose { back: 0 }, UnixMillis(0)).unwrap();
    }
    assert_eq!((job.status, job.attempt), (JobStatus::Error, 1));
    assert!(job.result.get("error").unwrap().as_str().unwrap().contains("died 20 times"));
}

/// One of fifty jobs kills whoever runs it, and up to sixteen that are due are claimed together: the others part from it and
/// run, and it alone is given up.
#[test]
fn who_is_lost_beside_a_job_that_kills_its_nodes_parts_from_it() {
    const KILLER: u64 = 7;
    let node = NodeId::derived(&["a node"]);
    let mut jobs: Vec<Job> = (0..50).map(|number| Job { job_number: number, ..new_job() }).collect();
    let (mut now, mut dice) = (UnixMillis(10_000), 1_u32);
    let mut chance = || {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(dice) / f64::from(u32::MAX)
    };
    while jobs.iter().any(|job| !job.status.is_terminal()) {
        let mut due: Vec<&mut Job> =
            jobs.iter_mut().filter(|job| job.status == JobStatus::Queued && job.run_at <= now).collect();
        due.sort_by_key(|job| (job.run_at, job.job_number));
        due.truncate(16);
        due.iter_mut().for_each(|job| try_it(job, &Act::Claim, now).unwrap());
        let dies = due.iter().any(|job| job.job_number == KILLER);
        now = now.plus(Duration::from_millis(if dies { 8_000 } else { 100 }));
        for job in due {
            if dies {
                job.lose(job.epoch, chance(), now, node).unwrap();
            } else {
                try_it(job, &Act::Succeed { back: 0 }, now).unwrap();
            }
        }
    }
    for job in jobs {
        let ended = if job.job_number == KILLER { JobStatus::Error } else { JobStatus::Successful };
        assert_eq!(job.status, ended, "{} was lost {} times", job.job_number, job.lost);
    }
}
