//! Who made a call. A write may take effect long after its caller went, in a task of its own; whoever stands below the
//! faults and takes down what happens can still ask whose it was.

use std::future::Future;

/// One call of one caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Caller {
    pub life: u32,
    /// Which of its calls this is.
    pub call: u64,
}

tokio::task_local! {
    static CALLER: Caller;
}

/// Makes a call in somebody's name.
pub async fn calling<T>(caller: Caller, call: impl Future<Output = T>) -> T {
    CALLER.scope(caller, call).await
}

/// In whose name this is done, if in anybody's.
pub fn caller() -> Option<Caller> {
    CALLER.try_with(|caller| *caller).ok()
}

/// The same act, in the name of whoever calls now, wherever it is done.
pub(super) fn named<T>(act: impl Future<Output = T> + Send) -> impl Future<Output = T> + Send {
    let caller = caller();
    async move {
        match caller {
            Some(caller) => CALLER.scope(caller, act).await,
            None => act.await,
        }
    }
}
