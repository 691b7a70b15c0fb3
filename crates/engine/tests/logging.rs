//! What nodes and handlers say: it is kept, in bounds, once, and no work waits for it.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

mod stage;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{JobStatus, NewJob};
use rota_model::log::{Level, LogLine, MAX_MESSAGE_CHARS};
use rota_store::logs::{LogFilter, Logs};
use rota_store::memory::MemoryStore;
use rota_store::seam::Write;
use rota_testkit::faults::{Call, Effect, Fate, FaultyStore, Lot, Truth};
use serde_json::json;
use stage::{Stage, act};
use tokio::time::{Instant, sleep};

/// Everything that was said, oldest first.
async fn all(stage: &Stage, filter: &LogFilter) -> Vec<LogLine> {
    let (logs, mut lines, mut cursor) = (Logs::new(Arc::clone(&stage.store)), Vec::new(), None);
    loop {
        let (page, next) = logs.search(filter, 1_000, cursor).await.unwrap();
        lines.extend(page);
        cursor = next;
        if cursor.is_none() {
            lines.reverse();
            return lines;
        }
    }
}

async fn of_job(stage: &Stage, id: JobId) -> Vec<LogLine> {
    all(stage, &LogFilter { job: Some(id), ..LogFilter::default() }).await
}

fn titles(lines: &[LogLine]) -> Vec<&str> {
    lines.iter().map(|line| line.log.title.as_str()).collect()
}

/// What becomes of writes to the log alone.
#[derive(Default)]
struct Trouble {
    /// They fail.
    away: AtomicBool,
    /// So many happen and are not answered.
    unanswered: AtomicU32,
    batches: Mutex<Vec<usize>>,
}

impl Fate for Trouble {
    fn of(&self, call: &Call<'_>) -> Lot {
        let Call::Write(batch) = call else { return Lot::CALM };
        if !batch.iter().all(|write: &Write| write.key().collection.name == "logs") {
            return Lot::CALM;
        }
        self.batches.lock().unwrap().push(batch.len());
        if self.away.load(Ordering::Relaxed) {
            return Lot { after: Duration::from_secs(1), effect: Effect::Fails, ..Lot::CALM };
        }
        let left = self.unanswered.load(Ordering::Relaxed);
        self.unanswered.store(left.saturating_sub(1), Ordering::Relaxed);
        Lot { effect: if left > 0 { Effect::Unanswered } else { Effect::Done }, ..Lot::CALM }
    }
}

