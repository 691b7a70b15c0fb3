//! A store and its model, asked the same, one question after the other. Versions are each store's own; which one
//! corresponds to which is learnt from the answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_model::time::UnixMillis;
use rota_store::collection::{Collection, JOBS};
use rota_store::memory::MemoryStore;
use rota_store::query::{Order, Query};
use rota_store::seam::{Body, Claim, Document, Key, Version, Write, Written};

use super::wishes::{Wishes, collections, keys};
use crate::contract::Subject;
use crate::contract::examples::token;
use crate::contract::patience::eventually;
use crate::contract::verbs::{kind, walk};

pub(super) struct Twins {
    subject: Subject,
    model: Subject,
    /// By key: versions of the one, and of the other.
    versions: BTreeMap<String, Vec<(Version, Version)>>,
}

impl Twins {
    pub(super) fn new(subject: Subject) -> Self {
        Self { subject, model: Arc::new(MemoryStore::new()), versions: BTreeMap::new() }
    }

    pub(super) async fn live_through(&mut self, seed: u64, steps: usize) {
        let mut wishes = Wishes::new(seed);
        let keys = keys(&format!("s{seed:02}-"));
        let promises = self.subject.promises();
        let (finds, words) = (promises.find_lag.is_zero(), promises.text_lag.is_zero());
        for step in 0..steps {
            let at = format!("seed {seed}, step {step}");
            match wishes.below(100) {
                0..70 => self.write(&mut wishes, &keys, &at).await,
                70..80 => self.read(&mut wishes, &keys, &at).await,
                80..88 if finds => self.find(&wishes.question(words), &at).await,
                88..95 if finds => self.count(&mut wishes, words, &at).await,
                95.. if finds => self.claim(&mut wishes, &at).await,
                _ => {}
            }
        }
        self.compare_everything(&format!("seed {seed}, at the end")).await;
    }

    async fn write(&mut self, wishes: &mut Wishes, keys: &[Key], at: &str) {
        let (mut mine, mut models) = (Vec::new(), Vec::new());
        for _ in 0..=wishes.below(4) {
            let key = wishes.one_of(keys);
            let (one, other) = self.wish(wishes, key);
            mine.push(one);
            models.push(other);
        }
        let shown = format!("{at}: {mine:?}");
        let (answers, expected) =
            (self.subject.write(mine.clone()).await.unwrap(), self.model.write(models).await.unwrap());
        assert_eq!(answers.len(), expected.len(), "{shown}");
        for (nth, (answer, expected)) in answers.iter().zip(&expected).enumerate() {
            assert_eq!(kind(answer), kind(expected), "write {nth} of {shown}");
            if let (Written::Applied(one), Written::Applied(other)) = (answer, expected) {
                self.learn(mine[nth].key(), *one, *other);
            }
        }
    }

    fn learn(&mut self, key: &Key, one: Version, other: Version) {
        let known = self.versions.entry(key.to_string()).or_default();
        assert!(!known.iter().any(|(before, _)| *before == one), "{key} had version {one:?} before");
        known.push((one, other));
    }

    /// The same wish to both: mostly on the newest version, sometimes on one before.
    fn wish(&self, wishes: &mut Wishes, key: Key) -> (Write, Write) {
        let known = self.versions.get(&key.to_string()).map_or(&[][..], Vec::as_slice);
        let collection = key.collection;
        if known.is_empty() || wishes.chance(30) {
            let create = Write::Create { body: wishes.body(collection), key };
            return (create.clone(), create);
        }
        let last = &known[known.len() - 1..];
        let known = if wishes.chance(75) { last } else { known };
        let (version, other) = wishes.one_of(known);
        let write = match wishes.below(7) {
            0..2 => Write::Replace { body: wishes.body(collection), key, version },
            2..4 => Write::Change { fields: wishes.fields(collection), key, version },
            4..6 => Write::Delete { key, version, at: UnixMillis(wishes.below(6).try_into().unwrap()) },
            _ => Write::Purge { key, version },
        };
        (write.clone(), with_version(write, other))
    }

    async fn read(&self, wishes: &mut Wishes, keys: &[Key], at: &str) {
        let asked: Vec<Key> = (0..=wishes.below(5)).map(|_| wishes.one_of(keys)).collect();
        let (found, expected) =
            (self.subject.read(asked.clone()).await.unwrap(), self.model.read(asked.clone()).await.unwrap());
        assert_eq!(found.len(), expected.len(), "{at}");
        for (key, pair) in asked.iter().zip(found.iter().zip(&expected)) {
            match pair {
                (None, None) => {}
                (Some(one), Some(other)) if self.are_same(one, other) => {}
                (one, other) => panic!("{at}: {key} is\n  {one:?}\nand should be\n  {other:?}"),
            }
        }
    }

