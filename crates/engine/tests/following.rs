//! Who listens hears each line once, whatever becomes of hints, and goes on where it was.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

mod stage;

use std::sync::Arc;
use std::time::Duration;

use rota_engine::logbook::{Follower, Start};
use rota_model::ids::{LogId, NodeId};
use rota_model::log::{Level, Log, LogLine};
use rota_model::time::UnixMillis;
use rota_store::hints::Hint;
use rota_store::logs::{LogFilter, Logs};
use rota_store::memory::MemoryStore;
use rota_testkit::faults::{Call, Fate, FaultyStore, Lot, Truth};
use stage::{Running, Stage};
use tokio::time::{sleep, timeout};

/// A line that a node says at this instant, so long before or after now.
struct Voice {
    logs: Logs,
    name: &'static str,
    nth: u8,
}

impl Voice {
    fn new(stage: &Stage, name: &'static str) -> Self {
        Self { logs: Logs::new(Arc::clone(&stage.store)), name, nth: 0 }
    }

    async fn say(&mut self, at: UnixMillis, title: &str) -> LogId {
        self.nth += 1;
        let id =
            LogId::rising(at, &[self.nth, 0, 0, 0, 0, 0, 0, 0, 0, u8::try_from(self.name.len()).unwrap()]);
        let log = Log::new(Level::Info, title, NodeId::derived(&[self.name]), at);
        self.logs.append(vec![(id, log)]).await.unwrap();
        id
    }
}

/// All that is heard until it is quiet for this long.
async fn heard(follower: &mut Follower, quiet: Duration) -> Vec<String> {
    let mut titles = Vec::new();
    while let Ok(lines) = timeout(quiet, next_lines(follower)).await {
        titles.extend(lines.into_iter().map(|line| line.log.title));
    }
    titles
}

async fn next_lines(follower: &mut Follower) -> Vec<LogLine> {
    loop {
        let lines = follower.next().await.unwrap();
        if !lines.is_empty() {
            return lines;
        }
    }
}

/// Loses every hint.
struct Deaf;

impl Fate for Deaf {
    fn of(&self, _: &Call<'_>) -> Lot {
        Lot::CALM
    }

    fn of_hint(&self, _: &Hint) -> Vec<Duration> {
        Vec::new()
    }
}

/// Hears every hint twice.
struct Echo;

impl Fate for Echo {
    fn of(&self, _: &Call<'_>) -> Lot {
        Lot::CALM
    }

    fn of_hint(&self, _: &Hint) -> Vec<Duration> {
        vec![Duration::ZERO, Duration::from_millis(700)]
    }
}

async fn listening(fate: impl Fate) -> (Stage, Running) {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let stage = Stage::on(Arc::clone(truth.store()));
    let node = stage.up_on(Arc::new(FaultyStore::new(&truth, Arc::new(fate))), Stage::options("one")).await;
    (stage, node)
}

fn from(name: &str) -> LogFilter {
    LogFilter { node: Some(NodeId::derived(&[name])), ..LogFilter::default() }
}

#[tokio::test(start_paused = true)]
async fn a_listener_hears_what_is_said_from_now_on_once_though_hints_are_doubled() {
    let (stage, node) = listening(Echo).await;
    let mut voice = Voice::new(&stage, "a");
    voice.say(stage.surroundings.now(), "before").await;
    let mut follower = node.logbook.follow(from("a"), Start::Now);
    assert!(follower.next().await.unwrap().is_empty());
    for nth in 0..20 {
        voice.say(stage.surroundings.now(), &format!("{nth}")).await;
        Voice::new(&stage, "another").say(stage.surroundings.now(), "elsewhere").await;
        sleep(Duration::from_millis(30)).await;
    }
    let said = heard(&mut follower, Duration::from_secs(30)).await;
    assert!(said.into_iter().eq((0..20).map(|nth| nth.to_string())));
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lost_hints_and_lines_stored_late_delay_and_lose_nothing() {
    let (stage, node) = listening(Deaf).await;
    let mut voice = Voice::new(&stage, "a");
    let mut follower = node.logbook.follow(from("a"), Start::Now);
    assert!(follower.next().await.unwrap().is_empty());
    for nth in 0..1_200 {
        voice.nth = 0;
        let at = UnixMillis(stage.surroundings.now().0 + nth);
        voice.say(at, &format!("{nth}")).await;
    }
    let said = heard(&mut follower, Duration::from_secs(30)).await;
    assert!(said.into_iter().eq((0..1_200).map(|nth| nth.to_string())));
    let past = UnixMillis(stage.surroundings.now().0 - 8_000);
    voice.say(past, "late").await;
    assert_eq!(heard(&mut follower, Duration::from_secs(30)).await, ["late"]);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_late_line_that_a_hint_tells_of_is_heard_at_once() {
    let (stage, node) = listening(Echo).await;
    let mut voice = Voice::new(&stage, "a");
    let mut follower = node.logbook.follow(from("a"), Start::Newest(2));
    assert!(follower.next().await.unwrap().is_empty());
    voice.say(UnixMillis(stage.surroundings.now().0 - 3_600_000), "an hour late").await;
    assert_eq!(heard(&mut follower, Duration::from_secs(30)).await, ["an hour late"]);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_listener_begins_where_it_says() {
    let (stage, node) = listening(Echo).await;
    let mut voice = Voice::new(&stage, "a");
    let began = stage.surroundings.now();
    let at = |nth: i64| UnixMillis(began.0 + nth);
    let mut ids = Vec::new();
    for nth in 0..10 {
        ids.push(voice.say(at(nth), &nth.to_string()).await);
    }
    sleep(Duration::from_secs(60)).await;
    for (start, first) in [
        (Start::Newest(3), 7),
        (Start::Newest(100), 0),
        (Start::After(at(4)), 5),
        (Start::Behind(ids[5]), 6),
        (Start::Behind(ids[9]), 10),
        (Start::Now, 10),
    ] {
        let mut follower = node.logbook.follow(from("a"), start);
        let said = heard(&mut follower, Duration::from_secs(30)).await;
        assert!(said.iter().cloned().eq((first..10).map(|nth| nth.to_string())), "{start:?}: {said:?}");
    }
    node.stop().await;
}

/// Two nodes store their lines on their own: what one stored after the connection broke may be older than the last that was
/// heard of the other.
#[tokio::test(start_paused = true)]
async fn who_goes_on_misses_no_line_of_another_node() {
    let (stage, node) = listening(Echo).await;
    let (mut a, mut b) = (Voice::new(&stage, "a"), Voice::new(&stage, "bb"));
    let now = stage.surroundings.now();
    let at = |nth: i64| UnixMillis(now.0 + nth);
    a.say(at(1), "a1").await;
    let last = a.say(at(5), "a5").await;
    b.say(at(3), "b3").await;
    let mut follower = node.logbook.follow(LogFilter::default(), Start::Behind(last));
    assert_eq!(heard(&mut follower, Duration::from_secs(30)).await, ["b3"]);
    let unknown = LogId::rising(at(2), &[9; 10]);
    let mut follower = node.logbook.follow(LogFilter::default(), Start::Behind(unknown));
    assert_eq!(heard(&mut follower, Duration::from_secs(30)).await, ["b3", "a5"]);
    node.stop().await;
}
