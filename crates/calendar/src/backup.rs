//! The schedules of backups (seed 001): ONCE, DAILY, WEEKLY and MONTHLY in local time, and the cron expression in UTC that
//! the seed wants stored beside them.
//!
//! The truth is the local time and the zone. The expression is the one in force until the next run: a daily 02:00 in Berlin
//! is `0 1 * * *` in winter and `0 0 * * *` in summer, a Monday 00:30 there is a Sunday in UTC, and a monthly 31st is the
//! last day of a shorter month. Whatever the clocks do in between, its next instant is the next run.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rota_model::backup::schedule::{BackupSchedule, DayOfWeek, Frequency};
use rota_model::check::Invalid;
use rota_model::timer::{DstGap, DstOverlap, Schedule};

use crate::calendar::{Calendar, Once, Rule};
use crate::days::{Days, OfMonth, OfWeek};
use crate::pattern::{Pattern, bit};
use crate::zone::Zone;

/// Every month.
const ALL_MONTHS: u64 = 0x1ffe;

impl Calendar {
    /// The calendar of a backup schedule. Every field at fault is named.
    pub fn of_backup(schedule: &BackupSchedule) -> Result<Self, Invalid> {
        schedule.check()?;
        let zone = Zone::named(&schedule.time_zone);
        let zone = zone.map_err(|unknown| Invalid::one("/timeZone", unknown.to_string()))?;
        let rule = match (schedule.run_once_at, schedule.run_at_time.as_deref().and_then(time_of_day)) {
            (Some(at), _) => Rule::Once(Once { at: at.to_date(), again: None, missing: None }),
            (None, Some((hour, minute))) => Rule::Pattern(local_pattern(schedule, hour, minute)),
            (None, None) => return Err(Invalid::one("/runAtTime", "must be given")),
        };
        let (gap, overlap) = (DstGap::default(), DstOverlap::default());
        Ok(Self { rule, zone, gap, overlap, start: None, stop: None, max_executions: None })
    }
}

/// The cron expression in UTC that is in force after an instant and until the next run; none where there is no next run, and
/// for ONCE, which has its instant instead.
pub fn utc_expression(schedule: &BackupSchedule, after: Timestamp) -> Result<Option<String>, Invalid> {
    let next = Calendar::of_backup(schedule)?.next_after(after);
    let Some(next) = next.filter(|_| schedule.frequency != Frequency::Once) else { return Ok(None) };
    let utc = TimeZone::UTC.to_datetime(next);
    let time = format!("{} {}", utc.minute(), utc.hour());
    let usual = match schedule.frequency {
        Frequency::Weekly => format!("{time} * * {}", utc.weekday().to_sunday_zero_offset()),
        Frequency::Monthly => format!("{time} {} * *", utc.day()),
        Frequency::Once | Frequency::Daily => format!("{time} * * *"),
    };
    // In the hours after clocks went back the usual one would run again the same day: then the date says which is meant.
    let leads_there = Calendar::of(&Schedule::new(&usual))?.next_after(after) == Some(next);
    Ok(Some(if leads_there { usual } else { format!("{time} {} {} *", utc.day(), utc.month()) }))
}

fn local_pattern(schedule: &BackupSchedule, hour: u32, minute: u32) -> Pattern {
    let mut days = Days { of_month: OfMonth::every(), of_week: OfWeek::every(), either: false };
    if let Some(weekday) = schedule.day_of_week {
        days.of_week.weekdays = bit(number(weekday));
    }
    if let Some(date) = schedule.day_of_month {
        days.of_month = OfMonth { at_latest: Some(date.into()), ..OfMonth::default() };
    }
    let (seconds, minutes, hours) = (bit(0), bit(minute), bit(hour));
    Pattern { seconds, minutes, hours, months: ALL_MONTHS, days, is_rhythm: false }
}

fn number(weekday: DayOfWeek) -> u32 {
    match weekday {
        DayOfWeek::Sunday => 0,
        DayOfWeek::Monday => 1,
        DayOfWeek::Tuesday => 2,
        DayOfWeek::Wednesday => 3,
        DayOfWeek::Thursday => 4,
        DayOfWeek::Friday => 5,
        DayOfWeek::Saturday => 6,
    }
}

fn time_of_day(text: &str) -> Option<(u32, u32)> {
    let (hour, minute) = text.split_once(':')?;
    Some((hour.parse().ok()?, minute.parse().ok()?))
}
