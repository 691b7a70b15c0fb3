//! Where a claim goes on from the one before. A row that changes leaves its old entry in the index until the server clears it
//! out, so who always begins at the beginning walks past everything that was claimed before, over and over: the longer the
//! queue was, the more.
//!
//! A claim that got all it asked for has left nothing before the last of them, as far as this process knows. For a moment the
//! next one begins there; it is still about everything:
//!
//! - who gets less than it asked for looks again from the beginning;
//! - what is written here in such a way that it stands before a floor takes that away;
//! - what others write is found at the next look from the beginning, which is never long ago.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rota_model::domain::Domain;
use rota_store::collection::{Collection, Kind};
use rota_store::query::{Filter, Query};
use rota_store::seam::{Claim, Document, Write};
use serde_json::Value;
use tokio::time::Instant;

use crate::claim::Alike;
use crate::of_query;

/// How long after a look from the beginning others begin further on.
const HOLDS: Duration = Duration::from_millis(200);
/// How many queries are remembered.
const MOST: usize = 1_000;

/// How many writes are remembered, for claims that were under way meanwhile.
const RECENT: usize = 256;

#[derive(Default)]
pub(crate) struct Floors(Mutex<State>);

#[derive(Default)]
struct State {
    floors: HashMap<String, Floor>,
    /// The fields by which anybody ever claimed.
    fields: Vec<Climbed>,
    /// How many writes there were that count here, and the last of them.
    writes: u64,
    recent: VecDeque<(u64, Low)>,
}

/// A field by whose rising values documents of a collection are claimed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Climbed {
    collection: &'static Collection,
    path: &'static str,
}

struct Floor {
    by: Climbed,
    value: i64,
    /// When somebody looked from the beginning.
    looked: Instant,
}

/// The lowest value under which something may be to be claimed since a write; of every field, if none is named.
#[derive(Clone, Copy)]
pub(crate) struct Low {
    by: Option<Climbed>,
    value: i64,
}

impl Low {
    fn is_below(&self, by: Climbed, value: i64) -> bool {
        self.by.is_none_or(|own| own == by) && self.value < value
    }
}

/// What is known when a claim begins.
pub(crate) struct Begin {
    pub(crate) floor: Option<i64>,
    query: Option<(String, Climbed)>,
    looked: Instant,
    writes: u64,
}

impl Floors {
    /// Where a query of a claim begins.
    pub(crate) fn begin(&self, claim: &Claim, query: &Query) -> Begin {
        let now = Instant::now();
        let mut state = self.state();
        let query = climbs(claim, query).map(|by| (name(query, by.path), by));
        if let Some((_, by)) = query.as_ref().filter(|(_, by)| !state.fields.contains(by)) {
            state.fields.push(*by);
        }
        let held = query.as_ref().and_then(|(name, _)| state.floors.get(name));
        let held = held.filter(|floor| now.duration_since(floor.looked) < HOLDS);
        let looked = held.map_or(now, |floor| floor.looked);
        Begin { floor: held.map(|floor| floor.value), query, looked, writes: state.writes }
    }

    /// Takes note of what queries got that were asked one after the other, for so many documents at most. Who got all that it
    /// might have left nothing before the last of them; who got less has seen the end; and who was not asked any more stays as it
    /// was.
    pub(crate) fn end(
        &self,
        alike: &Alike<'_>,
        begins: Vec<Begin>,
        claimed: &[(usize, Document)],
        most: usize,
    ) {
        let stopped_at = claimed.last().filter(|_| claimed.len() >= most).map(|(nth, _)| *nth);
        for (nth, (begin, query)) in begins.into_iter().zip(&alike.queries).enumerate() {
            if stopped_at.is_some_and(|stopped_at| nth > stopped_at) {
                return;
            }
            let got: Vec<&Document> = of_query(claimed, nth).collect();
            let is_full = got.len() >= query.limit || stopped_at == Some(nth);
            self.note(begin, got.last().copied().filter(|_| is_full));
        }
    }

    /// The next one begins at the beginning.
    pub(crate) fn forget(&self, begin: Begin) {
        self.note(begin, None);
    }

    /// The last that a query got in order, if it got all that it asked for.
    fn note(&self, begin: Begin, last: Option<&Document>) {
        let Some((name, by)) = begin.query else { return };
        let field = by.collection.field(by.path);
        let value = last.zip(field).and_then(|(last, field)| field.sort_value(&last.body).as_i64());
        let mut state = self.state();
        match value.filter(|value| !state.may_be_below(by, *value, begin.writes)) {
            Some(value) => {
                if state.floors.len() >= MOST {
                    state.floors.clear();
                }
                state.floors.insert(name, Floor { by, value, looked: begin.looked });
            }
            None => _ = state.floors.remove(&name),
        }
    }

