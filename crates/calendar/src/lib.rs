//! The calendar: from a schedule and an instant to the next instant. Pure: nothing here asks what time it is, and the same
//! question always has the same answer.
//!
//! - [`expression`]: what a person writes, read and checked
//! - [`pattern`], [`days`]: the local times that match, on a timeline without zones
//! - [`zone`]: time zones from the data that is built in, and the stretches between changes of their clocks
//! - [`calendar`], [`instants`]: the two together: next, previous, all in a range, how many
//! - [`schedule`], [`backup`]: from the schedules of timers and of backups to a calendar
//! - [`preview`], [`explain`]: what a schedule comes to, as a list with notes and in plain words
//!
//! Promise 5 is kept here: **local time means local time**. A timer at 02:30 in a zone follows that zone through its
//! changes, by a policy that stands in the timer. The defaults are those of Debian's cron: a local time that a change skips
//! fires right after it, one that comes twice fires the first time, and what has a wildcard or step in hours or minutes
//! goes on by elapsed time.

pub mod backup;
pub mod calendar;
mod days;
mod explain;
pub mod expression;
pub mod instants;
mod pattern;
mod preview;
mod schedule;
pub mod zone;

pub use calendar::Calendar;
pub use expression::{Expression, ExpressionError};
pub use schedule::only_known_fields;
pub use zone::{UnknownZone, Zone};
