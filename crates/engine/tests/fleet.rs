//! Several nodes on one store: their sections, their deaths, and what people want of them.

mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rota_engine::fleet::FleetError;
use rota_engine::node::NodeOptions;
use rota_engine::observer::Topic;
use rota_model::domain::Domain;
use rota_model::ids::{ClaimToken, Incarnation, JobId, NodeId};
use rota_model::job::submission::Place;
use rota_model::job::{Holder, Job, JobEvent, JobStatus, NewJob};
use rota_model::node::{NodeStatus, NodeWish};
use rota_store::memory::MemoryStore;
use rota_testkit::faults::{Call, Effect, Fate, FaultyStore, Lot, Truth};
use serde_json::json;
use stage::{Stage, act};
use tokio::time::{Instant, sleep};

/// All is well, or nothing can be reached.
#[derive(Default)]
struct Switch {
    cut: AtomicBool,
}

impl Fate for Switch {
    fn of(&self, _call: &Call<'_>) -> Lot {
        let effect = if self.cut.load(Ordering::Relaxed) { Effect::Fails } else { Effect::Done };
        Lot { effect, ..Lot::CALM }
    }
}

/// Nodes that share a store, each with a switch.
struct Pair {
    stage: Stage,
    truth: Arc<Truth>,
}

impl Pair {
    fn new() -> Self {
        let truth = Truth::new(Arc::new(MemoryStore::new()));
        Self { stage: Stage::on(Arc::clone(truth.store())), truth }
    }

    async fn up(&self, name: &str) -> (stage::Running, Arc<Switch>) {
        let switch = Arc::new(Switch::default());
        let store = FaultyStore::new(&self.truth, Arc::clone(&switch) as Arc<dyn Fate>);
        (self.stage.up_on(Arc::new(store), Stage::options(name)).await, switch)
    }
}

/// Which of the nodes, in the order in which they joined, has which section.
async fn owners(stage: &Stage, nodes: &[&stage::Running]) -> Vec<NodeId> {
    let mut owners = BTreeMap::new();
    for (rank, node) in nodes.iter().enumerate() {
        let state = stage.state(node.id).await;
        assert_eq!(usize::try_from(state.job_queue_section), Ok(rank));
        for section in state.sections {
            assert_eq!(owners.insert(section, node.id), None, "section {section} has one owner");
        }
    }
    assert_eq!(owners.len(), 64, "each section has an owner");
    owners.into_values().collect()
}

fn moved(before: &[NodeId], after: &[NodeId]) -> usize {
    before.iter().zip(after).filter(|(before, after)| before != after).count()
}

/// Who joins stands last; who goes, however it does, moves those up who stood behind it, and nobody else. That is as few
/// sections as the rule of ranks allows: those whose number leaves another remainder.
#[tokio::test(start_paused = true)]
async fn who_joins_leaves_or_dies_moves_only_what_the_ranks_ask_for() {
    let pair = Pair::new();
    let stage = &pair.stage;
    let settle = || sleep(Duration::from_secs(20));
    let rule = |before: &[usize], after: &[usize]| {
        (0..64).filter(|section| before[section % before.len()] != after[section % after.len()]).count()
    };
    let ((one, _), (two, cut_two)) = (pair.up("one").await, pair.up("two").await);
    settle().await;
    let of_two = owners(stage, &[&one, &two]).await;
    let (three, _) = pair.up("three").await;
    settle().await;
    let of_three = owners(stage, &[&one, &two, &three]).await;
    assert_eq!(moved(&of_two, &of_three), rule(&[1, 2], &[1, 2, 3]));
    let (four, cut_four) = pair.up("four").await;
    settle().await;
    let of_four = owners(stage, &[&one, &two, &three, &four]).await;
    assert_eq!(moved(&of_three, &of_four), rule(&[1, 2, 3], &[1, 2, 3, 4]));

    cut_four.cut.store(true, Ordering::Relaxed);
    four.die();
    settle().await;
    assert_eq!(owners(stage, &[&one, &two, &three]).await, of_three, "as before it came");
    cut_two.cut.store(true, Ordering::Relaxed);
    two.die();
    settle().await;
    let of_others = owners(stage, &[&one, &three]).await;
    assert_eq!(moved(&of_three, &of_others), rule(&[1, 2, 3], &[1, 3]));
    one.stop().await;
    settle().await;
    assert!(owners(stage, &[&three]).await.iter().all(|owner| *owner == three.id));
    three.stop().await;
}

