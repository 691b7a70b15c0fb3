//! The documents of a collection, one after the other, in the order of their keys: the same order in every store.

use std::collections::VecDeque;

use rota_model::time::UnixMillis;

use super::{CopyError, marker, patiently};
use crate::StoreError;
use crate::collection::{ALL, Collection};
use crate::query::{Order, Page, Query};
use crate::seam::{Document, Store};

/// Which documents of a collection: those that are there, or those that are deleted and not yet purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    There,
    Hidden,
}

impl Shown {
    /// What a collection may hold. What is hidden comes first: it may be in the way of what is not.
    pub(super) fn of(collection: &Collection) -> impl Iterator<Item = Shown> + use<> {
        collection.hides().then_some(Shown::Hidden).into_iter().chain([Shown::There])
    }

    pub(super) fn query(self, collection: &'static Collection) -> Query {
        let query = Query::new(collection, Order::BY_ID);
        match self {
            Shown::There => query,
            Shown::Hidden => query.hidden_before(UnixMillis(i64::MAX)),
        }
    }
}

/// All that a store holds.
pub(super) fn everything() -> impl Iterator<Item = (&'static Collection, Shown)> {
    ALL.into_iter().flat_map(|collection| Shown::of(collection).map(move |shown| (collection, shown)))
}

/// Documents of the source, none of which may lack a part. What is damaged in the target differs, and is put right.
pub(super) fn of_source(collection: &'static Collection, shown: Shown) -> Query {
    shown.query(collection).whole()
}

/// A page of what is asked for. Markers belong to the store they stand in, and are no part of what is copied.
pub(super) async fn page(store: &dyn Store, query: &Query) -> Result<Page, CopyError> {
    let found = patiently(|| store.find(query.clone())).await;
    let mut page = found.map_err(|error| match error {
        StoreError::Damaged { .. } if query.whole => CopyError::Damaged(error),
        error => error.into(),
    })?;
    let marker = marker::key();
    page.documents.retain(|document| document.key != marker);
    Ok(page)
}

pub(super) struct Walk<'a> {
    store: &'a dyn Store,
    /// What comes next.
    query: Query,
    page: VecDeque<Document>,
    ended: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(store: &'a dyn Store, query: Query) -> Self {
        Self { store, query, page: VecDeque::new(), ended: false }
    }

    /// Looks ahead, so that there is a first document unless this is the end.
    pub(super) async fn fill(&mut self) -> Result<(), CopyError> {
        while self.page.is_empty() && !self.ended {
            let page = page(self.store, &self.query).await?;
            self.page = page.documents.into();
            self.ended = page.next.is_none();
            self.query.after = page.next;
        }
        Ok(())
    }

    pub(super) fn first(&self) -> Option<&Document> {
        self.page.front()
    }

    pub(super) fn take(&mut self) -> Option<Document> {
        self.page.pop_front()
    }

    /// Whether there is more, although nothing is at hand.
    pub(super) fn is_dry(&self) -> bool {
        self.page.is_empty() && !self.ended
    }
}
