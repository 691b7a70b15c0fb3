//! Ways in which an engine can be wrong, for testing the tests: the simulator must notice each of them.
//!
//! Without the feature `flaws`, which only the test kit asks for, nothing is ever flawed and the compiler leaves all of it
//! out.

/// One rule that is not kept. The numbers are those of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flaw {
    /// 1: jobs that name us and that we do not have in hand are left alone.
    LostClaimForgotten,
    /// 1: the jobs of a dead incarnation are looked for once, when it is found dead.
    DeadSearchedOnce,
    /// 2: a lease is measured by wall time.
    LeaseByWallClock,
    /// 2: handlers go on when the lease is over.
    HandlersOutliveLease,
    /// 2: a claim that was answered after the lease was over is begun with.
    BeginsAfterLease,
    /// 2: a watcher that slept counts the time it slept.
    CountsOwnSleep,
    /// 2: a read that failed counts as one that saw no change.
    FailedReadsCount,
    /// 2: whoever is thought dead is condemned whatever its document says by now.
    CondemnsBlindly,
    /// 2: who was condemned goes on under the same incarnation.
    RejoinsAsTheSame,
    /// 3: what a handler answers is written whoever holds the job by now.
    SettlesWithoutEpoch,
    /// 3: a result is forgotten if somebody else wrote to the job meanwhile.
    ConflictForgetsResult,
    /// 4: a node's death costs an attempt.
    LossCostsAttempt,
    /// 4: a requeue begins again with the first epoch.
    RequeueResetsEpoch,
    /// 5: jobs of types that the node does not run are claimed too.
    ClaimsEveryType,
    /// 5: a paused node claims on.
    ClaimsWhilePaused,
    /// 5: more handlers run than there are slots.
    BeginsWithoutSlot,
    /// 7: a create whose answer was lost is repeated under a new id.
    RepeatsUnderNewId,
    /// 7: a key whose job is missing is taken from whoever is about to create it.
    TakesKeyFromSlow,
    /// 7: a requeue does not ask for the job's key.
    RequeuesWithoutKey,
    /// 8: lanes are not served in turns, but by their names.
    ServesByName,
    /// 9: a slot is counted as reserved though somebody else wrote to the limit meanwhile.
    ReservesBlindly,
    /// 9: the slots of who was not seen lately are free at once, though it may still run what they are for.
    SweepsEarly,
    /// 9: the slots of the dead stay theirs.
    SweepsNever,
    /// 9: a job that ends frees two slots.
    FreesTwice,
    /// 9: who joins again goes on with the slots of its former life, and in its name.
    SlotsOutliveLife,
    /// 9: each node counts starts by itself.
    RatePerNode,
    /// 9: what a node runs when a limit comes does not count under it.
    ComesUncounted,
    /// 10: what is deleted frees its id at once.
    DeletePurges,
    /// 10: what is running is deleted too.
    DeletesRunning,
    /// 10: what is old goes, whether it has ended or not.
    ClearsByAge,
    /// 7, 10: what has ended goes, though it still keeps others away.
    ClearsInScope,
    /// 18: what is merged once more stands beside what was merged before.
    MergesBeside,
    /// A node that stops keeps what it did not finish.
    StopsWithoutRelease,
    /// What could not be created for certain is acknowledged.
    AcknowledgesUnknown,
    /// 4: a job is given up when its second node dies.
    GivesUpEarly,
    /// 4: a job that expired while it waited for its turn is begun with all the same.
    BeginsTooLate,
    /// 4: a job that was interrupted while its node looked for it is taken for one that never began.
    ForgetsBeginning,
    /// 6: two jobs have the same number.
    SharesNumbers,
    /// 8: a job is stored as already claimed although others are due.
    JumpsTheQueue,
}

impl Flaw {
    pub const ALL: [Flaw; 39] = [
        Flaw::LostClaimForgotten,
        Flaw::DeadSearchedOnce,
        Flaw::LeaseByWallClock,
        Flaw::HandlersOutliveLease,
        Flaw::BeginsAfterLease,
        Flaw::CountsOwnSleep,
        Flaw::FailedReadsCount,
        Flaw::CondemnsBlindly,
        Flaw::RejoinsAsTheSame,
        Flaw::SettlesWithoutEpoch,
        Flaw::ConflictForgetsResult,
        Flaw::LossCostsAttempt,
        Flaw::RequeueResetsEpoch,
        Flaw::ClaimsEveryType,
        Flaw::ClaimsWhilePaused,
        Flaw::BeginsWithoutSlot,
        Flaw::RepeatsUnderNewId,
        Flaw::TakesKeyFromSlow,
        Flaw::RequeuesWithoutKey,
        Flaw::ServesByName,
        Flaw::ReservesBlindly,
        Flaw::SweepsEarly,
        Flaw::SweepsNever,
        Flaw::FreesTwice,
        Flaw::SlotsOutliveLife,
        Flaw::RatePerNode,
        Flaw::ComesUncounted,
        Flaw::DeletePurges,
        Flaw::DeletesRunning,
        Flaw::ClearsByAge,
        Flaw::ClearsInScope,
        Flaw::MergesBeside,
        Flaw::StopsWithoutRelease,
        Flaw::AcknowledgesUnknown,
        Flaw::GivesUpEarly,
        Flaw::BeginsTooLate,
        Flaw::ForgetsBeginning,
        Flaw::SharesNumbers,
        Flaw::JumpsTheQueue,
    ];
}

/// Those that an engine has: none, or one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flaws(Option<Flaw>);

impl Flaws {
    pub const NONE: Flaws = Flaws(None);

    #[cfg(feature = "flaws")]
    pub fn only(flaw: Flaw) -> Self {
        Self(Some(flaw))
    }

    pub(crate) fn has(self, flaw: Flaw) -> bool {
        cfg!(feature = "flaws") && self.0 == Some(flaw)
    }
}
