//! Tables, indexes and views, derived from the declarations of the collections.
//!
//! ```text
//!  jobs.rows    id, version, body, a column for each declared field; hidden_at where deleting hides, in_domain where each
//!               domain has its own
//!  jobs.words   the register of documents that change: what they are listed and searched by
//!  jobs, timers views that show whole documents
//!  counts       how many documents have which values, as differences: their sum is the total
//!  sequences    numbers handed out
//!  facts        what is known of the database itself
//! ```

use rota_store::collection::{ALL, Collection, Index, Kind, Reach};

use crate::names::{
    column, counted_changing, has_register, is_of_register, is_shown, key_columns, quoted, register_table,
    registered, sql_type, table, was_column, words_column,
};

/// Rises with every change of what is below. What a version made is kept among the fixtures: it must still be brought up to
/// date.
pub(crate) const VERSION: i64 = 3;
/// The oldest version that understands what this one makes in an empty place (rule 20). Tables and indexes that are added keep it;
/// so does a field, unless documents that older nodes write need it.
pub(crate) const READER: i64 = 3;
/// The same of what this one brings up to date: older nodes that are at work on it go on, since what they leave out is added to what
/// they write ([`catch_up`]).
pub(crate) const READER_OF_UPGRADED: i64 = 1;
/// The oldest version whose documents are read by their keys and in the order of these as they stand, without bringing it up to date:
/// since then the documents did not change, only what they are listed by.
pub(crate) const READS: i64 = 1;

/// How the server keeps up with tables that grow fast: lists are planned by what it knows of them.
const ANALYSED_EARLY: &str = "autovacuum_analyze_scale_factor = 0.02";

/// What is there before anything else: who makes the rest holds its row.
pub(crate) const FACTS: &str =
    "CREATE TABLE IF NOT EXISTS facts (name text PRIMARY KEY, value bigint NOT NULL)";

/// Every statement that makes the rest in an empty place, in order. What is there already is not ours, and is left alone.
pub(crate) fn statements() -> Vec<String> {
    let mut statements = vec![
        "CREATE TABLE sequences (name text PRIMARY KEY, next bigint NOT NULL)".to_owned(),
        "CREATE TABLE counts (collection text NOT NULL, key text[] NOT NULL, n bigint NOT NULL)".to_owned(),
        "CREATE INDEX counts_of ON counts (collection)".to_owned(),
    ];
    statements.extend(ALL.iter().flat_map(|collection| of_collection(collection)));
    statements
}

/// Every statement that brings an older version up to date: it adds what is not there yet. Version 2 made the indexes anew that hold
/// few documents, version 3 those that became a part of the register. What takes long comes early, and what nobody can read beside
/// comes last: a lock is kept until the end.
pub(crate) fn additions() -> Vec<String> {
    let is_anew =
        |collection: &Collection, index: &Index| index.only.is_some() || is_of_register(collection, index);
    let made_anew = || {
        let all = ALL
            .iter()
            .flat_map(|collection| collection.indexes.iter().map(move |index| (*collection, index)));
        all.filter(move |(collection, index)| is_anew(collection, index))
    };
    let anew =
        |collection: &Collection, index: &Index| quoted(&format!("{}.{} anew", collection.name, index.name));
    let built = made_anew().map(|(collection, index)| {
        let (name, made) = (index_name(collection, index.name), declared_index(collection, index));
        made.replacen(&name, &anew(collection, index), 1)
    });
    let instead = made_anew().flat_map(|(collection, index)| {
        let name = index_name(collection, index.name);
        let rename = format!("ALTER INDEX {} RENAME TO {name}", anew(collection, index));
        [format!("DROP INDEX IF EXISTS {name}"), rename]
    });
    let is_built = |statement: &String| {
        made_anew().any(|(collection, index)| *statement == declared_index(collection, index))
    };
    let all = statements().into_iter().filter(|statement| !is_built(statement));
    let (tables, others): (Vec<_>, Vec<_>) =
        all.partition(|statement| statement.starts_with("CREATE TABLE "));
    let tables = tables.into_iter().map(unless_there);
    let with_register = || ALL.iter().copied().filter(|collection| has_register(collection));
    let filled = with_register().flat_map(catch_up);
    let told = with_register().flat_map(only_for_older);
    let others = others.into_iter().map(unless_there);
    tables.chain(filled).chain(built).chain(others).chain(instead).chain(told).collect()
}

