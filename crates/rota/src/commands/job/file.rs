//! `rota job submit --file`: many jobs, one per line, sent in batches. A line that cannot be used is named with its number,
//! and in nobody's way.
//!
//! Each line has an idempotency key, its own or one that follows from the file up to there. So whatever happens on the way,
//! to this command, to the network or to Rota, the same command again goes on without making any job twice.
//!
//! - [`lines`]: the file is read, cut into batches, and each line given its key
//! - [`send`]: a batch is sent, again and again while nobody answers

mod lines;
mod send;

use std::path::Path;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use self::lines::{Batch, Lines, count_lines};
use self::send::{Sender, Sent};
use super::Context;
use crate::exit::{Exit, Failure};
use crate::output::progress::Bar;

/// How many batches are on their way at once.
const IN_FLIGHT: usize = 4;
/// How many batches are read ahead.
const AHEAD: usize = 2;
/// How many lines that were refused are named; the rest is counted.
const NAMED: u64 = 20;

/// What became of the lines so far.
#[derive(Default)]
struct Tally {
    sent: u64,
    new: u64,
    existing: u64,
    refused: u64,
}

pub(super) async fn submit(
    context: &Context,
    path: &Path,
    again: Option<&str>,
    patience: Duration,
) -> Result<(), Failure> {
    let lines = Lines::open(path, again)?;
    let sender = Sender { client: context.client()?, domain: context.domain.clone(), patience };
    let bar = Bar::begin("Submitting", "lines");
    let total = if bar.is_watched() { count_lines(path) } else { None };
    let mut tally = Tally::default();
    let batches = stream::unfold(read_ahead(lines), |mut batches| async {
        batches.recv().await.map(|batch| (batch, batches))
    });
    let mut answers = std::pin::pin!(batches.map(|batch| sender.send(batch)).buffered(IN_FLIGHT));
    while let Some(sent) = answers.next().await {
        let read_to = tally.add(&bar, sent.map_err(|failure| tally.at_the_end(&failure))?);
        match total {
            Some(total) => bar.at(read_to, total),
            None => bar.so_far(read_to),
        }
    }
    drop(bar);
    tally.tell(context)
}

/// Reads on another thread: the standard input may keep it waiting, and what is on its way must not wait with it.
fn read_ahead(mut lines: Lines) -> mpsc::Receiver<Result<Batch, Failure>> {
    let (batches, received) = mpsc::channel(AHEAD);
    spawn_blocking(move || {
        while let Some(batch) = lines.batch().transpose() {
            let failed = batch.is_err();
            if batches.blocking_send(batch).is_err() || failed {
                return;
            }
        }
    });
    received
}

impl Tally {
    /// Says up to which line all is done.
    fn add(&mut self, bar: &Bar, sent: Sent) -> u64 {
        self.sent += sent.lines;
        self.new += sent.new;
        self.existing += sent.existing;
        for (line, why) in sent.refused {
            self.refused += 1;
            if self.refused <= NAMED {
                bar.say(&format!("line {line}: {why}"));
            }
        }
        sent.read_to
    }

    /// What to do about it if it ends before its time.
    fn at_the_end(&self, failure: &Failure) -> Failure {
        let accepted = self.new + self.existing;
        let message = format!(
            "{}; {accepted} jobs are accepted so far, and the same command again goes on without making any twice",
            failure.message
        );
        Failure::new(failure.exit, message)
    }

    fn tell(self, context: &Context) -> Result<(), Failure> {
        let Self { sent, new, existing, refused } = self;
        let said = format!("{sent} sent: {new} new, {existing} already there, {refused} refused.");
        let document = json!({"sent": sent, "new": new, "existing": existing, "refused": refused});
        context.out.text(&said, &document)?;
        match refused {
            0 => Ok(()),
            1 => Err(Failure::new(Exit::Refused, "1 line was refused; it is named above")),
            2..=NAMED => Err(Failure::refused(format!("{refused} lines were refused; they are named above"))),
            _ => {
                let message = format!("{refused} lines were refused; the first {NAMED} are named above");
                Err(Failure::refused(message))
            }
        }
    }
}
