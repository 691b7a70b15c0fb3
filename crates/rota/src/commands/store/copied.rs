//! What is told about a copy: what both stores come to, and what differs.

use comfy_table::Cell;
use indicatif::HumanCount;
use rota_store::copy::{self, Compared};
use serde::Serialize;

use crate::output::table::{self, text};
use crate::stores::StoreAt;

/// How much of a checksum is shown to people.
const SHOWN: usize = 12;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Copied {
    from: String,
    to: String,
    /// Whether a copy that had begun before was continued.
    resumed: bool,
    /// Whether others went on writing to the source, so that it is ahead of what was copied.
    source_in_use: bool,
    equal: bool,
    documents: u64,
    collections: Vec<Collection>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Collection {
    name: &'static str,
    /// In the target, as all that follows.
    documents: u64,
    /// Deleted, and not yet purged.
    hidden: u64,
    checksum: String,
    equal: bool,
    /// How many documents differ from the source.
    differing: u64,
    /// Some of them.
    differing_keys: Vec<String>,
}

impl Copied {
    pub(super) fn new(from: &StoreAt, to: &StoreAt, copied: &copy::Copied, source_in_use: bool) -> Self {
        let collections: Vec<_> = copied.collections.iter().map(Collection::new).collect();
        Self {
            from: from.to_string(),
            to: to.to_string(),
            resumed: copied.resumed,
            source_in_use,
            equal: copied.is_equal(),
            documents: collections.iter().map(|one| one.documents + one.hidden).sum(),
            collections,
        }
    }

    pub(super) fn text(&self) -> String {
        let names = ["collection", "documents", "deleted", "checksum", "result"];
        table::table(names, self.collections.iter().map(Collection::row)).trim_fmt()
    }

    fn differing(&self) -> u64 {
        self.collections.iter().map(|one| one.differing).sum()
    }

    fn named(&self) -> String {
        let keys: Vec<_> =
            self.collections.iter().flat_map(|one| one.differing_keys.iter().cloned()).collect();
        keys.join(", ")
    }

    /// What to do where the two differ and should not.
    pub(super) fn verdict(&self) -> String {
        format!(
            "{} and {} differ in {} documents, among them {}. The copy is not finished: look at what writes to either of \
             them, then give the same command again",
            self.from,
            self.to,
            HumanCount(self.differing()),
            self.named()
        )
    }

    /// The source went on.
    pub(super) fn what_is_missing(&self) -> String {
        let differing = match self.differing() {
            0 => String::new(),
            some => format!("{} documents are not what they are there by now, and ", HumanCount(some)),
        };
        format!(
            "{} was in use and goes on: {differing}what is written there from the beginning of the copy on may be missing. Stop \
             its nodes and give the same command again before any node starts on the copy: that brings the rest.",
            self.from
        )
    }

    pub(super) fn what_next(&self, to: &StoreAt) -> String {
        let start = match to {
            StoreAt::Folder(folder) => format!("rota up --data {}", folder.display()),
            StoreAt::Postgres(_) => format!("rota serve --store {to}"),
        };
        format!(
            "{} documents are the same in both. `{start}` starts on the copy.",
            HumanCount(self.documents)
        )
    }
}

impl Collection {
    fn new(compared: &Compared) -> Self {
        let copy::Sum { documents, hidden, checksum } = compared.target;
        Self {
            name: compared.collection.name,
            documents,
            hidden,
            checksum: format!("{checksum:032x}"),
            equal: compared.is_equal(),
            differing: compared.differing,
            differing_keys: compared.named.iter().map(ToString::to_string).collect(),
        }
    }

    fn row(&self) -> [Cell; 5] {
        let result = match self.equal {
            true => "equal".to_owned(),
            false => format!("{} differ", HumanCount(self.differing)),
        };
        [
            text(self.name),
            text(HumanCount(self.documents)),
            text(HumanCount(self.hidden)),
            text(self.checksum.chars().take(SHOWN).collect::<String>()),
            text(result),
        ]
    }
}

#[cfg(test)]
mod tests {
    use rota_store::collection::JOBS;
    use rota_store::copy::Sum;
    use rota_store::seam::Key;

    use super::*;

    fn copied(differing: u64, source_in_use: bool) -> Copied {
        let sum = Sum { documents: 40_006, hidden: 2, checksum: 1 << 100 };
        let named = (0..differing).map(|nth| Key::new(&JOBS, nth)).collect();
        let jobs = Compared { collection: &JOBS, source: sum, target: sum, differing, named };
        let (from, to) = (StoreAt::parse("sqlite:a").unwrap(), StoreAt::parse("postgres://u:p@h/d").unwrap());
        Copied::new(&from, &to, &copy::Copied { collections: vec![jobs], resumed: false }, source_in_use)
    }

    #[test]
    fn a_copy_that_is_equal_says_so() {
        let copied = copied(0, false);
        let expected = "\
COLLECTION  DOCUMENTS  DELETED  CHECKSUM      RESULT
jobs        40,006     2        000000100000  equal";
        assert_eq!(copied.text(), expected);
        let to = StoreAt::parse("postgres://u:p@h/d").unwrap();
        assert!(copied.what_next(&to).contains("`rota serve --store postgres://u:***@h/d`"));
    }

    #[test]
    fn what_differs_is_counted_and_named() {
        let copied = copied(2, false);
        assert!(copied.text().ends_with("2 differ"), "{}", copied.text());
        let verdict = copied.verdict();
        assert!(verdict.contains("differ in 2 documents, among them jobs/0, jobs/1"), "{verdict}");
        assert_eq!(serde_json::to_value(&copied).unwrap()["collections"][0]["differing"], 2);
    }

    #[test]
    fn a_source_that_went_on_is_told_whether_anything_differs_or_not() {
        let (same, other) = (copied(0, true), copied(2, true));
        assert!(same.what_is_missing().starts_with("a was in use and goes on: what is written there"));
        let told = other.what_is_missing();
        assert!(
            told.contains("goes on: 2 documents are not what they are there by now, and what is"),
            "{told}"
        );
        assert_eq!(serde_json::to_value(&same).unwrap()["sourceInUse"], true);
    }
}