/// What comes before the rest, on its own: whoever searches reads the rows first and then the register, so that a lock on it that is
/// held for long would stand in its way, and it in ours.
pub(crate) fn preparations() -> Vec<Preparation> {
    let with_register = ALL.iter().copied().filter(|collection| has_register(collection));
    with_register.map(Preparation::of).collect()
}

/// Columns that are added to a register.
pub(crate) struct Preparation {
    pub(crate) statement: String,
    /// Asks whether it is needed: who only waits to find out that it is not would keep everybody else waiting, too.
    pub(crate) is_needed: String,
}

impl Preparation {
    fn of(collection: &'static Collection) -> Self {
        let register = register_table(collection);
        let names: Vec<String> = registered(collection).map(|field| column(field.path)).collect();
        let added = registered(collection)
            .map(|field| format!("ADD COLUMN IF NOT EXISTS {} {}", column(field.path), sql_type(field.kind)));
        let added = added.collect::<Vec<_>>().join(", ");
        let plain: Vec<String> = names.iter().map(|name| format!("'{}'", name.trim_matches('"'))).collect();
        Self {
            statement: format!("ALTER TABLE {register} {added}, SET ({ANALYSED_EARLY})"),
            is_needed: format!(
                "SELECT count(*) < {} FROM pg_attribute WHERE attrelid = to_regclass('{register}') AND attname IN ({})",
                names.len(),
                plain.join(", ")
            ),
        }
    }
}

/// Enters every document into a register that did not list them yet, and has the server do so for what older nodes make from now on.
fn catch_up(collection: &'static Collection) -> Vec<String> {
    let (rows, register) = (table(collection), register_table(collection));
    let names: Vec<String> = registered(collection).map(|field| column(field.path)).collect();
    let new: String = names.iter().map(|name| format!(", NEW.{name}")).collect();
    let given: String = (2..).zip(&names).map(|(nth, _)| format!(", ${nth}")).collect();
    let set: Vec<String> = names.iter().map(|name| format!("{name} = excluded.{name}")).collect();
    let (columns, set) = (names.join(", "), set.join(", "));
    let function = index_name(collection, "register");
    // Wherever the tables stand, whoever writes to them: its search path may be another.
    let entered = format!(
        "INSERT INTO %I.{register} (id, {columns}) VALUES ($1{given}) ON CONFLICT (id) DO UPDATE SET {set}"
    );
    vec![
        format!(
            "CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN \
             EXECUTE format('{entered}', TG_TABLE_SCHEMA) USING NEW.id{new}; RETURN NULL; END$$"
        ),
        format!(
            "CREATE OR REPLACE TRIGGER register AFTER INSERT ON {rows} FOR EACH ROW EXECUTE FUNCTION {function}()"
        ),
        format!(
            "INSERT INTO {register} (id, {columns}) SELECT id, {columns} FROM {rows} WHERE {} \
             ON CONFLICT (id) DO UPDATE SET {set}",
            is_shown(collection, "")
        ),
    ]
}

/// Who says that it did so itself is not helped.
fn only_for_older(collection: &'static Collection) -> [String; 2] {
    let (rows, function) = (table(collection), index_name(collection, "register"));
    let own: Vec<String> =
        own_columns(collection).iter().map(|made| format!("ADD COLUMN IF NOT EXISTS {made}")).collect();
    [
        format!("ALTER TABLE {rows} {}", own.join(", ")),
        format!(
            "CREATE OR REPLACE TRIGGER register AFTER INSERT ON {rows} FOR EACH ROW WHEN (NEW.listed IS NULL) \
             EXECUTE FUNCTION {function}()"
        ),
    ]
}

fn unless_there(statement: String) -> String {
    let added = [
        ("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS "),
        ("CREATE INDEX ", "CREATE INDEX IF NOT EXISTS "),
        ("CREATE VIEW ", "CREATE OR REPLACE VIEW "),
    ];
    let (make, add) = added.into_iter().find(|(make, _)| statement.starts_with(make)).unwrap_or_default();
    format!("{add}{}", statement.strip_prefix(make).unwrap_or(&statement))
}

fn index_name(collection: &Collection, name: &str) -> String {
    quoted(&format!("{}.{name}", collection.name))
}

fn of_collection(collection: &Collection) -> Vec<String> {
    let mut made = vec![rows(collection)];
    if has_register(collection) {
        made.push(register(collection));
    }
    made.extend(collection.indexes.iter().map(|index| declared_index(collection, index)));
    made.extend(other_indexes(collection));
    made.push(view(collection));
    made
}

