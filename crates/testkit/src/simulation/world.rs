//! The course of a run: things go wrong for a while, then all is calm for long enough that whatever was promised must have
//! come about.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rota_engine::flaws::Flaw;
use rota_model::ids::NodeId;
use rota_model::job::JobStatus;
use rota_model::node::NodeStatus;
use tokio::time::{Instant, sleep, sleep_until};

use super::people::People;
use super::plan::{Errand, Plan, Trouble, types_of};
use super::process::{Fronts, Ground, Identity, Process};
use super::record::{Event, Life, Notebook, What};
use super::recorder::Recorder;
use crate::faults::{Sky, Truth};
use crate::surroundings::BEGINNING;

/// How long it is calm at least: longer than any write is late.
const CALM_MIN: Duration = Duration::from_secs(32);
/// How long it may take until nothing is left to do.
const CALM_MAX: Duration = Duration::from_secs(260);
/// For so long nothing must be left to do.
const QUIET: Duration = Duration::from_secs(3);
/// Jobs that wait for longer than this into the calm are left waiting.
const AHEAD: Duration = Duration::from_secs(60);

/// A machine: a node lives here, one life after the other.
struct Place {
    who: Identity,
    process: Option<Process>,
    off_by_ms: i64,
}

enum Deed {
    Trouble(Trouble),
    Errand(Errand),
    /// Ends of what began earlier.
    Start(usize),
    Thaw(Life),
    Clear(Life),
    /// While it is calm.
    Crash,
    Stop,
    ResumeAll,
}

fn places(plan: &Plan) -> Vec<Place> {
    let place = |number: usize| {
        let dice = &mut plan.dice("place", number as u64);
        let name = format!("node-{}", number + 1);
        let who = Identity {
            id: NodeId::derived(&[&name]),
            name,
            types: types_of(number, dice),
            capacity: dice.random_range(1..=6),
            grace: Duration::from_millis(dice.random_range(100..=3_000)),
        };
        Place { who, process: None, off_by_ms: 0 }
    };
    (0..plan.nodes + plan.spare).map(place).collect()
}

pub struct World {
    plan: Arc<Plan>,
    dice: StdRng,
    ground: Ground,
    recorder: Arc<Recorder>,
    places: Vec<Place>,
    people: People,
    lives: Life,
    agenda: BTreeMap<(Duration, u64), Deed>,
    is_calm: bool,
}

impl World {
    /// Must be called inside a runtime of one thread whose time is paused.
    pub fn new(plan: Plan, flaw: Option<Flaw>) -> Self {
        let plan = Arc::new(plan);
        let notes = Notebook::begin();
        let recorder = Arc::new(Recorder::new(notes.clone()));
        let store = Arc::clone(&recorder) as Arc<_>;
        let truth = plan
            .lag
            .map_or_else(|| Truth::new(Arc::clone(&store)), |lag| Truth::lagging(Arc::clone(&store), lag));
        let fronts = Fronts::default();
        let ground =
            Ground { began: Instant::now(), notes, truth, fronts: fronts.clone(), rates: plan.rates, flaw };
        let places = places(&plan);
        let nodes = places.iter().map(|place| place.who.id).collect();
        let people = People::new(Arc::clone(&plan), ground.notes.clone(), fronts, nodes);
        let mut world = Self {
            dice: plan.dice("world", 0),
            plan,
            ground,
            recorder,
            places,
            people,
            lives: 0,
            agenda: BTreeMap::new(),
            is_calm: false,
        };
        world.settle_down();
        world
    }

    fn settle_down(&mut self) {
        let plan = Arc::clone(&self.plan);
        for number in 0..plan.nodes {
            let at = Duration::from_millis(self.dice.random_range(0..=500));
            self.plan_for(at, Deed::Start(number));
        }
        for (at, trouble) in &plan.troubles {
            self.plan_for(*at, Deed::Trouble(*trouble));
        }
        for (at, errand) in &plan.errands {
            self.plan_for(*at, Deed::Errand(*errand));
        }
    }

    fn plan_for(&mut self, at: Duration, deed: Deed) {
        // The number keeps apart what happens at one instant.
        let number = self.dice.random();
        self.agenda.insert((at, number), deed);
    }

