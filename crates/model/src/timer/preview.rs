//! What a schedule comes to, before anything is saved.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Schedule;
use crate::check::{Checker, Invalid};

/// How many instants are shown at most.
pub const MAX_PREVIEW: u32 = 1_000;
/// How many are shown to who does not say.
pub const USUAL_PREVIEW: u32 = 10;

/// A schedule to be looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewRequest {
    pub schedule: Schedule,
    /// The first instant that may be shown; now if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time", example = "2026-10-24T00:00:00+02:00")]
    pub from: Option<Timestamp>,
    /// How many instants to show; 10 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000)]
    pub count: Option<u32>,
}

impl PreviewRequest {
    /// Its own fields; the schedule is for the calendar to judge.
    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        if let Some(from) = self.from {
            check.date("/from", from);
        }
        if let Some(count) = self.count {
            check.range("/count", count, 1..=MAX_PREVIEW);
        }
        check.finish()
    }
}

/// What a schedule comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Preview {
    /// In order; short if the schedule ends.
    pub items: Vec<Occurrence>,
    /// Why there are no items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "Never due from 2026-10-25T00:00:00Z on; the last time was 2020-01-01T00:00:00Z.")]
    pub note: Option<String>,
}

/// An instant at which a schedule is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Occurrence {
    /// In UTC.
    #[schema(value_type = String, format = "date-time", example = "2026-10-25T00:30:00Z")]
    pub at: Timestamp,
    /// What the clocks of the zone show, with their offset.
    #[schema(format = "date-time", example = "2026-10-25T02:30:00+02:00")]
    pub local: String,
    #[schema(example = "Europe/Berlin")]
    pub zone: String,
    /// How a change of the clocks touched it, or left out what would have been due before it, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
