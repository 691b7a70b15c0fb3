//! The statement for writes of one kind: all of them at once, over arrays, with what they change of the totals and of the
//! words. It answers with the keys of those that were applied.
//!
//! ```text
//!  n        what is to be written
//!  done     the rows that were: those whose version was the one expected, with what they counted as before
//!  counted  the differences in the totals
//!  worded   the words, where they stand apart
//! ```
//!
//! A row is joined with itself to learn what it counted as before: both must have the version that was expected, so both
//! are the same writing of it.

use rota_store::collection::{Collection, Field, Kind, Reach};

use crate::names::{
    column, counted, is_shown_by_key, key_columns, table, words_apart, words_column, words_table,
};
use crate::prepared::{Deed, Gathered, Prepared, changed_words};
use crate::row::Cell;
use crate::select::Sql;
use crate::value::{Json, Param};

/// A column of what is to be written.
enum Given {
    Id,
    Domain,
    Version,
    Body,
    /// Of the nth cell that is given, of this field.
    Cell(usize, &'static Field),
    Words(usize, &'static str),
    At,
}

impl Given {
    /// What it is called, and the type of its array.
    fn name(&self) -> (String, &'static str) {
        match self {
            Given::Id => ("id".to_owned(), "text[]"),
            Given::Domain => ("in_domain".to_owned(), "text[]"),
            Given::Version => ("expected".to_owned(), "bigint[]"),
            Given::Body => ("body".to_owned(), "jsonb[]"),
            Given::Cell(_, field) => (column(field.path), array_type(field.kind)),
            Given::Words(_, path) => (words_column(path), "text[]"),
            Given::At => ("at".to_owned(), "bigint[]"),
        }
    }

    fn array(&self, writes: &[&Prepared]) -> Param {
        match self {
            Given::Id => Param::Texts(writes.iter().map(|write| Some(write.key.id.clone())).collect()),
            Given::Domain => {
                let domain = |write: &&Prepared| write.key.domain.as_ref().map(ToString::to_string);
                Param::Texts(writes.iter().map(domain).collect())
            }
            Given::Version => Param::Ints(writes.iter().map(|write| Some(write.version)).collect()),
            Given::At => Param::Ints(writes.iter().map(|write| Some(write.at)).collect()),
            Given::Body => Param::Jsons(writes.iter().map(|write| write.body.clone()).collect()),
            Given::Words(nth, _) => {
                Param::Texts(writes.iter().map(|write| write.words.get(*nth).cloned().flatten()).collect())
            }
            Given::Cell(nth, field) => cells(writes.iter().map(|write| write.cells.get(*nth)), field.kind),
        }
    }
}

fn array_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Keyword | Kind::Keywords => "text[]",
        Kind::Integer | Kind::Date => "bigint[]",
        Kind::Json => "jsonb[]",
    }
}

fn cells<'a>(cells: impl Iterator<Item = Option<&'a Cell>>, kind: Kind) -> Param {
    fn json(cell: Option<&Cell>) -> Option<Json> {
        if let Some(Cell::Json(json)) = cell { Some(json.clone()) } else { None }
    }
    match kind {
        Kind::Keyword | Kind::Keywords => Param::Texts(
            cells
                .map(|cell| if let Some(Cell::Text(text)) = cell { Some(text.clone()) } else { None })
                .collect(),
        ),
        Kind::Integer | Kind::Date => Param::Ints(
            cells.map(|cell| if let Some(Cell::Int(int)) = cell { Some(*int) } else { None }).collect(),
        ),
        Kind::Json => Param::Jsons(cells.map(json).collect()),
    }
}

/// What a column becomes in a row.
fn taken(field: &Field) -> String {
    let name = column(field.path);
    if field.kind == Kind::Keywords { format!("n.{name}::text[]") } else { format!("n.{name}") }
}

/// Words as the server indexes them.
fn vector(words: &str) -> String {
    format!("array_to_tsvector(string_to_array({words}, ' '))")
}