fn register(collection: &Collection) -> String {
    let fields =
        registered(collection).map(|field| format!(", {} {}", column(field.path), sql_type(field.kind)));
    let words = collection.text.iter().map(|path| format!(", {} tsvector", words_column(path)));
    let columns: String = words.chain(fields).collect();
    let register = register_table(collection);
    format!("CREATE TABLE {register} (id text COLLATE \"C\" PRIMARY KEY{columns}) WITH ({ANALYSED_EARLY})")
}

/// Rows that change are written anew beside the old ones, which are cleared out early: a claim walks past what is not.
fn rows(collection: &Collection) -> String {
    let fields: String = collection
        .fields
        .iter()
        .map(|field| format!(", {} {}", column(field.path), sql_type(field.kind)))
        .collect();
    let words: String = collection
        .text
        .iter()
        .filter(|_| !has_register(collection))
        .map(|path| format!(", {} tsvector", words_column(path)))
        .collect();
    let domain =
        if collection.reach == Reach::Domain { "in_domain text COLLATE \"C\" NOT NULL, " } else { "" };
    let hidden = if collection.hides() { ", hidden_at bigint" } else { "" };
    let own: String = own_columns(collection).iter().map(|made| format!(", {made}")).collect();
    let changes = collection.changing().next().is_some();
    let vacuum = if changes {
        " WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, \
         autovacuum_analyze_scale_factor = 0.02)"
    } else {
        ""
    };
    format!(
        "CREATE TABLE {} ({domain}id text COLLATE \"C\" NOT NULL, version bigint NOT NULL, body jsonb NOT NULL\
         {fields}{words}{hidden}{own}, PRIMARY KEY ({})){vacuum}",
        table(collection),
        key_columns(collection).join(", ")
    )
}

/// Columns that are of no document: whether it was entered into the register by whoever made it, and what it counted as before the
/// last change.
fn own_columns(collection: &Collection) -> Vec<String> {
    let listed = has_register(collection).then(|| "listed boolean".to_owned());
    let was = counted_changing(collection)
        .map(|field| format!("{} {}", was_column(collection, field.path), sql_type(field.kind)));
    listed.into_iter().chain(was).collect()
}

fn declared_index(collection: &Collection, index: &Index) -> String {
    let fields: Vec<String> = index.fields.iter().map(|path| column(path)).collect();
    let mut sorted: Vec<String> = fields.iter().map(|name| format!("{name} NULLS FIRST")).collect();
    if index.only.is_some() {
        // Few documents stand in it, and claims take the first of them: the id is the last of every order, and without it all of
        // them would be sorted.
        sorted.push("id".to_owned());
    }
    let mut only: Vec<String> = Vec::new();
    let of_register = is_of_register(collection, index);
    // What is hidden stands in no list of the register.
    if collection.hides() && !of_register {
        only.push(is_shown(collection, ""));
    }
    only.extend(index.only.map(|(path, value)| format!("{} = '{value}'", column(path))));
    only.extend(fields.first().filter(|_| index.sparse).map(|first| format!("{first} IS NOT NULL")));
    let only = if only.is_empty() { String::new() } else { format!(" WHERE {}", only.join(" AND ")) };
    let name = index_name(collection, index.name);
    let on = if of_register { register_table(collection) } else { table(collection) };
    format!("CREATE INDEX {name} ON {on} ({}){only}", sorted.join(", "))
}

/// Of what is hidden, of several texts, and of words.
fn other_indexes(collection: &Collection) -> Vec<String> {
    let name = |of: &str| index_name(collection, of);
    let mut made = Vec::new();
    if collection.hides() {
        let rows = table(collection);
        made.push(format!(
            "CREATE INDEX {} ON {rows} (hidden_at) WHERE hidden_at IS NOT NULL",
            name("hidden")
        ));
    }
    for field in collection.fields.iter().filter(|field| field.kind == Kind::Keywords) {
        let rows = table(collection);
        made.push(format!("CREATE INDEX {} ON {rows} USING gin ({})", name(field.path), column(field.path)));
    }
    if !collection.text.is_empty() {
        let on = if has_register(collection) { register_table(collection) } else { table(collection) };
        let columns: Vec<String> = collection.text.iter().map(|path| words_column(path)).collect();
        made.push(format!("CREATE INDEX {} ON {on} USING gin ({})", name("worded"), columns.join(", ")));
    }
    made
}

