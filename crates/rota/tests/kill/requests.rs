//! What callers ask for, and what they make of the answer: single jobs, batches and twins to submit, jobs to wait for, to
//! cancel and to delete.

use std::collections::VecDeque;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use rota_client::{Client, Error};
use rota_model::Extra;
use rota_model::backoff::Backoff;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{NewJob, Scope, Unique};
use serde_json::json;
use tokio::time::sleep;

use crate::ledger::{Asked, Ledger};
use crate::wait;

/// A caller waits for what it submitted before it has more than this open, so that the queue does not grow without end.
const MAX_OPEN: usize = 300;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Duty {
    Singles,
    Batches,
    Twins,
    /// Cancels and deletes what others submitted.
    Changes,
}

pub(crate) enum Request {
    One(Box<NewJob>),
    Many(Vec<NewJob>),
    Await(JobId),
    Cancel(JobId),
    Delete(JobId),
}

/// Whether an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Something,
    Nothing,
}

impl Request {
    /// Whether it may be sent again without being done twice.
    pub(crate) fn is_named(&self) -> bool {
        let jobs = self.jobs();
        !jobs.is_empty() && jobs.iter().all(|job| job.idempotency_key.is_some())
    }

    fn jobs(&self) -> &[NewJob] {
        match self {
            Request::One(job) => std::slice::from_ref(job),
            Request::Many(jobs) => jobs,
            Request::Await(_) | Request::Cancel(_) | Request::Delete(_) => &[],
        }
    }

    pub(crate) async fn send(&self, client: &Client, ledger: &Ledger) -> Heard {
        for job in self.jobs() {
            ledger.asks(job);
        }
        let domain = Domain::default();
        match self {
            Request::One(job) => {
                let mut unnamed = (**job).clone();
                let name = unnamed.idempotency_key.take();
                let answer = client.submit_job(&domain, &unnamed, name.as_deref()).await;
                heard(answer, |told| match told {
                    Ok(answer) => ledger.told_of(job, &answer),
                    Err(status) => ledger.refused(job, status),
                })
            }
            Request::Many(jobs) => send_all(client, ledger, jobs).await,
            Request::Await(id) => heard(look_until_ended(client, *id).await, |told| {
                assert!(told.is_ok() || ledger.may_be_deleted(*id), "{id} is missing: {told:?}");
            }),
            Request::Cancel(id) => {
                ledger.cancelled(*id, Asked::Perhaps);
                heard(client.cancel_job(&domain, *id).await, |told| {
                    ledger.cancelled(*id, done_unless_conflict(told.map(drop)));
                })
            }
            Request::Delete(id) => {
                ledger.deleted(*id, Asked::Perhaps);
                heard(client.delete_job(&domain, *id).await, |told| {
                    ledger.deleted(*id, done_unless_conflict(told));
                })
            }
        }
    }
}

