//! What the callers asked for and what they were told. An answer that never came leaves it open whether the thing was done;
//! an answer that came is a promise.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rand::RngExt as _;
use rand::rngs::StdRng;
use rota_model::ids::JobId;
use rota_model::job::{Job, NewJob, Unique};

/// How many of the latest jobs are changed by those who change jobs.
const LATEST: usize = 50;

/// Whether a change of a job was asked for, and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    No,
    /// The answer never came.
    Perhaps,
    Yes,
}

/// A job that somebody was told of.
#[derive(Clone, Debug)]
pub(crate) struct Acknowledged {
    pub(crate) number: u64,
    pub(crate) cancelled: Asked,
    pub(crate) deleted: Asked,
}

#[derive(Clone, Debug)]
pub(crate) struct Submission {
    pub(crate) job: NewJob,
    /// The job it was answered with: its own, or the twin that was there.
    pub(crate) answer: Option<JobId>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Books {
    /// By the name of the job, which is used once.
    pub(crate) submissions: BTreeMap<String, Submission>,
    pub(crate) acknowledged: BTreeMap<JobId, Acknowledged>,
    /// Those that callers may change, in the order of the answers.
    changeable: Vec<JobId>,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Books>);

impl Ledger {
    /// Before it is sent.
    pub(crate) fn asks(&self, job: &NewJob) {
        let submission = Submission { job: job.clone(), answer: None };
        self.books().submissions.entry(job.job_name.clone()).or_insert(submission);
    }

    /// A submission is answered with its own job, or with the twin that is there.
    pub(crate) fn told_of(&self, asked: &NewJob, job: &Job) {
        if job.job_name != asked.job_name {
            let key = |unique: &Option<Unique>| unique.clone().map(|unique| unique.key);
            assert!(asked.unique.is_some() && key(&asked.unique) == key(&job.unique), "{asked:?}, {job:?}");
        }
        self.told(asked, job.job_id, job.job_number);
    }

    pub(crate) fn told(&self, asked: &NewJob, id: JobId, number: u64) {
        if self.enter(asked, id, number) {
            self.books().changeable.push(id);
        }
    }

    /// Of a job that callers leave alone.
    pub(crate) fn told_of_ours(&self, asked: &NewJob, job: &Job) {
        self.enter(asked, job.job_id, job.job_number);
    }

    /// Says whether the job was not known before.
    fn enter(&self, asked: &NewJob, id: JobId, number: u64) -> bool {
        let mut books = self.books();
        let submission = books.submissions.get_mut(&asked.job_name).unwrap();
        let before = submission.answer.replace(id);
        let same = asked.unique.is_some() || before.is_none_or(|before| before == id);
        assert!(same, "{asked:?} was answered with {before:?}, and then with {id}");
        let is_new = !books.acknowledged.contains_key(&id);
        let new = Acknowledged { number, cancelled: Asked::No, deleted: Asked::No };
        let known = books.acknowledged.entry(id).or_insert(new);
        assert_eq!(known.number, number, "{id} has two numbers");
        is_new
    }

    /// Only a submission whose job was deleted meanwhile may be refused.
    pub(crate) fn refused(&self, asked: &NewJob, status: u16) {
        let deleted = self.answer(&asked.job_name).is_some_and(|job| self.may_be_deleted(job));
        assert!(deleted, "{asked:?} was refused with status {status}");
    }

    /// The job that a submission was answered with.
    pub(crate) fn answer(&self, name: &str) -> Option<JobId> {
        self.books().submissions.get(name).and_then(|submission| submission.answer)
    }

    pub(crate) fn may_be_deleted(&self, id: JobId) -> bool {
        self.books().acknowledged.get(&id).is_some_and(|known| known.deleted != Asked::No)
    }

    /// One of the latest jobs that may be changed, unless it was.
    pub(crate) fn one_of_the_latest(&self, dice: &mut StdRng) -> Option<JobId> {
        let books = self.books();
        let latest = books.changeable.len().saturating_sub(LATEST)..books.changeable.len();
        if latest.is_empty() {
            return None;
        }
        let id = *books.changeable.get(dice.random_range(latest))?;
        let known = books.acknowledged.get(&id)?;
        (known.cancelled == Asked::No && known.deleted == Asked::No).then_some(id)
    }

    pub(crate) fn cancelled(&self, id: JobId, asked: Asked) {
        self.books().acknowledged.get_mut(&id).unwrap().cancelled = asked;
    }

    pub(crate) fn deleted(&self, id: JobId, asked: Asked) {
        self.books().acknowledged.get_mut(&id).unwrap().deleted = asked;
    }

    pub(crate) fn count(&self) -> usize {
        self.books().acknowledged.len()
    }

    /// As they are now.
    pub(crate) fn copy(&self) -> Books {
        self.books().clone()
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
