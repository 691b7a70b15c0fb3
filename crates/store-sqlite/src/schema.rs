//! Tables, indexes and views, derived from the declarations of the collections.
//!
//! ```text
//!  jobs.rows    pk, id, version, body, a column for each declared field; hidden_at where deleting hides, in_domain where
//!               each domain has its own
//!  jobs.large   bodies too large to be written again with every change beside them
//!  users.hashed_api_key            one row for each of several texts
//!  jobs, timers, timers-default    views that show whole documents
//!  counts        how many documents have which values, kept up to date with every commit
//!  sequences     numbers handed out
//!  facts         what is known of the file itself
//!  text_changes  documents whose words changed after they were made, for the text index
//! ```
//!
//! The primary key of a row is the version by which its document was made: it rises, which keeps the tables dense, and
//! never comes again, which lets the text index name documents by it.

use rota_model::domain::Domain;
use rota_store::collection::{ALL, Collection, Index, Kind, Reach};

use crate::statements::{body, column, divides, is_shown, keywords_table, quoted, table};

/// Rises with every change of what is below; a file of each released version is kept among the fixtures.
pub(crate) const VERSION: i64 = 7;
/// Written into the head of the file, so that it is known as Rota's: "Rota".
pub(crate) const APPLICATION_ID: i64 = 0x526f_7461;
/// Larger pages than the default: job-sized documents fill them better.
pub(crate) const PAGE_BYTES: i64 = 8_192;

/// Something in the file: the name it has there, and the statement that makes it.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) name: String,
    pub(crate) ddl: String,
}

impl Object {
    fn table(name: String, definition: &str) -> Self {
        Self { ddl: format!("CREATE TABLE {} {definition}", quoted(&name)), name }
    }
}

/// Every table, those of the collections first.
pub(crate) fn tables() -> Vec<Object> {
    let mut tables: Vec<Object> = ALL.iter().flat_map(|collection| tables_of(collection)).collect();
    let own = [
        ("sequences", "(name TEXT PRIMARY KEY, next INTEGER NOT NULL) WITHOUT ROWID"),
        (
            "counts",
            "(collection TEXT, key TEXT, n INTEGER NOT NULL, PRIMARY KEY (collection, key)) WITHOUT ROWID",
        ),
        ("facts", "(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"),
        (
            "text_changes",
            "(seq INTEGER PRIMARY KEY AUTOINCREMENT, collection TEXT NOT NULL, pk INTEGER NOT NULL)",
        ),
    ];
    tables.extend(own.map(|(name, definition)| Object::table(name.to_owned(), definition)));
    tables
}

fn tables_of(collection: &Collection) -> Vec<Object> {
    let columns: String = collection
        .fields
        .iter()
        .map(|field| format!(", {}", column_definition(field.path, field.kind)))
        .collect();
    let (domain, unique) = match collection.reach {
        Reach::Installation => ("", "UNIQUE (id)"),
        Reach::Domain => (", in_domain TEXT NOT NULL", "UNIQUE (in_domain, id)"),
    };
    let hidden = if collection.hides() { ", hidden_at INTEGER" } else { "" };
    let rows = format!(
        "(pk INTEGER PRIMARY KEY, id TEXT NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL{columns}{hidden}{domain}, \
         {unique})"
    );
    let mut tables = vec![Object::table(format!("{}.rows", collection.name), &rows)];
    if divides(collection) {
        let large = "(pk INTEGER PRIMARY KEY, body TEXT NOT NULL)";
        tables.push(Object::table(format!("{}.large", collection.name), large));
    }
    for field in collection.fields.iter().filter(|field| field.kind == Kind::Keywords) {
        let texts = "(value TEXT, pk INTEGER, PRIMARY KEY (value, pk)) WITHOUT ROWID";
        tables.push(Object::table(format!("{}.{}", collection.name, field.path), texts));
    }
    tables
}

pub(crate) fn column_definition(path: &str, kind: Kind) -> String {
    let affinity = if matches!(kind, Kind::Integer | Kind::Date) { "INTEGER" } else { "TEXT" };
    format!("{} {affinity}", column(path))
}