/// The fields that a deed sets, in the order of its cells.
fn fields(collection: &'static Collection, deed: Deed) -> Vec<&'static Field> {
    let all = collection.fields.iter();
    match deed {
        Deed::Create | Deed::Replace => all.collect(),
        Deed::Change(mask) => {
            all.enumerate().filter(|(nth, _)| mask & (1 << nth) != 0).map(|(_, field)| field).collect()
        }
        Deed::Delete | Deed::Purge => Vec::new(),
    }
}

/// The paths whose words a deed sets.
fn word_paths(collection: &'static Collection, deed: Deed) -> Vec<&'static str> {
    match deed {
        Deed::Create | Deed::Replace => collection.text.to_vec(),
        Deed::Change(mask) => changed_words(collection, mask).collect(),
        Deed::Delete | Deed::Purge => Vec::new(),
    }
}

/// The statement, whose documents all have this version then.
pub(crate) fn statement(of: &Gathered<'_>, version: i64) -> Sql {
    let Gathered { collection, deed, writes, .. } = of;
    let mut sql = Sql::new("WITH n AS (SELECT * FROM unnest(");
    // What goes has no version any more.
    let goes = goes(collection, *deed);
    let version = if goes { String::new() } else { format!("{}::bigint", sql.value(Param::Int(version))) };
    let given = given(collection, *deed);
    let arrays: Vec<String> =
        given.iter().map(|given| format!("{}::{}", sql.value(given.array(writes)), given.name().1)).collect();
    let names: Vec<String> = given.iter().map(|given| given.name().0).collect();
    sql.push(&format!("{}) AS n ({}))", arrays.join(", "), names.join(", ")));
    sql.push(&format!(", done AS ({})", done(collection, *deed, &version)));
    if let Some(counting) = counting(collection, *deed) {
        sql.push(&format!(", counted AS ({counting})"));
    }
    if words_apart(collection) {
        sql.push(&wording(collection, *deed));
    }
    sql.push(&format!(" SELECT {} FROM done", done_key(collection)));
    sql
}

/// Whether a deed takes the row away.
fn goes(collection: &Collection, deed: Deed) -> bool {
    deed == Deed::Purge || (deed == Deed::Delete && !collection.hides())
}

/// The key of what was done, as it is answered.
fn done_key(collection: &Collection) -> &'static str {
    match collection.reach {
        Reach::Installation => "id, NULL::text AS in_domain",
        Reach::Domain => "id, in_domain",
    }
}

fn given(collection: &'static Collection, deed: Deed) -> Vec<Given> {
    let mut given = vec![Given::Id];
    given.extend((collection.reach == Reach::Domain).then_some(Given::Domain));
    given.extend((deed != Deed::Create).then_some(Given::Version));
    given.extend(matches!(deed, Deed::Create | Deed::Replace).then_some(Given::Body));
    given
        .extend(fields(collection, deed).into_iter().enumerate().map(|(nth, field)| Given::Cell(nth, field)));
    given.extend(
        word_paths(collection, deed).into_iter().enumerate().map(|(nth, path)| Given::Words(nth, path)),
    );
    given.extend((deed == Deed::Delete && collection.hides()).then_some(Given::At));
    given
}

fn same_key(collection: &Collection, a: &str, b: &str) -> String {
    let same = key_columns(collection).iter().map(|name| format!("{a}.{name} = {b}.{name}"));
    same.collect::<Vec<_>>().join(" AND ")
}

/// What is written to the rows. It gives the key and, where totals change by it, what each counted as before (`was`) and
/// counts as now (`is`).
fn done(collection: &'static Collection, deed: Deed, version: &str) -> String {
    let rows = table(collection);
    let keys = key_columns(collection);
    let answered = |row: &str| keys.iter().map(|name| format!("{row}.{name}")).collect::<Vec<_>>().join(", ");
    let kind = |row: &str| {
        let values = counted(collection).into_iter().map(|path| format!("{row}.{}", column(path)));
        format!("ARRAY[{}]::text[]", values.collect::<Vec<_>>().join(", "))
    };
    let words: Vec<&str> = if words_apart(collection) { Vec::new() } else { word_paths(collection, deed) };
    let change = Totals::of(collection, deed);
    if deed == Deed::Create {
        let fields = fields(collection, deed);
        let into = fields.iter().map(|field| format!(", {}", column(field.path)));
        let into: String = into.chain(words.iter().map(|path| format!(", {}", words_column(path)))).collect();
        let from = fields.iter().map(|field| format!(", {}", taken(field)));
        let from: String = from
            .chain(words.iter().map(|path| format!(", {}", vector(&format!("n.{}", words_column(path))))))
            .collect();
        let (keys_of, keys) = (answered("n"), keys.join(", "));
        let is = if change == Totals::Come { format!(", {} AS is_now", kind("r")) } else { String::new() };
        return format!(
            "INSERT INTO {rows} AS r ({keys}, version, body{into}) SELECT {keys_of}, {version}, n.body{from} FROM n \
             ON CONFLICT DO NOTHING RETURNING {}{is}",
            answered("r")
        );
    }
    let mut told = answered("r");
    let (mut before, mut same) = (String::new(), String::new());
    match change {
        Totals::Move => {
            // Before and after in one answer.
            before =
                format!(" JOIN {rows} AS o ON {} AND o.version = n.expected", same_key(collection, "o", "n"));
            told.push_str(&format!(", {} AS was, {} AS is_now", kind("o"), kind("r")));
        }
        Totals::Go => told.push_str(&format!(", {} AS was", kind("r"))),
        Totals::Come | Totals::Stay => {}
    }
    let shown = match deed {
        Deed::Purge if collection.hides() => "(r.hidden_at IS NOT NULL) IS TRUE".to_owned(),
        // Nothing is hidden in it.
        Deed::Purge => "false".to_owned(),
        _ => is_shown_by_key(collection, "r."),
    };
    same.push_str(&format!("{} AND r.version = n.expected AND {shown}", same_key(collection, "r", "n")));
    if goes(collection, deed) {
        return format!("DELETE FROM {rows} AS r USING n{before} WHERE {same} RETURNING {told}");
    }
    let mut set = vec![format!("version = {version}")];
    set.extend((deed == Deed::Replace).then(|| "body = n.body".to_owned()));
    set.extend((deed == Deed::Delete).then(|| "hidden_at = n.at".to_owned()));
    set.extend(
        fields(collection, deed).iter().map(|field| format!("{} = {}", column(field.path), taken(field))),
    );
    set.extend(
        words.iter().map(|path| {
            format!("{0} = {1}", words_column(path), vector(&format!("n.{}", words_column(path))))
        }),
    );
    format!("UPDATE {rows} AS r SET {} FROM n{before} WHERE {same} RETURNING {told}", set.join(", "))
}

/// How a deed changes the totals.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Totals {
    Come,
    Move,
    Go,
    Stay,
}

