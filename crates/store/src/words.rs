//! Words, and whether they stand in a document. A word is a run of letters and digits, in whatever case. Every backend
//! searches for the same words: what is handed to its text index was divided here.

use serde_json::Value;

use crate::collection::{Collection, value_at};
use crate::seam::Body;

/// How much of a text is searched, in characters: enough for any message, and a bound for what an index holds of it.
const MAX_CHARS: usize = 16_384;

/// How much of a word counts, in characters, so that every engine can index it.
const MAX_WORD_CHARS: usize = 100;

/// What is searched for: all of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(pub Vec<Word>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// In lower case.
    pub text: String,
    /// Whether longer words that begin like it are meant too.
    pub is_beginning: bool,
}

impl Words {
    /// Reads what a person typed.
    pub fn parse(text: &str) -> Self {
        let mut words = Vec::new();
        for part in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
            let is_beginning = part.ends_with('*');
            words.extend(split(part).map(|text| Word { text, is_beginning }));
        }
        Self(words)
    }

    /// Whether each of them stands in the searched fields of a document.
    pub fn are_in(&self, collection: &Collection, body: &Body) -> bool {
        let there: Vec<String> = searched(collection, body).flat_map(split).collect();
        self.0.iter().all(|word| there.iter().any(|held| word.matches(held)))
    }
}

impl Word {
    fn matches(&self, held: &str) -> bool {
        if self.is_beginning { held.starts_with(&self.text) } else { held == self.text }
    }
}

/// The words of a document that are searched, divided by spaces: what a text index is given. Empty if there are none.
pub fn of(collection: &Collection, body: &Body) -> String {
    searched(collection, body).flat_map(split).collect::<Vec<_>>().join(" ")
}

/// The words of one text, divided by spaces. Empty if there are none.
pub fn divided(text: &str) -> String {
    split(text).collect::<Vec<_>>().join(" ")
}

fn searched<'a>(collection: &'a Collection, body: &'a Body) -> impl Iterator<Item = &'a str> {
    collection.text.iter().filter_map(|path| value_at(body, path).and_then(Value::as_str))
}

fn split(text: &str) -> impl Iterator<Item = String> {
    let end = text.char_indices().nth(MAX_CHARS).map_or(text.len(), |(end, _)| end);
    let words = text.get(..end).unwrap_or_default().split(|c: char| !c.is_alphanumeric());
    let cut = |word: &str| word.chars().take(MAX_WORD_CHARS).flat_map(char::to_lowercase).collect();
    words.filter(|word| !word.is_empty()).map(cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::JOBS;
    use serde_json::json;

    #[test]
    fn words_are_found_in_whatever_case_and_whole_unless_asked_otherwise() {
        let body =
            json!({"jobName": "Nächtlicher Bericht-2", "result": {"error": "disk FULL (28)"}, "other": "x"});
        let body = body.as_object().unwrap();
        for (typed, found) in [
            ("bericht", true),
            ("NÄCHTLICHER full", true),
            ("28", true),
            ("berich", false),
            ("berich*", true),
            ("be* di* 2*", true),
            ("disk empty", false),
            ("x", false),
            ("bericht-2", true),
        ] {
            assert_eq!(Words::parse(typed).are_in(&JOBS, body), found, "{typed}");
        }
        assert_eq!(of(&JOBS, body), "nächtlicher bericht 2 disk full 28");
    }
}
