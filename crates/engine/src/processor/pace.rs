//! How many jobs are worth claiming before there is a slot for them.

use std::time::Duration;

use tokio::time::Instant;

/// How many handlers end while a claim is under way: as many slots will be free when the next one is answered.
#[derive(Default)]
pub(super) struct Pace {
    /// Those that ended since the last claim began.
    pub(super) ended: usize,
    last_claim: Option<Instant>,
    /// How many ended between the last two claims, and how long that was.
    before: (usize, Duration),
    /// How many jobs are worth claiming beyond the slots that are free.
    pub(super) ahead: usize,
}

impl Pace {
    pub(super) fn begin_claim(&mut self, now: Instant) {
        let since = self.last_claim.replace(now).map_or(Duration::MAX, |last| now - last);
        self.before = (std::mem::take(&mut self.ended), since);
    }

    /// Twice as many as would end in the time that the claim took: while the next one is under way, and until there is
    /// another. Where handlers take long, that is none.
    pub(super) fn end_claim(&mut self, took: Duration) {
        let (ended, since) = self.before;
        let ended = u128::try_from(ended).unwrap_or(u128::MAX);
        let ahead = (2 * ended).saturating_mul(took.as_nanos()) / since.as_nanos().max(1);
        self.ahead = usize::try_from(ahead).unwrap_or(usize::MAX);
    }
}