async fn look_until_ended(client: &Client, id: JobId) -> Result<(), Error> {
    while !client.job(&Domain::default(), id).await?.status.is_terminal() {
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn send_all(client: &Client, ledger: &Ledger, jobs: &[NewJob]) -> Heard {
    let mut all = Heard::Something;
    let sent = heard(client.submit_jobs(&Domain::default(), jobs).await, |told| {
        let answers = told.unwrap_or_else(|status| panic!("a batch was refused with status {status}"));
        for (job, answer) in jobs.iter().zip(answers) {
            let answer = answer.map_err(|problem| Error::Problem(Box::new(problem)));
            let each = heard(answer, |told| match told {
                Ok(answer) => ledger.told(job, answer.job_id, answer.job_number),
                Err(status) => ledger.refused(job, status),
            });
            all = if each == Heard::Nothing { each } else { all };
        }
    });
    if sent == Heard::Nothing { sent } else { all }
}

/// Tells what was answered: success, or a refusal with its status. A store that cannot say what it did is no answer.
fn heard<T>(answer: Result<T, Error>, tell: impl FnOnce(Result<T, u16>)) -> Heard {
    match answer {
        Ok(answer) => tell(Ok(answer)),
        Err(Error::Unreachable { .. }) => return Heard::Nothing,
        Err(error) => match error.status() {
            Some(503) => return Heard::Nothing,
            Some(status @ 400..500) => tell(Err(status)),
            _ => panic!("{error}"),
        },
    }
    Heard::Something
}

/// What cannot be changed any more, or not now, stays as it is.
fn done_unless_conflict(told: Result<(), u16>) -> Asked {
    match told {
        Ok(()) => Asked::Yes,
        Err(409) => Asked::No,
        Err(status) => panic!("a change was refused with status {status}"),
    }
}

/// What one caller comes up with.
pub(crate) struct Whims {
    duty: Duty,
    dice: StdRng,
    name: String,
    asked: u64,
    /// The names of jobs that may be open, the oldest first.
    open: VecDeque<String>,
}

impl Whims {
    pub(crate) fn new(duty: Duty, nth: usize, dice: StdRng) -> Self {
        Self { duty, dice, name: format!("{duty:?} {nth}"), asked: 0, open: VecDeque::new() }
    }

    pub(crate) async fn request(&mut self, ledger: &Ledger) -> Request {
        while self.open.len() > MAX_OPEN {
            if let Some(id) = self.open.pop_front().and_then(|name| ledger.answer(&name)) {
                return Request::Await(id);
            }
        }
        let named = self.dice.random_bool(0.5);
        match self.duty {
            Duty::Singles => Request::One(Box::new(self.job(named))),
            Duty::Batches => {
                let size = self.dice.random_range(1..20);
                Request::Many((0..size).map(|_| self.job(named)).collect())
            }
            Duty::Twins if self.dice.random_bool(0.1) => {
                Request::Many((0..3).map(|_| self.twin(named)).collect())
            }
            Duty::Twins => Request::One(Box::new(self.twin(named))),
            Duty::Changes => loop {
                sleep(Duration::from_millis(self.dice.random_range(0..30))).await;
                if let Some(id) = ledger.one_of_the_latest(&mut self.dice) {
                    break if named { Request::Cancel(id) } else { Request::Delete(id) };
                }
            },
        }
    }

    /// Whether what was answered is sent once more. A twin may get another answer then.
    pub(crate) fn repeats(&mut self, request: &Request) -> bool {
        request.jobs().iter().all(|job| job.unique.is_none()) && self.dice.random_bool(0.1)
    }

    fn job(&mut self, named: bool) -> NewJob {
        self.asked += 1;
        let name = format!("{}, {}", self.name, self.asked);
        let mut job = match self.dice.random_range(0..100) {
            0..50 => NewJob::new(&name, "noop", json!({})),
            50..85 => wait(&name, self.dice.random_range(0..60)),
            85..93 => wait(&name, self.dice.random_range(100..400)),
            93..95 => wait(&name, self.dice.random_range(1_000..2_000)),
            _ => too_long(&name),
        };
        if self.dice.random_bool(0.2) {
            job.priority = Some(self.dice.random_range(0..9));
        }
        self.open.push_back(name.clone());
        job.idempotency_key = named.then_some(name);
        job
    }

    /// One of few, so that others like it are about.
    fn twin(&mut self, named: bool) -> NewJob {
        let mut job = self.job(named);
        let key = format!("key {}", self.dice.random_range(0..5));
        let scope = if self.dice.random_bool(0.5) { Scope::Running } else { Scope::Unfinished };
        job.unique = Some(Unique { key, scope, for_ms: None });
        job
    }
}

/// Two attempts, neither of which is in time.
fn too_long(name: &str) -> NewJob {
    let backoff = Backoff { delay_ms: 10, factor: 1, max_delay_ms: 10, extra: Extra::new() };
    NewJob { timeout_ms: Some(30), attempts: Some(2), backoff: Some(backoff), ..wait(name, 600_000) }
}
