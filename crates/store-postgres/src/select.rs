//! A query as statements. Where a list goes on behind a cursor, it is asked for in parts, each a range that an index gives in
//! order, as in the other stores: a comparison of whole rows would lose the documents that lack a value.
//!
//! Rows are called `r`. A list in the order of an index of the register walks through that, as `l`, and looks up the row of each
//! line.

use rota_store::collection::{Collection, Index, Kind};
use rota_store::query::{Filter, Query};
use rota_store::words::{Word, Words};
use serde_json::Value;

use crate::names::{
    column, has_register, is_of_register, is_shown, is_shown_by_key, key_columns, register_table, registered,
    table, words_column,
};
use crate::value::Param;

/// A statement on its way: its text, and the values it names by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sql {
    pub(crate) text: String,
    pub(crate) values: Vec<Param>,
}

impl Sql {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), values: Vec::new() }
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a value. Says what it is called in the text.
    pub(crate) fn value(&mut self, value: Param) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }
}

/// A keyword or integer that is compared with.
pub(crate) fn param(value: &Value) -> Param {
    match value {
        Value::String(text) => Param::Text(text.clone()),
        other => Param::Int(other.as_i64().unwrap_or_default()),
    }
}

pub(crate) fn params(values: &[Value], kind: Kind) -> Param {
    match kind {
        Kind::Integer | Kind::Date => Param::Ints(values.iter().map(Value::as_i64).collect()),
        _ => Param::Texts(values.iter().map(|value| value.as_str().map(str::to_owned)).collect()),
    }
}

/// The columns by which a query sorts, and their kinds: its fields, where needed the domain, the id.
pub(crate) fn order_columns(query: &Query) -> Vec<(String, Kind)> {
    let kind = |path: &str| query.collection.field(path).map_or(Kind::Keyword, |field| field.kind);
    let fields = query.order.fields.iter().map(|path| (column(path), kind(path)));
    let domain = query.is_over_all_domains().then(|| ("in_domain".to_owned(), Kind::Keyword));
    fields.chain(domain).chain([("id".to_owned(), Kind::Keyword)]).collect()
}

/// What is absent comes first, or last where the order descends.
pub(crate) fn order_by(query: &Query, row: &str) -> String {
    order_in(query, |name| format!("{row}.{name}"))
}

fn order_in(query: &Query, place: impl Fn(&str) -> String) -> String {
    let direction = if query.order.descending { "DESC NULLS LAST" } else { "ASC NULLS FIRST" };
    let never_absent = |name: &str| key_columns(query.collection).contains(&name);
    let sorted = order_columns(query).into_iter().map(|(name, _)| match never_absent(&name) {
        true => format!("{} {}", place(&name), if query.order.descending { "DESC" } else { "ASC" }),
        false => format!("{} {direction}", place(&name)),
    });
    sorted.collect::<Vec<_>>().join(", ")
}

/// What a list walks through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Rows,
    /// The register, line by line, and the row of each.
    Register,
    /// Either: the server knows how many rows there are in a state that has an index of its own.
    Both,
}

impl Way {
    /// A column of what is listed.
    fn column(self, collection: &Collection, name: &str) -> String {
        let is_registered = || registered(collection).any(|field| column(field.path) == name) || name == "id";
        let row = if self != Way::Rows && is_registered() { "l" } else { "r" };
        format!("{row}.{name}")
    }

    /// What it goes through.
    fn from(self, collection: &Collection) -> String {
        let (rows, register) = (table(collection), register_table(collection));
        match self {
            Way::Rows => format!("{rows} AS r WHERE {}", is_shown(collection, "r.")),
            // In this order, and in no other: what the server knows of an empty table must not decide for a full one.
            Way::Register => format!(
                "{register} AS l CROSS JOIN LATERAL (SELECT * FROM {rows} AS r WHERE r.id = l.id AND {} OFFSET 0) AS r \
                 WHERE true",
                is_shown_by_key(collection, "r.")
            ),
            Way::Both => {
                format!(
                    "{register} AS l JOIN {rows} AS r ON r.id = l.id WHERE {}",
                    is_shown(collection, "r.")
                )
            }
        }
    }

