//! A claim as one statement: rows are found in the order of the index, locked unless somebody else has them, changed and
//! returned. Queries of the same shape are asked together, each for its own values.
//!
//! ```text
//!  q        the values of each query, in the order in which they are asked
//!  picked   rows that match and nobody else has, at most as many as the claim may take, each with its place
//!  counted  the differences in the totals
//! ```
//!
//! Then the same rows are changed, and returned with their places: whoever asked puts them in order.

use std::collections::BTreeMap;

use rota_store::collection::{Collection, Field, Kind};
use rota_store::query::{Filter, Query};
use rota_store::seam::Claim;
use serde_json::Value;

use crate::deeds::{self, Twins, differences};
use crate::names::{column, counted, document_with, is_shown, key_columns, table, words_column};
use crate::prepared::{Deed, changed_words, words_of_change};
use crate::row::{Cell, cells_of, unchanged};
use crate::select::{Sql, guards_an_index, order_by};
use crate::value::Param;

/// Queries that differ in their values alone.
pub(crate) struct Alike<'a> {
    pub(crate) queries: Vec<&'a Query>,
}

/// What a query may still get.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    pub(crate) limit: usize,
    /// Where it begins in its order.
    pub(crate) floor: Option<i64>,
}

/// Runs of queries that can be asked together.
pub(crate) fn alike(queries: &[Query]) -> Vec<Alike<'_>> {
    let mut all: Vec<Alike<'_>> = Vec::new();
    for query in queries {
        match all.last_mut() {
            Some(Alike { queries }) if queries.first().is_some_and(|first| is_alike(first, query)) => {
                queries.push(query);
            }
            _ => all.push(Alike { queries: vec![query] }),
        }
    }
    all
}

/// Whether they differ only in what stands in columns of `q`. A guard of an index is part of the text.
fn is_alike(a: &Query, b: &Query) -> bool {
    let guards = |path: &str, value: &Value| {
        value.as_str().is_some_and(|value| guards_an_index(a.collection, path, value))
    };
    let same = |(a, b): (&Filter, &Filter)| match (a, b) {
        (Filter::Is(path, one), Filter::Is(other, two)) => {
            path == other && (one == two || !guards(path, one) && !guards(other, two))
        }
        (Filter::In(path, ones), Filter::In(other, twos)) => path == other && ones == twos,
        (Filter::AtLeast(path, _), Filter::AtLeast(other, _))
        | (Filter::AtMost(path, _), Filter::AtMost(other, _))
        | (Filter::Absent(path), Filter::Absent(other)) => path == other,
        _ => false,
    };
    a.order == b.order
        && a.domain.is_some() == b.domain.is_some()
        && a.filters.len() == b.filters.len()
        && a.filters.iter().zip(&b.filters).all(same)
}

/// The arrays of what the queries ask for, and what a row must be.
struct Asked {
    sql: Sql,
    /// The columns of `q`, each with its array.
    columns: Vec<(String, String)>,
    condition: String,
}

impl Asked {
    fn of(alike: &Alike<'_>) -> Option<Self> {
        let first = *alike.queries.first()?;
        let collection = first.collection;
        let mut asked =
            Self { sql: Sql::default(), columns: Vec::new(), condition: is_shown(collection, "r.") };
        if first.domain.is_some() {
            let domains = alike.queries.iter().map(|query| query.domain.as_ref().map(ToString::to_string));
            let name = asked.column(Param::Texts(domains.collect()), "text[]");
            asked.narrow(&format!("r.in_domain = {name}"));
        }
        for nth in 0..first.filters.len() {
            let each: Vec<&Filter> =
                alike.queries.iter().filter_map(|query| query.filters.get(nth)).collect();
            asked.filter(collection, &each);
        }
        Some(asked)
    }

    /// A column of `q`. Says what it is called.
    fn column(&mut self, array: Param, kind: &str) -> String {
        let name = format!("v{}", self.columns.len());
        let array = format!("{}::{kind}", self.sql.value(array));
        self.columns.push((name.clone(), array));
        format!("q.{name}")
    }

