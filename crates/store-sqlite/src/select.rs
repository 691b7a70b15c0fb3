//! A query as statements. Where a list goes on behind a cursor, it is asked for in parts, each a range that an index
//! gives in order: first what shares all but the last value with the cursor, then what shares all but the last two, and
//! so on. A comparison of whole rows would be shorter, and would lose the documents that lack a value.

use std::fmt::Write as _;

use rota_store::collection::{Collection, DOMAIN, Index, Kind};
use rota_store::query::{Filter, Query};
use rota_store::words::Words;
use rusqlite::types::Value as SqlValue;
use serde_json::Value;

use crate::row::to_sql;
use crate::statements::{column, is_shown, keywords_table, quoted, table};

pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) values: Vec<SqlValue>,
}

/// The columns by which a query sorts: its fields, where needed the domain, the id.
pub(crate) fn order_columns(query: &Query) -> Vec<String> {
    let mut columns: Vec<String> = query.order.fields.iter().map(|path| column(path)).collect();
    if query.is_over_all_domains() {
        columns.push("in_domain".to_owned());
    }
    columns.push("id".to_owned());
    columns
}

/// The indexes that suit a query. SQLite would rather walk through all documents in the order of their ids.
#[derive(Default)]
pub(crate) struct Suitable {
    /// Gives the documents in the order asked for; one over the state asked for before others.
    pub(crate) ordered: Option<&'static Index>,
    /// Holds the documents in the state asked for, in another order.
    pub(crate) guarded: Option<&'static Index>,
}

pub(crate) fn suitable(query: &Query) -> Suitable {
    if query.hidden_before.is_some() {
        return Suitable::default();
    }
    let value = |path: &str| {
        query.filters.iter().find_map(|filter| match filter {
            Filter::Is(of, value) if *of == path => Some(value),
            _ => None,
        })
    };
    let is_absent =
        |path: &str| query.filters.iter().any(|filter| matches!(filter, Filter::Absent(of) if *of == path));
    let is_asked =
        |path: &str| value(path).is_some() || is_absent(path) || (path == DOMAIN && query.domain.is_some());
    let is_guarded = |index: &&Index| {
        index.only.is_some_and(|(path, guard)| value(path).is_some_and(|value| value == guard))
    };
    // What is compared has a value.
    let is_compared = |path: &str| {
        query.filters.iter().any(|filter| match filter {
            Filter::Is(of, _) | Filter::AtLeast(of, _) | Filter::AtMost(of, _) => *of == path,
            Filter::In(..) | Filter::Absent(_) | Filter::Text(_) => false,
        })
    };
    let is_held = |index: &&Index| {
        let lacks_some = index.sparse && !index.fields.first().is_some_and(|first| is_compared(first));
        !lacks_some && (index.only.is_none() || is_guarded(index))
    };
    // How many fields are asked for before those of the order; none if the index does not give it.
    let rank = |index: &'static Index| {
        let rest = index.fields.strip_suffix(query.order.fields)?;
        let orders =
            rest.iter().all(|path| is_asked(path)) && !(rest.is_empty() && query.order.fields.is_empty());
        orders.then_some(((is_guarded(&index), rest.len()), index))
    };
    let usable = query.collection.indexes.iter().filter(is_held);
    let ordered = usable.clone().filter_map(rank).max_by_key(|(rank, _)| *rank);
    let guarded = usable.into_iter().find(is_guarded);
    match ordered {
        Some(((true, _), index)) => Suitable { ordered: Some(index), guarded: None },
        ordered => Suitable { ordered: ordered.map(|(_, index)| index), guarded },
    }
}

