//! A batch is sent. While nobody answers, or Rota asks to come again, it is sent again: each line has a key, so that no job
//! is made twice, whatever became of the first time.

use std::time::Duration;

use rota_client::{Client, Error, Problem};
use rota_model::domain::Domain;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

use super::lines::{Batch, Line};
use crate::exit::{Exit, Failure, details};

/// Between two tries, longer each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(super) struct Sender {
    pub(super) client: Client,
    pub(super) domain: Domain,
    /// How long it may go on that nobody answers.
    pub(super) patience: Duration,
}

/// What became of a batch.
#[derive(Default)]
pub(super) struct Sent {
    pub(super) lines: u64,
    pub(super) new: u64,
    pub(super) existing: u64,
    /// In the order of the file.
    pub(super) refused: Vec<(u64, String)>,
    /// The last line of the batch.
    pub(super) read_to: u64,
}

impl Sender {
    pub(super) async fn send(&self, batch: Result<Batch, Failure>) -> Result<Sent, Failure> {
        let Batch { mut lines, refused, read_to } = batch?;
        let mut sent = Sent { lines: lines.len() as u64, refused, read_to, ..Sent::default() };
        let (mut pause, mut in_vain_since) = (FIRST_PAUSE, None);
        while !lines.is_empty() {
            let count = lines.len();
            let texts: Vec<&RawValue> = lines.iter().map(|line| line.text.as_ref()).collect();
            let why = match self.client.submit_jobs(&self.domain, &texts).await {
                Ok(answers) => {
                    let again =
                        lines.into_iter().zip(answers).filter_map(|(line, answer)| sent.add(line, answer));
                    let (left, mut problems): (Vec<_>, Vec<_>) = again.unzip();
                    lines = left;
                    problems.pop().map(|problem| Failure::from(Error::Problem(Box::new(problem))))
                }
                Err(error) if is_passing(&error) => Some(Failure::from(error)),
                Err(error) => return Err(error.into()),
            };
            let Some(why) = why else { break };
            if lines.len() < count {
                (pause, in_vain_since) = (FIRST_PAUSE, None);
            }
            let since = *in_vain_since.get_or_insert_with(Instant::now);
            if since.elapsed() + pause > self.patience {
                return Err(Failure::new(Exit::Unreachable, why.message));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        sent.refused.sort_by_key(|(line, _)| *line);
        Ok(sent)
    }
}

impl Sent {
    /// Takes down what became of a line; gives it back if it is to be sent again.
    fn add(&mut self, line: Line, answer: Result<rota_client::Accepted, Problem>) -> Option<(Line, Problem)> {
        match answer {
            Ok(accepted) if accepted.existing => self.existing += 1,
            Ok(_) => self.new += 1,
            Err(problem) if matches!(problem.status, 429 | 503) => return Some((line, problem)),
            Err(problem) => self.refused.push((line.number, said_of(&problem))),
        }
        None
    }
}

/// Whether it may go better in a moment: nobody answered, or somebody who asks to come again.
fn is_passing(error: &Error) -> bool {
    error.is_passing() || matches!(error.status(), Some(429 | 502 | 504))
}

fn said_of(problem: &Problem) -> String {
    if problem.errors.is_empty() { problem.detail.clone() } else { details(&problem.errors, "; ") }
}