    fn of(query: &Query) -> Self {
        let (collection, indexes) = (query.collection, query.collection.indexes);
        let is = |path: &str, value: Option<&str>| {
            let given = |filter: &Filter| matches!(filter, Filter::Is(is, given) if *is == path && value.is_none_or(|value| given == value));
            query.filters.iter().any(given)
        };
        let serves = |index: &&Index| {
            let bound = index.fields.iter().take_while(|path| is(path, None)).count();
            index.fields.get(bound..) == Some(query.order.fields)
        };
        let holds = |index: &&Index| index.only.is_some_and(|(path, value)| is(path, Some(value)));
        let by_line =
            indexes.iter().filter(|index| is_of_register(collection, index)).any(|index| serves(&index));
        let of_state: Vec<&Index> = indexes.iter().filter(holds).collect();
        if !by_line || query.hidden_before.is_some() || of_state.iter().any(serves) {
            Way::Rows
        } else if of_state.is_empty() {
            Way::Register
        } else {
            Way::Both
        }
    }
}

/// ` FROM … WHERE …`: what a query is about, without order and cursor.
pub(crate) fn matching(query: &Query) -> Sql {
    matching_by(query, Way::Rows)
}

fn matching_by(query: &Query, way: Way) -> Sql {
    let mut sql = Sql::default();
    let collection = query.collection;
    match query.hidden_before {
        None => sql.text = format!(" FROM {}", way.from(collection)),
        Some(at) => {
            // Those few on their own, by their index: in the order asked for, the server would rather walk through all there are.
            let (rows, at) = (table(collection), sql.value(Param::Int(at.0)));
            sql.text = format!(
                " FROM (SELECT * FROM {rows} WHERE hidden_at IS NOT NULL AND hidden_at <= {at} OFFSET 0) AS r WHERE true"
            );
        }
    }
    if let Some(domain) = &query.domain {
        let domain = sql.value(Param::Text(domain.to_string()));
        sql.push(&format!(" AND r.in_domain = {domain}"));
    }
    for filter in &query.filters {
        condition(collection, way, filter, &mut sql);
    }
    sql
}

fn condition(collection: &Collection, way: Way, filter: &Filter, sql: &mut Sql) {
    let kind =
        filter.path().and_then(|path| collection.field(path)).map_or(Kind::Keyword, |field| field.kind);
    let name = filter.path().map(|path| way.column(collection, &column(path))).unwrap_or_default();
    let text = match filter {
        Filter::Is(path, Value::String(value)) if guards_an_index(collection, path, value) => {
            // A literal, and not a value: only then is it seen that a partial index applies.
            format!("{name} = '{value}'")
        }
        Filter::Is(_, value) if kind == Kind::Keywords => {
            format!("{name} @> ARRAY[{}::text]", sql.value(param(value)))
        }
        Filter::Is(_, value) => format!("{name} = {}", sql.value(param(value))),
        Filter::In(_, values) if kind == Kind::Keywords => {
            format!("{name} && {}::text[]", sql.value(params(values, kind)))
        }
        Filter::In(_, values) => format!("{name} = ANY({})", sql.value(params(values, kind))),
        Filter::AtLeast(_, least) => format!("{name} >= {}", sql.value(Param::Int(*least))),
        Filter::AtMost(_, most) => format!("{name} <= {}", sql.value(Param::Int(*most))),
        Filter::Absent(_) => format!("{name} IS NULL"),
        Filter::Text(typed) => worded(collection, way, &Words::parse(typed), sql),
    };
    sql.push(" AND ");
    sql.push(&text);
}

/// Each of the words stands in one of the texts that are searched.
fn worded(collection: &Collection, way: Way, words: &Words, sql: &mut Sql) -> String {
    let apart = has_register(collection);
    let row = if apart { "l" } else { "r" };
    let each = words.0.iter().map(|word| {
        let word = sql.value(Param::Text(lexeme(word)));
        let places = collection.text.iter();
        let places = places.map(|path| format!("{row}.{} @@ {word}::text::tsquery", words_column(path)));
        format!("({})", places.collect::<Vec<_>>().join(" OR "))
    });
    let each = each.collect::<Vec<_>>().join(" AND ");
    if !apart || way != Way::Rows {
        return each;
    }
    format!("r.id IN (SELECT l.id FROM {} AS l WHERE {each})", register_table(collection))
}

/// Words have no quotes in them: they are letters and digits.
fn lexeme(word: &Word) -> String {
    format!("'{}'{}", word.text, if word.is_beginning { ":*" } else { "" })
}

pub(crate) fn guards_an_index(collection: &Collection, path: &str, value: &str) -> bool {
    collection.indexes.iter().any(|index| index.only == Some((path, value)))
}

