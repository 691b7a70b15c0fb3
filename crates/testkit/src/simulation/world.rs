//! The course of a run: things go wrong for a while, then all is calm ([`calm`]) for long enough that whatever was promised
//! must have come about.

mod calm;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rota_engine::flaws::Flaw;
use rota_model::ids::NodeId;
use rota_store::Store;
use rota_store::job_types::JobTypes;
use tokio::time::{Instant, sleep_until};

use super::attic::Attic;
use super::people::{People, limited};
use super::plan::{Errand, Plan, Trouble, types_of};
use super::process::{Fronts, Ground, Identity, Process, note_counts};
use super::record::{Entry, Event, Life, Notebook, What};
use super::recorder::Recorder;
use crate::faults::{Calm, FaultyStore, Sky, Truth};

/// How long it takes until what was counted is stored, at most.
const BOOKED: Duration = Duration::from_secs(12);

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
            // The first node runs every type, and may be left alone with all that waits.
            capacity: dice.random_range(if number == 0 { 4..=8 } else { 1..=6 }),
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
        let ground = Ground {
            began: Instant::now(),
            notes,
            truth,
            fronts: fronts.clone(),
            rates: plan.rates,
            flaw,
            is_measured: plan.has_attic,
        };
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

    /// Lives to the end, and hands back what happened.
    pub async fn run(self) -> (Vec<Entry>, Arc<Plan>) {
        let (notes, plan) = (self.ground.notes.clone(), Arc::clone(&self.plan));
        tokio::select! {
            biased;
            () = notes.overflows() => {}
            () = self.live() => {}
        }
        (notes.take(), plan)
    }

    /// The store as somebody sees it to whom nothing happens.
    fn calm_store(&self) -> Arc<dyn Store> {
        Arc::new(FaultyStore::new(&self.ground.truth, Arc::new(Calm { lag: Duration::ZERO })))
    }

    /// What is limited is said before anybody lives.
    async fn limit(&self) {
        for (domain, kind, limits) in &self.plan.limits {
            let job_type = limited(domain, kind, *limits);
            let stored = JobTypes::new(self.calm_store()).create(job_type).await;
            stored.expect("a store in which nothing goes wrong");
        }
    }

    async fn live(mut self) {
        self.limit().await;
        if self.plan.has_attic {
            let attic = Attic { store: self.calm_store(), dice: self.plan.dice("attic", 0) };
            let people = self.people.clone();
            self.people.know(attic.fill(|| people.serial()).await);
        }
        self.live_until(self.plan.chaos).await;
        self.calm_down();
        self.settle().await;
        self.close_books().await;
        self.note(Event::Closes);
        for process in self.places.iter().filter_map(|place| place.process.as_ref()) {
            self.ground.fronts.close(process.life);
            process.gate.kill();
        }
    }

    /// What is counted by now is stored a while later, and what is counted last need not be.
    async fn close_books(&mut self) {
        if self.plan.has_attic {
            self.note_counts();
            self.live_until(self.ground.notes.now() + BOOKED).await;
            self.note_counts();
        }
    }

    fn note_counts(&self) {
        for process in self.places.iter().filter_map(|place| place.process.as_ref()) {
            note_counts(&self.ground.notes, process.life, &process.meter);
        }
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
                    self.cut_off(life, 500..=40_000);
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
        note_counts(&self.ground.notes, process.life, &process.meter);
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
        let how = [Sky::Refused, Sky::Swallowed, Sky::Mute, Sky::Deaf];
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
}
