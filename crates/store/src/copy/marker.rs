//! The document in a store into which another one is copied: what is copied, and how far it has come. It stands there before
//! anything else does. While it says that the copy is unfinished, nobody works on the store; once it is finished, the first
//! node takes the document away, and nothing is copied over what that node does.

use rota_model::settings::SETTINGS_ID;
use rota_model::time::UnixMillis;
use serde::{Deserialize, Serialize};

use super::walk::{Shown, everything};
use super::{CopyError, Copying, patiently};
use crate::StoreError;
use crate::collection::{Collection, SETTINGS};
use crate::cursor::Cursor;
use crate::repository::{Kept, decode, encode};
use crate::seam::{Document, Key, Store, Version, Write, Written};

/// Beside the settings, which have another id.
const ID: &str = "copy";

/// The store that is copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// What people call it. Nothing secret.
    pub from: String,
    /// The same for the same store, whoever asks.
    pub mark: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Marker {
    #[serde(flatten)]
    origin: Origin,
    /// The attempt that wrote this last.
    run: String,
    began: jiff::Timestamp,
    finished: bool,
    /// Behind what has been created; nothing yet if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<Place>,
}

/// Where filling goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Place {
    collection: String,
    hidden: bool,
    after: Option<Cursor>,
    /// Documents before it.
    pub(super) done: u64,
}

impl Place {
    pub(super) fn new(
        collection: &'static Collection,
        shown: Shown,
        after: Option<Cursor>,
        done: u64,
    ) -> Self {
        Self { collection: collection.name.to_owned(), hidden: shown == Shown::Hidden, after, done }
    }

    /// Where it is among [`everything`], and the cursor there.
    pub(super) fn step(&self) -> Option<(usize, Option<Cursor>)> {
        let is_here = |(collection, shown): (&'static Collection, Shown)| {
            collection.name == self.collection && (shown == Shown::Hidden) == self.hidden
        };
        Some((everything().position(is_here)?, self.after.clone()))
    }
}

impl Kept for Marker {
    const COLLECTION: &'static Collection = &SETTINGS;
}

pub(crate) fn key() -> Key {
    Key::new(&SETTINGS, ID)
}

/// What is copied into a store, if that is not finished.
pub(crate) fn unfinished(found: Option<Document>) -> Result<Option<String>, StoreError> {
    let marker = found.map(decode::<Marker>).transpose()?;
    Ok(marker
        .map(|marker| marker.document)
        .filter(|marker| !marker.finished)
        .map(|marker| marker.origin.from))
}

/// A node is about to work on a store in which this was found: not on half a copy, and a whole one is nobody's but the node's
/// from now on.
pub(crate) async fn take_over(
    store: &dyn Store,
    found: Option<Document>,
    now: UnixMillis,
) -> Result<(), StoreError> {
    let what = "open the store";
    let Some(version) = found.as_ref().map(|marker| marker.version) else { return Ok(()) };
    if let Some(from) = unfinished(found)? {
        let why = format!(
            "it holds a copy of {from} that was not finished; give the same `rota store copy` again, which goes on with it"
        );
        return Err(StoreError::refused(what, why));
    }
    let taken = store.write(vec![Write::Delete { key: key(), version, at: now }]).await?;
    match taken.first() {
        Some(Written::Applied(_) | Written::Missing) => Ok(()),
        _ => Err(StoreError::refused(what, "a copy into it has begun again; wait for its end")),
    }
}

/// The marker of the copy that is under way, as this attempt wrote it.
pub(super) struct Held<'a> {
    /// The target.
    pub(super) store: &'a dyn Store,
    marker: Marker,
    version: Version,
    /// Whether it was begun before.
    pub(super) resumed: bool,
}

impl<'a> Held<'a> {
    /// Marks the target as ours. Whoever is second finds out here.
    pub(super) async fn begin(copy: &Copying<'a>) -> Result<Self, CopyError> {
        let marker = Marker {
            origin: copy.origin.clone(),
            run: copy.run.clone(),
            began: copy.now.to_date(),
            finished: false,
            place: None,
        };
        let mut held = Self { store: copy.target, marker, version: Version(0), resumed: false };
        match held.found().await? {
            None => held.begin_anew(copy.now).await?,
            Some((there, version)) => held.go_on(there, version).await?,
        }
        Ok(held)
    }

