//! Both stores side by side, in the order of their keys: what they come to, and where they differ.

use std::cmp::Ordering;

use rota_model::domain::Domain;

use super::digest::{self, Digest, Sum};
use super::marker::Held;
use super::walk::{Shown, Walk, of_source};
use super::writes::{self, Wanted};
use super::{CopyError, Copying};
use crate::collection::Collection;
use crate::seam::{Document, Key, Version, Write};

/// How many documents that differ are named.
const NAMED: usize = 5;

/// A collection of both stores.
#[derive(Clone, Debug)]
pub struct Compared {
    pub collection: &'static Collection,
    pub source: Sum,
    pub target: Sum,
    /// How many documents differ.
    pub differing: u64,
    /// The first of them.
    pub named: Vec<Key>,
}

impl Compared {
    pub(super) fn new(collection: &'static Collection) -> Self {
        let (source, target) = (Sum::default(), Sum::default());
        Self { collection, source, target, differing: 0, named: Vec::new() }
    }

    /// By each document, and so by counts and checksums.
    pub fn is_equal(&self) -> bool {
        self.differing == 0 && self.source == self.target
    }

    fn note(&mut self, difference: &Difference) {
        self.differing += 1;
        let key = match difference {
            Difference::Missing(document) | Difference::Other(document, _) => &document.key,
            Difference::Surplus(key, _) => key,
        };
        // One that is there in one store and hidden in the other is met twice.
        if self.named.len() < NAMED && !self.named.contains(key) {
            self.named.push(key.clone());
        }
    }
}

enum Difference {
    /// Only the source has it.
    Missing(Document),
    /// The target has something else, in this version.
    Other(Document, Version),
    /// Only the target has it.
    Surplus(Key, Version),
}

/// Adds what is found to what was found before, and puts right what differs if that is wanted.
pub(super) async fn compare(
    copy: &Copying<'_>,
    held: &Held<'_>,
    shown: Shown,
    compared: &mut Compared,
    repair: bool,
    tell: &mut (dyn FnMut(u64) + Send),
) -> Result<(), CopyError> {
    let collection = compared.collection;
    let mut source = Walk::new(copy.source, of_source(collection, shown));
    let mut target = Walk::new(copy.target, shown.query(collection));
    loop {
        tokio::try_join!(source.fill(), target.fill())?;
        let before = compared.source;
        let mut differences = Vec::new();
        while !source.is_dry() && !target.is_dry() {
            let (ours, theirs) = match next(&mut source, &mut target) {
                (None, None) => break,
                pair => pair,
            };
            let ours = ours.map(|document| (digested(&document, shown, &mut compared.source), document));
            let theirs = theirs.map(|document| (digested(&document, shown, &mut compared.target), document));
            differences.extend(difference(ours, theirs).inspect(|found| compared.note(found)));
        }
        tell(compared.source.documents + compared.source.hidden - before.documents - before.hidden);
        // Whoever was overtaken compares with what others do.
        held.must_be_ours().await?;
        if repair {
            put_right(copy, held, shown, differences).await?;
        }
        if !source.is_dry() && !target.is_dry() {
            return Ok(());
        }
    }
}

fn digested(document: &Document, shown: Shown, sum: &mut Sum) -> Digest {
    let digest = digest::of(document, shown);
    sum.add(digest, shown);
    digest
}

/// What stands first in either; in both, if they have the same key.
fn next(source: &mut Walk<'_>, target: &mut Walk<'_>) -> (Option<Document>, Option<Document>) {
    let order = match (source.first(), target.first()) {
        (None, None) => return (None, None),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (Some(ours), Some(theirs)) => place(ours).cmp(&place(theirs)),
    };
    match order {
        Ordering::Less => (source.take(), None),
        Ordering::Equal => (source.take(), target.take()),
        Ordering::Greater => (None, target.take()),
    }
}

fn place(document: &Document) -> (Option<&str>, &str) {
    (document.key.domain.as_ref().map(Domain::as_str), &document.key.id)
}

fn difference(ours: Option<(Digest, Document)>, theirs: Option<(Digest, Document)>) -> Option<Difference> {
    match (ours, theirs) {
        (Some((ours, _)), Some((theirs, _))) if ours == theirs => None,
        (Some((_, ours)), Some((_, theirs))) => Some(Difference::Other(ours, theirs.version)),
        (Some((_, ours)), None) => Some(Difference::Missing(ours)),
        (None, Some((_, theirs))) => Some(Difference::Surplus(theirs.key, theirs.version)),
        (None, None) => None,
    }
}

/// What is there can be replaced. What is hidden cannot: it is purged, and made anew. Whatever does not come about, because
/// something is in the way that is put right later, is met again when both are compared once more.
async fn put_right(
    copy: &Copying<'_>,
    held: &Held<'_>,
    shown: Shown,
    differences: Vec<Difference>,
) -> Result<(), CopyError> {
    let (mut wanted, mut gone, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
    let at = copy.now;
    for difference in differences {
        let document = match (difference, shown) {
            (Difference::Surplus(key, version), Shown::There) => {
                gone.push(Write::Delete { key, version, at });
                continue;
            }
            (Difference::Surplus(key, version), Shown::Hidden) => {
                gone.push(Write::Purge { key, version });
                continue;
            }
            (Difference::Other(document, version), Shown::There) => {
                wanted.push(Wanted { document, instead_of: Some(version) });
                continue;
            }
            (Difference::Other(document, version), Shown::Hidden) => {
                gone.push(Write::Purge { key: document.key.clone(), version });
                document
            }
            (Difference::Missing(document), _) => document,
        };
        if shown == Shown::Hidden {
            hidden.push(document.key.clone());
        }
        wanted.push(Wanted { document, instead_of: None });
    }
    writes::write(held, gone).await?;
    writes::put(held, wanted).await?;
    if hidden.is_empty() { Ok(()) } else { writes::hide(held, hidden, at).await }
}
