//! Those who wait for the writer. They are taken in the order in which they came, as many at a time as one commit should
//! hold; what is urgent is in the next commit, whoever else waits, and does not count towards its size: nobody can be kept
//! out by it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use rota_store::StoreError;
use rota_store::seam::{Claim, Written};
use tokio::sync::oneshot;

use crate::prepared::Prepared;
use crate::row::RawDocument;
use crate::stopwatch;

/// How long to wait for company before a commit, when there was company a moment ago.
const GATHER: Duration = Duration::from_micros(50);
/// How many documents share a commit, so that nobody waits for ever. A group ends when it has this many.
const MAX_GROUP: usize = 2_000;

/// Where the answer to a request goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

pub(crate) enum Request {
    Write(Batch, Reply<Vec<Written>>),
    Claim(Box<Claim>, Reply<Vec<RawDocument>>),
    Sequence(&'static str, u64, Reply<Range<u64>>),
    /// The text index has seen these notes.
    ForgetWords(i64),
}

/// Writes that come while the first of them are being applied: their caller makes them ready, one part after the other,
/// without waiting for anything in between.
pub(crate) struct Batch {
    pub(crate) first: Vec<Prepared>,
    /// Most have no more than the first.
    pub(crate) rest: Option<Receiver<Vec<Prepared>>>,
    pub(crate) count: usize,
    /// Whether all of it is of collections that are declared so.
    pub(crate) is_urgent: bool,
}

impl Request {
    /// How many documents it may touch.
    fn weight(&self) -> usize {
        match self {
            Request::Write(batch, _) => batch.count,
            Request::Claim(claim, _) => claim.max,
            Request::Sequence(..) | Request::ForgetWords(_) => 1,
        }
    }

    fn is_urgent(&self) -> bool {
        matches!(self, Request::Write(batch, _) if batch.is_urgent)
    }
}

pub(crate) struct Inbox {
    requests: Receiver<Request>,
    /// Those who came when a group was full.
    waiting: VecDeque<Request>,
    /// Whether the last group was more than one.
    company: bool,
}

impl Inbox {
    pub(crate) fn open() -> (Sender<Request>, Self) {
        let (sender, requests) = mpsc::channel();
        (sender, Self { requests, waiting: VecDeque::new(), company: false })
    }

    /// Those who share the next commit, what is urgent first; none when nobody can come any more. Where there was company a
    /// moment ago it looks around a little longer, yielding the core to those who are about to come: a timed wait would
    /// sleep for twice as long as it is told.
    pub(crate) fn gather(&mut self) -> Option<Vec<Request>> {
        let mut group = Group::default();
        if self.waiting.is_empty() {
            let first = self.requests.recv().ok()?;
            self.admit(first, &mut group);
        }
        let began = stopwatch();
        loop {
            while let Ok(request) = self.requests.try_recv() {
                self.admit(request, &mut group);
            }
            group.fill_from(&mut self.waiting);
            if !self.company || group.is_full() || began.elapsed() >= GATHER {
                break;
            }
            std::thread::yield_now();
        }
        self.company = group.urgent.len() + group.others.len() > 1;
        group.urgent.append(&mut group.others);
        Some(group.urgent)
    }

    fn admit(&mut self, request: Request, group: &mut Group) {
        if request.is_urgent() {
            group.urgent.push(request);
        } else {
            self.waiting.push_back(request);
        }
    }
}

/// A group while it gathers.
#[derive(Default)]
struct Group {
    urgent: Vec<Request>,
    others: Vec<Request>,
    /// That of the others.
    weight: usize,
}

impl Group {
    fn is_full(&self) -> bool {
        self.weight >= MAX_GROUP
    }

    fn fill_from(&mut self, waiting: &mut VecDeque<Request>) {
        while !self.is_full()
            && let Some(request) = waiting.pop_front()
        {
            self.weight += request.weight();
            self.others.push(request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(count: usize, is_urgent: bool) -> Request {
        Request::Write(Batch { first: Vec::new(), rest: None, count, is_urgent }, oneshot::channel().0)
    }

    fn weights(inbox: &mut Inbox) -> Vec<usize> {
        inbox.gather().unwrap().iter().map(Request::weight).collect()
    }

    #[test]
    fn what_is_urgent_is_in_the_next_group_and_keeps_nobody_out() {
        let (sender, mut inbox) = Inbox::open();
        let send = |count: usize, is_urgent: bool| sender.send(write(count, is_urgent)).unwrap();
        for count in [901, 902, 903, 904, 905, 906, 907] {
            send(count, false);
        }
        send(1, true);
        assert_eq!(weights(&mut inbox), [1, 901, 902, 903]);
        // One came after the others had been taken in.
        send(908, false);
        send(5_000, true);
        assert_eq!(weights(&mut inbox), [5_000, 904, 905, 906]);
        send(2, true);
        drop(sender);
        assert_eq!(weights(&mut inbox), [2, 907, 908]);
        assert!(inbox.gather().is_none());
    }
}