    async fn begin_anew(&mut self, now: UnixMillis) -> Result<(), CopyError> {
        if let Some(key) = any_document(self.store).await? {
            return Err(CopyError::NotEmpty(key));
        }
        let create = Write::Create { key: key(), body: encode(&self.marker)? };
        patiently(|| self.store.write(vec![create.clone()])).await?;
        let (there, version) = self.found().await?.ok_or(CopyError::Overtaken)?;
        if there != self.marker {
            return Err(CopyError::Overtaken);
        }
        self.version = version;
        // A node that started meanwhile made settings before it looked for the marker.
        let settings = Key::new(&SETTINGS, SETTINGS_ID);
        if patiently(|| self.store.read(vec![settings.clone()])).await?.into_iter().flatten().next().is_some()
        {
            let delete = Write::Delete { key: key(), version, at: now };
            patiently(|| self.store.write(vec![delete.clone()])).await?;
            return Err(CopyError::NotEmpty(settings));
        }
        Ok(())
    }

    /// Where one that was finished is made once more, all of it is there, and comparing finds what is not.
    async fn go_on(&mut self, there: Marker, version: Version) -> Result<(), CopyError> {
        if there.origin.mark != self.marker.origin.mark {
            return Err(CopyError::OtherCopy { from: there.origin.from });
        }
        let last = everything().last().filter(|_| there.finished);
        self.marker.place = match last {
            Some((collection, shown)) => Some(Place::new(collection, shown, None, 0)),
            None => there.place,
        };
        self.version = version;
        self.resumed = true;
        self.save().await
    }

    pub(super) fn place(&self) -> Option<&Place> {
        self.marker.place.as_ref()
    }

    /// Remembers how far it has come.
    pub(super) async fn reach(&mut self, place: Place) -> Result<(), CopyError> {
        self.marker.place = Some(place);
        self.save().await
    }

    pub(super) async fn finish(mut self) -> Result<(), CopyError> {
        self.marker.finished = true;
        self.marker.place = None;
        self.save().await
    }

    /// An answer that was lost is found again: the document is as this attempt wrote it.
    async fn save(&mut self) -> Result<(), CopyError> {
        let body = encode(&self.marker)?;
        loop {
            let (key, version) = (key(), self.version);
            let replace = Write::Replace { key, version, body: body.clone() };
            let answers = patiently(|| self.store.write(vec![replace.clone()])).await?;
            if let Some(Written::Applied(version)) = answers.first() {
                self.version = *version;
                return Ok(());
            }
            match self.found().await? {
                Some((there, version)) if there == self.marker => {
                    self.version = version;
                    return Ok(());
                }
                Some((there, version)) if there.run == self.marker.run => self.version = version,
                _ => return Err(CopyError::Overtaken),
            }
        }
    }

    /// Another copy may have begun since, and have ended, and a node may be at work.
    pub(super) async fn must_be_ours(&self) -> Result<(), CopyError> {
        match self.found().await? {
            Some((there, _)) if there.run == self.marker.run => Ok(()),
            _ => Err(CopyError::Overtaken),
        }
    }

    async fn found(&self) -> Result<Option<(Marker, Version)>, StoreError> {
        let found = patiently(|| self.store.read(vec![key()])).await?.into_iter().flatten().next();
        let found = found.map(decode::<Marker>).transpose()?;
        Ok(found.map(|found| (found.document, found.version)))
    }
}

/// Something that a store holds, if it holds anything.
async fn any_document(store: &dyn Store) -> Result<Option<Key>, StoreError> {
    for (collection, shown) in everything() {
        let query = shown.query(collection).limit(1).keys_only();
        let found = patiently(|| store.find(query.clone())).await?.documents.into_iter().next();
        if let Some(document) = found {
            return Ok(Some(document.key));
        }
    }
    Ok(None)
}
