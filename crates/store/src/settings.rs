//! What is fixed for the installation when its store is made.

use std::sync::Arc;

use rota_model::settings::{SETTINGS_ID, Settings};

use crate::StoreError;
use crate::collection::{Collection, SETTINGS};
use crate::copy::marker;
use crate::repository::{Kept, Repository, decode};
use crate::seam::{Key, Store};

impl Kept for Settings {
    const COLLECTION: &'static Collection = &SETTINGS;
}

fn key() -> Key {
    Key::new(&SETTINGS, SETTINGS_ID)
}

/// Remembers that the first administrator was made.
pub async fn mark_bootstrapped(store: Arc<dyn Store>) -> Result<(), StoreError> {
    let settings = Repository::<Settings>::new(store);
    let marked = settings.update(key(), |settings| {
        settings.bootstrapped = true;
        Ok::<(), ()>(())
    });
    marked.await.map(|_| ())
}

/// The settings of a store; a new store gets the defaults, once, whoever comes first. Only a node opens a store like this: from
/// then on nothing is copied over what it does.
pub async fn open(store: Arc<dyn Store>, now: jiff::Timestamp) -> Result<Settings, StoreError> {
    let settings = Repository::new(Arc::clone(&store));
    settings.create(key(), Settings::new(now)).await?;
    // After the settings: whoever begins a copy marks it first, and then looks for settings.
    let mut found = store.read(vec![key(), marker::key()]).await?.into_iter();
    let (stored, copy) = (found.next().flatten(), found.next().flatten());
    marker::take_over(&*store, copy, now.into()).await?;
    let stored = stored.ok_or_else(|| StoreError::damaged("read settings", "they vanished"))?;
    let stored = decode::<Settings>(stored)?.document;
    if stored.is_readable() {
        return Ok(stored);
    }
    let why = "it was written by a newer Rota and needs at least that version to be read";
    Err(StoreError::refused("open the store", why))
}
