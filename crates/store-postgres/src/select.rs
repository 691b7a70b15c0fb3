//! A query as statements. Where a list goes on behind a cursor, it is asked for in parts, each a range that an index gives in
//! order, as in the other stores: a comparison of whole rows would lose the documents that lack a value.
//! Rows are called `r`, and lines of the register `l`.

use rota_store::collection::{Collection, Kind};
use rota_store::query::{Filter, Query};
use rota_store::words::{Word, Words, divided};
use serde_json::Value;

use crate::names::{column, has_register, is_shown, key_columns, register_table, table, words_column};
use crate::value::Param;
use crate::way::{Asked, Look, Way, goes_on};

/// A statement on its way: its text, and the values it names by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sql {
    pub(crate) text: String,
    pub(crate) values: Vec<Param>,
    /// Whether it is planned each time, for what is there by then: otherwise once for a connection.
    pub(crate) planned_anew: bool,
}

impl Sql {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
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

/// ` FROM … WHERE …`: what a query is about, without order and cursor.
pub(crate) fn matching(query: &Query) -> Sql {
    let (mut sql, Asked { rows, words, .. }) = conditions(query, Way::Rows);
    let from = match query.hidden_before {
        None => format!("{} AS r WHERE {}", table(query.collection), is_shown(query.collection, "r.")),
        // Those few on their own, by their index: in the order asked for, the server would rather walk through all there are.
        Some(at) => format!(
            "(SELECT * FROM {} WHERE hidden_at IS NOT NULL AND hidden_at <= {} OFFSET 0) AS r WHERE true",
            table(query.collection),
            sql.value(Param::Int(at.0))
        ),
    };
    sql.text = format!(" FROM {from}{rows}{words}");
    sql
}

/// What a query asks for, and the values that it names.
fn conditions(query: &Query, way: Way) -> (Sql, Asked) {
    let (mut sql, mut asked) = (Sql::default(), Asked::default());
    let collection = query.collection;
    if let Some(domain) = &query.domain {
        let domain = sql.value(Param::Text(domain.to_string()));
        asked.rows.push_str(&format!(" AND r.in_domain = {domain}"));
    }
    for filter in &query.filters {
        let text = format!(" AND {}", condition(collection, way, filter, &mut sql));
        match filter.path() {
            None => asked.words.push_str(&text),
            Some(path) if way.is_of_line(collection, &column(path)) => asked.lines.push_str(&text),
            Some(path) => {
                asked.rows.push_str(&text);
                asked.words.push_str(&name_in_words(collection, way, path, filter, &mut sql));
            }
        }
    }
    (sql, asked)
}

/// Whose name is asked for has its words, and those have an index.
fn name_in_words(collection: &Collection, way: Way, path: &str, filter: &Filter, sql: &mut Sql) -> String {
    let Filter::Is(_, Value::String(name)) = filter else { return String::new() };
    let words = divided(name);
    if way == Way::Rows || !collection.text.contains(&path) || words.is_empty() {
        return String::new();
    }
    let all: Vec<String> = words.split(' ').map(|word| format!("'{word}'")).collect();
    let all = sql.value(Param::Text(all.join(" & ")));
    format!(" AND l.{} @@ {all}::text::tsquery", words_column(path))
}

fn condition(collection: &Collection, way: Way, filter: &Filter, sql: &mut Sql) -> String {
    let kind =
        filter.path().and_then(|path| collection.field(path)).map_or(Kind::Keyword, |field| field.kind);
    let name = filter.path().map(|path| way.column(collection, &column(path))).unwrap_or_default();
    match filter {
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
    }
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

/// How far a list looks for its documents, one after the other until one finds enough.
pub(crate) fn looks(query: &Query) -> &'static [Look] {
    let has_words = |filter: &Filter| match filter {
        Filter::Text(_) => true,
        Filter::Is(path, _) => query.collection.text.contains(path),
        _ => false,
    };
    let by_line = Way::of(query) == Way::Register;
    if by_line && query.filters.iter().any(has_words) { &[Look::Near, Look::ByWords] } else { &[Look::All] }
}

/// A part of a list: the statement for it and, where that does not look at all of it, one that asks whether there is more.
pub(crate) struct Part {
    pub(crate) list: Sql,
    pub(crate) goes_on: Option<Sql>,
}

/// The parts that are the list, one after the other; each gives so many rows at most. `columns` is what is answered.
pub(crate) fn lists(query: &Query, columns: &str, limit: usize, look: Look) -> Vec<Part> {
    let way = Way::of(query);
    let order = order_in(query, |name| way.column(query.collection, name));
    let part = |range: Option<&Range>| {
        let (mut sql, mut asked) = match way {
            Way::Rows => (matching(query), Asked::default()),
            way => conditions(query, way),
        };
        asked.lines.extend(range.map(|range| range.condition(&mut sql)));
        let from = match way {
            Way::Rows => format!("{}{}", sql.text, asked.lines),
            way => format!(" FROM {}", way.from(query.collection, look, &asked, &order)),
        };
        sql.text = format!("SELECT {columns}{from} ORDER BY {order} LIMIT {limit}");
        // How lines and rows are best gone through depends on how many there are by now.
        sql.planned_anew = way != Way::Rows;
        Part { list: sql, goes_on: (look == Look::Near).then(|| goes_on_behind(query, way, range)) }
    };
    if query.after.is_none() {
        vec![part(None)]
    } else {
        ranges(query, way).iter().map(|range| part(Some(range))).collect()
    }
}

/// Asks whether there are more lines in a range than somebody looks at who looks near.
fn goes_on_behind(query: &Query, way: Way, range: Option<&Range>) -> Sql {
    let mut of_lines = query.clone();
    let is_of_line = |path| way.is_of_line(query.collection, &column(path));
    of_lines.filters.retain(|filter| filter.path().is_some_and(is_of_line));
    let (mut sql, mut asked) = conditions(&of_lines, way);
    asked.lines.extend(range.map(|range| range.condition(&mut sql)));
    sql.text = goes_on(query.collection, &asked);
    sql
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
    fn condition(&self, sql: &mut Sql) -> String {
        let mut text = String::new();
        for (name, value) in &self.shared {
            text.push_str(&if value.is_null() {
                format!(" AND {name} IS NULL")
            } else {
                format!(" AND {name} = {}", sql.value(param(value)))
            });
        }
        text.push_str(&match &self.behind {
            Behind::Compared { name, sign, value } => {
                format!(" AND {name} {sign} {}", sql.value(param(value)))
            }
            Behind::Absent(name) => format!(" AND {name} IS NULL"),
            Behind::Present(name) => format!(" AND {name} IS NOT NULL"),
        });
        text
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
        let mut sql = matching(query);
        sql.text = format!("SELECT {columns}{} AND r.{first} IS NULL ORDER BY {by} LIMIT 1", sql.text);
        statements.push(sql);
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
