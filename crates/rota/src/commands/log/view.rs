//! How lines of the log are shown to people: one line each, with the instant, the level and what it is about.

use comfy_table::{Cell, Color, Table};
use rota_model::log::{Level, LogLine};
use rota_model::time::UnixMillis;

use crate::output::printable;
use crate::output::table::{self, optional, text};

/// Longer texts are shown by the other forms.
const MAX_CHARS: usize = 500;

pub(super) fn table(lines: &[LogLine]) -> Table {
    table::table(["time", "level", "job", "text"], lines.iter().map(row))
}

fn row(line: &LogLine) -> [Cell; 4] {
    let level = Cell::new(name_of(line.log.level));
    let level = match line.log.level {
        Some(Level::Error) => level.fg(Color::Red),
        Some(Level::Warn) => level.fg(Color::Yellow),
        _ => level,
    };
    [text(instant(line.log.metadata.created_at)), level, optional(line.log.job_id), text(sentence(line))]
}

/// One line for a terminal or a file.
pub(super) fn line(line: &LogLine, colour: bool) -> String {
    let level = format!("{:5}", name_of(line.log.level));
    let level = match line.log.level {
        Some(Level::Error) if colour => format!("\u{1b}[31m{level}\u{1b}[0m"),
        Some(Level::Warn) if colour => format!("\u{1b}[33m{level}\u{1b}[0m"),
        _ => level,
    };
    let about = line.log.job_id.map(|job| format!("{job} ")).unwrap_or_default();
    format!("{} {level} {about}{}", instant(line.log.metadata.created_at), sentence(line))
}

fn name_of(level: Option<Level>) -> &'static str {
    level.map_or("-", Level::as_str)
}

/// What was said, in one line: the message where it begins like the title, otherwise both.
fn sentence(line: &LogLine) -> String {
    let one_line = |text: &str| printable(&text.replace(['\n', '\r', '\t'], " "));
    let title = one_line(&line.log.title);
    let whole = match line.log.message.as_deref().map(one_line) {
        None => title,
        Some(message) if message.starts_with(title.trim_end_matches('…')) => message,
        Some(message) => format!("{title}: {message}"),
    };
    if whole.chars().count() <= MAX_CHARS {
        return whole;
    }
    whole.chars().take(MAX_CHARS - 1).chain(['…']).collect()
}

/// To the millisecond: lines follow each other closely.
fn instant(at: UnixMillis) -> String {
    at.to_date().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

#[cfg(test)]
mod tests {
    use rota_model::ids::{JobId, LogId, NodeId};
    use rota_model::log::Log;

    use super::*;

    fn said(level: Level, text: &str) -> LogLine {
        let log = Log::new(level, "", NodeId::derived(&["n"]), UnixMillis(1_893_456_000_007)).saying(text);
        LogLine { log_id: LogId::derived(&["l"]), log }
    }

    #[test]
    fn a_line_has_its_instant_its_level_and_its_text() {
        let mut warning = said(Level::Warn, "one\n\u{1b}[2Jtwo");
        assert_eq!(line(&warning, false), "2030-01-01T00:00:00.007Z WARN  one  [2Jtwo");
        assert!(line(&warning, true).contains("\u{1b}[33mWARN \u{1b}[0m"));
        warning.log.message = Some("no route".to_owned());
        warning.log.job_id = Some(JobId::derived(&["j"]));
        let id = JobId::derived(&["j"]);
        assert_eq!(line(&warning, false), format!("2030-01-01T00:00:00.007Z WARN  {id} one: no route"));
        assert!(line(&said(Level::Info, &"x".repeat(1_000)), false).ends_with("x…"));
        let long = line(&said(Level::Info, &format!("a\tb{}", "x".repeat(250))), false);
        assert_eq!(long.matches("a b").count(), 1, "{long}");
    }
}