/// How the documents of a list are reached.
#[derive(Clone, Copy)]
pub(crate) enum Way<'a> {
    /// By this index, or as SQLite chooses.
    By(Option<&'a Index>),
    /// One by one, and then sorted: no other row is meant.
    Among(&'a [i64]),
}

/// The statements whose answers, one after the other, are the list. Each takes a limit as its last value, which is left
/// to the caller. `columns` is what is answered.
pub(crate) fn lists(query: &Query, columns: &str, way: Way<'_>) -> Vec<Statement> {
    let order = order_columns(query);
    let direction = if query.order.descending { "DESC" } else { "ASC" };
    let sorted: Vec<String> = order.iter().map(|name| format!("{name} {direction}")).collect();
    let base = match way {
        Way::By(index) => matching(query, index),
        Way::Among(rows) => matching_among(query, rows),
    };
    parts(query, &order)
        .into_iter()
        .map(|part| {
            let mut values = base.values.clone();
            values.extend(part.values);
            let (from, order) = (&base.text, sorted.join(", "));
            Statement {
                text: format!("SELECT {columns}{from}{} ORDER BY {order} LIMIT ?", part.text),
                values,
            }
        })
        .collect()
}

/// The same as [`matching`], where nothing else than these rows can be meant.
fn matching_among(query: &Query, rows: &[i64]) -> Statement {
    let collection = query.collection;
    let text = format!(
        " FROM {} NOT INDEXED WHERE pk IN (SELECT value FROM json_each(?)) AND {}",
        table(collection),
        is_shown(collection)
    );
    let rows = Value::from(rows).to_string();
    let mut statement = Statement { text, values: vec![SqlValue::Text(rows)] };
    let by_words = |filter: &&Filter| matches!(filter, Filter::Text(_));
    narrow_down(query, query.filters.iter().filter(|filter| !by_words(filter)), &mut statement);
    statement
}

/// `FROM … WHERE …`: what a query is about, without order and cursor.
pub(crate) fn matching(query: &Query, by: Option<&Index>) -> Statement {
    let collection = query.collection;
    let by =
        by.map(|index| format!(" INDEXED BY {}", quoted(&format!("{}.{}", collection.name, index.name))));
    let text = format!(" FROM {}{} WHERE ", table(collection), by.unwrap_or_default());
    let mut statement = Statement { text, values: Vec::new() };
    match query.hidden_before {
        None => statement.text.push_str(is_shown(collection)),
        Some(at) => {
            statement.text.push_str("hidden_at IS NOT NULL AND hidden_at <= ?");
            statement.values.push(SqlValue::Integer(at.0));
        }
    }
    narrow_down(query, query.filters.iter(), &mut statement);
    statement
}

fn narrow_down<'a>(query: &Query, filters: impl Iterator<Item = &'a Filter>, statement: &mut Statement) {
    if let Some(domain) = &query.domain {
        statement.text.push_str(" AND in_domain = ?");
        statement.values.push(SqlValue::Text(domain.to_string()));
    }
    filters.for_each(|filter| condition(query.collection, filter, statement));
}

/// The statement whose answer is the first document behind a value of the order's first field; the first of all if there is
/// none. It takes a limit as its last value, as those of a list do.
pub(crate) fn first_behind(
    query: &Query,
    columns: &str,
    by: Option<&Index>,
    value: Option<&Value>,
) -> Option<Statement> {
    let order = order_columns(query);
    let Statement { text, mut values } = matching(query, by);
    let range = match value {
        None => Statement { text: String::new(), values: Vec::new() },
        Some(value) => behind(order.first()?, value, false, false).pop()?,
    };
    values.extend(range.values);
    let text = format!("SELECT {columns}{text}{} ORDER BY {} LIMIT ?", range.text, order.join(", "));
    Some(Statement { text, values })
}

/// The ranges behind the cursor; everything, if there is none.
fn parts(query: &Query, order: &[String]) -> Vec<Statement> {
    let Some(cursor) = &query.after else {
        return vec![Statement { text: String::new(), values: Vec::new() }];
    };
    let mut parts = Vec::new();
    for (nth, (name, value)) in order.iter().zip(&cursor.key).enumerate().rev() {
        let mut shared = Statement { text: String::new(), values: Vec::new() };
        for (name, value) in order.iter().zip(&cursor.key).take(nth) {
            equal(name, value, &mut shared);
        }
        let is_id = nth + 1 == order.len();
        for range in behind(name, value, query.order.descending, is_id) {
            let mut values = shared.values.clone();
            values.extend(range.values);
            parts.push(Statement { text: format!("{}{}", shared.text, range.text), values });
        }
    }
    parts
}

fn equal(name: &str, value: &Value, statement: &mut Statement) {
    if value.is_null() {
        let _ = write!(statement.text, " AND {name} IS NULL");
    } else {
        let _ = write!(statement.text, " AND {name} = ?");
        statement.values.push(to_sql(value));
    }
}

/// What is sorted behind a value. What is absent comes first, so it is last where the order descends.
fn behind(name: &str, value: &Value, descending: bool, never_absent: bool) -> Vec<Statement> {
    let range = |text: String, values: Vec<SqlValue>| Statement { text, values };
    let compared = |sign: &str| range(format!(" AND {name} {sign} ?"), vec![to_sql(value)]);
    match (descending, value.is_null()) {
        (false, true) => vec![range(format!(" AND {name} IS NOT NULL"), Vec::new())],
        (false, false) => vec![compared(">")],
        (true, true) => Vec::new(),
        (true, false) if never_absent => vec![compared("<")],
        (true, false) => vec![compared("<"), range(format!(" AND {name} IS NULL"), Vec::new())],
    }
}

