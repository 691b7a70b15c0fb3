//! Writers and claimers at once on a few documents, what they remember of it, and whether that can be true: from the
//! chains of versions, and by living through each chain again with the in-memory store.
//!
//! Each body carries the mark of the wish that it came from. A claim leaves the mark alone, and takes only what is
//! queued and makes it started: so the mark in what was claimed tells which version was there before.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rota_model::time::UnixMillis;
use rota_store::collection::{Collection, JOBS};
use rota_store::memory::MemoryStore;
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Claim, Document, Key, Version, Write, Written};
use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio::time::sleep;

use super::chains::{Act, Event, Life, lives};
use super::twins::with_version;
use super::wishes::Wishes;
use crate::contract::Subject;
use crate::contract::examples::{body, domain, state, timer, token};
use crate::contract::patience::eventually;
use crate::contract::verbs::{applied, document, one, walk};

const WRITERS: u64 = 8;
const CLAIMERS: u64 = 2;
const STEPS: usize = 120;

pub(super) struct Crowd {
    store: Subject,
    seed: u64,
    shared: Arc<Shared>,
}

/// What all of them see.
struct Shared {
    keys: Vec<Key>,
    /// Gives marks and instants.
    clock: AtomicU64,
    /// Versions that somebody knows of, by key.
    board: Mutex<BTreeMap<String, Vec<Version>>>,
    /// Where writers meet.
    pause: Barrier,
    /// How many are still writing.
    writing: AtomicU64,
}

impl Shared {
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn pin(&self, key: &Key, version: Version) {
        self.board.lock().unwrap().entry(key.to_string()).or_default().push(version);
    }

    fn pinned(&self, key: &Key, wishes: &mut Wishes) -> Option<Version> {
        let board = self.board.lock().unwrap();
        let known = board.get(&key.to_string())?;
        let newest = &known[known.len().saturating_sub(2)..];
        let known = if wishes.chance(80) { newest } else { known };
        Some(wishes.one_of(known))
    }
}

/// Where the mark stands.
fn mark_field(collection: &Collection) -> &'static str {
    match collection.name {
        "jobs" => "finishedAt",
        "state" => "lastSeenAt",
        _ => "section",
    }
}

impl Crowd {
    pub(super) fn new(store: &Subject, seed: u64) -> Self {
        let name = |nth: u64| format!("crowd-{seed}-{nth}");
        let mut keys: Vec<Key> = (0..5).map(|nth| Key::new(&JOBS, name(nth))).collect();
        keys.extend((0..3).map(|nth| state(&name(nth))));
        for of in ["x", "y"] {
            keys.extend((0..2).map(|nth| timer(&domain(of), &name(nth))));
        }
        let shared = Shared {
            keys,
            clock: AtomicU64::new(0),
            board: Mutex::default(),
            pause: Barrier::new(usize::try_from(WRITERS).unwrap_or(1)),
            writing: AtomicU64::new(WRITERS),
        };
        Self { store: Arc::clone(store), seed, shared: Arc::new(shared) }
    }

    /// Everything that everybody remembers.
    pub(super) async fn live(&self) -> Vec<Event> {
        let mut everybody = Vec::new();
        for member in 0..WRITERS + CLAIMERS {
            let (store, shared) = (Arc::clone(&self.store), Arc::clone(&self.shared));
            let wishes = Wishes::new(self.seed * 1_000 + member);
            everybody.push(tokio::spawn(async move {
                if member < WRITERS {
                    let events = write(&store, &shared, wishes).await;
                    shared.writing.fetch_sub(1, Ordering::SeqCst);
                    events
                } else {
                    claim(&store, &shared, u8::try_from(member).unwrap()).await
                }
            }));
        }
        let mut events = Vec::new();
        for member in everybody {
            events.extend(member.await.unwrap());
        }
        resolve_claims(&mut events);
        events
    }
}