/// Every index that is declared, and one over what is hidden. What is hidden stands in no other.
pub(crate) fn indexes() -> Vec<Object> {
    ALL.iter().flat_map(|collection| indexes_of(collection)).collect()
}

fn indexes_of(collection: &Collection) -> Vec<Object> {
    let table = table(collection);
    let mut indexes: Vec<Object> =
        collection.indexes.iter().map(|index| declared_index(collection, index, &table)).collect();
    for field in collection.fields.iter().filter(|field| field.kind == Kind::Keywords) {
        let name = format!("{}.{}.pk", collection.name, field.path);
        let texts = keywords_table(collection, field.path);
        indexes.push(Object { ddl: format!("CREATE INDEX {} ON {texts} (pk)", quoted(&name)), name });
    }
    if collection.hides() {
        let name = format!("{}.hidden", collection.name);
        let ddl =
            format!("CREATE INDEX {} ON {table} (hidden_at) WHERE hidden_at IS NOT NULL", quoted(&name));
        indexes.push(Object { name, ddl });
    }
    indexes
}

fn declared_index(collection: &Collection, index: &Index, table: &str) -> Object {
    let name = format!("{}.{}", collection.name, index.name);
    let fields: Vec<String> = index.fields.iter().map(|path| column(path)).collect();
    let mut only: Vec<String> = Vec::new();
    if collection.hides() {
        only.push(is_shown(collection).to_owned());
    }
    only.extend(index.only.map(|(path, value)| format!("{} = '{value}'", column(path))));
    only.extend(fields.first().filter(|_| index.sparse).map(|first| format!("{first} IS NOT NULL")));
    let only = if only.is_empty() { String::new() } else { format!(" WHERE {}", only.join(" AND ")) };
    Object { ddl: format!("CREATE INDEX {} ON {table} ({}){only}", quoted(&name), fields.join(", ")), name }
}

/// The views of whole collections. Where each domain has its own, those are made when a domain is met.
pub(crate) fn views() -> Vec<Object> {
    ALL.iter().map(|collection| view(collection, collection.name.to_owned(), None)).collect()
}

/// The view of one domain's collection, such as `timers-default`.
pub(crate) fn view_of_domain(collection: &Collection, domain: &Domain) -> Object {
    view(collection, format!("{}-{domain}", collection.name), Some(domain))
}

/// Whole documents, for whoever opens the file: the body with what stands in columns put back into it. A path that is
/// NULL sets nothing.
fn view(collection: &Collection, name: String, domain: Option<&Domain>) -> Object {
    let set: String = collection
        .changing()
        .map(|field| {
            let name = column(field.path);
            let value = if field.kind == Kind::Json { format!("json({name})") } else { name.clone() };
            format!(", iif({name} IS NULL, NULL, '$.{}'), {value}", field.path)
        })
        .collect();
    let document =
        if set.is_empty() { body(collection) } else { format!("json_set({}{set})", body(collection)) };
    let fields = collection.fields.iter().filter(|field| field.kind != Kind::Json);
    let fields: String = fields.map(|field| format!(", {}", column(field.path))).collect();
    let in_domain = if collection.reach == Reach::Domain { ", in_domain AS domain" } else { "" };
    // Domains are letters, digits and hyphens.
    let only = domain.map(|domain| format!(" AND in_domain = '{domain}'")).unwrap_or_default();
    let ddl = format!(
        "CREATE VIEW {} AS SELECT id, version, {document} AS document{in_domain}{fields} FROM {} WHERE {}{only}",
        quoted(&name),
        table(collection),
        is_shown(collection)
    );
    Object { name, ddl }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files are made by these statements. If this fails for a version that was released, raise [`VERSION`] first, and
    /// keep a file of the old one among the fixtures.
    #[test]
    fn golden_schema() {
        let objects = tables().into_iter().chain(indexes()).chain(views());
        let text: String = objects.map(|object| format!("{};\n", object.ddl)).collect();
        let path = format!("{}/golden/schema-{VERSION}.sql", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("ROTA_BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(golden == text, "the tables changed: look at it, then run `cargo xtask bless`\n\n{text}");
    }
}
