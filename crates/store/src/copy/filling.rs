//! Every page of the source is created in the target. The next page is read while one is written.

use super::marker::{Held, Place};
use super::walk::{Shown, everything, of_source, page};
use super::writes::{self, Wanted};
use super::{CopyError, Copying, Progress, Stage};
use crate::cursor::Cursor;
use crate::query::{Page, Query};
use crate::seam::{Document, Key};

/// After so many documents it is noted how far the copy has come: whoever goes on repeats no more than these.
const NOTED_EVERY: u64 = 5_000;

pub(super) async fn fill(
    copy: &Copying<'_>,
    held: &mut Held<'_>,
    of: u64,
    report: &mut (dyn FnMut(Progress) + Send),
) -> Result<(), CopyError> {
    let mut done = held.place().map_or(0, |place| place.done);
    let (first, mut after) = held.place().and_then(Place::step).unwrap_or_default();
    let mut noted = done;
    for (collection, shown) in everything().skip(first) {
        let query = of_source(collection, shown);
        let mut next = page(copy.source, &query.clone().after(after.take())).await?;
        loop {
            report(Progress { stage: Stage::Filling, done, of: of.max(done) });
            let behind = next.next.clone();
            done += next.documents.len() as u64;
            let writing = create(copy, held, shown, next.documents);
            let reading = following(copy, &query, next.next);
            let ((), Some(following)) = tokio::try_join!(writing, reading)? else { break };
            next = following;
            if done - noted >= NOTED_EVERY {
                noted = done;
                held.reach(Place::new(collection, shown, behind, done)).await?;
            }
        }
    }
    Ok(())
}

async fn following(
    copy: &Copying<'_>,
    query: &Query,
    after: Option<Cursor>,
) -> Result<Option<Page>, CopyError> {
    match after {
        None => Ok(None),
        after => page(copy.source, &query.clone().after(after)).await.map(Some),
    }
}

async fn create(
    copy: &Copying<'_>,
    held: &Held<'_>,
    shown: Shown,
    documents: Vec<Document>,
) -> Result<(), CopyError> {
    let keys: Vec<Key> = documents.iter().map(|document| document.key.clone()).collect();
    let new = |document| Wanted { document, instead_of: None };
    writes::put(held, documents.into_iter().map(new).collect()).await?;
    match shown {
        Shown::There => Ok(()),
        Shown::Hidden => writes::hide(held, keys, copy.now).await,
    }
}
