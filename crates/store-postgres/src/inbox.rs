//! Where callers leave what they want written, and how it becomes commits.
//!
//! A commit costs the server about as much for one document as for twenty, and its disk is waited for in any case. So few large
//! commits are better than many small ones: whoever comes while one is under way waits for it to end and shares the next. Only
//! when much has gathered, or somebody has waited for long, another connection writes beside it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rota_store::StoreError;
use rota_store::seam::Written;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use crate::prepared::Prepared;

/// How many documents one commit writes, and how many bytes of them: more is another commit, beside it if a connection is free.
pub(crate) const PORTION: usize = 500;
pub(crate) const PORTION_BYTES: usize = 4 * 1024 * 1024;
/// How many documents are worth a commit beside those that are under way.
const WORTH_ANOTHER: usize = 100;
/// How long somebody waits for a commit of others to end.
const LONG: Duration = Duration::from_millis(5);

pub(crate) type Reply = oneshot::Sender<Result<Vec<Written>, StoreError>>;

/// What one caller wants written, all in one commit.
pub(crate) struct Request {
    pub(crate) writes: Vec<Prepared>,
    pub(crate) reply: Reply,
}

#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    bell: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Request>,
    documents: usize,
    /// How many commits are under way.
    under_way: usize,
    /// How often somebody took what waited.
    taken: u64,
}

impl Inbox {
    pub(crate) fn put(&self, request: Request) {
        let mut state = self.state();
        state.documents += request.writes.len();
        state.waiting.push_back(request);
        drop(state);
        self.bell.notify_one();
    }

    /// Who waits, up to a commit's worth. Whoever has it says when it is done.
    pub(crate) async fn next(&self) -> Vec<Request> {
        loop {
            self.until(|state| !state.waiting.is_empty()).await;
            let taken = self.state().taken;
            // Others may be about to end, and take it: then whoever waits by then has not waited for long.
            let is_time = self.until(|state| state.may_begin() || state.taken != taken);
            let is_late = timeout(LONG, is_time).await.is_err();
            let mut state = self.state();
            if is_late || state.may_begin() {
                let group = state.take();
                if !state.waiting.is_empty() {
                    self.bell.notify_one();
                }
                if !group.is_empty() {
                    return group;
                }
            }
        }
    }

    pub(crate) fn done(&self) {
        self.state().under_way -= 1;
        self.bell.notify_one();
    }

    async fn until(&self, holds: impl Fn(&State) -> bool) {
        while !holds(&self.state()) {
            self.bell.notified().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn may_begin(&self) -> bool {
        self.documents >= self.under_way * WORTH_ANOTHER
    }

    fn take(&mut self) -> Vec<Request> {
        let (mut group, mut count, mut bytes) = (Vec::new(), 0, 0);
        while let Some(request) = self.waiting.front() {
            count += request.writes.len();
            bytes += request.writes.iter().map(Prepared::bytes).sum::<usize>();
            if !group.is_empty() && (count > PORTION || bytes > PORTION_BYTES) {
                break;
            }
            self.documents -= request.writes.len();
            group.extend(self.waiting.pop_front());
        }
        self.under_way += usize::from(!group.is_empty());
        self.taken += 1;
        group
    }
}