/// The statements whose answers, one after the other, are the list; each gives so many rows at most. `columns` is what is
/// answered.
pub(crate) fn lists(query: &Query, columns: &str, limit: usize) -> Vec<Sql> {
    let way = Way::of(query);
    let base = matching_by(query, way);
    let order = order_in(query, |name| way.column(query.collection, name));
    let parts = ranges(query, way);
    let list = |range: Option<Range>| {
        let Sql { text, values } = base.clone();
        let mut sql = Sql { text: format!("SELECT {columns}{text}"), values };
        range.into_iter().for_each(|range| range.narrow(&mut sql));
        sql.push(&format!(" ORDER BY {order} LIMIT {limit}"));
        sql
    };
    if query.after.is_none() {
        vec![list(None)]
    } else {
        parts.into_iter().map(|range| list(Some(range))).collect()
    }
}

/// Documents that share some values with the cursor, and stand behind it in the next.
struct Range {
    shared: Vec<(String, Value)>,
    behind: Behind,
}

enum Behind {
    Compared { name: String, sign: &'static str, value: Value },
    Absent(String),
    Present(String),
}

impl Range {
    fn narrow(self, sql: &mut Sql) {
        for (name, value) in &self.shared {
            let text = if value.is_null() {
                format!(" AND {name} IS NULL")
            } else {
                format!(" AND {name} = {}", sql.value(param(value)))
            };
            sql.push(&text);
        }
        let text = match self.behind {
            Behind::Compared { name, sign, value } => {
                format!(" AND {name} {sign} {}", sql.value(param(&value)))
            }
            Behind::Absent(name) => format!(" AND {name} IS NULL"),
            Behind::Present(name) => format!(" AND {name} IS NOT NULL"),
        };
        sql.push(&text);
    }
}

/// The ranges behind the cursor, in order: first what shares all but the last value with it.
fn ranges(query: &Query, way: Way) -> Vec<Range> {
    let Some(cursor) = &query.after else { return Vec::new() };
    let columns = order_columns(query).into_iter().map(|(name, _)| name);
    let never_absent: Vec<bool> =
        columns.clone().map(|name| key_columns(query.collection).contains(&name.as_str())).collect();
    let order: Vec<(String, Value)> =
        columns.map(|name| way.column(query.collection, &name)).zip(cursor.key.iter().cloned()).collect();
    let mut ranges = Vec::new();
    for (nth, ((name, value), never_absent)) in order.iter().zip(never_absent).enumerate().rev() {
        let shared: Vec<_> = order.iter().take(nth).cloned().collect();
        let sign = if query.order.descending { "<" } else { ">" };
        let compared = || Behind::Compared { name: name.clone(), sign, value: value.clone() };
        let behind = match (query.order.descending, value.is_null()) {
            (false, true) => vec![Behind::Present(name.clone())],
            (true, true) => Vec::new(),
            (true, false) if !never_absent => vec![compared(), Behind::Absent(name.clone())],
            (_, false) => vec![compared()],
        };
        ranges.extend(behind.into_iter().map(|behind| Range { shared: shared.clone(), behind }));
    }
    ranges
}

/// The first document of each value of the order's first field, from behind a cursor on: one step into an index for each.
/// Columns are the order's and what names a document. What has no value there comes first, by a statement of its own.
pub(crate) fn firsts(query: &Query, limit: usize) -> Vec<Sql> {
    let order = order_columns(query);
    let Some((first, _)) = order.first() else { return Vec::new() };
    let columns = firsts_columns(query, &order);
    let by = order_by(query, "r");
    let shown = query.after.as_ref().and_then(|cursor| cursor.key.first());
    let mut statements = Vec::new();
    if query.after.is_none() {
        let Sql { text, values } = matching(query);
        let text = format!("SELECT {columns}{text} AND r.{first} IS NULL ORDER BY {by} LIMIT 1");
        statements.push(Sql { text, values });
    }
    let mut sql = matching(query);
    let condition = std::mem::take(&mut sql.text);
    let behind = match shown.filter(|shown| !shown.is_null()) {
        Some(shown) => format!("r.{first} > {}", sql.value(param(shown))),
        None => format!("r.{first} IS NOT NULL"),
    };
    sql.text = format!(
        "WITH RECURSIVE f AS ((SELECT {columns}{condition} AND {behind} ORDER BY {by} LIMIT 1) UNION ALL \
         SELECT n.* FROM f CROSS JOIN LATERAL (SELECT {columns}{condition} AND r.{first} > f.o0 \
         ORDER BY {by} LIMIT 1) AS n) SELECT * FROM f LIMIT {limit}"
    );
    statements.push(sql);
    statements
}

fn firsts_columns(query: &Query, order: &[(String, Kind)]) -> String {
    let sorted = order.iter().enumerate().map(|(nth, (name, _))| format!("r.{name} AS o{nth}, "));
    format!("{}{}", sorted.collect::<String>(), crate::names::key(query.collection, "r"))
}
