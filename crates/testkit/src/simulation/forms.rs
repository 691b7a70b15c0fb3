//! What people hand in: jobs with whatever may be said of them, drawn by chance.

use std::str::FromStr;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rota_model::backoff::Backoff;
use rota_model::domain::Domain;
use rota_model::job::{NewJob, Scope, Unique};
use rota_model::time::UnixMillis;

use super::plan::Plan;
use super::record::Submission;
use super::work::{Script, TYPES};

/// The tenants of the simulated world.
pub const DOMAINS: [&str; 2] = ["default", "other"];

/// A job to be handed in.
#[derive(Clone)]
pub struct Form {
    pub domain: Domain,
    pub job: NewJob,
    pub submission: Submission,
}

impl Form {
    pub fn draw(serial: u64, plan: &Plan, now: UnixMillis, dice: &mut StdRng) -> Self {
        let script = Script::draw(serial, dice.random_bool(plan.long), dice);
        let kind = *TYPES.choose(dice).expect("there are types");
        let mut job = NewJob::new(format!("job {serial}"), kind, script.payload());
        adorn(&mut job, plan, now, dice);
        let is_named = dice.random_bool(plan.named);
        job.idempotency_key = is_named.then(|| format!("request {serial}"));
        Self { domain: draw_domain(dice), job, submission: Submission { serial, is_named } }
    }

    /// Long work and nothing else, for a crash to interrupt.
    pub fn long(serial: u64, dice: &mut StdRng) -> Self {
        Self::plain(serial, true, dice)
    }

    /// Short work and nothing else, of which there is a lot.
    pub fn quick(serial: u64, dice: &mut StdRng) -> Self {
        Self::plain(serial, false, dice)
    }

    /// Work of one type that is limited, or will be.
    pub fn limited(serial: u64, plan: &Plan, kind: &str, is_long: bool, dice: &mut StdRng) -> Self {
        let mut form = Self::plain(serial, is_long, dice);
        form.job.input.kind = kind.to_owned();
        form.job.limit_key = draw_key(plan.keyed, dice);
        form
    }

    fn plain(serial: u64, is_long: bool, dice: &mut StdRng) -> Self {
        let script = Script { fails: 0, is_stubborn: false, ..Script::draw(serial, is_long, dice) };
        let kind = *TYPES.choose(dice).expect("there are types");
        let job = NewJob::new(format!("job {serial}"), kind, script.payload());
        Self { domain: draw_domain(dice), job, submission: Submission { serial, is_named: false } }
    }
}

fn draw_key(share: f64, dice: &mut StdRng) -> Option<String> {
    dice.random_bool(share).then(|| format!("customer {}", dice.random_range(0..3)))
}

pub fn draw_domain(dice: &mut StdRng) -> Domain {
    let [default, other] = DOMAINS;
    Domain::from_str(if dice.random_bool(0.85) { default } else { other }).expect("a good name")
}

fn adorn(job: &mut NewJob, plan: &Plan, now: UnixMillis, dice: &mut StdRng) {
    let mut ahead = |share, most_ms| {
        let span = dice.random_bool(share).then(|| dice.random_range(500..=most_ms));
        span.map(|span| now.plus(Duration::from_millis(span)))
    };
    job.run_at = ahead(0.15, 40_000);
    job.expires_at = ahead(0.12, 30_000).filter(|at| job.run_at.is_none_or(|run_at| run_at < *at));
    job.limit_key = draw_key(plan.keyed, dice);
    job.priority = dice.random_bool(0.3).then(|| dice.random_range(0..=9));
    job.attempts = Some(dice.random_range(1..=4));
    job.timeout_ms = dice.random_bool(0.15).then(|| dice.random_range(300..=4_000));
    let delay_ms = dice.random_range(20..=1_500);
    job.backoff = Some(Backoff { delay_ms, factor: 2, max_delay_ms: 3_000, ..Backoff::default() });
    if dice.random_bool(plan.unique) {
        let scopes = [Scope::Queued, Scope::Running, Scope::Unfinished];
        job.unique = Some(Unique {
            key: format!("key {}", dice.random_range(0..4)),
            scope: *scopes.choose(dice).expect("there are scopes"),
            for_ms: dice.random_bool(0.2).then(|| dice.random_range(1_000..=20_000)),
        });
    }
}
