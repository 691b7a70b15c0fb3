//! Trying again while a store does not answer. Only what may be repeated is tried again: a create names its document, and
//! whoever repeats it meets what it created before; a look changes nothing.

use std::time::Duration;

use rota_store::StoreError;
use tokio::time::{sleep, timeout};

/// How long a call may take before its answer is taken for lost.
const ANSWER: Duration = Duration::from_secs(5);
/// Between two tries, for a caller who waits.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(20),
    Duration::from_millis(80),
    Duration::from_millis(300),
    Duration::from_millis(600),
];
/// How long to leave a store alone that is not available.
pub(crate) const STORE_PAUSE: Duration = Duration::from_millis(200);

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