fn in_trouble() -> (Stage, Arc<Trouble>, FaultyStore) {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let trouble = Arc::new(Trouble::default());
    let store = FaultyStore::new(&truth, Arc::clone(&trouble) as Arc<dyn Fate>);
    (Stage::on(Arc::clone(truth.store())).heard(), trouble, store)
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_says_and_what_became_of_it_stand_in_the_log_of_its_job() {
    let stage = Stage::new().heard();
    let node = stage.up("one").await;
    let job = NewJob { attempts: Some(2), ..act(json!({"lines": 3, "failures": 9})) };
    let id = node.submit(job).await;
    assert_eq!(node.ended(id).await.status, JobStatus::Failed);
    let quiet = node.submit(act(json!({}))).await;
    node.ended(quiet).await;
    sleep(Duration::from_secs(1)).await;
    let lines = of_job(&stage, id).await;
    let said = titles(&lines);
    let attempt = ["line 0", "line 1", "line 2"];
    assert_eq!((&said[..3], &said[4..7]), (&attempt[..], &attempt[..]), "{said:?}");
    assert!(said[3].starts_with("attempt 1 of 2 failed; the next is at 2026-"), "{said:?}");
    assert_eq!(said[7..], ["attempt 2 of 2 failed; it ended as FAILED"]);
    assert_eq!(lines[3].log.message.as_deref(), Some("no luck at attempt 1"));
    assert_eq!(lines[7].log.message.as_deref(), Some("no luck at attempt 2"));
    let levels: Vec<_> = [0, 3, 7].iter().map(|nth| lines[*nth].log.level.unwrap()).collect();
    assert_eq!(levels, [Level::Info, Level::Warn, Level::Error]);
    for line in &lines {
        assert_eq!((line.log.origin, &line.log.domain), (node.id, &Some(Domain::default())));
        assert_eq!(line.log.check(), Ok(()));
    }
    assert_eq!(of_job(&stage, quiet).await, [], "what goes as it should is not worth a line");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_happens_to_a_node_is_said_to_its_last_line() {
    let stage = Stage::new().heard();
    let node = stage.up("one").await;
    node.fleet.pause(node.id).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    node.fleet.resume(node.id).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    node.stop().await;
    let lines = all(&stage, &LogFilter::default()).await;
    assert!(lines.iter().all(|line| line.log.domain.is_none() && line.log.job_id.is_none()));
    let expected = [
        "this node joined the fleet",
        "this node is paused: it begins nothing new",
        "this node takes no part in the work",
        "this node works again",
        "this node has rank 0 of 1, and 64 sections",
        "this node stops; nothing runs here any more",
    ];
    assert_eq!(titles(&lines), expected);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_nobody_could_begin_with_in_time_says_so() {
    let stage = Stage::new().heard();
    let node = stage.up("one").await;
    let expires_at = Some(stage.surroundings.now().plus(Duration::from_secs(5)));
    let id = node.submit(NewJob { expires_at, ..NewJob::new("a job", "elsewhere", json!({})) }).await;
    node.ended(id).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(titles(&of_job(&stage, id).await), ["it expired before it could begin"]);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_and_a_requeue_are_said() {
    let stage = Stage::new().heard();
    let node = stage.up("one").await;
    let id = node.submit(act(json!({"steps": 600}))).await;
    sleep(Duration::from_secs(1)).await;
    node.desk.cancel(&Domain::default(), id, None).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    node.desk.requeue(&Domain::default(), id, None).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    node.stop().await;
    let lines = of_job(&stage, id).await;
    let expected = [
        "it was cancelled by a person",
        "its handler was stopped: it was cancelled, or runs elsewhere by now",
        "it was queued once more by a person",
        "it was given back, for any node to run",
    ];
    assert_eq!(titles(&lines), expected);
}

/// A node that reaches its store no more.
#[derive(Default)]
struct Cut(AtomicBool);

impl Fate for Cut {
    fn of(&self, _: &Call<'_>) -> Lot {
        let effect = if self.0.load(Ordering::Relaxed) { Effect::Fails } else { Effect::Done };
        Lot { effect, ..Lot::CALM }
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_node_is_gone_says_so_and_so_do_both_nodes() {
    let truth = Truth::new(Arc::new(MemoryStore::new()));
    let stage = Stage::on(Arc::clone(truth.store())).heard();
    let cut = Arc::new(Cut::default());
    let store = FaultyStore::new(&truth, Arc::clone(&cut) as Arc<dyn Fate>);
    let gone = stage.up_on(Arc::new(store), Stage::options("gone")).await;
    let id = gone.submit(act(json!({"steps": 900}))).await;
    sleep(Duration::from_millis(500)).await;
    let store = FaultyStore::new(&truth, Arc::new(Cut::default()));
    let stays = stage.up_on(Arc::new(store), Stage::options("stays")).await;
    cut.0.store(true, Ordering::Relaxed);
    sleep(Duration::from_secs(20)).await;
    let said = of_job(&stage, id).await;
    assert_eq!(titles(&said), ["its node is gone; it was queued again"]);
    let of_node = |id| LogFilter { node: Some(id), levels: vec![Level::Warn], ..LogFilter::default() };
    let said = all(&stage, &of_node(stays.id)).await;
    assert!(titles(&said).contains(&"the node gone is dead; what it ran is queued again"), "{said:?}");
    // What it had to say meanwhile is stored when it can be.
    cut.0.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(20)).await;
    let said = all(&stage, &of_node(gone.id)).await;
    for expected in ["the heartbeat was not recorded", "what ran here was stopped", "took this node for dead"]
    {
        assert!(titles(&said).iter().any(|title| title.contains(expected)), "{expected}: {said:?}");
    }
    stays.stop().await;
    gone.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_doubles_nothing() {
    let (stage, trouble, store) = in_trouble();
    trouble.unanswered.store(3, Ordering::Relaxed);
    let node = stage.up_on(Arc::new(store), Stage::options("one")).await;
    let id = node.submit(act(json!({"lines": 1_200}))).await;
    node.ended(id).await;
    sleep(Duration::from_secs(10)).await;
    let lines = of_job(&stage, id).await;
    assert!(titles(&lines).into_iter().eq((0..1_200).map(|nth| format!("line {nth}"))));
    assert_eq!(trouble.unanswered.load(Ordering::Relaxed), 0);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_jobs_go_on_and_what_is_dropped_is_counted() {
    let (stage, trouble, store) = in_trouble();
    let node = stage.up_on(Arc::new(store), Stage::options("one")).await;
    trouble.away.store(true, Ordering::Relaxed);
    let began = Instant::now();
    let mut talkers = Vec::new();
    for _ in 0..5 {
        let id = node.submit(act(json!({"lines": 9_000}))).await;
        assert_eq!(node.ended(id).await.status, JobStatus::Successful);
        talkers.push(id);
    }
    assert!(began.elapsed() < Duration::from_secs(1), "work waits for nobody: {:?}", began.elapsed());
    trouble.away.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(30)).await;
    let (mut kept, mut dropped) = (0, 0);
    for id in talkers {
        let lines = of_job(&stage, id).await;
        let lost = lines.iter().filter(|line| line.log.level == Some(Level::Warn));
        let counts = lost.map(|line| line.log.title.split_once(' ').unwrap().0.parse::<usize>().unwrap());
        let counts: Vec<_> = counts.collect();
        assert!(counts.len() <= 1, "{counts:?}");
        kept += lines.len() - counts.len();
        dropped += counts.iter().sum::<usize>();
    }
    assert_eq!(kept + dropped, 45_000);
    assert!(kept >= 30_000 && dropped > 10_000, "{kept} kept, {dropped} dropped");
    assert!(trouble.batches.lock().unwrap().iter().all(|lines| *lines <= 500));
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_talks_without_end_is_cut_off_and_that_is_said() {
    let stage = Stage::new().heard();
    let node = stage.up("one").await;
    let id = node.submit(act(json!({"lines": 10_500}))).await;
    node.ended(id).await;
    node.stop().await;
    let lines = of_job(&stage, id).await;
    let expected = [
        "line 9999",
        "this attempt has said too much: what it says from here on is not kept",
        "500 lines of this attempt were not kept",
    ];
    assert_eq!(lines.len(), 10_002);
    assert_eq!(titles(&lines)[9_999..], expected);
}

#[tokio::test(start_paused = true)]
async fn a_line_of_a_mebibyte_and_a_binary_one_are_cut_and_marked_and_harm_nothing() {
    let stage = Stage::new().heard();
    let node = stage.up("one").await;
    let long = node.submit(act(json!({"say": "0123456789abcdef", "times": 65_536}))).await;
    let binary =
        node.submit(act(json!({"say": "\u{1}\u{1b}[2J\u{7f}\u{fffd}é\r\nmore\u{9b}", "lines": 1}))).await;
    for id in [long, binary] {
        assert_eq!(node.ended(id).await.status, JobStatus::Successful);
    }
    node.stop().await;
    let long = of_job(&stage, long).await;
    let message = long[0].log.message.as_deref().unwrap();
    assert!(message.ends_with('…') && message.chars().count() == MAX_MESSAGE_CHARS);
    assert!(long[0].log.title.ends_with('…'));
    let lines = of_job(&stage, binary).await;
    assert_eq!(titles(&lines), ["line 0", "  [2J \u{fffd}é"]);
    assert_eq!(lines[1].log.message.as_deref(), Some("  [2J \u{fffd}é\r\nmore "));
}

#[tokio::test(start_paused = true)]
async fn a_stop_stores_what_was_said_last_and_waits_for_no_store_that_is_away() {
    let (stage, trouble, store) = in_trouble();
    let node = stage.up_on(Arc::new(store), Stage::options("one")).await;
    trouble.away.store(true, Ordering::Relaxed);
    node.submit(act(json!({"lines": 10}))).await;
    let began = Instant::now();
    node.stop().await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}