    /// Whether the one says of a document what the other says.
    fn are_same(&self, one: &Document, other: &Document) -> bool {
        let known = self.versions.get(&one.key.to_string()).map_or(&[][..], Vec::as_slice);
        let collection = one.key.collection;
        one.key == other.key
            && known.contains(&(one.version, other.version))
            && normal(collection, one.body.clone()) == normal(collection, other.body.clone())
    }

    /// What differs between two lists.
    fn difference(&self, found: &[Document], expected: &[Document]) -> Option<String> {
        let same = found.len() == expected.len()
            && found.iter().zip(expected).all(|(one, other)| self.are_same(one, other));
        let shown = |documents: &[Document]| {
            documents
                .iter()
                .map(|one| format!("{} {:?} {:?}", one.key, one.version, one.body))
                .collect::<Vec<_>>()
        };
        (!same).then(|| format!("{:#?}\ninstead of\n{:#?}", shown(found), shown(expected)))
    }

    async fn find_difference(&self, query: &Query) -> Option<String> {
        let found = walk(&self.subject, query.clone()).await;
        let expected = walk(&self.model, query.clone()).await;
        self.difference(&found, &expected)
    }

    async fn find(&self, query: &Query, at: &str) {
        if let Some(difference) = self.find_difference(query).await {
            panic!("{at}: {query:?}\nfound {difference}");
        }
    }

    async fn count(&self, wishes: &mut Wishes, words: bool, at: &str) {
        let query = wishes.question(words);
        let by = wishes.count_by(query.collection);
        let counted = self.subject.count(query.clone(), by).await.unwrap();
        let expected = self.model.count(query.clone(), by).await.unwrap();
        assert_eq!(counted, expected, "{at}: by {by:?} of {query:?}");
    }

    async fn claim(&mut self, wishes: &mut Wishes, at: &str) {
        let mut query = wishes.question(false);
        while query.collection != &JOBS {
            query = wishes.question(false);
        }
        (query.hidden_before, query.firsts) = (None, false);
        let max = 1 + wishes.below(4);
        let token = ("claimToken", token(wishes.below(200).try_into().unwrap()));
        let mut set = wishes.fields(&JOBS);
        set.retain(|(path, _)| !["attempt", "claimToken"].contains(path));
        let claim = Claim { collection: &JOBS, from: vec![query], max, set, add_one: Some("attempt"), token };
        let taken = self.subject.claim(claim.clone()).await.unwrap();
        let expected = self.model.claim(claim.clone()).await.unwrap();
        for (one, other) in taken.iter().zip(&expected) {
            self.learn(&one.key, one.version, other.version);
        }
        if let Some(difference) = self.difference(&taken, &expected) {
            panic!("{at}: {claim:?}\ntook {difference}");
        }
    }

    async fn compare_everything(&self, at: &str) {
        let shown = async || self.first_difference().await.map(|difference| format!("{at}: {difference}"));
        eventually(&self.subject, None, shown).await;
    }

    async fn first_difference(&self) -> Option<String> {
        for (collection, _) in collections() {
            let all = Query::new(collection, Order::BY_ID);
            let buried = all.clone().hidden_before(UnixMillis(i64::MAX));
            for query in [all, buried].into_iter().take(if collection.hides() { 2 } else { 1 }) {
                let differing = self.find_difference(&query).await;
                if differing.is_some() {
                    return differing;
                }
                for by in [None].into_iter().chain(collection.counted.iter().map(|path| Some(*path))) {
                    let counted = self.subject.count(query.clone(), by).await.unwrap();
                    let expected = self.model.count(query.clone(), by).await.unwrap();
                    if counted != expected {
                        return Some(format!(
                            "{} by {by:?}: {counted:?} instead of {expected:?}",
                            collection.name
                        ));
                    }
                }
            }
        }
        None
    }
}

pub(super) fn with_version(mut write: Write, new: Version) -> Write {
    match &mut write {
        Write::Create { .. } => {}
        Write::Replace { version, .. }
        | Write::Change { version, .. }
        | Write::Delete { version, .. }
        | Write::Purge { version, .. } => *version = new,
    }
    write
}

/// Null and absent are the same for a declared field, and so are an absent parent and one that holds nothing.
fn normal(collection: &Collection, mut body: Body) -> Body {
    for field in collection.fields {
        if field.get(&body).is_some_and(serde_json::Value::is_null) {
            field.take(&mut body);
        }
    }
    for parent in
        collection.fields.iter().filter_map(|field| field.path.split_once('.')).map(|(parent, _)| parent)
    {
        if body.get(parent).and_then(|value| value.as_object()).is_some_and(serde_json::Map::is_empty) {
            body.shift_remove(parent);
        }
    }
    body
}