    fn narrow(&mut self, condition: &str) {
        self.condition.push_str(" AND ");
        self.condition.push_str(condition);
    }

    /// Where each of them begins in its order, if that is known of any: what has no value there is never claimed by these.
    fn begin_at(&mut self, query: &Query, shares: &[Share]) {
        if !shares.iter().any(|share| share.floor.is_some()) {
            return;
        }
        let floors = shares.iter().map(|share| Some(share.floor.unwrap_or(i64::MIN))).collect();
        if let Some(path) = query.order.fields.first() {
            let floor = self.column(Param::Ints(floors), "bigint[]");
            self.narrow(&format!("r.{} >= {floor}", column(path)));
        }
    }

    fn filter(&mut self, collection: &'static Collection, each: &[&Filter]) {
        let Some(first) = each.first() else { return };
        let Some(field) = first.path().and_then(|path| collection.field(path)) else { return };
        let name = format!("r.{}", column(field.path));
        let values = each.iter().map(|filter| match filter {
            Filter::Is(_, value) => value.clone(),
            Filter::AtLeast(_, bound) | Filter::AtMost(_, bound) => Value::from(*bound),
            _ => Value::Null,
        });
        let condition = match first {
            Filter::Is(path, Value::String(value)) if guards_an_index(collection, path, value) => {
                format!("{name} = '{value}'")
            }
            Filter::In(_, values) => {
                let values = crate::select::params(values, field.kind);
                let values = self.sql.value(values);
                if field.kind == Kind::Keywords {
                    format!("{name} && {values}::text[]")
                } else {
                    format!("{name} = ANY({values})")
                }
            }
            Filter::Absent(_) => format!("{name} IS NULL"),
            _ => {
                let (array, kind) = match field.kind {
                    Kind::Integer | Kind::Date => {
                        (Param::Ints(values.map(|value| value.as_i64()).collect()), "bigint[]")
                    }
                    _ => (
                        Param::Texts(values.map(|value| value.as_str().map(str::to_owned)).collect()),
                        "text[]",
                    ),
                };
                let value = self.column(array, kind);
                match first {
                    Filter::AtLeast(..) => format!("{name} >= {value}"),
                    Filter::AtMost(..) => format!("{name} <= {value}"),
                    _ if field.kind == Kind::Keywords => format!("{name} @> ARRAY[{value}]"),
                    _ => format!("{name} = {value}"),
                }
            }
        };
        self.narrow(&condition);
    }
}

