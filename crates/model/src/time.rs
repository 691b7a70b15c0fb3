//! Points in time as the documents write them. Nothing here asks what time it is.
//!
//! The documents of seeds 001 and 003 hold integer Unix milliseconds ([`UnixMillis`]); those of seed 000 hold RFC
//! 3339 dates, for which `jiff::Timestamp` is used as it is.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970 in UTC.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(transparent)]
pub struct UnixMillis(pub i64);

impl UnixMillis {
    /// The last instant Rota accepts from a user: the end of the year 2999. What is meant to be "never" is
    /// better said by leaving the field out.
    pub const MAX: UnixMillis = UnixMillis(32_503_680_000_000 - 1);

    /// Milliseconds since 1970, zero for what lies before.
    pub fn as_u64(self) -> u64 {
        u64::try_from(self.0).unwrap_or(0)
    }

    /// This instant moved later by a span.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// The span since an earlier instant; zero if it lies ahead.
    pub fn since(self, earlier: UnixMillis) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The same instant as a date; the nearest date that can be written for what is out of range.
    pub fn to_date(self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.0).unwrap_or(if self.0 < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        })
    }
}

impl From<jiff::Timestamp> for UnixMillis {
    fn from(date: jiff::Timestamp) -> Self {
        Self(date.as_millisecond())
    }
}

/// For people: an RFC 3339 date.
impl fmt::Display for UnixMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_date().fmt(f)
    }
}
