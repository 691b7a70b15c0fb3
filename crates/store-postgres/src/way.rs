//! What a list walks through: the rows, called `r`, or the lines of the register, called `l`, with the row of each.
//!
//! Words have an index of their own, which knows nothing of the order of a list. Of a common word the newest are soon met by
//! walking; a rare one is better looked up, and its few documents sorted. The server does not know how rare a word is. So a
//! list by words walks a little way first, and looks the words up if that was not enough.

use rota_store::collection::{Collection, Index};
use rota_store::query::{Filter, Query};

use crate::names::{column, is_of_register, is_shown, is_shown_by_key, register_table, registered, table};

/// How many lines a list by words walks through before it looks the words up.
const NEAR: usize = 10_000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Rows,
    /// The register, line by line, and the row of each.
    Register,
    /// Either: the server knows how many rows there are in a state that has an index of its own.
    Both,
}

/// How far a list looks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    All,
    /// Among the first lines in the order of the list.
    Near,
    /// Among all that have the words.
    ByWords,
}

/// What is asked of lines, of their words, and of rows: each with ` AND ` before it.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) lines: String,
    pub(crate) words: String,
    pub(crate) rows: String,
}

impl Way {
    pub(crate) fn of(query: &Query) -> Self {
        let (collection, indexes) = (query.collection, query.collection.indexes);
        let is = |path: &str, value: Option<&str>| {
            let given = |filter: &Filter| match filter {
                Filter::Is(is, given) => *is == path && value.is_none_or(|value| given == value),
                _ => false,
            };
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

    /// Whether a column is taken from the line.
    pub(crate) fn is_of_line(self, collection: &Collection, name: &str) -> bool {
        self != Way::Rows && (name == "id" || registered(collection).any(|field| column(field.path) == name))
    }

    /// A column of what is listed.
    pub(crate) fn column(self, collection: &Collection, name: &str) -> String {
        format!("{}.{name}", if self.is_of_line(collection, name) { "l" } else { "r" })
    }

    /// What it goes through, and what must hold of it.
    pub(crate) fn from(self, collection: &Collection, look: Look, asked: &Asked, order: &str) -> String {
        let (rows, register) = (table(collection), register_table(collection));
        let Asked { lines, words, rows: of_rows } = asked;
        if self != Way::Register {
            let shown = is_shown(collection, "r.");
            return format!(
                "{register} AS l JOIN {rows} AS r ON r.id = l.id WHERE {shown}{lines}{words}{of_rows}"
            );
        }
        let (found, rest) = match look {
            Look::All => (format!("{register} AS l"), format!("{lines}{words}")),
            Look::Near => (
                format!(
                    "(SELECT * FROM {register} AS l WHERE true{lines} ORDER BY {order} LIMIT {NEAR}) AS l"
                ),
                words.clone(),
            ),
            Look::ByWords => (
                format!("(SELECT * FROM {register} AS l WHERE true{lines}{words} OFFSET 0) AS l"),
                String::new(),
            ),
        };
        // First the line, then its row: what the server knows of an empty table must not decide for a full one.
        format!(
            "{found} CROSS JOIN LATERAL (SELECT * FROM {rows} AS r WHERE r.id = l.id AND {} OFFSET 0) AS r \
             WHERE true{rest}{of_rows}",
            is_shown_by_key(collection, "r.")
        )
    }
}

/// Whether there are more lines than whoever looks near goes through: one row then, and none otherwise.
pub(crate) fn goes_on(collection: &Collection, asked: &Asked) -> String {
    let register = register_table(collection);
    format!("SELECT 1 FROM {register} AS l WHERE true{} OFFSET {NEAR} LIMIT 1", asked.lines)
}
