//! What it costs that Rota is watched: the same work with logs and metrics kept, as `rota up` has it, and with neither, in turns on
//! two nodes of this process, so that whatever else the machine does happens to both.

use rota_store_sqlite::durability::Durability;

use super::stage::{Stage, Watched};
use super::{CASES, Options, idle, lives, rate};
use crate::report::Measurement;

pub(super) const NOTE: &str = ", with logs and metrics kept";
const AGAINST: &str = "neither, in turns";
const DRAIN: &str = "a prepared queue drained";

pub(super) async fn run(options: &Options) -> Vec<Measurement> {
    let wanted = |case: &str| options.wants(&format!("in process, {case}{NOTE}"));
    if !CASES.iter().map(|(case, ..)| *case).chain([DRAIN]).any(wanted) {
        return Vec::new();
    }
    let watched = Stage::watched(options.on, Durability::OnDisk, 0, Watched::Yes).await;
    let plain = Stage::watched(options.on, Durability::OnDisk, 0, Watched::No).await;
    let mut measurements = Vec::new();
    for (case, producers, batch) in CASES.into_iter().filter(|(case, ..)| wanted(case)) {
        let [mut accepted, mut ended] = [Pair::default(), Pair::default()];
        for run in 0..options.runs {
            eprintln!("in process, {case}{NOTE}, run {} in turns with neither", run + 1);
            for (stage, of) in in_turns(run, &watched, &plain) {
                let (accept, end) = lives(stage, options.jobs, producers, batch).await;
                accepted.note(of, accept);
                ended.note(of, end);
            }
        }
        measurements.push(accepted.compared(format!("in process, {case}: accepted{NOTE}")));
        measurements.push(ended.compared(format!("in process, {case}: from submit to end{NOTE}")));
    }
    idle::at_rest().await;
    if wanted(DRAIN) {
        let mut drained = Pair::default();
        for run in 0..options.runs {
            eprintln!("in process, {DRAIN}{NOTE}, run {} in turns with neither", run + 1);
            for (stage, of) in in_turns(run, &watched, &plain) {
                drained.note(of, stage.drain(options.jobs).await);
            }
        }
        measurements.push(drained.compared(format!("in process, {DRAIN}{NOTE}")));
    }
    measurements
}

/// Who goes first changes from run to run.
fn in_turns<'a>(run: usize, watched: &'a Stage, plain: &'a Stage) -> [(&'a Stage, Watched); 2] {
    let (first, second) = ((watched, Watched::Yes), (plain, Watched::No));
    if run.is_multiple_of(2) { [first, second] } else { [second, first] }
}

#[derive(Default)]
struct Pair {
    watched: Vec<f64>,
    plain: Vec<f64>,
}

impl Pair {
    fn note(&mut self, of: Watched, value: f64) {
        match of {
            Watched::Yes => self.watched.push(value),
            Watched::No => self.plain.push(value),
        }
    }

    fn compared(mut self, case: String) -> Measurement {
        let (watched, plain) = (rate(case, &mut self.watched), rate(String::new(), &mut self.plain));
        let ratio = Some(watched.value / plain.value);
        Measurement { against: Some(AGAINST.to_owned()), ratio, ..watched }
    }
}
