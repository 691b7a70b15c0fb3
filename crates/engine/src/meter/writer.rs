//! The task that stores what was measured: at the end of each five seconds, into the document of these.
//!
//! Nobody waits for it. While the store is away, what was measured waits in memory, each bucket on its own; when too many wait, the
//! oldest go, and their number is counted and said. A bucket whose answer was lost is merged again and changes nothing
//! (rule 18), since the samples name their run and take the place of what that run put there before.
//!
//! A run is the life of a process, as long as its clock goes forward. Who starts again within a bucket, or whose clock was put back
//! into one that it already stored, is a run of its own, and its samples stand beside the others.

use std::collections::VecDeque;
use std::time::Duration;

use rota_model::ids::NodeId;
use rota_model::log::Level as Loudness;
use rota_model::metric::{BUCKET_MS, BucketTime, Sample, SampleKind, Samples};
use rota_model::time::UnixMillis;
use rota_store::metrics::Metrics;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Count, Latency, Level, Meter, Reading};
use crate::flaws::Flaw;
use crate::patience::{Complaint, answered};
use crate::surroundings::Surroundings;

/// How many buckets wait while the store is away: ten minutes.
const MAX_WAITING: usize = 120;
/// Nodes that all wrote at the same instant would stand in each other's way: each writes at some moment within this.
const SPREAD: Duration = Duration::from_secs(1);
/// Between two tries while the store is away.
const PAUSE: Duration = Duration::from_secs(1);

/// Stores what is measured until it is over; then what is left, once, and ends. Nothing to do if the meter is off.
pub(crate) async fn write(
    metrics: Metrics,
    node: NodeId,
    surroundings: Surroundings,
    over: CancellationToken,
) {
    if !surroundings.meter().is_on() {
        return;
    }
    let mut writer = Writer::new(metrics, node, surroundings);
    while !over.is_cancelled() {
        tokio::select! {
            biased;
            () = over.cancelled() => {}
            () = sleep(writer.pause()) => {
                if writer.turn_page() {
                    writer.stand_back(&over).await;
                }
                writer.store().await;
            }
        }
    }
    writer.close(writer.surroundings.now());
    writer.store().await;
}

struct Writer {
    metrics: Metrics,
    node: NodeId,
    surroundings: Surroundings,
    run: String,
    /// Everything up to the bucket that is open.
    before: Reading,
    /// When that was opened.
    opened: UnixMillis,
    /// What is to be stored, the oldest first, each with an instant of its bucket.
    waiting: VecDeque<(UnixMillis, Samples)>,
    complaint: Complaint,
}

impl Writer {
    fn new(metrics: Metrics, node: NodeId, surroundings: Surroundings) -> Self {
        let (opened, run) = (surroundings.now(), run(&surroundings));
        // Jobs that were taken over and accepted before the node ran count too: the first bucket has all of it.
        let before = Reading::default();
        Self {
            metrics,
            node,
            surroundings,
            run,
            before,
            opened,
            waiting: VecDeque::new(),
            complaint: Complaint::default(),
        }
    }

    fn meter(&self) -> &Meter {
        self.surroundings.meter()
    }

    /// Until the open bucket ends, or it is worth trying again.
    fn pause(&self) -> Duration {
        let left = BUCKET_MS - self.surroundings.now().0.rem_euclid(BUCKET_MS);
        let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
        if self.waiting.is_empty() { left } else { left.min(PAUSE) }
    }

    /// Closes the bucket that is open, if its time is over. Says whether it was.
    fn turn_page(&mut self) -> bool {
        let now = self.surroundings.now();
        let is_over = BucketTime::of(now) != BucketTime::of(self.opened);
        if is_over {
            self.close(now);
        }
        is_over
    }

    /// Lets others write first, or not.
    async fn stand_back(&self, over: &CancellationToken) {
        tokio::select! {
            biased;
            () = over.cancelled() => {}
            () = sleep(SPREAD.mul_f64(self.surroundings.chance())) => {}
        }
    }

    /// What came since the bucket was opened is what it holds; the next one begins.
    fn close(&mut self, now: UnixMillis) {
        let Some(reading) = self.meter().take() else { return };
        let samples = samples(&reading.since(&self.before), &self.run);
        self.before = reading;
        self.waiting.push_back((self.opened, samples));
        if self.waiting.len() > MAX_WAITING {
            self.waiting.pop_front();
            self.give_up_one("the store was away for too long");
        }
        if now < self.opened {
            self.run = run(&self.surroundings);
        }
        self.opened = now;
    }

    /// Hands over what waits, until something does not succeed.
    async fn store(&mut self) {
        while let Some((at, samples)) = self.waiting.front_mut() {
            if self.surroundings.has(Flaw::MergesBeside) {
                let anew = run(&self.surroundings);
                samples.values_mut().for_each(|sample| sample.run = Some(anew.clone()));
            }
            match answered("store metrics", self.metrics.merge(self.node, samples, *at)).await {
                Ok(()) => {}
                Err(error) if error.is_passing() => {
                    let title = "metrics cannot be stored; they wait";
                    self.surroundings.journal().complain(&mut self.complaint, title, error);
                    return;
                }
                Err(error) => self.give_up_one(&error.to_string()),
            }
            self.waiting.pop_front();
        }
    }

    fn give_up_one(&self, why: &str) {
        self.meter().count(Count::BucketsDropped, 1);
        self.surroundings.journal().tell_with(Loudness::Warn, "metrics of five seconds were dropped", why);
    }
}

/// The id of a run: they rise. It stands in every entry, so it is short; it only has to differ from those of the same node.
fn run(surroundings: &Surroundings) -> String {
    let [high, low] = surroundings.random_bytes();
    format!("{:011x}-{high:02x}{low:02x}", surroundings.now().as_u64())
}

/// What was measured, as it is stored. What did not happen is left out; a level, and how much was done, is always there.
fn samples(reading: &Reading, run: &str) -> Samples {
    let processed = Sample::of(SampleKind::Total, whole(reading.jobs_processed()), "jobs");
    let mut samples = Samples::from([("jobsProcessed".to_owned(), processed.of_run(run))]);
    for what in Count::ALL {
        if let count @ 1.. = reading.count(what) {
            let sample = Sample::of(SampleKind::Total, whole(count), what.units());
            samples.insert(what.name().to_owned(), sample.of_run(run));
        }
    }
    for what in Level::ALL {
        let sample = Sample::of(SampleKind::Level, whole(reading.level(what)), what.units());
        samples.insert(what.name().to_owned(), sample.of_run(run));
    }
    for what in Latency::ALL {
        let spread = reading.latency(what);
        if let count @ 1.. = spread.count() {
            let mean = Sample::of(SampleKind::Latency, micros(spread.mean()), "microseconds");
            let sample = Sample {
                count: Some(whole(count)),
                p50: Some(micros(spread.quantile(0.5))),
                p99: Some(micros(spread.quantile(0.99))),
                max: Some(micros(spread.max())),
                ..mean
            };
            samples.insert(what.name().to_owned(), sample.of_run(run));
        }
    }
    samples
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}