    /// Below which floors these writes may put something.
    pub(crate) fn lows(&self, batch: &[Write]) -> Vec<Low> {
        let fields = self.state().fields.clone();
        if fields.is_empty() {
            return vec![Low { by: None, value: i64::MIN }];
        }
        let low = |by: Climbed| {
            let lowest = batch.iter().filter_map(|write| lowest(write, by)).min();
            lowest.map(|value| Low { by: Some(by), value })
        };
        fields.into_iter().filter_map(low).collect()
    }

    /// They were written, or may have been.
    pub(crate) fn written(&self, lows: Vec<Low>) {
        let mut state = self.state();
        for low in lows {
            state.floors.retain(|_, floor| !low.is_below(floor.by, floor.value));
            state.writes += 1;
            let nth = state.writes;
            state.recent.push_back((nth, low));
            if state.recent.len() > RECENT {
                state.recent.pop_front();
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether something may have been put there since so many writes.
    fn may_be_below(&self, by: Climbed, value: i64, since: u64) -> bool {
        let since_then = || self.recent.iter().filter(|(nth, _)| *nth > since);
        let forgotten = self.writes - since > since_then().count() as u64;
        forgotten || since_then().any(|(_, low)| low.is_below(by, value))
    }
}

/// The lowest value with which a write may put something into the index from which it is claimed; none if it does not.
fn lowest(write: &Write, by: Climbed) -> Option<i64> {
    let field = by.collection.field(by.path)?;
    match write {
        _ if write.key().collection != by.collection => None,
        Write::Create { body, .. } | Write::Replace { body, .. } => {
            Some(field.sort_value(body).as_i64().unwrap_or(i64::MIN))
        }
        Write::Change { fields, .. } => {
            let puts = |(path, value): &(&str, Value)| {
                *path == by.path || value.as_str().is_some_and(|value| guards(by.collection, path, value))
            };
            fields.iter().any(puts).then_some(i64::MIN)
        }
        Write::Delete { .. } | Write::Purge { .. } => None,
    }
}

/// Whether documents with this value stand in an index of their own, from which they can be claimed.
fn guards(collection: &Collection, path: &str, value: &str) -> bool {
    crate::select::guards_an_index(collection, path, value)
}

/// The field by whose rising values a claim goes through its documents, if it leaves that alone, asks only for documents that have it,
/// and leaves none of them as it was asked for.
fn climbs(claim: &Claim, query: &Query) -> Option<Climbed> {
    let collection = query.collection;
    let field = collection.field(query.order.fields.first()?)?;
    let is_number = matches!(field.kind, Kind::Integer | Kind::Date);
    let sets = claim.fields();
    let is_set = sets.iter().any(|(path, _)| *path == field.path) || claim.add_one == Some(field.path);
    let is_bound =
        query.filters.iter().any(|filter| matches!(filter, Filter::AtMost(path, _) if *path == field.path));
    let is_other = |(path, becomes): &(&str, Value)| {
        query
            .filters
            .iter()
            .any(|filter| matches!(filter, Filter::Is(is, asked) if is == path && asked != becomes))
    };
    let climbs = is_number && !is_set && is_bound && !query.order.descending && sets.iter().any(is_other);
    climbs.then_some(Climbed { collection, path: field.path })
}

/// The same for queries that differ only in how far they go.
fn name(query: &Query, path: &str) -> String {
    let bound = |filter: &&Filter| !matches!(filter, Filter::AtMost(until, _) if *until == path);
    let filters: Vec<&Filter> = query.filters.iter().filter(bound).collect();
    let domain = query.domain.as_ref().map(Domain::as_str);
    format!("{} {domain:?} {:?} {filters:?}", query.collection.name, query.order.fields)
}

#[cfg(test)]
mod tests {
    use rota_model::ids::ClaimToken;
    use rota_model::time::UnixMillis;
    use rota_store::collection::JOBS;
    use rota_store::query::Order;
    use rota_store::seam::{Body, Key, Version};
    use serde_json::json;
    use tokio::time::advance;

    use super::*;

    fn query() -> Query {
        let due = Order { fields: &["runAt", "jobNumber"], descending: false };
        Query::new(&JOBS, due)
            .filter(Filter::Is("status", json!("QUEUED")))
            .filter(Filter::Is("lane", json!("a")))
            .filter(Filter::AtMost("runAt", 100))
            .limit(1)
    }

    fn claim() -> Claim {
        let token = ("claimToken", ClaimToken::rising(UnixMillis(1), &[0; 10]));
        Claim {
            collection: &JOBS,
            from: vec![query()],
            max: 1,
            set: vec![("status", json!("STARTED"))],
            add_one: None,
            token,
        }
    }

    fn job(run_at: i64) -> (Key, Body) {
        let body = json!({"runAt": run_at});
        (Key::new(&JOBS, run_at), body.as_object().cloned().unwrap_or_default())
    }

    fn got(run_at: i64) -> Document {
        let (key, body) = job(run_at);
        Document { key, version: Version(1), body }
    }

    fn floor(floors: &Floors) -> Option<i64> {
        floors.begin(&claim(), &query()).floor
    }

    fn with_floor(value: i64) -> Floors {
        let floors = Floors::default();
        floors.note(floors.begin(&claim(), &query()), Some(&got(value)));
        assert_eq!(floor(&floors), Some(value));
        floors
    }

    fn create(run_at: i64) -> Vec<Write> {
        let (key, body) = job(run_at);
        vec![Write::Create { key, body }]
    }

    fn change(field: &'static str, value: Value) -> Vec<Write> {
        vec![Write::Change { key: job(1).0, version: Version(1), fields: vec![(field, value)] }]
    }

    #[tokio::test(start_paused = true)]
    async fn who_got_all_goes_on_from_there_for_a_moment() {
        let floors = with_floor(50);
        advance(HOLDS / 2).await;
        floors.note(floors.begin(&claim(), &query()), Some(&got(60)));
        assert_eq!(floor(&floors), Some(60));
        advance(HOLDS / 2).await;
        assert_eq!(floor(&floors), None, "the beginning was last looked at too long ago");
        floors.note(floors.begin(&claim(), &query()), None);
        assert_eq!(floor(&floors), None, "who got less has seen the end");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_put_before_it_takes_a_floor_away() {
        for (writes, stays) in [
            (create(50), true),
            (create(49), false),
            (change("status", json!("SUCCESSFUL")), true),
            (change("status", json!("QUEUED")), false),
            (change("runAt", json!(70)), false),
        ] {
            let floors = with_floor(50);
            floors.written(floors.lows(&writes));
            assert_eq!(floor(&floors).is_some(), stays, "{writes:?}");
        }
    }

    /// A claim that began before something was written has not seen it.
    #[tokio::test(start_paused = true)]
    async fn who_was_under_way_meanwhile_sets_no_floor_above_it() {
        for (run_at, expected) in [(40, None), (50, Some(50))] {
            let floors = with_floor(30);
            let begun = floors.begin(&claim(), &query());
            floors.written(floors.lows(&create(run_at)));
            floors.note(begun, Some(&got(50)));
            assert_eq!(floor(&floors), expected);
        }
        let floors = with_floor(30);
        let begun = floors.begin(&claim(), &query());
        (0..=RECENT).for_each(|_| floors.written(floors.lows(&create(90))));
        floors.note(begun, Some(&got(50)));
        assert_eq!(floor(&floors), None, "there were too many to remember");
    }

    /// Lanes are asked for their shares first, and then for the rest.
    #[tokio::test(start_paused = true)]
    async fn each_of_several_queries_goes_on_where_it_was() {
        let floors = Floors::default();
        let lane = |name: &str, limit: usize| {
            let mut query = query().limit(limit);
            query.filters.push(Filter::Is("jobName", json!(name)));
            query
        };
        let queries = [lane("a", 2), lane("b", 2), lane("a", 4), lane("b", 4)];
        let alike = Alike { queries: queries.iter().collect() };
        let floors_of = || {
            let begins = queries.iter().map(|query| floors.begin(&claim(), query));
            begins.map(|begin| begin.floor).collect::<Vec<_>>()
        };
        let claimed = |of: &[(usize, i64)], most: usize| {
            let begins = queries.iter().map(|query| floors.begin(&claim(), query)).collect();
            let claimed: Vec<_> = of.iter().map(|(nth, run_at)| (*nth, got(*run_at))).collect();
            floors.end(&alike, begins, &claimed, most);
        };
        claimed(&[(0, 1), (0, 2), (1, 1), (1, 2), (2, 3)], 5);
        assert_eq!(
            floors_of(),
            [Some(3), Some(2), Some(3), Some(2)],
            "the rest of a was cut off, that of b not asked for"
        );
        claimed(&[(0, 4), (0, 5), (1, 3), (2, 6)], 5);
        assert_eq!(floors_of(), [None; 4], "everybody has seen the end");
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_documents_as_they_were_asked_for_always_begins_at_the_beginning() {
        let floors = Floors::default();
        for set in [("status", json!("QUEUED")), ("runAt", json!(7)), ("epoch", json!(7))] {
            let claim = Claim { set: vec![set], ..claim() };
            floors.note(floors.begin(&claim, &query()), Some(&got(50)));
            assert_eq!(floors.begin(&claim, &query()).floor, None);
        }
    }

    /// Nobody knows yet by which field it will be claimed.
    #[tokio::test(start_paused = true)]
    async fn what_is_written_during_the_very_first_claim_counts() {
        let floors = Floors::default();
        let lows = floors.lows(&create(40));
        let begun = floors.begin(&claim(), &query());
        floors.written(lows);
        floors.note(begun, Some(&got(50)));
        assert_eq!(floor(&floors), None);
    }
}
