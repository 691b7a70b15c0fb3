//! What is printed, and in which form. Documents go to the standard output; everything said about them goes to the
//! standard error, so that a pipe carries documents alone.

pub(crate) mod progress;
pub(crate) mod table;
pub(crate) mod time;

use std::io::{self, IsTerminal as _, Write as _};

use clap::ValueEnum;
use comfy_table::Table;
use rota_client::Page;
use serde::Serialize;

use crate::exit::{Exit, Failure};

/// Tables are for people; `ndjson` is one document per line. (Values with comments of their own would draw out the
/// help of every command.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
    Ndjson,
}

/// Prints in one form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    format: Format,
    colour: bool,
}

impl Printer {
    /// The form that was asked for; otherwise tables for a terminal and JSON for a pipe.
    pub(crate) fn new(asked: Option<Format>) -> Self {
        let terminal = io::stdout().is_terminal();
        let format = asked.unwrap_or(if terminal { Format::Table } else { Format::Json });
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { format, colour: terminal && !no_colour }
    }

    /// Whether a person reads it, and no program.
    pub(crate) fn is_table(self) -> bool {
        self.format == Format::Table
    }

    /// Whether documents can be printed as they come, instead of all at once.
    pub(crate) fn takes_one_at_a_time(self) -> bool {
        self.format == Format::Ndjson
    }

    pub(crate) fn document<T: Serialize>(
        self,
        document: &T,
        listing: impl FnOnce(&T) -> Table,
    ) -> Result<(), Failure> {
        match self.format {
            Format::Table => print(&self.drawn(listing(document))),
            Format::Json => print(&to_json(document, true)?),
            Format::Ndjson => print(&to_json(document, false)?),
        }
    }

    pub(crate) fn list<T: Serialize>(
        self,
        page: &Page<T>,
        table: impl FnOnce(&[T]) -> Table,
    ) -> Result<(), Failure> {
        match self.format {
            Format::Table if page.items.is_empty() => self.note("There is nothing to list."),
            Format::Table => print(&self.drawn(table(&page.items)))?,
            Format::Json => print(&to_json(page, true)?)?,
            Format::Ndjson => {
                for item in &page.items {
                    print(&to_json(item, false)?)?;
                }
            }
        }
        Ok(())
    }

    /// One of a stream of documents, each on a line of its own; the text is told whether there is colour.
    pub(crate) fn line<T: Serialize>(
        self,
        document: &T,
        text: impl FnOnce(&T, bool) -> String,
    ) -> Result<(), Failure> {
        match self.format {
            Format::Table => print(&text(document, self.colour)),
            Format::Json | Format::Ndjson => print(&to_json(document, false)?),
        }
    }

    /// A text that is the whole answer, and the document that a program gets instead.
    pub(crate) fn text(self, text: &str, document: &impl Serialize) -> Result<(), Failure> {
        match self.format {
            Format::Table => print(text),
            Format::Json => print(&to_json(document, true)?),
            Format::Ndjson => print(&to_json(document, false)?),
        }
    }

    /// Something for a person to know; scripts do not see it.
    pub(crate) fn note(self, text: &str) {
        if self.format == Format::Table {
            warn(text);
        }
    }

    fn drawn(self, mut table: Table) -> String {
        if self.colour {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table.trim_fmt()
    }
}

/// One sentence about what went wrong; nothing if there is nothing to say.
pub(crate) fn complain(failure: &Failure) {
    if !failure.message.is_empty() {
        warn(&format!("rota: {}", failure.message));
    }
}

/// Something that whoever asked should know, whatever the form.
pub(crate) fn warn(text: &str) {
    // Nobody is left to be told if the standard error is closed.
    let _ = writeln!(io::stderr(), "{}", printable(text));
}

/// Asks for something on the same line.
pub(crate) fn prompt(text: &str) {
    let _ = write!(io::stderr(), "{}", printable(text));
}

/// Text of others must not steer the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

fn to_json(document: &impl Serialize, pretty: bool) -> Result<String, Failure> {
    let text = if pretty { serde_json::to_string_pretty(document) } else { serde_json::to_string(document) };
    text.map_err(|error| Failure::new(Exit::Failed, format!("the answer cannot be written as JSON: {error}")))
}

pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let printed = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    printed.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::nobody_reads(),
        _ => Failure::new(Exit::Failed, format!("the output cannot be written: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_does_not_steer_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\nc\u{9b}"), "a\u{fffd}[2Jb\nc\u{fffd}");
    }

    #[test]
    fn colour_appears_only_where_it_is_wanted() {
        let table = || table::listing([("status", table::status("FAILED"))]);
        let plain = Printer { format: Format::Table, colour: false };
        assert_eq!(plain.drawn(table()), "status  FAILED");
        let coloured = Printer { colour: true, ..plain };
        assert!(coloured.drawn(table()).contains("\u{1b}["));
    }
}