async fn write(store: &Subject, shared: &Shared, mut wishes: Wishes) -> Vec<Event> {
    let mut events = Vec::new();
    let lag = store.promises().find_lag;
    for step in 0..STEPS {
        if step % 15 == 14 {
            // All of them stop for as long as it takes claimers to see what is there.
            shared.pause.wait().await;
            sleep(lag * 2).await;
        }
        let key = wishes.one_of(&shared.keys);
        let current = if wishes.chance(60) { document(store, key.clone()).await } else { None };
        let base = current.map(|current| current.version).or_else(|| shared.pinned(&key, &mut wishes));
        let wish = wish(&mut wishes, key.clone(), base, shared.tick());
        let began = shared.tick();
        let answer = one(store, wish.clone()).await;
        let ended = shared.tick();
        if let Written::Applied(version) = answer {
            shared.pin(&key, version);
        }
        events.push(Event { act: Act::Wish(wish), answer, began, ended });
    }
    events
}

fn wish(wishes: &mut Wishes, key: Key, base: Option<Version>, mark: u64) -> Write {
    let collection = key.collection;
    let Some(version) = base.filter(|_| !wishes.chance(20)) else {
        return Write::Create { body: marked(wishes, collection, mark), key };
    };
    match wishes.below(10) {
        0..4 if collection.changing().next().is_some() => {
            let status = if wishes.chance(60) { "QUEUED" } else { "CANCELLED" };
            let fields = vec![(mark_field(collection), json!(mark)), ("status", json!(status))];
            Write::Change { key, version, fields }
        }
        0..7 => Write::Replace { body: marked(wishes, collection, mark), key, version },
        7 => Write::Delete { key, version, at: UnixMillis(1) },
        _ => Write::Purge { key, version },
    }
}

fn marked(wishes: &mut Wishes, collection: &Collection, mark: u64) -> Body {
    let status = if wishes.chance(70) { "QUEUED" } else { "PAUSED" };
    let mut body = body(json!({"status": status, "name": "n", "filler": "x".repeat(wishes.below(200))}));
    body.insert(mark_field(collection).to_owned(), json!(mark));
    body
}

/// Claims while others write, and a little longer: until all that was written can be seen.
async fn claim(store: &Subject, shared: &Shared, member: u8) -> Vec<Event> {
    let mut events = Vec::new();
    let lag = store.promises().find_lag;
    let mut rounds_left = 16;
    while rounds_left > 0 {
        if shared.writing.load(Ordering::SeqCst) == 0 {
            rounds_left -= 1;
        }
        let claim = claim_by(member);
        let began = shared.tick();
        let taken = store.claim(claim.clone()).await.unwrap();
        let ended = shared.tick();
        for taken in taken {
            shared.pin(&taken.key, taken.version);
            let mut set = claim.fields();
            set.push(("epoch", taken.body["epoch"].clone()));
            let answer = Written::Applied(taken.version);
            events.push(Event { act: Act::Claim { taken, base: Version(0), set }, answer, began, ended });
        }
        sleep(lag / 8).await;
        tokio::task::yield_now().await;
    }
    events
}

fn claim_by(member: u8) -> Claim {
    let queued = Query::new(&JOBS, Order::BY_ID).filter(Filter::Is("status", json!("QUEUED")));
    Claim {
        collection: &JOBS,
        from: vec![queued],
        max: 2,
        set: vec![("status", json!("STARTED")), ("owner", json!("me"))],
        add_one: Some("epoch"),
        token: ("claimToken", token(member)),
    }
}

