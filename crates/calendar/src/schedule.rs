//! From the schedule of a timer (seed 000) to its [`Calendar`].

use std::str::FromStr as _;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::AmbiguousOffset;
use rota_model::check::{Checker, Invalid};
use rota_model::timer::{DstGap, DstOverlap, Schedule};

use crate::calendar::{Calendar, Once, Rule};
use crate::expression::{Expression, Kind, Moment};
use crate::pattern::local_seconds;
use crate::zone::Zone;

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
        let skipped = "can never fire: the clocks jump over this local time, and dst_gap is skip";
        let calendar = calendar.ok_or_else(|| Invalid::one("/schedule/cron", skipped))?;
        calendar.within(schedule)
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

    /// None for a single local time that does not exist and is to be skipped.
    fn with_policies(expression: Expression, zone: Zone, gap: DstGap, overlap: DstOverlap) -> Option<Self> {
        let rule = match expression.0 {
            Kind::Pattern(pattern) => Rule::Pattern(pattern),
            Kind::Every(span) => Rule::Every(span),
            Kind::At(Moment::Instant(at)) => Rule::Once(Once { at, again: None, missing: None }),
            Kind::At(Moment::Local(local)) => Rule::Once(once(local, &zone, gap, overlap)?),
        };
        Some(Self { rule, zone, gap, overlap, start: None, stop: None, max_executions: None })
    }
}

/// The instant of a local time, by the same policies as if it were a pattern.
fn once(local: DateTime, zone: &Zone, gap: DstGap, overlap: DstOverlap) -> Option<Once> {
    let ambiguous = zone.time_zone().to_ambiguous_timestamp(local);
    let single = |at| Once { at, again: None, missing: None };
    match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { .. } => ambiguous.unambiguous().ok().map(single),
        AmbiguousOffset::Gap { .. } if gap == DstGap::Skip => None,
        AmbiguousOffset::Gap { .. } => {
            // Read by the offset before the gap, it lies in the stretch that the change began.
            let began = zone.stretch(ambiguous.later().ok()?.as_second())?.start;
            Some(Once { missing: local_seconds(local), ..single(Timestamp::from_second(began).ok()?) })
        }
        AmbiguousOffset::Fold { .. } => {
            let (earlier, later) = (ambiguous.earlier().ok()?, ambiguous.later().ok()?);
            Some(match overlap {
                DstOverlap::First => single(earlier),
                DstOverlap::Second => single(later),
                DstOverlap::Both => Once { again: Some(later), ..single(earlier) },
            })
        }
    }
}
