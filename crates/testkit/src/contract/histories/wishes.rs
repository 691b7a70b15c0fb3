//! Random documents, changes and questions, made from what is declared of a collection. All from few values, so that
//! they meet.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rota_model::time::UnixMillis;
use rota_store::collection::{Collection, EXECUTIONS, Field, JOBS, Kind, Reach, STATE, TIMERS, USERS};
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Fields, Key};
use serde_json::{Value, json};

use crate::contract::examples::domain;

pub(super) struct Wishes {
    dice: StdRng,
}

const DOMAINS: [&str; 2] = ["x", "y"];
const TEXTS: [&str; 6] = ["alpha beta", "Alpha", "beta", "", "QUEUED", "\u{1f980}"];
/// Two that are equal, in different spellings.
const DATES: [&str; 5] =
    ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "1767225600001", "1969-07-20T20:17:40Z", "0"];
const WORDS: [&str; 4] = ["alpha", "beta", "al*", "alpha beta"];

/// What the histories are about, with orders that make sense for it.
pub(super) fn collections() -> [(&'static Collection, &'static [&'static [&'static str]]); 5] {
    [
        (
            &JOBS,
            &[
                &["jobNumber"],
                &["priority", "runAt"],
                &["lane", "runAt", "jobNumber"],
                &["domain", "metadata.createdAt", "jobNumber"],
                &["owner"],
            ],
        ),
        (&STATE, &[&["running"], &["status", "name"]]),
        (&TIMERS, &[&["section"], &["name", "status"]]),
        (&EXECUTIONS, &[&["timer_uuid", "due"], &["finished"]]),
        (&USERS, &[]),
    ]
}

/// Few, so that histories of one document are long.
pub(super) fn keys(prefix: &str) -> Vec<Key> {
    let mut keys = Vec::new();
    for (collection, _) in collections() {
        for nth in 0..3 {
            let id = format!("{prefix}{nth}");
            match collection.reach {
                Reach::Installation => keys.push(Key::new(collection, id)),
                Reach::Domain => {
                    keys.extend(DOMAINS.map(|name| Key::in_domain(collection, &domain(name), &id)));
                }
            }
        }
    }
    keys
}

impl Wishes {
    pub(super) fn new(seed: u64) -> Self {
        Self { dice: StdRng::seed_from_u64(seed) }
    }

    pub(super) fn chance(&mut self, percent: u32) -> bool {
        self.dice.random_ratio(percent, 100)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.dice.random_range(0..end)
    }

    pub(super) fn one_of<T: Clone>(&mut self, several: &[T]) -> T {
        several.choose(&mut self.dice).unwrap().clone()
    }

    fn text(&mut self) -> &'static str {
        self.one_of(&TEXTS)
    }

    fn integer(&mut self, field: &Field) -> i64 {
        // A claim adds to these, and nothing can be added to the largest number.
        let is_counter = ["epoch", "attempt", "lost", "running"].contains(&field.path);
        let extreme = !is_counter && self.chance(10);
        if extreme { self.one_of(&[i64::MIN, i64::MAX]) } else { self.dice.random_range(-1..4) }
    }

    fn value(&mut self, field: &Field) -> Value {
        match field.kind {
            Kind::Keyword => json!(self.text()),
            Kind::Keywords => (0..self.below(3)).map(|_| self.text()).collect(),
            Kind::Integer => json!(self.integer(field)),
            Kind::Date if self.chance(20) => json!(self.dice.random_range(-2..2i64)),
            Kind::Date => json!(self.one_of(&DATES)),
            Kind::Json => {
                let values = [
                    json!({"error": "beta gone"}),
                    json!({}),
                    json!([1, null, {"a": null}]),
                    json!("text"),
                    json!(5),
                ];
                self.one_of(&values)
            }
        }
    }

    pub(super) fn body(&mut self, collection: &Collection) -> Body {
        let mut body = Body::new();
        for field in collection.fields {
            if self.chance(70) {
                let value = self.value(field);
                field.set(&mut body, value);
            } else if !field.path.contains('.') && self.chance(10) {
                body.insert(field.path.to_owned(), Value::Null);
            }
        }
        if self.chance(50) {
            body.insert("undeclared".to_owned(), json!({"null": null, "n": self.below(1_000), "f": 0.1}));
        }
        body
    }

    /// Some of the fields that change; several or none.
    pub(super) fn fields(&mut self, collection: &Collection) -> Fields {
        let mut fields = Vec::new();
        for field in collection.changing() {
            if self.chance(25) {
                fields.push((field.path, if self.chance(20) { Value::Null } else { self.value(field) }));
            }
        }
        fields
    }

    fn filter(&mut self, field: &Field) -> Filter {
        let path = field.path;
        match field.kind {
            _ if self.chance(10) && field.kind != Kind::Keywords => Filter::Absent(path),
            Kind::Keyword | Kind::Keywords if self.chance(50) => Filter::Is(path, json!(self.text())),
            Kind::Keyword | Kind::Keywords => {
                Filter::In(path, (0..self.below(4)).map(|_| json!(self.text())).collect())
            }
            Kind::Integer if self.chance(50) => Filter::Is(path, json!(self.integer(field))),
            Kind::Integer if self.chance(50) => Filter::AtLeast(path, self.integer(field)),
            Kind::Integer => Filter::AtMost(path, self.integer(field)),
            Kind::Date | Kind::Json => {
                let instant = self.one_of(&[0, 1, 1_767_225_600_000, 1_767_225_600_001]);
                if self.chance(50) { Filter::AtLeast(path, instant) } else { Filter::AtMost(path, instant) }
            }
        }
    }

    /// A question about one of the collections. Words only where they are found at once.
    pub(super) fn question(&mut self, words: bool) -> Query {
        let (collection, orders) = self.one_of(&collections());
        let fields = if orders.is_empty() || self.chance(20) { &[] } else { self.one_of(orders) };
        let mut query = Query::new(collection, Order { fields, descending: self.chance(50) });
        query.limit = 1 + self.below(9);
        query.keys_only = self.chance(20);
        if collection.reach == Reach::Domain && self.chance(50) {
            query.domain = Some(domain(self.one_of(&DOMAINS)));
        }
        if collection.hides() && self.chance(20) {
            query.hidden_before = Some(UnixMillis(self.dice.random_range(0..6)));
        }
        let asked: Vec<&Field> = collection.fields.iter().filter(|field| field.kind != Kind::Json).collect();
        while self.chance(55) {
            let field = self.one_of(&asked);
            let filter = self.filter(field);
            query.filters.push(filter);
        }
        if words && !collection.text.is_empty() && self.chance(15) {
            query.filters.push(Filter::Text(self.one_of(&WORDS).to_owned()));
        } else if !fields.is_empty() && query.hidden_before.is_none() && self.chance(20) {
            query.order.descending = false;
            query.firsts = true;
        }
        query
    }

    /// A field that a count can go by, or none for a total.
    pub(super) fn count_by(&mut self, collection: &Collection) -> Option<&'static str> {
        let fields: Vec<&'static str> = collection
            .fields
            .iter()
            .filter(|field| matches!(field.kind, Kind::Keyword | Kind::Integer))
            .map(|field| field.path)
            .collect();
        if fields.is_empty() || self.chance(25) { None } else { Some(self.one_of(&fields)) }
    }
}
