//! What the store holds in the end, held against what the callers were told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use rota_model::job::lifecycle::MAX_LOST;
use rota_model::job::{HistoryEntry, Job, JobEvent, JobStatus, NewJob, Scope};
use serde_json::{Map, Value, json};

use crate::ledger::{Asked, Books};

/// What became of all of it.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) jobs: usize,
    pub(crate) lost: u32,
    released: usize,
    given_up: usize,
    cancelled: usize,
    deleted: usize,
    /// Nobody was told of them, and they are there.
    unheard: usize,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { jobs, lost, released, given_up, cancelled, deleted, unheard } = self;
        write!(
            f,
            "{jobs} jobs, {unheard} of them never acknowledged; {lost} times the program died with one, "
        )?;
        write!(f, "{released} were given back, {given_up} given up, {cancelled} cancelled; {deleted} deleted")
    }
}

/// Every job of the store, once all have ended.
pub(crate) fn judge(books: &Books, jobs: &[Job]) -> Totals {
    one_of_each(jobs);
    all_acknowledged_are_there(books, jobs);
    for job in jobs {
        let submission = books.submissions.get(&job.job_name);
        let submission = submission.unwrap_or_else(|| panic!("nobody asked for {job:?}"));
        let cancelled = books.acknowledged.get(&job.job_id).map_or(Asked::No, |known| known.cancelled);
        ended_as_it_should(job, &submission.job, cancelled);
        claims_are_accounted_for(job);
    }
    twins_were_kept_apart(jobs);
    count(books, jobs)
}

/// No id, number or name is there twice. A name belongs to one submission, so this is one job for each idempotency key and
/// each line of a batch.
fn one_of_each(jobs: &[Job]) {
    let (mut ids, mut numbers, mut names) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
    for job in jobs {
        assert!(ids.insert(job.job_id), "twice in the list: {job:?}");
        assert!(numbers.insert(job.job_number), "its number is another's: {job:?}");
        if let Some(other) = names.insert(&job.job_name, job) {
            panic!("recorded twice: {job:?} and {other:?}");
        }
    }
}

fn all_acknowledged_are_there(books: &Books, jobs: &[Job]) {
    let there: BTreeMap<_, _> = jobs.iter().map(|job| (job.job_id, job)).collect();
    for (id, known) in &books.acknowledged {
        match (there.get(id), known.deleted) {
            (Some(job), Asked::No | Asked::Perhaps) => assert_eq!(job.job_number, known.number, "{job:?}"),
            (None, Asked::Perhaps | Asked::Yes) => {}
            (None, Asked::No) => panic!("acknowledged and missing: {id}, {known:?}"),
            (Some(job), Asked::Yes) => panic!("deleted and there: {job:?}"),
        }
    }
    for (name, submission) in &books.submissions {
        let named = submission.job.idempotency_key.is_some();
        assert!(!named || submission.answer.is_some(), "repeated and never answered: {name}");
    }
}

fn ended_as_it_should(job: &Job, asked: &NewJob, cancelled: Asked) {
    let was_cancelled = job.result.contains_key("cancelled");
    match cancelled {
        Asked::Yes => assert!(was_cancelled, "cancelled, but {job:?}"),
        Asked::No => assert!(!was_cancelled, "nobody cancelled {job:?}"),
        Asked::Perhaps => {}
    }
    let (status, result) = if was_cancelled {
        (JobStatus::Failed, json!({"cancelled": "by a person"}))
    } else if job.lost >= MAX_LOST {
        (JobStatus::Error, json!({"error": format!("its node died {MAX_LOST} times while running it")}))
    } else if let Some(limit) = asked.timeout_ms {
        (JobStatus::Error, json!({"error": format!("it took longer than its {limit} ms")}))
    } else {
        (JobStatus::Successful, done(asked))
    };
    assert_eq!((job.status, Value::Object(job.result.clone())), (status, result), "{job:?}");
    assert!(job.owner.is_none() && job.claim_token.is_none() && job.finished_at.is_some(), "{job:?}");
}

fn done(asked: &NewJob) -> Value {
    let millis = asked.input.payload.get("millis");
    Value::Object(
        millis.map_or_else(Map::new, |millis| Map::from_iter([("waitedMillis".to_owned(), millis.clone())])),
    )
}

/// Every claim but the last is in the history, under its own epoch, with what ended it; attempts are spent by handlers alone.
pub(crate) fn claims_are_accounted_for(job: &Job) {
    let happened = |event: JobEvent| job.history.iter().filter(|entry| entry.event == event).count();
    let in_order = |(nth, entry): (usize, &HistoryEntry)| entry.epoch == nth as u64 + 1;
    assert!(job.history.iter().enumerate().all(in_order), "{job:?}");
    let running_at_the_end = usize::from(job.started_at.is_some());
    assert_eq!(job.epoch, (job.history.len() + running_at_the_end) as u64, "{job:?}");
    // The last loss of a job that is given up is its end.
    let last_loss = usize::from(job.lost >= MAX_LOST);
    assert_eq!(job.lost as usize, happened(JobEvent::Lose) + last_loss, "{job:?}");
    assert_eq!(job.attempt as usize, happened(JobEvent::Retry) + 1, "{job:?}");
    let others = happened(JobEvent::Lose) + happened(JobEvent::Retry) + happened(JobEvent::Release);
    assert_eq!(job.history.len(), others, "{job:?}");
    let timed_out = job.status == JobStatus::Error && job.lost < MAX_LOST;
    assert!(!timed_out || job.attempt == job.attempts, "{job:?}");
}

/// Of those with the same unique key each was made after the one before had ended.
fn twins_were_kept_apart(jobs: &[Job]) {
    let mut by_key: BTreeMap<&str, Vec<&Job>> = BTreeMap::new();
    for job in jobs {
        if let Some(unique) = &job.unique {
            by_key.entry(&unique.key).or_default().push(job);
        }
    }
    for twins in by_key.values_mut() {
        twins.sort_by_key(|job| (job.metadata.created_at, job.finished_at));
        for pair in twins.windows(2) {
            let [first, second] = pair else { continue };
            let apart = first.finished_at <= Some(second.metadata.created_at);
            assert!(apart || had_made_way(first), "side by side: {first:?} and {second:?}");
        }
    }
}

/// Whether its scope ended before it did: with its first attempt.
fn had_made_way(job: &Job) -> bool {
    job.attempt > 1 && job.unique.as_ref().is_some_and(|unique| unique.scope == Scope::Running)
}

fn count(books: &Books, jobs: &[Job]) -> Totals {
    let history = || jobs.iter().flat_map(|job| &job.history);
    let jobs_with = |what: &dyn Fn(&Job) -> bool| jobs.iter().filter(|job| what(job)).count();
    Totals {
        jobs: jobs.len(),
        lost: jobs.iter().map(|job| job.lost).sum(),
        released: history().filter(|entry| entry.event == JobEvent::Release).count(),
        given_up: jobs_with(&|job| job.lost >= MAX_LOST),
        cancelled: jobs_with(&|job| job.result.contains_key("cancelled")),
        deleted: books.acknowledged.values().filter(|known| known.deleted == Asked::Yes).count(),
        unheard: jobs_with(&|job| !books.acknowledged.contains_key(&job.job_id)),
    }
}