/// The statement that claims at most so many for these queries. Its answer has the columns of
/// [`crate::names::document`] but for this [`change`], then the place of each and the number of its query, from 1 on.
pub(crate) fn statement(
    claim: &Claim,
    change: &[(&'static Field, Value)],
    alike: &Alike<'_>,
    shares: &[Share],
    most: usize,
    version: i64,
) -> Option<Sql> {
    let first = *alike.queries.first()?;
    let collection = first.collection;
    let mut asked = Asked::of(alike)?;
    asked.begin_at(first, shares);
    let limits = shares.iter().map(|share| i64::try_from(share.limit.min(most)).ok()).collect();
    let limit = asked.column(Param::Ints(limits), "bigint[]");
    let Asked { mut sql, columns, condition } = asked;
    let (names, arrays): (Vec<String>, Vec<String>) = columns.into_iter().unzip();
    // A value, and not a literal: a statement for each number would be prepared and planned anew all the time.
    let most = sql.value(Param::Int(i64::try_from(most).unwrap_or(i64::MAX)));
    let keys = key_columns(collection);
    let of = |row: &str| keys.iter().map(|name| format!("{row}.{name}")).collect::<Vec<_>>().join(", ");
    let kinds: Vec<String> = counted(collection).into_iter().map(column).collect();
    let kinds_of = |row: &str| kinds.iter().map(|name| format!(", {row}.{name}")).collect::<String>();
    let rows = table(collection);
    let order = order_by(first, "r");
    let same = keys.iter().map(|name| format!("r.{name} = picked.{name}")).collect::<Vec<_>>().join(" AND ");
    let (names, arrays) = (names.join(", "), arrays.join(", "));
    sql.text = format!(
        "WITH picked AS MATERIALIZED (SELECT {}{}, row_number() OVER () AS place, q.nth \
         FROM unnest({arrays}) WITH ORDINALITY AS q ({names}, nth) \
         CROSS JOIN LATERAL (SELECT {}{} FROM {rows} AS r WHERE {condition} ORDER BY {order} LIMIT {limit} \
         FOR UPDATE SKIP LOCKED) AS p LIMIT {most}::bigint)",
        of("p"),
        kinds_of("p"),
        of("r"),
        kinds_of("r"),
    );
    let set = set(claim, collection, &mut sql, version);
    if !kinds.is_empty() {
        let by = kinds.join(", ");
        let now: Vec<&str> =
            kinds.iter().map(|name| set.get(name).map_or(name.as_str(), String::as_str)).collect();
        // Queries may overlap, and what we have locked ourselves is not skipped: then one is picked twice, and changed once.
        let once = match alike.queries.len() {
            1 => "picked".to_owned(),
            _ => format!("(SELECT DISTINCT {}, {by} FROM picked) AS picked", keys.join(", ")),
        };
        let counted = differences(collection, &once, &by, &[(&now.join(", "), ""), (&by, "-")]);
        sql.push(&format!(", counted AS ({counted})"));
    }
    wording(claim, collection, &mut sql);
    let set: Vec<String> = set.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    sql.push(&format!(
        " UPDATE {rows} AS r SET {} FROM picked WHERE {same} RETURNING {}, picked.place, picked.nth",
        set.join(", "),
        document_with(collection, "r", unchanged(collection, change))
    ));
    Some(sql)
}

/// What a claim sets, as it is read from then on: it need not come back with each.
pub(crate) fn change(claim: &Claim) -> Vec<(&'static Field, Value)> {
    let declared = |(path, value): (&str, Value)| Some((claim.collection.field(path)?, value));
    claim.fields().into_iter().filter_map(declared).collect()
}

/// The words of what is set, if that is searched: the same for each.
fn wording(claim: &Claim, collection: &'static Collection, sql: &mut Sql) {
    let fields = claim.fields();
    let mask = cells_of(collection, &fields).iter().fold(0, |mask, (nth, _)| mask | 1 << nth);
    let paths: Vec<&str> = changed_words(collection, mask).collect();
    if paths.is_empty() {
        return;
    }
    let words = words_of_change(collection, mask, fields);
    let given = paths.iter().zip(words).map(|(path, words)| {
        let words = words.map_or_else(|| "NULL".to_owned(), |words| sql.value(Param::Text(words)));
        format!(", {words}::text AS {}", words_column(path))
    });
    let given = given.collect::<String>();
    sql.push(&format!(
        ", done AS (SELECT picked.id FROM picked), n AS (SELECT done.id{given} FROM done){}",
        deeds::registering(collection, Deed::Change(mask), Twins::Expected)
    ));
}

/// What becomes of each row: the columns, and the value of each.
fn set(
    claim: &Claim,
    collection: &'static Collection,
    sql: &mut Sql,
    version: i64,
) -> BTreeMap<String, String> {
    let version = format!("{}::bigint", sql.value(Param::Int(version)));
    let mut set = BTreeMap::from([("version".to_owned(), version)]);
    for (nth, cell) in cells_of(collection, &claim.fields()) {
        let Some(field) = collection.fields.get(nth) else { continue };
        let value = match cell {
            Cell::Null => "NULL".to_owned(),
            Cell::Text(text) => format!("{}::text", sql.value(Param::Text(text))),
            Cell::Int(int) => format!("{}::bigint", sql.value(Param::Int(int))),
            Cell::Json(json) => format!("{}::jsonb", sql.value(Param::Json(Some(json)))),
        };
        set.insert(column(field.path), value);
    }
    if let Some(path) = claim.add_one {
        let name = column(path);
        // The last number stays what it is.
        let value = format!("coalesce(r.{name} + CASE WHEN r.{name} = {} THEN 0 ELSE 1 END, 1)", i64::MAX);
        set.insert(name, value);
    }
    set
}
