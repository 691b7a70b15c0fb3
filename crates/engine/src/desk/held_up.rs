//! Why a job that is due does not run: whether it is a limit that holds it up.

use std::fmt;

use rota_model::job::{Job, JobStatus};
use rota_model::job_type::Bounds;
use rota_model::limit::{Limit, LimitName, Pace};
use rota_store::{StoreError, Versioned};

use super::JobDesk;

/// What holds a job up; with a key, it is the limit of that key.
#[derive(Clone, Debug, PartialEq)]
pub enum HeldUp {
    /// As many run at once as may.
    Concurrency { key: Option<String>, most: u32 },
    /// As many start per second as may.
    Rate { key: Option<String>, per_second: f64 },
}

/// As a sentence.
impl fmt::Display for HeldUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |key: &Option<String>| match key {
            Some(key) => format!("its type with the limit key {key}"),
            None => "its type".to_owned(),
        };
        match self {
            HeldUp::Concurrency { key, most } => {
                write!(f, "As many jobs of {} run at once as may: {most}.", of(key))
            }
            HeldUp::Rate { key, per_second } => {
                write!(f, "As many jobs of {} start as may: {per_second} per second.", of(key))
            }
        }
    }
}

impl JobDesk {
    /// Which limit holds a job up that waits, as the documents say at this moment; none if it is something else, or nothing.
    pub async fn held_up(&self, job: &Job) -> Result<Option<HeldUp>, StoreError> {
        let now = self.surroundings.now();
        if job.status != JobStatus::Queued || job.run_at > now {
            return Ok(None);
        }
        let Some(limits) = self.registry.limits(&job.domain, &job.input.kind).await? else { return Ok(None) };
        let key = job.limit_key.as_deref();
        let (names, bounds): (Vec<_>, Vec<_>) = limits.of(&job.domain, &job.input.kind, key).unzip();
        let read = self.limits.get_each(&names).await?;
        let found = names.into_iter().zip(bounds).zip(read);
        let holds = |((name, bounds), limit): ((LimitName, Bounds), Option<Versioned<Limit>>)| {
            holds_up(&limit?.document, bounds, name.key, now.as_u64())
        };
        Ok(found.into_iter().find_map(holds))
    }
}

fn holds_up(limit: &Limit, bounds: Bounds, key: Option<String>, now_ms: u64) -> Option<HeldUp> {
    // Who has slots and waits for starts has reserved them all the same: so the rate is asked first.
    if let Some(per_second) = bounds.starts_per_second.filter(|rate| waits_for_starts(limit, *rate, now_ms)) {
        return Some(HeldUp::Rate { key, per_second });
    }
    let most = bounds.concurrency.filter(|most| limit.free(*most) == 0)?;
    Some(HeldUp::Concurrency { key, most })
}

fn waits_for_starts(limit: &Limit, per_second: f64, now_ms: u64) -> bool {
    // The clock of the document goes on from where it was when it was written.
    let since_us = now_ms.saturating_sub(limit.metadata.updated_at.as_u64()).saturating_mul(1_000);
    let clock_us = limit.clock_us.map(|clock_us| clock_us.saturating_add(since_us));
    clock_us.is_some_and(|clock_us| !limit.wait_for_starts(Pace(per_second), clock_us, 1).is_zero())
}
