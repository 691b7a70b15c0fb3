//! Trying again while a store does not answer. Only what may be repeated is tried again: a create names its document, and
//! whoever repeats it meets what it created before; a look changes nothing.

use std::time::Duration;

use rota_store::StoreError;
use tokio::time::{Instant, sleep, timeout};

/// How long a call may take before its answer is taken for lost.
const ANSWER: Duration = Duration::from_secs(5);
/// Between two tries, for a caller who waits.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(20),
    Duration::from_millis(80),
    Duration::from_millis(300),
    Duration::from_millis(600),
];
/// After this it is told again that something still goes wrong.
const TELL_AGAIN: Duration = Duration::from_secs(10);
/// How long to leave a store alone that is not available.
pub(crate) const STORE_PAUSE: Duration = Duration::from_millis(200);

/// What goes wrong again and again is told when it begins, and now and then.
#[derive(Default)]
pub(crate) struct Complaint {
    told: Option<Instant>,
    /// How often it was not told since.
    kept: u64,
}

impl Complaint {
    /// How often it was kept back since it was told; none if it is to be kept back now, too.
    pub(crate) fn is_due(&mut self) -> Option<u64> {
        if self.told.is_some_and(|told| told.elapsed() < TELL_AGAIN) {
            self.kept += 1;
            return None;
        }
        self.told = Some(Instant::now());
        Some(std::mem::take(&mut self.kept))
    }
}

/// The answer to a call, or that nobody knows.
pub(crate) async fn answered<T>(
    what: &str,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let answer = timeout(ANSWER, call).await;
    answer.unwrap_or_else(|_| Err(StoreError::unknown(what, "no answer came in time")))
}

/// Calls again, a few times, while the store is away or its answers are lost. Each call is told whether one before it may
/// have happened. If in the end one of them may have, that is the answer.
pub(crate) async fn persevere<T, F>(what: &str, mut call: impl FnMut(bool) -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut pauses = PAUSES.into_iter();
    let mut maybe = false;
    loop {
        let error = match answered(what, call(maybe)).await {
            Err(error) if error.is_passing() => error,
            ended => return ended,
        };
        maybe |= matches!(error, StoreError::Unknown { .. });
        let Some(pause) = pauses.next() else {
            return Err(if maybe { StoreError::unknown(what, "its answer was lost") } else { error });
        };
        sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_goes_on_is_told_now_and_then() {
        let mut complaint = Complaint::default();
        let mut told = Vec::new();
        for _ in 0..100 {
            told.extend(complaint.is_due());
            sleep(Duration::from_millis(200)).await;
        }
        assert_eq!(told, [0, 49]);
    }
}
