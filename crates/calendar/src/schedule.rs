//! From the schedule of a timer (seed 000) to its [`Calendar`].

use std::str::FromStr as _;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::AmbiguousOffset;
use rota_model::check::{Checker, Invalid, date_bounds, escape, is_within_bounds};
use rota_model::timer::{DstGap, DstOverlap, Schedule};

use crate::calendar::{Calendar, Once, Rule};
use crate::expression::{Expression, Kind, Moment};
use crate::pattern::local_seconds;
use crate::zone::{ALIKE, Zone};

/// Refuses fields that no schedule has. In what is stored they may come from a newer version and are kept; in a question they
/// are a slip of the pen, and the answer would be to another question.
pub fn only_known_fields(schedule: &Schedule) -> Result<(), Invalid> {
    let mut check = Checker::new();
    for name in schedule.extra.keys() {
        let likeness = |known: &str| strsim::jaro_winkler(known, name);
        let nearest =
            Schedule::FIELDS.into_iter().max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
        let detail = match nearest.filter(|known| likeness(known) > ALIKE) {
            Some(known) => format!("is not known; did you mean {known}?"),
            None => format!("is not known; known are {}", Schedule::FIELDS.join(", ")),
        };
        check.refuse(format!("/schedule/{}", escape(name)), detail);
    }
    check.finish()
}

impl Calendar {
    /// The calendar of a timer. Every field at fault is named; what can never fire is refused.
    pub fn of(schedule: &Schedule) -> Result<Self, Invalid> {
        let mut check = Checker::new();
        let checked = schedule.check();
        let is_fine = |pointer| match &checked {
            Err(Invalid(errors)) => errors.iter().all(|error| error.pointer != pointer),
            Ok(()) => true,
        };
        let (mut expression, mut zone) = (None, None);
        if is_fine("/schedule/cron") {
            match Expression::from_str(&schedule.cron) {
                Ok(read) => expression = Some(read),
                Err(error) => check.refuse("/schedule/cron", error.to_string()),
            }
        }
        if is_fine("/schedule/time_zone") {
            match Zone::named(&schedule.time_zone) {
                Ok(found) => zone = Some(found),
                Err(error) => check.refuse("/schedule/time_zone", error.to_string()),
            }
        }
        check.absorb(checked);
        check.finish()?;
        let (Some(expression), Some(zone)) = (expression, zone) else {
            return Err(Invalid::one("/schedule", "cannot be read"));
        };
        let calendar = Self::with_policies(expression, zone, schedule.dst_gap, schedule.dst_overlap);
        calendar.map_err(|detail| Invalid::one("/schedule/cron", detail))?.within(schedule)
    }

    fn within(mut self, schedule: &Schedule) -> Result<Self, Invalid> {
        self.start = schedule.start_time;
        self.stop = schedule.stop_time;
        self.max_executions = schedule.max_executions;
        if self.first_from(Timestamp::UNIX_EPOCH, &mut None).is_some() {
            return Ok(self);
        }
        Err(match (self.start, self.stop) {
            (_, Some(_)) => {
                Invalid::one("/schedule/stop_time", "nothing is due before it: it can never fire")
            }
            (Some(_), None) => {
                Invalid::one("/schedule/start_time", "nothing is due after it: it can never fire")
            }
            (None, None) => Invalid::one("/schedule/cron", "can never fire"),
        })
    }

    /// Refuses a single time that is out of range, or that does not exist and is to be skipped.
    fn with_policies(
        expression: Expression,
        zone: Zone,
        gap: DstGap,
        overlap: DstOverlap,
    ) -> Result<Self, String> {
        let rule = match expression.0 {
            Kind::Pattern(pattern) => Rule::Pattern(pattern),
            Kind::Every(span) => Rule::Every(span),
            Kind::At(Moment::Instant(at)) => Rule::Once(single(within_bounds(at)?)),
            Kind::At(Moment::Local(local)) => Rule::Once(once(local, &zone, gap, overlap)?),
        };
        Ok(Self { rule, zone, gap, overlap, start: None, stop: None, max_executions: None })
    }
}

/// The instant of a local time, by the same policies as if it were a pattern.
fn once(local: DateTime, zone: &Zone, gap: DstGap, overlap: DstOverlap) -> Result<Once, String> {
    let at = within_bounds(zone.instant(local).ok_or_else(date_bounds)?)?;
    let ambiguous = zone.time_zone().to_ambiguous_timestamp(local);
    match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { .. } => Ok(single(at)),
        AmbiguousOffset::Gap { .. } if gap == DstGap::Skip => {
            Err("can never fire: the clocks jump over this local time, and dst_gap is skip".to_owned())
        }
        AmbiguousOffset::Gap { .. } => Ok(Once { missing: local_seconds(local), ..single(at) }),
        AmbiguousOffset::Fold { .. } => {
            let later = ambiguous.later().map_err(|_| date_bounds())?;
            Ok(match overlap {
                DstOverlap::First => single(at),
                DstOverlap::Second => single(later),
                DstOverlap::Both => Once { again: Some(later), ..single(at) },
            })
        }
    }
}

fn single(at: Timestamp) -> Once {
    Once { at, again: None, missing: None }
}

fn within_bounds(at: Timestamp) -> Result<Timestamp, String> {
    if is_within_bounds(at) { Ok(at) } else { Err(date_bounds()) }
}