    fn plan_in(&mut self, range_ms: std::ops::RangeInclusive<u64>, deed: Deed) {
        let at = self.ground.notes.now() + Duration::from_millis(self.dice.random_range(range_ms));
        self.plan_for(at, deed);
    }

    pub async fn run(mut self) -> (Notebook, Arc<Plan>) {
        self.live_until(self.plan.chaos).await;
        self.calm_down();
        self.settle().await;
        self.note(Event::Closes);
        for process in self.places.iter().filter_map(|place| place.process.as_ref()) {
            self.ground.fronts.close(process.life);
            process.gate.kill();
        }
        (self.ground.notes, self.plan)
    }

    async fn live_until(&mut self, end: Duration) {
        while let Some(next) = self.agenda.first_entry().filter(|next| next.key().0 <= end) {
            let ((at, _), deed) = next.remove_entry();
            sleep_until(self.ground.began + at).await;
            self.perform(deed);
        }
        sleep_until(self.ground.began + end).await;
    }

    fn perform(&mut self, deed: Deed) {
        match deed {
            Deed::Trouble(trouble) => self.befall(trouble),
            Deed::Errand(errand) => self.people.send(errand, &mut self.dice),
            Deed::Start(place) => self.start(place),
            Deed::Thaw(life) => self.thaw(life),
            Deed::Clear(life) => self.turn(life, self.usual_sky()),
            Deed::Crash => self.crash_while_calm(),
            Deed::Stop => self.stop(2_000..=6_000),
            Deed::ResumeAll => self.resume_all(),
        }
    }

