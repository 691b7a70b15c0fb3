//! Tables: aligned columns, no borders.

use comfy_table::{Cell, Color, Table, presets};

use super::printable;

/// Longer texts would push everything else off the line.
const MAX_CELL_CHARS: usize = 40;

/// A table with a row of names above it.
pub(crate) fn table<const COLUMNS: usize>(
    names: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [Cell; COLUMNS]>,
) -> Table {
    let mut table = bare();
    table.set_header(names.map(str::to_uppercase));
    table.add_rows(rows);
    align(table)
}

/// Names and values of one document, one below the other.
pub(crate) fn listing<'a>(rows: impl IntoIterator<Item = (&'a str, Cell)>) -> Table {
    let mut table = bare();
    table.add_rows(rows.into_iter().map(|(name, value)| [Cell::new(name), value]));
    align(table)
}

fn bare() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// Two spaces between columns. Nothing is wrapped: an id that is cut into lines cannot be copied.
fn align(mut table: Table) -> Table {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// A value as it is.
#[expect(clippy::needless_pass_by_value, reason = "numbers, ids and texts are handed over alike")]
pub(crate) fn text(value: impl ToString) -> Cell {
    Cell::new(printable(&value.to_string()))
}

/// A value that may be missing.
pub(crate) fn optional<T: ToString>(value: Option<T>) -> Cell {
    value.map_or_else(|| Cell::new("-"), text)
}

/// A value in one line of bounded length.
pub(crate) fn short(value: &str) -> Cell {
    let line = printable(value).replace('\n', " ");
    if line.chars().count() <= MAX_CELL_CHARS {
        return Cell::new(line);
    }
    Cell::new(line.chars().take(MAX_CELL_CHARS - 1).chain(['…']).collect::<String>())
}

/// A status, in a colour where there is colour.
pub(crate) fn status(name: &str) -> Cell {
    let cell = Cell::new(name);
    match name {
        "SUCCESSFUL" | "ACTIVE" => cell.fg(Color::Green),
        "FAILED" | "ERROR" => cell.fg(Color::Red),
        "STARTED" | "BUSY" => cell.fg(Color::Cyan),
        "TERMINATED" => cell.fg(Color::DarkGrey),
        _ => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_end_with_text() {
        let rows = [[text("a"), text("longer")], [text("bcdef"), text("x")]];
        assert_eq!(table(["one", "two"], rows).trim_fmt(), "ONE    TWO\na      longer\nbcdef  x");
    }

    #[test]
    fn a_value_of_several_lines_stays_in_its_column() {
        let json = text("{\n  \"a\": 1\n}");
        let expected = "id      1\nresult  {\n          \"a\": 1\n        }";
        assert_eq!(listing([("id", text(1)), ("result", json)]).trim_fmt(), expected);
    }

    #[test]
    fn long_names_are_cut() {
        let cut = short(&"x".repeat(100)).content();
        assert_eq!((cut.chars().count(), cut.chars().last()), (MAX_CELL_CHARS, Some('…')));
        assert_eq!(short("two\nlines").content(), "two lines");
    }
}