#[tokio::test(start_paused = true)]
async fn ranks_follow_the_living_and_a_newcomer_moves_nobody() {
    let stage = Stage::new();
    let mut nodes = Vec::new();
    for name in ["one", "two", "three"] {
        nodes.push(stage.up(name).await);
        sleep(Duration::from_secs(8)).await;
        for (rank, node) in nodes.iter().enumerate() {
            let state = stage.state(node.id).await;
            assert_eq!(usize::try_from(state.job_queue_section).unwrap(), rank, "after {name}");
            let own = |section: &u32| usize::try_from(*section).unwrap() % nodes.len() == rank;
            assert!(state.sections.iter().all(own), "{:?}", state.sections);
        }
    }
    let first = nodes.remove(0);
    let gone = first.id;
    first.stop().await;
    sleep(Duration::from_secs(8)).await;
    assert_eq!(stage.state(gone).await.status, NodeStatus::Terminated);
    let ranks = [stage.state(nodes[0].id).await, stage.state(nodes[1].id).await];
    assert_eq!(ranks.each_ref().map(|state| state.job_queue_section), [0, 1]);
    assert_eq!(ranks[0].sections.len() + ranks[1].sections.len(), 64);
    for node in nodes {
        node.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_reach_the_store_stops_in_time_and_the_other_takes_over() {
    let pair = Pair::new();
    let (one, cut) = pair.up("one").await;
    let id = one.submit(act(json!({"steps": 600, "stubborn": true}))).await;
    let (two, _calm) = pair.up("two").await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(pair.stage.job(id).await.document.owner_node, Some(one.id));
    let mut seen = two.observer.listen(vec![Topic::Nodes, Topic::Queue(Domain::default())]);
    cut.cut.store(true, Ordering::Relaxed);
    let since = Instant::now();
    loop {
        sleep(Duration::from_millis(50)).await;
        let job = pair.stage.job(id).await.document;
        if job.owner_node == Some(two.id) {
            assert_eq!((job.epoch, job.attempt, job.lost), (2, 1, 1));
            break;
        }
        assert!(since.elapsed() < Duration::from_secs(10), "taken over within ten seconds");
    }
    // Its last beat was at most two seconds old.
    assert!(since.elapsed() > Duration::from_secs(4), "not before its lease was over: {:?}", since.elapsed());
    assert_eq!(pair.stage.state(one.id).await.status, NodeStatus::Terminated);
    // Who looks at the page sees it: the node is gone, and its job lost.
    let mut told = String::new();
    while !(told.contains(r#""status":"TERMINATED""#) && told.contains(r#""lost":1"#)) {
        for moment in seen.next(Duration::from_secs(1)).await.unwrap() {
            told.extend(moment.said().map(|said| &*said.json));
        }
        assert!(since.elapsed() < Duration::from_secs(15), "it is told: {told}");
    }
    // Only the new holder is at work now, and the old one joins again when it can, as somebody else.
    let before = pair.stage.state(one.id).await.incarnation;
    cut.cut.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(4)).await;
    let after = pair.stage.state(one.id).await;
    assert_ne!(after.incarnation, before);
    assert_eq!((after.status, after.running), (NodeStatus::Active, Some(0)));
    let ended = two.ended(id).await;
    assert_eq!((ended.status, ended.epoch), (JobStatus::Successful, 2));
    assert_eq!(ended.result.get("epoch"), Some(&json!(2)));
    one.stop().await;
    two.stop().await;
}

/// However its short life falls between the looks of the other.
#[tokio::test(start_paused = true)]
async fn who_joins_claims_and_dies_at_once_is_found_out_in_time() {
    for late in (0..3_000).step_by(250) {
        let pair = Pair::new();
        let (one, _calm) = pair.up("one").await;
        sleep(Duration::from_millis(5_000 + late)).await;
        let (two, cut) = pair.up("two").await;
        let id = two.submit(act(json!({"steps": 600, "stubborn": true}))).await;
        assert_eq!(pair.stage.job(id).await.document.owner_node, Some(two.id));
        cut.cut.store(true, Ordering::Relaxed);
        two.die();
        let died = Instant::now();
        while pair.stage.job(id).await.document.owner_node != Some(one.id) {
            sleep(Duration::from_millis(50)).await;
            assert!(died.elapsed() < Duration::from_secs(8), "it joined {late} ms after a look");
        }
        one.die();
    }
}

/// What was lost together twice waits apart from then on.
#[tokio::test(start_paused = true)]
async fn jobs_that_are_lost_together_again_and_again_part() {
    let stage = Stage::new();
    let now = stage.surroundings.now();
    let lost = |number: u64, lost: u32| {
        let place = Place {
            domain: Domain::default(),
            job_id: JobId::derived(&[&number.to_string()]),
            job_number: number,
            sections: 64,
            accepted_by: NodeId::derived(&["dead"]),
        };
        let holder =
            Holder { node: NodeId::derived(&["dead"]), incarnation: Incarnation::derived(&["dead"]) };
        let mut job = NewJob::new("a job", "elsewhere", json!({})).into_job(place, now);
        job.claim(holder, ClaimToken::derived(&["dead"]), now).unwrap();
        Job { lost, ..job }
    };
    let jobs: Vec<Job> = (0..10).map(|number| lost(number, if number < 5 { 1 } else { 5 })).collect();
    stage.jobs().create_all(&jobs).await.unwrap();
    let node = stage.up("one").await;
    sleep(Duration::from_secs(2)).await;
    let mut instants = BTreeSet::new();
    for job in &jobs {
        let after = stage.job(job.job_id).await.document;
        assert_eq!((after.status, after.lost), (JobStatus::Queued, job.lost + 1));
        if job.lost == 1 {
            assert_eq!(after.run_at, job.run_at, "at once");
        } else {
            assert!(after.run_at > job.run_at, "{:?}", after.run_at);
            instants.insert(after.run_at);
        }
    }
    assert_eq!(instants.len(), 5, "{instants:?}");
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_short_absence_of_the_store_costs_nothing() {
    let pair = Pair::new();
    let (one, cut) = pair.up("one").await;
    let (two, _calm) = pair.up("two").await;
    let id = one.submit(act(json!({"steps": 100}))).await;
    sleep(Duration::from_secs(1)).await;
    let holder = pair.stage.job(id).await.document.owner;
    cut.cut.store(true, Ordering::Relaxed);
    sleep(Duration::from_secs(3)).await;
    cut.cut.store(false, Ordering::Relaxed);
    let ended = two.ended(id).await;
    assert_eq!((ended.status, ended.epoch, ended.lost), (JobStatus::Successful, 1, 0));
    assert!(holder.is_some());
    for node in [&one, &two] {
        assert_ne!(pair.stage.state(node.id).await.status, NodeStatus::Terminated);
    }
    one.stop().await;
    two.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_node_begins_nothing_until_it_is_resumed_even_over_a_restart() {
    let stage = Stage::new();
    let node = stage.up("one").await;
    let runs = node.submit(act(json!({"steps": 50}))).await;
    let state = node.fleet.pause(node.id).await.unwrap().document;
    assert_eq!(state.wanted, Some(NodeWish::Pause));
    sleep(Duration::from_secs(2)).await;
    let waits = node.submit(act(json!({}))).await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(stage.job(runs).await.document.status, JobStatus::Successful, "what runs goes on");
    assert_eq!(stage.job(waits).await.document.status, JobStatus::Queued);
    node.stop().await;
    let node = stage.up("one").await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(stage.job(waits).await.document.status, JobStatus::Queued, "it was not resumed");
    node.fleet.resume(node.id).await.unwrap();
    assert_eq!(node.ended(waits).await.status, JobStatus::Successful);
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_drained_node_gives_back_what_it_does_not_finish() {
    let stage = Stage::new();
    let (one, two) = (stage.up("one").await, stage.up("two").await);
    two.fleet.pause(two.id).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    let (short, long) =
        (one.submit(act(json!({"steps": 10}))).await, one.submit(act(json!({"steps": 100}))).await);
    sleep(Duration::from_millis(300)).await;
    two.fleet.drain(one.id).await.unwrap();
    two.fleet.resume(two.id).await.unwrap();
    let ended = two.ended(short).await;
    assert_eq!((ended.status, ended.owner_node, ended.epoch), (JobStatus::Successful, Some(one.id), 1));
    let ended = two.ended(long).await;
    assert_eq!((ended.status, ended.owner_node), (JobStatus::Successful, Some(two.id)));
    assert_eq!((ended.attempt, ended.lost), (1, 0));
    assert_eq!(ended.history.first().unwrap().event, JobEvent::Release);
    one.stop().await;
    two.stop().await;
}

/// A job that was begun with in time and had to be given back, by a drain or by a node that lost its lease, runs again.
#[tokio::test(start_paused = true)]
async fn what_was_begun_with_in_time_does_not_expire_when_it_is_given_back() {
    let expiring = |stage: &Stage, steps: u32| NewJob {
        expires_at: Some(stage.surroundings.now().plus(Duration::from_secs(2))),
        ..act(json!({"steps": steps}))
    };
    let stage = Stage::new();
    let one = stage.up("one").await;
    let id = one.submit(expiring(&stage, 100)).await;
    sleep(Duration::from_secs(1)).await;
    let two = stage.up("two").await;
    two.fleet.drain(one.id).await.unwrap();
    let ended = two.ended(id).await;
    assert_eq!((ended.status, ended.owner_node, ended.epoch), (JobStatus::Successful, Some(two.id), 2));
    one.stop().await;
    two.stop().await;

    let pair = Pair::new();
    let (alone, cut) = pair.up("alone").await;
    let id = alone.submit(expiring(&pair.stage, 150)).await;
    sleep(Duration::from_secs(1)).await;
    cut.cut.store(true, Ordering::Relaxed);
    sleep(Duration::from_secs(8)).await;
    cut.cut.store(false, Ordering::Relaxed);
    let ended = alone.ended(id).await;
    assert_eq!((ended.status, ended.epoch, ended.lost), (JobStatus::Successful, 2, 0));
    alone.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_may_not_be_told_is_not_told() {
    let stage = Stage::new();
    let node = stage.up_with(NodeOptions { controllable: false, ..Stage::options("one") }).await;
    assert!(matches!(node.fleet.pause(node.id).await, Err(FleetError::Forbidden)));
    assert_eq!(stage.state(node.id).await.wanted, None);
    let nobody = NodeId::derived(&["nobody"]);
    assert!(matches!(node.fleet.drain(nobody).await, Err(FleetError::Missing)));
    let (id, fleet) = (node.id, node.fleet.clone());
    let open = stage.up("two").await;
    let (two, fleet_two) = (open.id, open.fleet.clone());
    open.stop().await;
    assert!(matches!(fleet_two.pause(two).await, Err(FleetError::Terminated)));
    node.stop().await;
    assert!(matches!(fleet.pause(id).await, Err(FleetError::Forbidden)));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_hands_over_at_once() {
    let stage = Stage::new();
    let (one, two) = (stage.up("one").await, stage.up("two").await);
    let id = one.submit(act(json!({"steps": 600}))).await;
    sleep(Duration::from_secs(1)).await;
    let holder = stage.job(id).await.document.owner_node.unwrap();
    let (stops, stays) = if holder == one.id { (one, two) } else { (two, one) };
    let since = Instant::now();
    stops.stop().await;
    assert!(since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());
    sleep(Duration::from_secs(1)).await;
    let job = stage.job(id).await.document;
    assert_eq!((job.owner_node, job.epoch, job.lost), (Some(stays.id), 2, 0));
    stays.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_process_under_the_same_id_is_refused_while_the_first_lives() {
    let stage = Stage::new();
    let first = stage.up("one").await;
    let refused = stage.try_join(Arc::clone(&stage.store), Stage::options("one")).await.err().unwrap();
    assert!(refused.to_string().contains("another process lives under the id of this node"), "{refused}");
    assert_eq!(first.ended(first.submit(act(json!({}))).await).await.status, JobStatus::Successful);
    first.die();
}

#[tokio::test(start_paused = true)]
async fn a_process_that_starts_waits_until_its_former_one_is_over() {
    let pair = Pair::new();
    let (one, cut) = pair.up("one").await;
    let id = one.submit(act(json!({"steps": 600, "stubborn": true}))).await;
    sleep(Duration::from_secs(3)).await;
    // As if frozen: it can do nothing more, and does not know it yet.
    cut.cut.store(true, Ordering::Relaxed);
    let since = Instant::now();
    let again = pair.stage.up("one").await;
    assert!(since.elapsed() > Duration::from_secs(6), "{:?}", since.elapsed());
    let ended = again.ended(id).await;
    assert_eq!((ended.status, ended.epoch, ended.lost), (JobStatus::Successful, 2, 1));
    one.die();
    again.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_comes_to_and_finds_a_successor_stops() {
    let pair = Pair::new();
    let (one, cut) = pair.up("one").await;
    cut.cut.store(true, Ordering::Relaxed);
    let again = pair.stage.up("one").await;
    let successor = pair.stage.state(again.id).await.incarnation;
    cut.cut.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(5)).await;
    assert!(one.has_stopped() && !again.has_stopped());
    let state = pair.stage.state(again.id).await;
    assert_eq!((state.incarnation, state.status), (successor, NodeStatus::Active));
    again.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_free_slot_is_busy() {
    let stage = Stage::new();
    let node = stage.up_with(NodeOptions { capacity: 2, ..Stage::options("one") }).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(node.submit(act(json!({"steps": 50}))).await);
    }
    sleep(Duration::from_millis(2_500)).await;
    let state = stage.state(node.id).await;
    assert_eq!((state.status, state.running), (NodeStatus::Busy, Some(2)));
    for id in ids {
        node.ended(id).await;
    }
    sleep(Duration::from_millis(2_500)).await;
    let state = stage.state(node.id).await;
    assert_eq!((state.status, state.running), (NodeStatus::Active, Some(0)));
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn each_looks_at_its_own_sections_first_and_helps_where_others_have_no_room() {
    let stage = Stage::new();
    let wide = stage.up_with(NodeOptions { capacity: 64, ..Stage::options("wide") }).await;
    let narrow = stage.up_with(NodeOptions { capacity: 8, ..Stage::options("narrow") }).await;
    sleep(Duration::from_secs(8)).await;
    let due = stage.surroundings.now().plus(Duration::from_secs(2));
    let job = |steps: u64| NewJob { run_at: Some(due), ..act(json!({"steps": steps})) };
    let jobs = vec![job(20); 64];
    let ids: Vec<_> = wide.desk.submit_all(&Domain::default(), jobs).await;
    let ids: Vec<_> = ids.into_iter().map(|accepted| accepted.unwrap().job_id).collect();
    sleep(Duration::from_millis(2_100)).await;
    let (mut own, mut others) = (0, 0);
    for id in &ids {
        let job = stage.job(*id).await.document;
        let Some(owner) = job.owner_node else { continue };
        let state = stage.state(owner).await;
        if state.sections.contains(&job.section) { own += 1 } else { others += 1 }
    }
    // Now and then a claim is about all sections; that is rare.
    assert_eq!(
        (own, others),
        (40, 0),
        "32 of the wide one's own, and as many as the narrow one has slots for"
    );
    sleep(Duration::from_millis(400)).await;
    let mut begun = 0;
    for id in &ids {
        begun += u32::from(stage.job(*id).await.document.status != JobStatus::Queued);
    }
    assert_eq!(begun, 64, "the wide one has room, and helps");
    wide.stop().await;
    narrow.stop().await;
}
