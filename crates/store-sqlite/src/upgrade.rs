//! Older files are brought up to date when they are opened, in one transaction: whoever is interrupted finds the old file.
//!
//! Tables are derived from declarations, and so is their upgrade: what is declared and not there is made and filled from
//! the documents. What cannot be told from the declarations would need a step of its own, by version.

use rota_store::collection::{ALL, Collection, Field, Kind, Reach, millis};
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use serde_json::Value;

use crate::statements::{body, column, keywords_table, large_table, quoted, table};
use crate::{counts, file, schema};

pub(crate) fn run(connection: &mut Connection) -> rusqlite::Result<()> {
    teach_instants(connection)?;
    let upgrade = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    drop_what_is_derived(&upgrade)?;
    for object in schema::tables() {
        if !is_there(&upgrade, &object.name)? {
            upgrade.execute_batch(&object.ddl)?;
        }
    }
    for collection in ALL {
        add_columns(&upgrade, collection)?;
        fill_keywords(&upgrade, collection)?;
    }
    for object in schema::indexes().into_iter().chain(schema::views()) {
        upgrade.execute_batch(&object.ddl)?;
    }
    views_of_domains(&upgrade)?;
    counts::recount(&upgrade)?;
    upgrade.execute_batch(file::NAME_THE_FILE)?;
    upgrade.pragma_update(None, "user_version", schema::VERSION)?;
    upgrade.commit()
}

/// Instants have several spellings in documents, and one in columns.
fn teach_instants(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("instant_millis", 1, flags, |context| {
        let text: Option<String> = context.get(0)?;
        let value = text.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        Ok(value.as_ref().and_then(millis))
    })
}

fn is_there(upgrade: &Transaction<'_>, name: &str) -> rusqlite::Result<bool> {
    let query = "SELECT 1 FROM sqlite_schema WHERE name = ?";
    upgrade.query_row(query, [name], |_| Ok(())).optional().map(|found| found.is_some())
}

/// Views and indexes hold nothing of their own.
fn drop_what_is_derived(upgrade: &Transaction<'_>) -> rusqlite::Result<()> {
    let query =
        "SELECT type, name FROM sqlite_schema WHERE type = 'view' OR (type = 'index' AND sql IS NOT NULL)";
    let found: Vec<(String, String)> = upgrade
        .prepare(query)?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    // What an operator made stays.
    let is_ours = |name: &str| {
        let rest = ALL.iter().filter_map(|collection| name.strip_prefix(collection.name));
        rest.into_iter().any(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
    };
    let mut ours = found.iter().filter(|(_, name)| is_ours(name));
    ours.try_for_each(|(kind, name)| upgrade.execute_batch(&format!("DROP {kind} {}", quoted(name))))
}

fn add_columns(upgrade: &Transaction<'_>, collection: &Collection) -> rusqlite::Result<()> {
    let table = table(collection);
    let there: Vec<String> = upgrade
        .prepare("SELECT name FROM pragma_table_info(?)")?
        .query_map([format!("{}.rows", collection.name)], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let missing = |name: &str| !there.iter().any(|known| known == name);
    if collection.hides() && missing("hidden_at") {
        upgrade.execute_batch(&format!("ALTER TABLE {table} ADD COLUMN hidden_at INTEGER"))?;
    }
    for field in collection.fields {
        if missing(column(field.path).trim_matches('"')) {
            let definition = schema::column_definition(field.path, field.kind);
            upgrade.execute_batch(&format!("ALTER TABLE {table} ADD COLUMN {definition}"))?;
            fill_column(upgrade, collection, field)?;
        }
    }
    Ok(())
}

fn fill_column(upgrade: &Transaction<'_>, collection: &Collection, field: &Field) -> rusqlite::Result<()> {
    let (path, body) = (format!("'$.{}'", field.path), body(collection));
    let value = match field.kind {
        Kind::Keyword | Kind::Integer => format!("json_extract({body}, {path})"),
        Kind::Keywords | Kind::Json => format!("({body}) -> {path}"),
        Kind::Date => format!("instant_millis(({body}) -> {path})"),
    };
    upgrade.execute_batch(&format!("UPDATE {} SET {} = {value}", table(collection), column(field.path)))?;
    let bodies: &[String] = if field.changes { &[table(collection), large_table(collection)] } else { &[] };
    bodies.iter().try_for_each(|bodies| {
        upgrade
            .execute_batch(&format!("UPDATE {bodies} SET body = json_remove(body, {path}) WHERE body <> ''"))
    })
}

fn fill_keywords(upgrade: &Transaction<'_>, collection: &Collection) -> rusqlite::Result<()> {
    for field in collection.fields.iter().filter(|field| field.kind == Kind::Keywords) {
        let (texts, rows) = (keywords_table(collection, field.path), table(collection));
        let name = column(field.path);
        // A list without texts is no value.
        upgrade.execute_batch(&format!("UPDATE {rows} SET {name} = NULL WHERE {name} IN ('[]', 'null')"))?;
        upgrade.execute_batch(&format!(
            "DELETE FROM {texts}; INSERT OR IGNORE INTO {texts} (value, pk)
             SELECT each.value, {rows}.pk FROM {rows}, json_each({rows}.{name}) AS each WHERE {rows}.{name} IS NOT NULL"
        ))?;
    }
    Ok(())
}

fn views_of_domains(upgrade: &Transaction<'_>) -> rusqlite::Result<()> {
    for collection in ALL.into_iter().filter(|collection| collection.reach == Reach::Domain) {
        let query = format!("SELECT DISTINCT in_domain FROM {}", table(collection));
        let domains: Vec<String> =
            upgrade.prepare(&query)?.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        for domain in domains.iter().filter_map(|domain| domain.parse().ok()) {
            upgrade.execute_batch(&schema::view_of_domain(collection, &domain).ddl)?;
        }
    }
    Ok(())
}
