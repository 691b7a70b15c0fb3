//! What each document was, and since when, as far back as anybody may look.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;

use rota_model::domain::Domain;
use rota_model::time::UnixMillis;
use rota_store::collection::{Collection, Kind};
use rota_store::query::{Filter, Query, rank};
use rota_store::seam::{Body, Document, Fields, Key, Tally, Version, Write};
use serde_json::Value;
use tokio::time::Instant;

pub(super) struct Past {
    /// How far back anybody looks.
    reach: Duration,
    collections: BTreeMap<&'static str, Documents>,
}

type Documents = BTreeMap<(Option<Domain>, String), Vec<Moment>>;

/// What a document became at an instant.
struct Moment {
    since: Instant,
    /// None where it went.
    state: Option<State>,
}

#[derive(Clone)]
struct State {
    version: Version,
    body: Body,
    hidden_at: Option<UnixMillis>,
}

impl Past {
    pub(super) fn new(reach: Duration) -> Self {
        Self { reach, collections: BTreeMap::new() }
    }

    /// Takes down a write that was applied, and forgets what lies too far back.
    pub(super) fn record(&mut self, now: Instant, write: Write, version: Version) {
        let Key { collection, domain, id } = write.key().clone();
        let documents = self.collections.entry(collection.name).or_default();
        let moments = documents.entry((domain, id)).or_default();
        let before = moments.last().and_then(|moment| moment.state.clone());
        moments.push(Moment { since: now, state: after(collection, before, write, version) });
        let old = moments.iter().filter(|moment| moment.since + self.reach <= now).count();
        moments.drain(..old.saturating_sub(1));
    }

    /// Everything that matched at an instant, in order, from the cursor on.
    pub(super) fn matching(&self, query: &Query, at: Instant) -> Vec<Document> {
        let documents = self.collections.get(query.collection.name).into_iter().flatten();
        let mut found: Vec<(Vec<Value>, Document)> = documents
            .filter(|((domain, _), _)| query.domain.is_none() || *domain == query.domain)
            .filter_map(|(place, moments)| Some((place, state_at(moments, at)?)))
            .filter(|(_, state)| is_shown(state, query))
            .map(|((domain, id), state)| {
                let key = Key { collection: query.collection, domain: domain.clone(), id: id.clone() };
                let document = Document { key, version: state.version, body: state.body.clone() };
                (query.sort_key(&document), document)
            })
            .filter(|(key, _)| {
                let cursor = query.after.as_ref();
                cursor.is_none_or(|cursor| query.compare(key, &cursor.key) == Ordering::Greater)
            })
            .collect();
        found.sort_by(|(a, _), (b, _)| query.compare(a, b));
        found.into_iter().map(|(_, document)| document).collect()
    }

    pub(super) fn count(&self, query: Query, by: Option<&'static str>, at: Instant) -> Vec<Tally> {
        let matching = self.matching(&Query { after: None, ..query.clone() }, at);
        let Some(field) = by.and_then(|path| query.collection.field(path)) else {
            return vec![Tally { value: Value::Null, count: matching.len() as u64 }];
        };
        let mut values: Vec<Value> =
            matching.iter().map(|document| field.sort_value(&document.body)).collect();
        values.sort_by(|a, b| rank(a).cmp(&rank(b)));
        let alike = values.chunk_by(|a, b| a == b);
        alike.map(|values| Tally { value: values[0].clone(), count: values.len() as u64 }).collect()
    }
}

fn state_at(moments: &[Moment], at: Instant) -> Option<&State> {
    moments.iter().rfind(|moment| moment.since <= at)?.state.as_ref()
}

fn is_shown(state: &State, query: &Query) -> bool {
    let here = match query.hidden_before {
        None => state.hidden_at.is_none(),
        Some(before) => state.hidden_at.is_some_and(|at| at <= before),
    };
    let differs = |filter: &Filter| differs(query.collection, filter, &state.body);
    here && !query.filters.iter().any(differs)
        && query.filters.iter().all(|filter| filter.holds(query.collection, &state.body))
}

/// Whether a document has plainly another value than the one asked for. Most do, and are passed over without a copy.
fn differs(collection: &Collection, filter: &Filter, body: &Body) -> bool {
    let Filter::Is(path, wanted) = filter else { return false };
    let field = collection.field(path).filter(|field| matches!(field.kind, Kind::Keyword | Kind::Integer));
    field.is_some_and(|field| !wanted.is_null() && field.get(body) != Some(wanted))
}

/// What a write that was applied makes of a document.
fn after(collection: &Collection, before: Option<State>, write: Write, version: Version) -> Option<State> {
    let there = |body| Some(State { version, body, hidden_at: None });
    match (write, before) {
        (Write::Create { body, .. } | Write::Replace { body, .. }, _) => there(body),
        (Write::Change { fields, .. }, before) => {
            let mut body = before.map(|before| before.body).unwrap_or_default();
            set(collection, &mut body, fields);
            there(body)
        }
        (Write::Delete { at, .. }, Some(before)) if collection.hides() => {
            Some(State { version, hidden_at: Some(at), ..before })
        }
        (Write::Delete { .. } | Write::Purge { .. }, _) => None,
    }
}

pub(super) fn set(collection: &Collection, body: &mut Body, fields: Fields) {
    for (path, value) in fields {
        if let Some(field) = collection.field(path) {
            field.set(body, value);
        }
    }
}
