//! What is written to the target. Each write is repeated until it is known that it was answered; what became of it is not
//! asked, because whoever compares afterwards sees what is there.
//!
//! Before each write it is looked whether the marker is still ours. Whatever led to the write was read before that, from a
//! store in which no node was at work; and what a node does afterwards has another version, which the write minds.

use rota_model::time::UnixMillis;

use super::marker::Held;
use super::{CopyError, patiently};
use crate::StoreError;
use crate::collection::Kind;
use crate::limits;
use crate::seam::{Document, Fields, Key, Version, Write, Written};

/// A document as it is to be.
pub(super) struct Wanted {
    pub(super) document: Document,
    /// The version that it replaces, if there is one.
    pub(super) instead_of: Option<Version>,
}

/// Creates documents, or replaces them. One that grew by changes may be larger than what is written at once: its largest parts
/// follow, one after the other.
pub(super) async fn put(target: &Held<'_>, wanted: Vec<Wanted>) -> Result<(), CopyError> {
    let mut batch = Vec::with_capacity(wanted.len());
    let mut rest = Vec::new();
    for Wanted { mut document, instead_of } in wanted {
        let fields = take_apart(&mut document);
        let key = document.key;
        if !fields.is_empty() {
            rest.push((key.clone(), fields));
        }
        let body = document.body;
        batch.push(match instead_of {
            None => Write::Create { key, body },
            Some(version) => Write::Replace { key, version, body },
        });
    }
    write(target, batch).await?;
    for (key, fields) in rest {
        complete(target, key, fields).await?;
    }
    Ok(())
}

/// What is too much for one write, taken out of a document: whatever is large and was written on its own.
fn take_apart(document: &mut Document) -> Fields {
    let mut taken = Vec::new();
    for field in document.key.collection.changing().filter(|field| field.kind == Kind::Json) {
        if limits::fits_one_write(&document.body) {
            break;
        }
        taken.extend(field.take(&mut document.body).map(|value| (field.path, value)));
    }
    taken
}

async fn complete(target: &Held<'_>, key: Key, fields: Fields) -> Result<(), CopyError> {
    for field in fields {
        let Some(there) = read(target, vec![key.clone()]).await?.pop() else { return Ok(()) };
        let (key, version) = (key.clone(), there.version);
        write(target, vec![Write::Change { key, version, fields: vec![field] }]).await?;
    }
    Ok(())
}

/// Deletes what is there of these. In collections that hide, it is hidden.
pub(super) async fn hide(target: &Held<'_>, keys: Vec<Key>, at: UnixMillis) -> Result<(), CopyError> {
    let there = read(target, keys).await?.into_iter();
    let delete = |Document { key, version, .. }| Write::Delete { key, version, at };
    write(target, there.map(delete).collect()).await
}

pub(super) async fn write(target: &Held<'_>, batch: Vec<Write>) -> Result<(), CopyError> {
    if batch.is_empty() {
        return Ok(());
    }
    target.must_be_ours().await?;
    let count = batch.len();
    let answers: Vec<Written> = patiently(|| target.store.write(batch.clone())).await?;
    if answers.len() == count {
        return Ok(());
    }
    let why = format!("the store gave {} answers to {count} writes", answers.len());
    Err(StoreError::unknown("write what is copied", why).into())
}

async fn read(target: &Held<'_>, keys: Vec<Key>) -> Result<Vec<Document>, StoreError> {
    Ok(patiently(|| target.store.read(keys.clone())).await?.into_iter().flatten().collect())
}
