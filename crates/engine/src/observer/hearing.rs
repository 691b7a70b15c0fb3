//! Hints, gathered for a moment: which documents changed, and when that was heard first. Beyond a number they are only
//! counted: more than anybody reads one by one.

use std::collections::BTreeMap;

use rota_model::time::UnixMillis;
use rota_store::hints::News;

/// More changed documents than this in one moment are not read.
pub(super) const MAX_AT_ONCE: usize = 100;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    /// When each was heard of first.
    pub(super) ids: BTreeMap<String, UnixMillis>,
    pub(super) messages: usize,
    /// Too many, or some were lost: what changed is not known.
    pub(super) too_much: bool,
}

impl Heard {
    /// Takes in what was told; false if nobody will tell any more.
    pub(super) fn take(&mut self, news: &News, now: UnixMillis) -> bool {
        match news {
            News::Of(hints) => {
                self.messages += hints.len();
                for hint in hints.iter() {
                    if self.too_much {
                        break;
                    }
                    if !self.ids.contains_key(&hint.key.id) {
                        self.ids.insert(hint.key.id.clone(), now);
                    }
                    self.too_much = self.ids.len() > MAX_AT_ONCE;
                }
                true
            }
            News::Lost => {
                self.too_much = true;
                true
            }
            News::Closed => false,
        }
    }

    pub(super) fn is_something(&self) -> bool {
        self.too_much || !self.ids.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use rota_store::collection::JOBS;
    use rota_store::hints::Hint;
    use rota_store::seam::Key;

    use super::*;

    fn hints(ids: impl Iterator<Item = usize>) -> News {
        News::Of(ids.map(|id| Hint { key: Key::new(&JOBS, id), is_new: false }).collect())
    }

    #[test]
    fn a_document_is_heard_of_once_and_a_crowd_is_only_counted() {
        let mut heard = Heard::default();
        assert!(heard.take(&hints([1, 1].into_iter()), UnixMillis(1)));
        assert!(heard.take(&hints([1, 2].into_iter()), UnixMillis(2)));
        let expected = [("1".to_owned(), UnixMillis(1)), ("2".to_owned(), UnixMillis(2))];
        assert_eq!(heard.ids, expected.into());
        assert!(heard.take(&hints(0..10_000), UnixMillis(3)));
        assert_eq!((heard.too_much, heard.messages), (true, 10_004));
        assert!(heard.ids.len() <= MAX_AT_ONCE + 1);
    }

    #[test]
    fn what_was_lost_makes_the_moment_incomplete() {
        let mut heard = Heard::default();
        assert!(heard.take(&News::Lost, UnixMillis(1)));
        assert!(heard.too_much && heard.is_something());
        assert!(!heard.take(&News::Closed, UnixMillis(1)));
    }
}
