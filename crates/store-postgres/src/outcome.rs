//! What a commit did: the answers of its statements, told to whoever wrote.

use std::collections::HashSet;

use rota_model::domain::Domain;
use rota_store::seam::{Version, Written};
use tokio_postgres::Row;

use crate::prepared::{Deed, Gathered, Prepared};

/// What became of each write, by the place where it stands.
pub(crate) struct Outcome(Vec<Written>);

impl Outcome {
    pub(crate) fn new(writes: usize) -> Self {
        Self(vec![Written::Conflict; writes])
    }

    pub(crate) fn told(self) -> Vec<Written> {
        self.0
    }

    fn set(&mut self, place: usize, written: Written) {
        if let Some(held) = self.0.get_mut(place) {
            *held = written;
        }
    }

    /// Takes note of what a statement answered. Says whether all of its writes were applied.
    pub(crate) fn note(&mut self, of: &Gathered<'_>, rows: &[Row], version: i64) -> bool {
        let (count, keys) = rows.split_first().map_or((None, rows), |(count, keys)| (Some(count), keys));
        let count: Option<&str> = count.and_then(|row| row.try_get(0).ok());
        let all = count.and_then(|count| count.parse().ok()) == Some(of.writes.len());
        let applied = keys_in(keys);
        let otherwise = if of.deed == Deed::Create { Written::Exists } else { Written::Missing };
        for (write, place) in of.writes.iter().zip(&of.places) {
            let is_applied = all || applied.contains(&named(write));
            let written = if is_applied { at(version) } else { otherwise };
            self.set(*place, written);
        }
        all
    }

    pub(crate) fn missed<'a>(&self, of: &Gathered<'a>) -> Gathered<'a> {
        let each = of.writes.iter().copied().zip(of.places.iter().copied());
        let missed = each.filter(|(_, place)| self.0.get(*place) == Some(&Written::Missing));
        let (writes, places) = missed.unzip();
        Gathered { collection: of.collection, deed: of.deed, writes, places, round: of.round }
    }

    pub(crate) fn tell_apart(&mut self, missed: &Gathered<'_>, there: Option<&[Row]>) {
        let there = there.map(keys_in);
        for (write, place) in missed.writes.iter().zip(&missed.places) {
            if there.as_ref().is_none_or(|there| there.contains(&named(write))) {
                self.set(*place, Written::Conflict);
            }
        }
    }
}

pub(crate) fn at(version: i64) -> Written {
    Written::Applied(Version(version.unsigned_abs()))
}

fn named(write: &Prepared) -> (&str, Option<&str>) {
    (write.key.id.as_str(), write.key.domain.as_ref().map(Domain::as_str))
}

fn keys_in(rows: &[Row]) -> HashSet<(&str, Option<&str>)> {
    rows.iter().filter_map(|row| Some((row.try_get(0).ok()?, row.try_get(1).ok()?))).collect()
}
