//! The end of a run: faults cease, machines start again, and once more something happens, with nothing else to disturb it.
//! Then there is time for everything to come about.

use std::time::Duration;

use rand::RngExt;
use rota_model::job::JobStatus;
use rota_model::node::NodeStatus;
use tokio::time::sleep;

use super::{Deed, World};
use crate::faults::Sky;
use crate::simulation::plan::Errand;
use crate::simulation::record::Event;
use crate::surroundings::BEGINNING;

/// How long it is calm at least: longer than any write is late.
const CALM_MIN: Duration = Duration::from_secs(32);
/// How long it is calm where something of former times is to go: until everybody has been up for more than a minute.
const CALM_TO_CLEAR: Duration = Duration::from_secs(115);
/// How long it may take until nothing is left to do.
const CALM_MAX: Duration = Duration::from_secs(260);
/// For so long nothing must be left to do.
const QUIET: Duration = Duration::from_secs(3);
/// Jobs that wait for longer than this into the calm are left waiting.
const AHEAD: Duration = Duration::from_secs(60);

impl World {
    /// Faults end, the frozen thaw, clocks are put right, machines start again.
    pub(super) fn calm_down(&mut self) {
        self.is_calm = true;
        self.note(Event::Calms);
        self.agenda.retain(|_, deed| matches!(deed, Deed::Start(_)));
        for life in self.lives_now() {
            self.turn(life, Sky::Calm);
            self.thaw(life);
        }
        for place in 0..self.places.len() {
            let off_by_ms = self.places.get(place).map_or(0, |place| place.off_by_ms);
            if off_by_ms != 0 {
                self.jump_at(place, -off_by_ms);
            }
        }
        // The first node runs every type. Those that never joined stay away.
        for place in 0..self.plan.nodes {
            if place == 0 || self.dice.random_bool(0.6) {
                self.start(place);
                // Who is just stopping starts again when it has ended.
                for seconds in [3, 8, 26] {
                    self.plan_in(seconds * 1_000..=seconds * 1_000, Deed::Start(place));
                }
            }
        }
        for seconds in [1, 5, 9, 14, 20, 27] {
            self.plan_in(seconds * 1_000..=seconds * 1_000, Deed::ResumeAll);
        }
        self.plan_calm_events();
    }

    /// A crash and a stop that nothing else disturbs, with work to interrupt.
    fn plan_calm_events(&mut self) {
        if self.dice.random_bool(0.6) {
            for _ in 0..4 {
                self.plan_in(9_000..=11_000, Deed::Errand(Errand::SubmitLong));
            }
            self.plan_in(12_000..=13_000, Deed::Crash);
        }
        if self.dice.random_bool(0.5) {
            for _ in 0..3 {
                self.plan_in(27_000..=28_500, Deed::Errand(Errand::SubmitLong));
            }
            self.plan_in(29_000..=29_500, Deed::Stop);
        }
    }

    /// Nobody is to rest any more.
    pub(super) fn resume_all(&mut self) {
        let states = self.recorder.states();
        for state in
            states.iter().filter(|state| state.wanted.is_some() && state.status != NodeStatus::Terminated)
        {
            self.people.resume(state.id, &mut self.dice);
        }
    }

    pub(super) fn crash_while_calm(&mut self) {
        if self.lives_now().len() < 2 {
            return;
        }
        if let Some(place) = self.draw_live() {
            self.crash(place);
            self.plan_in(14_000..=16_000, Deed::Start(place));
        }
    }

    /// Until nothing is left to do, but not for ever.
    pub(super) async fn settle(&mut self) {
        let calm = self.ground.notes.now();
        let least = if self.plan.has_attic { CALM_TO_CLEAR } else { CALM_MIN };
        let mut quiet_since = None;
        loop {
            let now = self.ground.notes.now();
            self.live_until(now + Duration::from_secs(1)).await;
            let now = self.ground.notes.now();
            let busy = self.is_something_left(calm) || !self.agenda.is_empty();
            let since = *quiet_since.get_or_insert(now);
            if busy {
                quiet_since = None;
            } else if now >= calm + least && now >= since + QUIET {
                return;
            }
            if now >= calm + CALM_MAX {
                return;
            }
            sleep(Duration::ZERO).await;
        }
    }

    fn is_something_left(&self, calm: Duration) -> bool {
        let horizon = BEGINNING.plus(calm + AHEAD);
        self.recorder.jobs().iter().any(|job| match job.status {
            JobStatus::Queued => job.run_at <= horizon,
            JobStatus::Started => true,
            JobStatus::Successful | JobStatus::Failed | JobStatus::Error => false,
        })
    }
}
