//! What is told about a store: documents for programs, with exact numbers, and the same for people.

use std::path::{Path, PathBuf};

use comfy_table::{Cell, Table};
use indicatif::{HumanBytes, HumanCount};
use rota_store_sqlite::check::Findings;
use rota_store_sqlite::{FILE, stats};
use serde::Serialize;

use crate::output::table::{self, optional, text};

/// What a backup made.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Backup {
    data: PathBuf,
    file: PathBuf,
    bytes: u64,
}

impl Backup {
    pub(super) fn new(folder: &Path, file: &Path) -> Self {
        Self { data: whole(folder), file: whole(file), bytes: size_of(file) }
    }

    pub(super) fn listing(&self) -> Table {
        table::listing([
            ("data", text(self.data.display())),
            ("file", text(self.file.display())),
            ("size", size(self.bytes)),
        ])
    }

    pub(super) fn how_to_restore(&self) -> String {
        let file = argument(&self.file);
        format!("`rota store restore {file} --data DIR` puts it into a folder.")
    }
}

/// What a restore did.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Restore {
    data: PathBuf,
    file: PathBuf,
    bytes: u64,
    /// The store that was there before, if one was.
    kept: Option<PathBuf>,
}

impl Restore {
    pub(super) fn new(folder: &Path, file: &Path, kept: Option<&Path>) -> Self {
        let bytes = size_of(&folder.join(FILE));
        Self { data: whole(folder), file: whole(file), bytes, kept: kept.map(whole) }
    }

    pub(super) fn listing(&self) -> Table {
        table::listing([
            ("data", text(self.data.display())),
            ("file", text(self.file.display())),
            ("size", size(self.bytes)),
            ("kept", optional(self.kept.as_ref().map(|kept| kept.display()))),
        ])
    }

    pub(super) fn what_next(&self) -> String {
        let start = format!("`rota up --data {}` starts it.", argument(&self.data));
        match &self.kept {
            None => start,
            Some(kept) => format!(
                "{start} The store that was there is kept in {}: remove it when you do not need it any more.",
                kept.display()
            ),
        }
    }
}

/// What a check found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Check {
    data: PathBuf,
    sound: bool,
    documents: u64,
    faults: Vec<String>,
    text_faults: Vec<String>,
    notes: Vec<String>,
}

impl Check {
    pub(super) fn new(folder: &Path, findings: Findings) -> Self {
        let sound = findings.is_sound();
        let Findings { documents, faults, text_faults, notes } = findings;
        Self { data: whole(folder), sound, documents, faults, text_faults, notes }
    }

    /// A line for each fault.
    pub(super) fn text(&self) -> String {
        let sound = self
            .sound
            .then(|| format!("The store is sound: {} documents, no faults.", HumanCount(self.documents)));
        let lines = self.notes.iter().cloned().chain(sound);
        let lines: Vec<_> = lines.chain(self.faults.iter().chain(&self.text_faults).cloned()).collect();
        let lines: Vec<_> = lines.iter().map(|fault| crate::output::printable(fault)).collect();
        lines.join("\n")
    }

    /// What to do, if there is something wrong.
    pub(super) fn verdict(&self) -> Option<String> {
        if self.faults.is_empty() && !self.text_faults.is_empty() {
            return Some(format!(
                "the documents in {} are sound, its text index is not. It holds nothing of its own: stop Rota and remove \
                 rota-text.db, and it is made anew",
                self.data.display()
            ));
        }
        let faults = match self.faults.len() {
            0 => return None,
            1 => "1 fault".to_owned(),
            several => format!("{several} faults"),
        };
        Some(format!(
            "the store in {} has {faults}. What is damaged comes back from a backup: stop Rota, keep a copy of the \
             folder, then `rota store restore FILE --replace --data {}`",
            self.data.display(),
            argument(&self.data)
        ))
    }
}

/// How large a store is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stats {
    data: PathBuf,
    schema: u64,
    page_bytes: u64,
    /// The file of documents.
    file_bytes: u64,
    /// Of it, what is free for new documents.
    free_bytes: u64,
    /// Writes that are on disk and not yet in the file.
    log_bytes: u64,
    /// The text indexes.
    text_bytes: u64,
    collections: Vec<Collection>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Collection {
    name: &'static str,
    documents: u64,
    /// Deleted, and not yet purged.
    hidden: u64,
    document_bytes: u64,
    index_bytes: u64,
}