/// Whole documents, for whoever looks into the database: the body with what stands in columns laid over it.
fn view(collection: &Collection) -> String {
    let mut document = "body".to_owned();
    for (member, fields) in members(collection) {
        document.push_str(" || ");
        document.push_str(&overlay(member, &fields));
    }
    let fields = collection.fields.iter().filter(|field| field.kind != Kind::Json);
    let fields: String = fields.map(|field| format!(", {}", column(field.path))).collect();
    let domain = if collection.reach == Reach::Domain { "in_domain AS domain, " } else { "" };
    format!(
        "CREATE VIEW {} AS SELECT {domain}id, version, {document} AS document{fields} FROM {} WHERE {}",
        quoted(collection.name),
        table(collection),
        is_shown(collection, "")
    )
}

/// The members of a document in which fields change: for each what stands below it, and the column.
fn members(collection: &Collection) -> Vec<(&'static str, Vec<(&'static str, String)>)> {
    let mut members: Vec<(&str, Vec<(&str, String)>)> = Vec::new();
    for field in collection.changing() {
        let (member, below) = field.path.split_once('.').unwrap_or((field.path, ""));
        match members.iter_mut().find(|(name, _)| *name == member) {
            Some((_, fields)) => fields.push((below, column(field.path))),
            None => members.push((member, vec![(below, column(field.path))])),
        }
    }
    members
}

/// An object with the member, or without it where its columns have no value.
fn overlay(member: &str, fields: &[(&str, String)]) -> String {
    let unless_absent = |name: &str, object: &str| {
        format!("CASE WHEN num_nonnulls({name}) = 0 THEN '{{}}'::jsonb ELSE {object} END")
    };
    match fields {
        [("", name)] => unless_absent(name, &format!("jsonb_build_object('{member}', {name})")),
        fields => {
            let each = fields
                .iter()
                .map(|(below, name)| unless_absent(name, &format!("jsonb_build_object('{below}', {name})")));
            let inner = each.collect::<Vec<_>>().join(" || ");
            let names: Vec<&str> = fields.iter().map(|(_, name)| name.as_str()).collect();
            let object =
                format!("jsonb_build_object('{member}', coalesce(body->'{member}', '{{}}') || {inner})");
            unless_absent(&names.join(", "), &object)
        }
    }
}

#[cfg(test)]
mod tests {
    use rota_store::collection::JOBS;

    use super::*;

    /// Who holds a lock that readers wait for does nothing else any more that takes long.
    #[test]
    fn indexes_are_dropped_when_everything_else_is_done() {
        let all = additions();
        let first = all.iter().position(|statement| statement.starts_with("DROP INDEX")).unwrap();
        let quick = |statement: &String| {
            let is = |word: &str| statement.starts_with(word);
            let adds = statement.contains(" ADD COLUMN IF NOT EXISTS listed ");
            is("DROP INDEX") || is("ALTER INDEX") || adds || statement.contains(" WHEN (NEW.listed IS NULL)")
        };
        assert!(all[first..].iter().all(quick), "{all:?}");
        assert!(!all[..first].iter().any(quick), "{all:?}");
    }

    /// Whoever searches has the rows and wants the register: who had locked it, and wanted the rows, would wait for ever.
    #[test]
    fn nothing_but_a_short_statement_of_its_own_keeps_readers_from_the_register() {
        let register = register_table(&JOBS);
        let locks = |statement: &String| statement.starts_with(&format!("ALTER TABLE {register}"));
        assert!(!additions().iter().any(locks));
        assert_eq!(preparations().iter().filter(|before| locks(&before.statement)).count(), 1);
    }

    /// Its lines are known by their ids alone.
    #[test]
    fn no_domain_has_a_register_of_its_own() {
        let with_register = || ALL.iter().filter(|collection| has_register(collection));
        assert!(with_register().all(|collection| collection.reach == Reach::Installation));
        assert!(with_register().count() > 0);
    }

    /// Databases are made by these statements. If this fails for a version that was released, raise [`VERSION`] first, and keep
    /// what the old one made among the fixtures.
    #[test]
    fn golden_schema() {
        let text: String = statements().into_iter().map(|statement| format!("{statement};\n")).collect();
        let path = format!("{}/golden/schema-{VERSION}.sql", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("ROTA_BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(golden == text, "the tables changed: look at it, then run `cargo xtask bless`\n\n{text}");
    }
}