/// What each claim was made on, by the mark.
fn resolve_claims(events: &mut [Event]) {
    let mut made = BTreeMap::new();
    for event in events.iter() {
        let (Written::Applied(version), Act::Wish(wish)) = (event.answer, &event.act) else { continue };
        let field = mark_field(event.key().collection);
        let mark = match wish {
            Write::Create { body, .. } | Write::Replace { body, .. } => body.get(field),
            Write::Change { fields, .. } => {
                fields.iter().find(|(path, _)| *path == field).map(|(_, mark)| mark)
            }
            Write::Delete { .. } | Write::Purge { .. } => None,
        };
        made.extend(mark.map(|mark| (mark.to_string(), version)));
    }
    for event in events {
        if let Act::Claim { taken, base, .. } = &mut event.act {
            let mark = &taken.body[mark_field(taken.key.collection)];
            *base = *made
                .get(&mark.to_string())
                .unwrap_or_else(|| panic!("nobody wrote what was claimed: {taken:?}"));
        }
    }
}

/// Panics if what they remember cannot have been, or does not lead to what is stored.
pub(super) async fn judge(store: &Subject, seed: u64, events: &[Event]) {
    let mut by_key: BTreeMap<String, Vec<&Event>> = BTreeMap::new();
    for event in events {
        by_key.entry(event.key().to_string()).or_default().push(event);
    }
    let mut claims = 0;
    for (shown, events) in by_key {
        let lives = lives(&events).unwrap_or_else(|why| panic!("seed {seed}, {shown}: {why}"));
        claims += events.iter().filter(|event| matches!(event.act, Act::Claim { .. })).count();
        let key = events[0].key();
        let expected = relive(key, &lives).await;
        let stored = document(store, key.clone()).await.map(|stored| (stored.version, stored.body));
        let there =
            expected.clone().filter(|(_, _, hidden)| !hidden).map(|(version, body, _)| (version, body));
        assert_eq!(stored, there, "seed {seed}: {shown} in the end");
        if key.collection.hides() {
            let hidden = expected.filter(|(_, _, hidden)| *hidden).map(|(version, body, _)| (version, body));
            eventually(store, hidden, async || buried(store, key).await).await;
        }
    }
    assert!(claims > 0, "seed {seed}: nothing was claimed, and nothing shown");
}

async fn buried(store: &Subject, key: &Key) -> Option<(Version, Body)> {
    let mut query = Query::new(key.collection, Order::BY_ID).hidden_before(UnixMillis(1));
    query.domain.clone_from(&key.domain);
    let found = walk(store, query).await.into_iter().find(|found| found.key == *key)?;
    Some((found.version, found.body))
}

/// What the in-memory store makes of the same lives, with the version of the last write; and whether it is hidden.
async fn relive(key: &Key, lives: &[Life<'_>]) -> Option<(Version, Body, bool)> {
    let model: Subject = Arc::new(MemoryStore::new());
    let mut last = None;
    for life in lives {
        let mut version = Version(0);
        for event in life {
            let wish = match &event.act {
                Act::Wish(wish) => with_version(wish.clone(), version),
                Act::Claim { taken, set, .. } => {
                    let before = document(&model, key.clone()).await.unwrap();
                    assert_one_more(&before, taken);
                    Write::Change { key: key.clone(), version, fields: set.clone() }
                }
            };
            version = applied(&model, wish).await;
            if let Act::Claim { taken, .. } = &event.act {
                assert_eq!(
                    document(&model, key.clone()).await.unwrap().body,
                    taken.body,
                    "as it was claimed"
                );
            }
            last = Some(event.answer);
        }
    }
    let Some(Written::Applied(version)) = last else { return None };
    let there = document(&model, key.clone()).await.map(|found| (version, found.body, false));
    if there.is_some() || !key.collection.hides() {
        return there;
    }
    buried(&model, key).await.map(|(_, body)| (version, body, true))
}

/// A claim adds one to the epoch.
fn assert_one_more(before: &Document, taken: &Document) {
    let epoch = |document: &Document| document.body.get("epoch").and_then(Value::as_i64).unwrap_or(0);
    assert_eq!(epoch(before) + 1, epoch(taken), "{taken:?}");
    assert_eq!(before.body["status"], json!("QUEUED"), "{taken:?}");
}
