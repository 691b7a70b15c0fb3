//! An instant as it is written for a schedule: a date or a time in its zone, or what names an instant everywhere. An offset
//! or a zone that is written counts, or is refused: nothing is silently left aside.

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::fmt::temporal::{Pieces, PiecesOffset, TimeZoneAnnotation, TimeZoneAnnotationKind};
use jiff::tz::{Offset, TimeZone};
use rota_calendar::Zone;
use rota_model::check::{date_bounds, is_within_bounds};

const USAGE: &str =
    "write a date such as 2030-01-31, a local time such as 2030-01-31T08:00, RFC 3339 or Unix milliseconds";
/// Fewer digits are a year, a date or seconds rather than the milliseconds of some instant before September 2001.
const MILLIS_DIGITS: usize = 13;

pub(super) fn instant(given: &str, zone: &Zone) -> Result<Timestamp, String> {
    let at = match given.parse::<i64>() {
        Ok(_) if given.trim_start_matches(['+', '-']).len() < MILLIS_DIGITS => {
            return Err(format!("{given} is too small a number for Unix milliseconds; {USAGE}"));
        }
        Ok(millis) => Timestamp::from_millisecond(millis).map_err(|_| date_bounds())?,
        Err(_) => written(given, zone)?,
    };
    if is_within_bounds(at) { Ok(at) } else { Err(date_bounds()) }
}

fn written(given: &str, zone: &Zone) -> Result<Timestamp, String> {
    let pieces = Pieces::parse(given).map_err(|_| USAGE.to_owned())?;
    let local = pieces.date().to_datetime(pieces.time().unwrap_or(Time::midnight()));
    let annotated = pieces.time_zone_annotation().map(place).transpose()?;
    match (pieces.offset(), annotated) {
        (Some(offset), annotated) => {
            let at = offset.to_numeric_offset().to_timestamp(local).map_err(|_| date_bounds())?;
            match annotated {
                Some(place) if !agrees(offset, &place, at) => {
                    Err("the offset is not that of the zone in brackets at that time; leave one of them out"
                        .to_owned())
                }
                _ => Ok(at),
            }
        }
        (None, Some(Place::Named(zone))) => zone.instant(local).ok_or_else(date_bounds),
        (None, Some(Place::Fixed(offset))) => offset.to_timestamp(local).map_err(|_| date_bounds()),
        (None, None) => zone.instant(local).ok_or_else(date_bounds),
    }
}

/// What may stand in brackets behind a time.
enum Place {
    Named(Zone),
    Fixed(Offset),
}

fn place(annotation: &TimeZoneAnnotation<'_>) -> Result<Place, String> {
    match annotation.kind() {
        TimeZoneAnnotationKind::Named(name) => {
            Zone::named(name.as_str()).map(Place::Named).map_err(|unknown| unknown.to_string())
        }
        TimeZoneAnnotationKind::Offset(offset) => Ok(Place::Fixed(*offset)),
        _ => Err(USAGE.to_owned()),
    }
}

/// `Z` says nothing about local time, so it goes with every zone.
fn agrees(offset: PiecesOffset, place: &Place, at: Timestamp) -> bool {
    let zone = match place {
        Place::Named(zone) => zone.time_zone().clone(),
        Place::Fixed(offset) => TimeZone::fixed(*offset),
    };
    offset == PiecesOffset::Zulu || offset.to_numeric_offset() == zone.to_offset(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &str) -> Result<String, String> {
        instant(given, &Zone::named("Europe/Berlin").unwrap()).map(|at| at.to_string())
    }

    #[test]
    fn an_instant_may_be_a_date_in_the_zone() {
        for (given, at) in [
            ("2026-10-24", "2026-10-23T22:00:00Z"),
            ("2026-12-24", "2026-12-23T23:00:00Z"),
            ("2026-10-24T08:00", "2026-10-24T06:00:00Z"),
            ("2026-10-24T08:00:00Z", "2026-10-24T08:00:00Z"),
            ("2026-10-24T08:00:00-05:00", "2026-10-24T13:00:00Z"),
            ("1893456000000", "2030-01-01T00:00:00Z"),
        ] {
            assert_eq!(read(given).as_deref(), Ok(at), "{given}");
        }
        for given in ["", "tomorrow", "2026-13-01", "2026-10", "2026-10-24T08:00[", "12345678901234567890"] {
            assert!(read(given).unwrap_err().starts_with("write a date"), "{given}");
        }
    }

    #[test]
    fn an_offset_or_a_zone_that_is_written_counts() {
        for (given, at) in [
            ("2026-10-24T08:00[America/New_York]", "2026-10-24T12:00:00Z"),
            ("2026-10-24[America/New_York]", "2026-10-24T04:00:00Z"),
            ("2026-10-24T08:00-04:00[America/New_York]", "2026-10-24T12:00:00Z"),
            ("2026-10-24T08:00Z[America/New_York]", "2026-10-24T08:00:00Z"),
            ("2026-10-24T08:00[+05:30]", "2026-10-24T02:30:00Z"),
            ("2026-03-08T02:30[America/New_York]", "2026-03-08T07:00:00Z"),
        ] {
            assert_eq!(read(given).as_deref(), Ok(at), "{given}");
        }
        for (given, words) in [
            ("2026-10-24T08:00[America/New_Yrk]", "did you mean America/New_York?"),
            ("2026-10-24T08:00-05:00[America/New_York]", "the offset is not that of the zone in brackets"),
        ] {
            let told = read(given).unwrap_err();
            assert!(told.contains(words), "{told}");
        }
    }

    #[test]
    fn what_is_out_of_range_says_so() {
        for given in [
            "1950-01-01T00:00:00-05:00",
            "1969-01-01",
            "0001-01-01T00:00:00Z",
            "3000-01-01T00:00-02:00",
            "9999-12-31T23:59",
            "99999999999999999",
            "-9999999999999",
        ] {
            let told = read(given).unwrap_err();
            assert_eq!(told, "must be from 1970-01-01T00:00:00Z to 2999-12-31T23:59:59.999Z", "{given}");
        }
    }

    #[test]
    fn a_number_that_is_no_time_in_milliseconds_is_refused() {
        for given in ["2026", "20261024", "202610240800", "1893456000", "0", "-1"] {
            let told = read(given).unwrap_err();
            assert!(
                told.starts_with(&format!(
                    "{given} is too small a number for Unix milliseconds; write a date"
                ))
            );
        }
    }

    #[test]
    fn a_local_time_in_a_gap_is_the_next_instant_that_exists() {
        assert_eq!(read("2026-03-29T02:30").as_deref(), Ok("2026-03-29T01:00:00Z"));
        assert_eq!(read("2026-10-25T02:30").as_deref(), Ok("2026-10-25T00:30:00Z"), "the first of two");
    }
}