impl Stats {
    pub(super) fn new(folder: &Path, stats: &stats::Stats) -> Self {
        Self {
            data: whole(folder),
            schema: stats.schema,
            page_bytes: stats.page_bytes,
            file_bytes: stats.file_bytes,
            free_bytes: stats.free_bytes,
            log_bytes: stats.log_bytes,
            text_bytes: stats.text_bytes,
            collections: stats.collections.iter().map(Collection::new).collect(),
        }
    }

    /// The files, then what takes the room in that of the documents.
    pub(super) fn text(&self) -> String {
        let files = table::listing([
            ("data", text(self.data.display())),
            ("schema", text(self.schema)),
            ("file", size(self.file_bytes)),
            ("free in it", size(self.free_bytes)),
            ("log", size(self.log_bytes)),
            ("text index", size(self.text_bytes)),
        ]);
        let names = ["collection", "documents", "deleted", "size", "indexes"];
        let collections = table::table(names, self.collections.iter().map(Collection::row));
        format!("{}\n\n{}", files.trim_fmt(), collections.trim_fmt())
    }
}

impl Collection {
    fn new(stats: &stats::CollectionStats) -> Self {
        Self {
            name: stats.name,
            documents: stats.documents,
            hidden: stats.hidden,
            document_bytes: stats.document_bytes,
            index_bytes: stats.index_bytes,
        }
    }

    fn row(&self) -> [Cell; 5] {
        [
            text(self.name),
            text(HumanCount(self.documents)),
            text(HumanCount(self.hidden)),
            size(self.document_bytes),
            size(self.index_bytes),
        ]
    }
}

fn size(bytes: u64) -> Cell {
    text(HumanBytes(bytes))
}

fn size_of(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |file| file.len())
}

/// The path from the root: it means the same in whatever folder it is read.
fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A path as it is typed in a shell.
fn argument(path: &Path) -> String {
    let path = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@=,".contains(c);
    if path.chars().all(plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_can_be_pasted_into_a_shell() {
        let typed = |path: &str| argument(Path::new(path));
        assert_eq!(typed("/backups/rota-2030-01-31.db"), "/backups/rota-2030-01-31.db");
        assert_eq!(typed("/my backups/it's"), r"'/my backups/it'\''s'");
    }

    #[test]
    fn faults_are_listed_and_counted() {
        let found = |faults: &[&str]| {
            let faults = faults.iter().map(|&fault| fault.to_owned()).collect();
            Check::new(Path::new("/srv/rota"), Findings { documents: 1_234, faults, ..Findings::default() })
        };
        assert_eq!(found(&[]).text(), "The store is sound: 1,234 documents, no faults.");
        assert_eq!(found(&[]).verdict(), None);
        let damaged = found(&["jobs/1: its body is missing", "a \u{1b}[2Jpage"]);
        assert_eq!(damaged.text(), "jobs/1: its body is missing\na \u{fffd}[2Jpage");
        let verdict = damaged.verdict().unwrap();
        assert!(verdict.starts_with("the store in /srv/rota has 2 faults. "), "{verdict}");
        assert!(verdict.ends_with("`rota store restore FILE --replace --data /srv/rota`"), "{verdict}");
    }

    #[test]
    fn sizes_are_rounded_for_people_and_exact_for_programs() {
        let jobs = stats::CollectionStats {
            name: "jobs",
            documents: 40_006,
            hidden: 0,
            document_bytes: 378_216_448,
            index_bytes: 3_284_992,
        };
        let measured = stats::Stats {
            schema: 2,
            page_bytes: 8_192,
            file_bytes: 381_452_288,
            free_bytes: 0,
            log_bytes: 8_413_216,
            text_bytes: 741_376,
            collections: vec![jobs],
        };
        let stats = Stats::new(Path::new("/srv/rota"), &measured);
        let expected = "\
data        /srv/rota
schema      2
file        363.78 MiB
free in it  0 B
log         8.02 MiB
text index  724.00 KiB

COLLECTION  DOCUMENTS  DELETED  SIZE        INDEXES
jobs        40,006     0        360.70 MiB  3.13 MiB";
        assert_eq!(stats.text(), expected);
        let document = serde_json::to_value(&stats).unwrap();
        assert_eq!(
            (&document["fileBytes"], &document["collections"][0]["indexBytes"]),
            (&381_452_288.into(), &3_284_992.into())
        );
    }
}