impl Totals {
    fn of(collection: &'static Collection, deed: Deed) -> Self {
        if collection.counted.is_empty() {
            return Totals::Stay;
        }
        match deed {
            Deed::Create => Totals::Come,
            Deed::Replace => Totals::Move,
            Deed::Change(_) => {
                let sets = |path: &&str| fields(collection, deed).iter().any(|field| field.path == *path);
                if collection.counted.iter().any(sets) { Totals::Move } else { Totals::Stay }
            }
            Deed::Delete => Totals::Go,
            Deed::Purge => Totals::Stay,
        }
    }
}

fn counting(collection: &'static Collection, deed: Deed) -> Option<String> {
    let each = match Totals::of(collection, deed) {
        Totals::Stay => return None,
        Totals::Come => "SELECT is_now AS key, 1 AS d FROM done",
        Totals::Go => "SELECT was AS key, -1 AS d FROM done",
        Totals::Move => {
            "SELECT is_now AS key, 1 AS d FROM done UNION ALL SELECT was AS key, -1 AS d FROM done"
        }
    };
    Some(differences(collection, each))
}

/// Writes the sum of what each key changes by.
pub(crate) fn differences(collection: &Collection, each: &str) -> String {
    format!(
        "INSERT INTO counts (collection, key, n) SELECT '{}', key, sum(d) FROM ({each}) AS each \
         GROUP BY key HAVING sum(d) <> 0",
        collection.name
    )
}

/// Whether it was written. Said like this, those that were are looked up in a table of hashes; as a join it would be what the
/// server takes for best, and it does not know how many there are.
const WRITTEN: &str = "(n.id IN (SELECT done.id FROM done)) IS TRUE";

/// The words that stand apart: those that are new or other, and those that are no more.
pub(crate) fn wording(collection: &'static Collection, deed: Deed) -> String {
    let table = words_table(collection);
    if goes(collection, deed) {
        return format!(", unworded AS (DELETE FROM {table} AS w USING done WHERE w.id = done.id)");
    }
    let paths = word_paths(collection, deed);
    if paths.is_empty() {
        return String::new();
    }
    let columns: Vec<String> = paths.iter().map(|path| words_column(path)).collect();
    let given: Vec<String> = columns.iter().map(|name| vector(&format!("n.{name}"))).collect();
    let some: Vec<String> = columns.iter().map(|name| format!("n.{name}")).collect();
    let set: Vec<String> = columns.iter().map(|name| format!("{name} = excluded.{name}")).collect();
    let into = columns.join(", ");
    let worded = format!(
        ", worded AS (INSERT INTO {table} AS w (id, {into}) SELECT n.id, {} FROM n WHERE {WRITTEN} \
         AND num_nonnulls({}) > 0 ON CONFLICT (id) DO UPDATE SET {} WHERE (w.{}) IS DISTINCT FROM (excluded.{}))",
        given.join(", "),
        some.join(", "),
        set.join(", "),
        columns.join(", w."),
        columns.join(", excluded.")
    );
    if deed == Deed::Create {
        return worded;
    }
    let none: Vec<String> = columns.iter().map(|name| format!("{name} = NULL")).collect();
    format!(
        "{worded}, unworded AS (UPDATE {table} AS w SET {} FROM n WHERE {WRITTEN} AND w.id = n.id \
         AND num_nonnulls({}) = 0 AND num_nonnulls(w.{}) > 0)",
        none.join(", "),
        some.join(", "),
        columns.join(", w.")
    )
}

/// Which of these are there: shown, or at all.
pub(crate) fn which_are_there(of: &Gathered<'_>) -> Sql {
    let Gathered { collection, deed, writes, .. } = of;
    let mut sql = Sql::default();
    let mut keys = vec![format!("{}::text[]", sql.value(Given::Id.array(writes)))];
    if collection.reach == Reach::Domain {
        keys.push(format!("{}::text[]", sql.value(Given::Domain.array(writes))));
    }
    let names = if collection.reach == Reach::Domain { "id, in_domain" } else { "id" };
    let shown = if *deed == Deed::Purge { "true".to_owned() } else { is_shown_by_key(collection, "r.") };
    let key = match collection.reach {
        Reach::Installation => "r.id, NULL::text AS in_domain",
        Reach::Domain => "r.id, r.in_domain",
    };
    sql.text = format!(
        "SELECT {key} FROM unnest({}) AS n ({names}) JOIN {} AS r ON {} WHERE {shown}",
        keys.join(", "),
        table(collection),
        same_key(collection, "r", "n")
    );
    sql
}
