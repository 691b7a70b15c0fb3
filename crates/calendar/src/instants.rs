//! The instants of a range, one after the other.

use jiff::Timestamp;

use crate::calendar::{Calendar, Known};

/// See [`Calendar::instants`]. It remembers between which changes of the clocks it stands, which makes going on cheaper
/// than asking for the next instant each time.
#[derive(Clone, Debug)]
pub struct Instants<'a> {
    calendar: &'a Calendar,
    from: Option<Timestamp>,
    until: Timestamp,
    known: Known,
}

impl<'a> Instants<'a> {
    pub(crate) fn new(calendar: &'a Calendar, from: Timestamp, until: Timestamp) -> Self {
        Self { calendar, from: Some(from), until, known: None }
    }
}

impl Iterator for Instants<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        let found = self.calendar.first_from(self.from?, &mut self.known);
        let found = found.filter(|found| *found < self.until);
        self.from = found.and_then(|found| found.checked_add(jiff::SignedDuration::from_nanos(1)).ok());
        found
    }
}

impl std::iter::FusedIterator for Instants<'_> {}
