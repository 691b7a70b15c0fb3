//! Ids are types of their own, so that a timer's id cannot be handed to what wants a job's.
//!
//! Ids that Rota makes up are UUIDv7 (they rise with time, which keeps indexes dense); ids that must be the same
//! whenever the same thing is named again are UUIDv5 of that thing's name. Neither asks for the time or for
//! randomness: both are arguments.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::time::UnixMillis;

/// The namespace of every id that is derived from a name. It never changes: derived ids are stored.
const NAMESPACE: Uuid = Uuid::from_u128(0x6b1f_52a0_7a54_4c1e_9d0b_5a8e_3c6f_0d21);

/// Ten random bytes, the part of a UUIDv7 that is not the time.
pub type Randomness = [u8; 10];

macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A new id that sorts by the time it was made.
            pub fn rising(now: UnixMillis, randomness: &Randomness) -> Self {
                Self(uuid::Builder::from_unix_timestamp_millis(now.as_u64(), randomness).into_uuid())
            }

            /// The same id whenever the same parts are given. Parts are length-prefixed, so that `["ab", "c"]`
            /// and `["a", "bc"]` differ.
            pub fn derived(parts: &[&str]) -> Self {
                Self(derive(stringify!($name), parts))
            }

            /// Whether it was derived from something, and so may be wanted again.
            pub fn is_derived(&self) -> bool {
                self.0.get_version_num() != 7
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    )+};
}

uuid_ids! {
    /// A job of seed 003.
    JobId;
    /// A timer of seed 000.
    TimerId;
    /// One line of a timer's ledger.
    ExecutionId;
    /// A node of the fleet; the same after a restart.
    NodeId;
    /// One life of a node: new at each start.
    Incarnation;
    /// What a caller of `claim` can find its claim by when the answer was lost.
    ClaimToken;
    /// A log entry of seed 003.
    LogId;
    /// A backup schedule of seed 001.
    ScheduleId;
    /// A run of backups or restores of seed 001.
    BackupJobId;
    /// A file server of seed 001.
    ServerId;
    /// A user of a placed service, the `uid` of seed 002.
    AssignmentId;
}

fn derive(kind: &str, parts: &[&str]) -> Uuid {
    let mut name = String::from(kind);
    for part in parts {
        name.push_str(&format!("/{}:{part}", part.len()));
    }
    Uuid::new_v5(&NAMESPACE, name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_ids_depend_on_kind_and_parts() {
        assert_eq!(JobId::derived(&["a", "b"]), JobId::derived(&["a", "b"]));
        assert_ne!(JobId::derived(&["ab", "c"]), JobId::derived(&["a", "bc"]));
        assert_ne!(JobId::derived(&["a"]).0, TimerId::derived(&["a"]).0);
    }

    #[test]
    fn rising_ids_sort_by_time() {
        let earlier = JobId::rising(UnixMillis(1_000), &[255; 10]);
        let later = JobId::rising(UnixMillis(1_001), &[0; 10]);
        assert!(earlier < later);
        assert_eq!(earlier.0.get_version_num(), 7);
    }
}
