//! Who may touch what (seed 000), as a table that a store can enforce for each process. [`crate::access`] keeps to the same
//! within one: there code that must not write cannot, here a login that must not write cannot.
//!
//! The first four lines are the seed's. The rest is what nodes need: every node keeps itself in `state`, says and measures
//! something, takes over what the dead left, and clears up; what people decide (`domains`, `job-types`) is written where
//! people are served. The recorder is no node but a part of one, with a login of its own.

use crate::collection::{
    Collection, DOMAINS, EXECUTIONS, JOB_TYPES, JOBS, LIMITS, LOGS, METRICS, PROGRESS, SETTINGS, STATE,
    TIMERS, UNIQUE_KEYS, USERS,
};

/// What a process does, as far as its rights go. Who does several things has the rights of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Serves people and programs from outside.
    Web,
    /// Writes down what users want of timers and what became of these.
    Recorder,
    /// Decides what is due.
    Scheduler,
    /// Runs jobs and serves nobody.
    Processor,
}

/// How far a role may go with a collection. Each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    Nothing,
    Reads,
    Writes,
}

use Right::{Nothing, Reads, Writes};

/// In the order of [`Role::ALL`].
static TABLE: [(&Collection, [Right; 4]); 13] = [
    (&USERS, [Writes, Nothing, Nothing, Nothing]),
    (&TIMERS, [Reads, Writes, Reads, Nothing]),
    (&EXECUTIONS, [Reads, Writes, Reads, Nothing]),
    (&PROGRESS, [Nothing, Writes, Reads, Nothing]),
    (&JOBS, [Writes, Nothing, Writes, Writes]),
    (&STATE, [Writes, Nothing, Writes, Writes]),
    (&LOGS, [Writes, Nothing, Writes, Writes]),
    (&METRICS, [Writes, Nothing, Writes, Writes]),
    (&UNIQUE_KEYS, [Writes, Nothing, Writes, Writes]),
    (&LIMITS, [Writes, Nothing, Writes, Writes]),
    (&JOB_TYPES, [Writes, Nothing, Reads, Reads]),
    (&DOMAINS, [Writes, Nothing, Reads, Reads]),
    // Whoever comes first makes them; that there is an administrator is noted where people are served.
    (&SETTINGS, [Writes, Nothing, Writes, Writes]),
];

impl Role {
    pub const ALL: [Role; 4] = [Role::Web, Role::Recorder, Role::Scheduler, Role::Processor];

    pub fn name(self) -> &'static str {
        match self {
            Role::Web => "web",
            Role::Recorder => "recorder",
            Role::Scheduler => "scheduler",
            Role::Processor => "processor",
        }
    }

    /// What the role may do with a collection. Nobody may touch what the table does not know.
    pub fn right(self, collection: &Collection) -> Right {
        let rights = TABLE.iter().find(|(known, _)| *known == collection).map(|(_, rights)| rights);
        let place = Role::ALL.iter().position(|role| *role == self);
        rights.zip(place).and_then(|(rights, place)| rights.get(place)).copied().unwrap_or(Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::ALL;

    /// A new collection is decided on, and not forgotten.
    #[test]
    fn every_collection_has_somebody_who_writes_it() {
        for collection in ALL {
            let rights = Role::ALL.map(|role| role.right(collection));
            assert!(rights.contains(&Writes), "{collection:?} is not in the table");
        }
        assert_eq!(TABLE.len(), ALL.len());
    }

    #[test]
    fn what_the_seed_says() {
        let of = |collection| Role::ALL.map(|role| role.right(collection));
        assert_eq!(of(&USERS), [Writes, Nothing, Nothing, Nothing]);
        assert_eq!(of(&PROGRESS), [Nothing, Writes, Reads, Nothing]);
        for collection in [&TIMERS, &EXECUTIONS] {
            assert_eq!(of(collection)[..2], [Reads, Writes]);
            assert!(Role::Scheduler.right(collection) <= Reads);
        }
    }

    #[test]
    fn nobody_may_touch_what_is_not_known() {
        let unknown = Collection { name: "unknown", ..Collection::PLAIN };
        assert!(Role::ALL.iter().all(|role| role.right(&unknown) == Nothing));
    }
}