    fn befall(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Crash => {
                if let Some(place) = self.draw_live() {
                    self.crash(place);
                    if self.dice.random_bool(0.8) {
                        self.plan_in(50..=25_000, Deed::Start(place));
                    }
                }
            }
            Trouble::Freeze => self.freeze(),
            Trouble::CutOff => {
                if let Some(life) = self.draw_live().and_then(|place| self.life_at(place)) {
                    self.cut_off(life, 500..=30_000);
                }
            }
            Trouble::Outage => self.outage(),
            Trouble::Jump => self.jump(),
            Trouble::Stop => self.stop(50..=10_000),
            Trouble::Join => {
                if let Some(place) = self.draw(|place| place.process.is_none()) {
                    self.start(place);
                }
            }
        }
    }

    fn note(&self, event: Event) {
        self.ground.notes.note(What::World(event));
    }

    fn usual_sky(&self) -> Sky {
        if self.is_calm { Sky::Calm } else { Sky::Rough }
    }

    fn draw(&mut self, suits: impl Fn(&Place) -> bool) -> Option<usize> {
        let suiting: Vec<usize> =
            self.places.iter().enumerate().filter(|(_, place)| suits(place)).map(|(at, _)| at).collect();
        if suiting.is_empty() { None } else { suiting.get(self.dice.random_range(0..suiting.len())).copied() }
    }

    /// A machine whose process is up, frozen or not.
    fn draw_live(&mut self) -> Option<usize> {
        self.draw(|place| place.process.as_ref().is_some_and(|process| !process.has_ended()))
    }

    fn life_at(&self, place: usize) -> Option<Life> {
        self.places.get(place)?.process.as_ref().map(|process| process.life)
    }

    fn process(&mut self, life: Life) -> Option<&mut Process> {
        self.places.iter_mut().filter_map(|place| place.process.as_mut()).find(|process| process.life == life)
    }

    fn start(&mut self, place: usize) {
        let (life, sky) = (self.lives, self.usual_sky());
        let dice = self.plan.dice("process", u64::from(life));
        let Some(place) = self.places.get_mut(place) else { return };
        if place.process.as_ref().is_some_and(|process| !process.has_ended()) {
            return;
        }
        self.lives += 1;
        place.process = Some(Process::start(&self.ground, &place.who, life, sky, place.off_by_ms, dice));
    }

    fn crash(&mut self, place: usize) {
        let Some(process) = self.places.get_mut(place).and_then(|place| place.process.take()) else { return };
        self.note(Event::Crashes { life: process.life });
        self.ground.fronts.close(process.life);
        process.gate.kill();
    }

    fn freeze(&mut self) {
        let awake = |process: &Process| !process.has_ended() && !process.is_frozen;
        let Some(place) = self.draw(|place| place.process.as_ref().is_some_and(awake)) else { return };
        let Some(life) = self.life_at(place) else { return };
        self.note(Event::Freezes { life });
        if let Some(process) = self.process(life) {
            process.is_frozen = true;
            process.gate.shut();
        }
        let spans = [100..=1_000, 1_000..=6_000, 5_000..=9_000, 6_000..=20_000, 10_000..=60_000];
        let span = spans[self.dice.random_range(0..spans.len())].clone();
        self.plan_in(span, Deed::Thaw(life));
    }

    fn thaw(&mut self, life: Life) {
        if self.process(life).is_none_or(|process| !process.is_frozen) {
            return;
        }
        self.note(Event::Thaws { life });
        let mut dice = StdRng::seed_from_u64(self.dice.random());
        if let Some(process) = self.process(life) {
            process.is_frozen = false;
            process.gate.open(&mut dice);
        }
    }

    fn cut_off(&mut self, life: Life, range_ms: std::ops::RangeInclusive<u64>) {
        let how = [Sky::Refused, Sky::Swallowed, Sky::Mute];
        let sky = how[self.dice.random_range(0..how.len())];
        self.turn(life, sky);
        self.plan_in(range_ms, Deed::Clear(life));
    }

    fn turn(&mut self, life: Life, sky: Sky) {
        let Some(process) = self.process(life) else { return };
        if process.weather.sky() != sky {
            process.weather.turn(sky);
            self.note(Event::Turns { life, sky });
        }
    }

    fn lives_now(&self) -> Vec<Life> {
        let processes = self.places.iter().filter_map(|place| place.process.as_ref());
        processes.filter(|process| !process.has_ended()).map(|process| process.life).collect()
    }

    /// The store is away, for everybody.
    fn outage(&mut self) {
        let span = self.dice.random_range(500..=15_000);
        for life in self.lives_now() {
            self.cut_off(life, span..=span);
        }
    }

    fn jump(&mut self) {
        let most = self.plan.jump_ms;
        let by_ms = self.dice.random_range(-most..=most);
        if let Some(place) = self.draw_live() {
            self.jump_at(place, by_ms);
        }
    }

    fn jump_at(&mut self, place: usize, by_ms: i64) {
        let Some(place) = self.places.get_mut(place) else { return };
        place.off_by_ms += by_ms;
        if let Some(process) = &place.process {
            process.clock.jump(by_ms);
            let life = process.life;
            self.note(Event::Jumps { life, by_ms });
        }
    }

    /// Stops a node in good order, and starts it again a while later.
    fn stop(&mut self, back_ms: std::ops::RangeInclusive<u64>) {
        let Some(place) = self.draw_live() else { return };
        let Some(process) = self.places.get(place).and_then(|place| place.process.as_ref()) else { return };
        if !process.stop.is_cancelled() {
            let (life, stop) = (process.life, process.stop.clone());
            self.note(Event::IsToStop { life });
            stop.cancel();
        }
        let back = self.dice.random_range(back_ms);
        // It is tried again until the former life has ended.
        for later in 0..8 {
            self.plan_in(back + later * 3_000..=back + later * 3_000, Deed::Start(place));
        }
    }

    /// Faults end, the frozen thaw, clocks are put right, machines start again.
    fn calm_down(&mut self) {
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
    fn resume_all(&mut self) {
        let states = self.recorder.states();
        for state in
            states.iter().filter(|state| state.wanted.is_some() && state.status != NodeStatus::Terminated)
        {
            self.people.resume(state.id, &mut self.dice);
        }
    }

    fn crash_while_calm(&mut self) {
        if self.lives_now().len() < 2 {
            return;
        }
        if let Some(place) = self.draw_live() {
            self.crash(place);
            self.plan_in(14_000..=16_000, Deed::Start(place));
        }
    }

    /// Until nothing is left to do, but not for ever.
    async fn settle(&mut self) {
        let calm = self.ground.notes.now();
        let mut quiet_since = None;
        loop {
            let now = self.ground.notes.now();
            self.live_until(now + Duration::from_secs(1)).await;
            let now = self.ground.notes.now();
            let busy = self.is_something_left(calm) || !self.agenda.is_empty();
            let since = *quiet_since.get_or_insert(now);
            if busy {
                quiet_since = None;
            } else if now >= calm + CALM_MIN && now >= since + QUIET {
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
