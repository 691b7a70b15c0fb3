//! How collections and fields are called in the database.

use rota_store::collection::{Collection, DOMAIN, Field, Index, Kind, Reach};

pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The column of a declared field.
pub(crate) fn column(path: &str) -> String {
    if path == DOMAIN { "in_domain".to_owned() } else { quoted(&path.replace('.', "_")) }
}

/// The table of a collection. The plain name is left for a view that shows whole documents.
pub(crate) fn table(collection: &Collection) -> String {
    quoted(&format!("{}.rows", collection.name))
}

/// The register of a collection whose documents change: what they are listed and searched by, which does not change with them. A row
/// that changes is written to every index of its table again, and so these indexes are in a table of their own. It is named
/// after the words, which were all that it held at first.
pub(crate) fn register_table(collection: &Collection) -> String {
    quoted(&format!("{}.words", collection.name))
}

pub(crate) fn has_register(collection: &Collection) -> bool {
    let listed = || collection.indexes.iter().any(|index| is_of_register(collection, index));
    collection.changing().next().is_some() && (!collection.text.is_empty() || listed())
}

/// Whether an index is one of the register: of documents in every state, by what does not change.
pub(crate) fn is_of_register(collection: &Collection, index: &Index) -> bool {
    let is_fixed = |path: &&str| collection.field(path).is_some_and(|field| !field.changes);
    let changes = collection.changing().next().is_some();
    changes && index.only.is_none() && !index.sparse && index.fields.iter().all(is_fixed)
}

/// The fields that stand in the register beside the words, and in the rows as well.
pub(crate) fn registered(collection: &Collection) -> impl Iterator<Item = &'static Field> {
    let indexes = collection.indexes.iter().filter(|index| is_of_register(collection, index));
    let paths: Vec<&str> = indexes.flat_map(|index| index.fields.iter().copied()).collect();
    collection.fields.iter().filter(move |field| paths.contains(&field.path))
}

/// The columns that are written of a new row, in order.
pub(crate) fn row_columns(collection: &'static Collection) -> Vec<String> {
    let mut names: Vec<String> = key_columns(collection).iter().map(|&name| name.to_owned()).collect();
    names.extend(["version".to_owned(), "body".to_owned()]);
    names.extend(collection.fields.iter().map(|field| column(field.path)));
    if has_register(collection) {
        names.push("listed".to_owned());
    } else {
        names.extend(collection.text.iter().map(|path| words_column(path)));
    }
    names
}

/// The columns of a register: the id, the words, then what is listed by.
pub(crate) fn register_columns(collection: &'static Collection) -> Vec<String> {
    let words = collection.text.iter().map(|path| words_column(path));
    let fields = registered(collection).map(|field| column(field.path));
    std::iter::once("id".to_owned()).chain(words).chain(fields).collect()
}

/// The column of the words at a path.
pub(crate) fn words_column(path: &str) -> String {
    quoted(&format!("words.{}", path.replace('.', "_")))
}

pub(crate) fn sql_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Keyword => "text COLLATE \"C\"",
        Kind::Keywords => "text[] COLLATE \"C\"",
        Kind::Integer | Kind::Date => "bigint",
        Kind::Json => "jsonb",
    }
}

/// The columns by which a document is known.
pub(crate) fn key_columns(collection: &Collection) -> &'static [&'static str] {
    match collection.reach {
        Reach::Installation => &["id"],
        Reach::Domain => &["in_domain", "id"],
    }
}

/// What names a document: its version and its key, of the row called `row`.
pub(crate) fn key(collection: &Collection, row: &str) -> String {
    match collection.reach {
        Reach::Installation => format!("{row}.version, {row}.id, NULL::text AS in_domain"),
        Reach::Domain => format!("{row}.version, {row}.id, {row}.in_domain"),
    }
}

/// What makes up a document: what names it, the body, then the changing fields.
pub(crate) fn document(collection: &Collection, row: &str) -> String {
    document_with(collection, row, collection.changing())
}

/// The same, with these of the changing fields alone.
pub(crate) fn document_with(
    collection: &Collection,
    row: &str,
    changing: impl Iterator<Item = &'static Field>,
) -> String {
    let changing = changing.map(|field| format!(", {row}.{}", column(field.path)));
    format!("{}, {row}.body{}", key(collection, row), changing.collect::<String>())
}

/// Which documents are shown, of the row called so, dot included.
pub(crate) fn is_shown(collection: &Collection, row: &str) -> String {
    if collection.hides() { format!("{row}hidden_at IS NULL") } else { "true".to_owned() }
}

/// The same of a document that is looked for by its key. Said like this, an index of what is shown does not seem to serve: while a
/// table is small the server would go through all of that, and go on to do so when the table has grown.
pub(crate) fn is_shown_by_key(collection: &Collection, row: &str) -> String {
    format!("({}) IS TRUE", is_shown(collection, row))
}

/// What a document counts as, as a list of texts: the domain first, where each domain has its own; none if it is not counted.
pub(crate) fn counted(collection: &Collection) -> Vec<&'static str> {
    if collection.counted.is_empty() {
        return Vec::new();
    }
    let domain = (collection.reach == Reach::Domain).then_some(DOMAIN);
    domain.into_iter().chain(collection.counted.iter().copied()).collect()
}

/// What a document counts by and may change without the rest of it.
pub(crate) fn counted_changing(collection: &Collection) -> impl Iterator<Item = &'static Field> {
    let changing = collection.changing();
    changing.filter(|field| collection.counted.contains(&field.path))
}

/// The column that says what a document counted as before the change that it stands at; what does not change says so itself.
pub(crate) fn was_column(collection: &Collection, path: &str) -> String {
    let changes = collection.field(path).is_some_and(|field| field.changes);
    if changes { quoted(&format!("was.{}", path.replace('.', "_"))) } else { column(path) }
}
