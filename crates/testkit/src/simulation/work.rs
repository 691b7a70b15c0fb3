//! What simulated jobs do. A script in the payload says how long a handler takes, how it fails and whether it heeds being
//! told to stop; whatever it does is taken down.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rand::RngExt;
use rand::rngs::StdRng;
use rota_engine::handler::{Context, Handler, HandlerError};
use rota_engine::surroundings::Clock as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::clock::Clock;
use super::record::{Deed, Ending, Life, Notebook, What, Work};

/// The types of jobs in the simulated world.
pub const TYPES: [&str; 4] = ["alpha", "beta", "gamma", "delta"];

/// What a job does when it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// Tells submissions apart: no two have the same.
    pub serial: u64,
    pub steps: u32,
    pub step_ms: u64,
    /// How many attempts fail before one succeeds.
    pub fails: u32,
    pub how: How,
    /// Whether it goes on when it is told to stop.
    pub is_stubborn: bool,
    pub reports: bool,
}

/// How an attempt fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    Fails,
    ForGood,
    RetryAt,
    Panics,
}

impl Script {
    pub fn draw(serial: u64, is_long: bool, dice: &mut StdRng) -> Self {
        let (steps, step_ms) = if is_long {
            (dice.random_range(8..=24), dice.random_range(300..=900))
        } else {
            (dice.random_range(0..=8), dice.random_range(10..=400))
        };
        let how = match dice.random_range(0..10) {
            0..=4 => How::Fails,
            5..=6 => How::RetryAt,
            7..=8 => How::Panics,
            _ => How::ForGood,
        };
        let fails = if dice.random_bool(0.3) { dice.random_range(1..=3) } else { 0 };
        let (is_stubborn, reports) = (dice.random_bool(0.2), dice.random_bool(0.5));
        Self { serial, steps, step_ms, fails, how, is_stubborn, reports }
    }

    pub fn payload(&self) -> Value {
        json!(self)
    }

    /// The script of a job, if it has one.
    pub fn of(payload: &Map<String, Value>) -> Option<Self> {
        serde_json::from_value(Value::Object(payload.clone())).ok()
    }
}

/// Runs scripts, as one process.
pub struct Actor {
    pub life: Life,
    pub notes: Notebook,
    pub clock: Arc<Clock>,
}

/// Takes down how a handler ended, even if it is dropped.
struct Curtain {
    notes: Notebook,
    work: Work,
    ending: Ending,
}

impl Drop for Curtain {
    fn drop(&mut self) {
        self.notes.note(What::Handler(self.work, Deed::Ends(self.ending)));
    }
}

#[async_trait]
impl Handler for Actor {
    async fn run(&self, job: Context) -> Result<Map<String, Value>, HandlerError> {
        let work = Work { life: self.life, job: job.job_id, epoch: job.epoch, attempt: job.attempt };
        self.notes.note(What::Handler(work, Deed::Begins));
        let mut curtain = Curtain { notes: self.notes.clone(), work, ending: Ending::Dropped };
        let script = Script::of(&job.payload).expect("every simulated job has a script");
        for step in 0..script.steps {
            if !self.pass(&script, &job).await {
                curtain.ending = Ending::Stopped;
                return Err(HandlerError::Stopped);
            }
            self.notes.note(What::Handler(work, Deed::Acts));
            if script.reports {
                job.progress(f64::from(step) * 100.0 / f64::from(script.steps), None);
            }
        }
        if job.attempt > script.fails {
            curtain.ending = Ending::Succeeded;
            return Ok(Map::from_iter([("epoch".to_owned(), json!(job.epoch))]));
        }
        Err(self.fail(script.how, &mut curtain))
    }
}

impl Actor {
    /// Lets a step's time pass; false if the handler was told to stop and does.
    async fn pass(&self, script: &Script, job: &Context) -> bool {
        let step = Duration::from_millis(script.step_ms);
        if script.is_stubborn {
            sleep(step).await;
            return true;
        }
        tokio::select! {
            biased;
            () = job.cancelled.cancelled() => false,
            () = sleep(step) => true,
        }
    }

    fn fail(&self, how: How, curtain: &mut Curtain) -> HandlerError {
        curtain.ending = Ending::Failed;
        let why = "the script says so".to_owned();
        match how {
            How::Fails => HandlerError::Failed(why),
            How::RetryAt => {
                let at = self.clock.now().plus(Duration::from_millis(700));
                HandlerError::RetryAt { at, why }
            }
            How::ForGood => {
                curtain.ending = Ending::FailedForGood;
                HandlerError::Fatal(why)
            }
            How::Panics => {
                curtain.ending = Ending::Panicked;
                // Unlike `panic!` this says nothing on the terminal.
                std::panic::resume_unwind(Box::new(why))
            }
        }
    }
}