fn condition(collection: &Collection, filter: &Filter, statement: &mut Statement) {
    let Statement { text, values } = statement;
    let name = filter.path().map(column).unwrap_or_default();
    let several = filter
        .path()
        .and_then(|path| collection.field(path))
        .filter(|field| field.kind == Kind::Keywords)
        .map(|field| keywords_table(collection, field.path));
    match (filter, several) {
        (Filter::Is(path, Value::String(value)), _) if guards_an_index(collection, path, value) => {
            // A literal, and not a parameter: only then does SQLite see that a partial index applies.
            let _ = write!(text, " AND {name} = '{value}'");
        }
        (Filter::Is(_, value), Some(texts)) => {
            let _ = write!(text, " AND pk IN (SELECT pk FROM {texts} WHERE value = ?)");
            values.push(to_sql(value));
        }
        (Filter::Is(_, value), None) => {
            let _ = write!(text, " AND {name} = ?");
            values.push(to_sql(value));
        }
        (Filter::In(path, wanted), None) if !wanted.is_empty() && !is_indexed(collection, path) => {
            // Compared one by one: for a list, SQLite would make a table of its own at each execution.
            let cases = " WHEN ? THEN 1".repeat(wanted.len());
            let _ = write!(text, " AND CASE {name}{cases} END");
            values.extend(wanted.iter().map(to_sql));
        }
        (Filter::In(_, wanted), several) => {
            // What is equal to nothing is still a comparison: SQLite would leave out an empty list, and with it the index.
            let holes =
                if wanted.is_empty() { "NULL".to_owned() } else { vec!["?"; wanted.len()].join(", ") };
            let _ = match several {
                Some(texts) => write!(text, " AND pk IN (SELECT pk FROM {texts} WHERE value IN ({holes}))"),
                None => write!(text, " AND {name} IN ({holes})"),
            };
            values.extend(wanted.iter().map(to_sql));
        }
        (Filter::AtLeast(_, least), _) => {
            let _ = write!(text, " AND {name} >= ?");
            values.push(SqlValue::Integer(*least));
        }
        (Filter::AtMost(_, most), _) => {
            let _ = write!(text, " AND {name} <= ?");
            values.push(SqlValue::Integer(*most));
        }
        (Filter::Absent(_), _) => {
            let _ = write!(text, " AND {name} IS NULL");
        }
        (Filter::Text(typed), _) => {
            let _ =
                write!(text, " AND pk IN (SELECT rowid FROM text.{0} WHERE {0} MATCH ?)", index(collection));
            values.push(SqlValue::Text(match_words(&Words::parse(typed))));
        }
    }
}

/// The text index of a collection, in the file of text indexes.
pub(crate) fn index(collection: &Collection) -> String {
    quoted(&format!("{}.words", collection.name))
}

/// Words have no quotes in them: they are letters and digits.
pub(crate) fn match_words(words: &Words) -> String {
    let each =
        words.0.iter().map(|word| format!("\"{}\"{}", word.text, if word.is_beginning { "*" } else { "" }));
    each.collect::<Vec<_>>().join(" AND ")
}

fn is_indexed(collection: &Collection, path: &str) -> bool {
    collection.indexes.iter().any(|index| index.fields.contains(&path))
}

fn guards_an_index(collection: &Collection, path: &str, value: &str) -> bool {
    collection.indexes.iter().any(|index| index.only == Some((path, value)))
}

#[cfg(test)]
mod tests {
    use rota_store::collection::JOBS;
    use rota_store::query::Order;
    use serde_json::json;

    use super::*;

    const BY_EXPIRY: Order = Order { fields: &["expiresAt"], descending: false };

    fn ordered_by(query: &Query) -> Option<&'static str> {
        suitable(query).ordered.map(|index| index.name)
    }

    #[test]
    fn a_sparse_index_serves_those_alone_who_ask_for_a_value() {
        let waiting = || Query::new(&JOBS, BY_EXPIRY).filter(Filter::Is("status", json!("QUEUED")));
        assert_eq!(ordered_by(&waiting().filter(Filter::AtMost("expiresAt", 5))), Some("expiring"));
        assert_eq!(ordered_by(&waiting().filter(Filter::Is("expiresAt", json!(5)))), Some("expiring"));
        assert_eq!(ordered_by(&waiting()), None);
        assert_eq!(ordered_by(&waiting().filter(Filter::Absent("expiresAt"))), None);
        let of_all = Query::new(&JOBS, BY_EXPIRY).filter(Filter::AtMost("expiresAt", 5));
        assert_eq!(ordered_by(&of_all), None);
    }
}
