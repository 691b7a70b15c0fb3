//! A log entry of seed 003: what a node or a handler said, and about which job.
//!
//! What a handler prints is evidence, so it is never refused for its size or its characters:
//! [`Log::within_limits`] cuts it to what every store can hold, and says so.

use serde::{Deserialize, Serialize};

use crate::Extra;
use crate::check::{Checker, Invalid};
use crate::domain::Domain;
use crate::ids::{JobId, LogId, NodeId};
use crate::metadata::Metadata;
use crate::time::UnixMillis;
use crate::words::words;

/// The length of a title, in characters.
pub const MAX_TITLE_CHARS: usize = 200;
/// The length of a message, in characters.
pub const MAX_MESSAGE_CHARS: usize = 16_384;
/// How many pieces of context an entry has.
pub const MAX_CONTEXT_ITEMS: usize = 32;
/// The length of a piece of context, in characters.
pub const MAX_CONTEXT_CHARS: usize = 1_024;
/// Stands at the end of what was cut.
const CUT: char = '…';

words! {
    /// How much an entry matters; each more than the one before.
    Level {
        Debug = "DEBUG",
        Info = "INFO",
        Warn = "WARN",
        Error = "ERROR",
    }
}

/// A stored log entry; its id is a UUIDv7.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Log {
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The node it came from.
    #[schema(value_type = String, format = "uuid")]
    pub origin: NodeId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Vec<String>>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub job_id: Option<JobId>,
    /// The tenant it concerns; left out for what concerns the installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,

    pub metadata: Metadata,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// An entry together with its id, as lists and streams show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogLine {
    /// Rises with what one node says: whoever has seen a line knows it again by this.
    #[schema(value_type = String, format = "uuid")]
    pub log_id: LogId,
    #[serde(flatten)]
    pub log: Log,
}

impl LogLine {
    /// What lines are sorted by: when they were said, then their ids.
    pub fn position(&self) -> (UnixMillis, LogId) {
        (self.log.metadata.created_at, self.log_id)
    }
}

impl Level {
    /// This level and those that matter more.
    pub fn and_above(self) -> Vec<Level> {
        Level::ALL.iter().copied().filter(|level| *level >= self).collect()
    }
}

impl Log {
    /// The same entry, with a text that somebody printed: its first line is the title, and the whole of it the message where
    /// the title does not hold it.
    #[must_use]
    pub fn saying(mut self, text: &str) -> Self {
        let first = text.lines().next().unwrap_or_default();
        self.title = first.chars().take(MAX_TITLE_CHARS + 1).collect();
        let fits = first.len() == text.trim_end_matches(['\r', '\n']).len()
            && self.title.chars().count() <= MAX_TITLE_CHARS;
        // One character more than there is room for shows that it was cut.
        self.message = (!fits).then(|| text.chars().take(MAX_MESSAGE_CHARS + 1).collect());
        self.within_limits()
    }

    pub fn new(level: Level, title: impl Into<String>, origin: NodeId, now: UnixMillis) -> Self {
        Self {
            title: title.into(),
            message: None,
            origin,
            context: None,
            level: Some(level),
            job_id: None,
            domain: None,
            metadata: Metadata::new(now, origin),
            extra: Extra::new(),
        }
    }

    /// The same entry, cut to the limits. What is within them stays as it is.
    #[must_use]
    pub fn within_limits(mut self) -> Self {
        self.title = clean(&self.title, MAX_TITLE_CHARS, |_| false);
        self.message = self.message.map(|text| clean(&text, MAX_MESSAGE_CHARS, is_break));
        if let Some(context) = &mut self.context {
            context.truncate(MAX_CONTEXT_ITEMS);
            for text in context {
                *text = clean(text, MAX_CONTEXT_CHARS, is_break);
            }
        }
        self
    }

    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check.line("/title", &self.title, 0..=MAX_TITLE_CHARS);
        if let Some(message) = &self.message {
            check.lines("/message", message, 0..=MAX_MESSAGE_CHARS);
        }
        let context = self.context.as_deref().unwrap_or_default();
        check.range("/context", context.len(), 0..=MAX_CONTEXT_ITEMS);
        for (nth, text) in context.iter().enumerate() {
            check.lines(&format!("/context/{nth}"), text, 0..=MAX_CONTEXT_CHARS);
        }
        check.extra("", &self.extra);
        check.finish()
    }
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\t')
}

/// Control characters become spaces, and what is too long ends in [`CUT`].
fn clean(text: &str, max_chars: usize, kept: impl Fn(char) -> bool) -> String {
    let printable = |c: char| if c.is_control() && !kept(c) { ' ' } else { c };
    if text.chars().count() <= max_chars {
        return text.chars().map(printable).collect();
    }
    text.chars().take(max_chars - 1).map(printable).chain([CUT]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_handler_prints_is_cut_and_then_accepted() {
        let mut log = Log::new(Level::Warn, "a\u{7}b\nc", NodeId::derived(&["n"]), UnixMillis(1));
        log.message = Some("x\0\ny".repeat(MAX_MESSAGE_CHARS));
        log.context = Some(vec!["z".repeat(MAX_CONTEXT_CHARS + 1); MAX_CONTEXT_ITEMS + 1]);
        assert_eq!(log.check().unwrap_err().0.len(), 4 + MAX_CONTEXT_ITEMS + 1);
        let log = log.within_limits();
        assert_eq!(log.check(), Ok(()));
        assert_eq!(log.title, "a b c");
        assert!(log.message.as_deref().unwrap().ends_with(CUT));
        assert_eq!(log.clone().within_limits(), log);
    }

    #[test]
    fn a_printed_text_has_its_first_line_as_the_title() {
        let said = |text: &str| {
            let log = Log::new(Level::Info, "", NodeId::derived(&["n"]), UnixMillis(1)).saying(text);
            assert_eq!(log.check(), Ok(()));
            (log.title, log.message)
        };
        assert_eq!(said("short\n"), ("short".to_owned(), None));
        assert_eq!(said(""), (String::new(), None));
        assert_eq!(said("one\ntwo"), ("one".to_owned(), Some("one\ntwo".to_owned())));
        let (title, message) = said(&"é\0".repeat(1024 * 1024));
        assert!(title.ends_with(CUT) && title.chars().count() == MAX_TITLE_CHARS);
        let message = message.unwrap();
        assert!(message.ends_with(CUT) && message.chars().count() == MAX_MESSAGE_CHARS);
        let (title, message) = said(&"x".repeat(MAX_TITLE_CHARS + 1));
        assert!(title.ends_with(CUT) && message == Some("x".repeat(MAX_TITLE_CHARS + 1)));
    }

    #[test]
    fn a_line_is_its_document_with_an_id() {
        let log = Log::new(Level::Warn, "oh", NodeId::derived(&["n"]), UnixMillis(1));
        let line = LogLine { log_id: LogId::derived(&["l"]), log };
        let json = serde_json::to_value(&line).unwrap();
        assert_eq!((&json["title"], &json["level"]), (&"oh".into(), &"WARN".into()));
        assert_eq!(serde_json::from_value::<LogLine>(json).unwrap(), line);
        assert_eq!(Level::Warn.and_above(), [Level::Warn, Level::Error]);
    }
}
