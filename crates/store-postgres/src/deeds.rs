//! The statement for writes of one kind: all of them at once, over arrays, with what they change of the totals and of the
//! register. It answers with the number of those that were applied and, if that is not all of them, with
//! their keys.
//!
//! ```text
//!  n           what is to be written
//!  done        the rows that were: those whose version was the one expected, with what they counted as before
//!  counted     the differences in the totals
//!  registered  what they are listed and searched by, where that stands apart
//! ```
//!
//! What a row counted as before is written down in it by the statement that changes it, since an update answers with what is there
//! afterwards. Where whatever it counts by may change, it is joined with itself instead: both must have the version that was
//! expected, so both are the same writing of it.

use rota_store::collection::{Collection, Field, Kind, Reach};

use crate::names::{
    column, counted, counted_changing, has_register, is_shown_by_key, key_columns, register_table,
    registered, row_columns, table, was_column, words_column,
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

/// Whether a document that is to be made may be there by the time it is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Twins {
    /// It is looked for before: should somebody else make it at the same moment, the statement fails. It is the cheaper way by far,
    /// where that is rare.
    Rare,
    /// What is there by then is left alone.
    Expected,
}

/// The statement, whose documents all have this version then.
pub(crate) fn statement(of: &Gathered<'_>, version: i64, twins: Twins) -> Sql {
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
    sql.push(&format!(", done AS ({})", done(collection, *deed, &version, twins)));
    if let Some(counting) = counting(collection, *deed) {
        sql.push(&format!(", counted AS ({counting})"));
    }
    if has_register(collection) {
        sql.push(&registering(collection, *deed, twins));
    }
    // First how many; which ones, only where it is not all of them.
    let all = sql.value(Param::Int(i64::try_from(writes.len()).unwrap_or(i64::MAX)));
    sql.push(&format!(
        " SELECT count(*)::text AS id, NULL::text AS in_domain FROM done UNION ALL SELECT {} FROM done \
         WHERE (SELECT count(*) FROM done) < {all}::bigint",
        done_key(collection)
    ));
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

/// What is written to the rows. It gives the key and, where totals change by it, what each counts as now (`k0`, `k1`, …) and counted
/// as before (`b0`, `b1`, …).
fn done(collection: &'static Collection, deed: Deed, version: &str, twins: Twins) -> String {
    let rows = table(collection);
    let keys = key_columns(collection);
    let answered = |row: &str| keys.iter().map(|name| format!("{row}.{name}")).collect::<Vec<_>>().join(", ");
    let now = || counted_as('k', counted(collection).into_iter().map(|path| format!("r.{}", column(path))));
    let words: Vec<&str> = if has_register(collection) { Vec::new() } else { word_paths(collection, deed) };
    let change = Totals::of(collection, deed);
    if deed == Deed::Create {
        let is = if change == Totals::Come { now() } else { String::new() };
        return format!("{} RETURNING {}{is}", created(collection, version, twins, &words), answered("r"));
    }
    let mut told = answered("r");
    let (mut before, mut same) = (String::new(), String::new());
    match (change, deed) {
        (Totals::Move, Deed::Change(_)) => {
            let was =
                counted(collection).into_iter().map(|path| format!("r.{}", was_column(collection, path)));
            told.push_str(&format!("{}{}", now(), counted_as('b', was)));
        }
        (Totals::Move, _) => {
            before =
                format!(" JOIN {rows} AS o ON {} AND o.version = n.expected", same_key(collection, "o", "n"));
            let was = counted(collection).into_iter().map(|path| format!("o.{}", column(path)));
            told.push_str(&format!("{}{}", now(), counted_as('b', was)));
        }
        (Totals::Go, _) => told.push_str(&now()),
        (Totals::Come | Totals::Stay, _) => {}
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
    if matches!(deed, Deed::Change(_)) && change == Totals::Move {
        let counts = counted_changing(collection).map(|field| field.path);
        set.extend(counts.map(|path| format!("{} = r.{}", was_column(collection, path), column(path))));
    }
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

/// How rows come about that are not there yet.
fn created(collection: &'static Collection, version: &str, twins: Twins, words: &[&str]) -> String {
    let (rows, keys) = (table(collection), key_columns(collection));
    let mut from: Vec<String> = keys.iter().map(|name| format!("n.{name}")).collect();
    from.extend([version.to_owned(), "n.body".to_owned()]);
    from.extend(collection.fields.iter().map(taken));
    from.extend(words.iter().map(|path| vector(&format!("n.{}", words_column(path)))));
    from.extend(has_register(collection).then(|| "true".to_owned()));
    let (into, from) = (row_columns(collection).join(", "), from.join(", "));
    let unless_there = match twins {
        Twins::Expected => "ON CONFLICT DO NOTHING".to_owned(),
        Twins::Rare => {
            format!("WHERE NOT EXISTS (SELECT FROM {rows} AS o WHERE {})", same_key(collection, "o", "n"))
        }
    };
    format!("INSERT INTO {rows} AS r ({into}) SELECT {from} FROM n {unless_there}")
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

/// Columns with what something counts as.
fn counted_as(letter: char, columns: impl Iterator<Item = String>) -> String {
    columns.enumerate().map(|(nth, name)| format!(", {name} AS {letter}{nth}")).collect()
}

fn counting(collection: &'static Collection, deed: Deed) -> Option<String> {
    let kind = |letter: char| {
        let columns = (0..counted(collection).len()).map(|nth| format!("{letter}{nth}"));
        columns.collect::<Vec<_>>().join(", ")
    };
    let (now, before) = (kind('k'), kind('b'));
    Some(match Totals::of(collection, deed) {
        Totals::Stay => return None,
        Totals::Come => differences(collection, "done", &now, &[(&now, "")]),
        Totals::Go => differences(collection, "done", &now, &[(&now, "-")]),
        Totals::Move => {
            differences(collection, "done", &format!("{now}, {before}"), &[(&now, ""), (&before, "-")])
        }
    })
}

/// Writes by how much there are more or fewer of each kind: `from` is divided by what `by` says, and each part counts for these
/// kinds.
pub(crate) fn differences(collection: &Collection, from: &str, by: &str, kinds: &[(&str, &str)]) -> String {
    let each = kinds
        .iter()
        .map(|(kind, sign)| format!("SELECT ARRAY[{kind}]::text[] AS key, {sign}m.n AS n FROM m"));
    format!(
        "INSERT INTO counts (collection, key, n) WITH m AS (SELECT {by}, count(*) AS n FROM {from} GROUP BY {by}) \
         SELECT '{}', key, sum(n) FROM ({}) AS each GROUP BY key HAVING sum(n) <> 0",
        collection.name,
        each.collect::<Vec<_>>().join(" UNION ALL ")
    )
}

/// Whether it was written. Said like this, those that were are looked up in a table of hashes; as a join it would be what the
/// server takes for best, and it does not know how many there are.
const WRITTEN: &str = "(n.id IN (SELECT done.id FROM done)) IS TRUE";

/// What becomes of the register: who is new is entered, who is hidden stands in no list any more, words that are
/// other are written.
pub(crate) fn registering(collection: &'static Collection, deed: Deed, twins: Twins) -> String {
    let register = register_table(collection);
    let words = word_paths(collection, deed);
    let names: Vec<String> = words.iter().map(|path| words_column(path)).collect();
    let given: Vec<String> = names.iter().map(|name| vector(&format!("n.{name}"))).collect();
    let entered = match deed {
        _ if goes(collection, deed) => format!("DELETE FROM {register} AS w USING done WHERE w.id = done.id"),
        Deed::Delete | Deed::Purge => {
            // It keeps its words, and stands in no list any more.
            let set: Vec<String> =
                registered(collection).map(|field| format!("{} = NULL", column(field.path))).collect();
            format!("UPDATE {register} AS w SET {} FROM done WHERE w.id = done.id", set.join(", "))
        }
        Deed::Change(_) if words.is_empty() => return String::new(),
        Deed::Change(_) => {
            let set: Vec<String> =
                names.iter().zip(&given).map(|(name, given)| format!("{name} = {given}")).collect();
            let (is, becomes) = (format!("w.{}", names.join(", w.")), given.join(", "));
            format!(
                "UPDATE {register} AS w SET {} FROM n WHERE {WRITTEN} AND w.id = n.id AND \
                 ({is}) IS DISTINCT FROM ({becomes})",
                set.join(", ")
            )
        }
        Deed::Create | Deed::Replace => {
            let fields = registered(collection).map(|field| (column(field.path), taken(field)));
            let (names, given): (Vec<String>, Vec<String>) =
                names.into_iter().zip(given).chain(fields).unzip();
            let (into, from) = (names.join(", "), given.join(", "));
            let entered = format!(
                "INSERT INTO {register} AS w (id, {into}) SELECT n.id, {from} FROM n WHERE {WRITTEN}"
            );
            if (deed, twins) == (Deed::Create, Twins::Rare) {
                entered
            } else {
                let set: Vec<String> = names.iter().map(|name| format!("{name} = excluded.{name}")).collect();
                format!(
                    "{entered} ON CONFLICT (id) DO UPDATE SET {} WHERE (w.{}) IS DISTINCT FROM (excluded.{})",
                    set.join(", "),
                    names.join(", w."),
                    names.join(", excluded.")
                )
            }
        }
    };
    format!(", registered AS ({entered})")
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
