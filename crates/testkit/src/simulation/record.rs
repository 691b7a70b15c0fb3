//! What happened in a run, in order: what became of the world, what nodes called and were answered, what took effect in the
//! store, what handlers did, what people asked for and were told. Checks, coverage and trace are all made of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rota_model::domain::{Domain, DomainDocument};
use rota_model::ids::{JobId, NodeId};
use rota_model::job::Job;
use rota_model::job_type::{JobType, TypeLimits};
use rota_model::limit::Limit;
use rota_model::log::Log;
use rota_model::metric::MetricsBucket;
use rota_model::node::{NodeState, NodeWish};
use rota_model::unique_key::UniqueKey;
use rota_store::seam::{Version, Written};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::faults::Sky;
use crate::faults::caller::Caller;

/// How often something happened, by its name.
pub type Counts = BTreeMap<&'static str, u64>;

/// A process: each start of a node is another one.
pub type Life = u32;

#[derive(Clone, Debug)]
pub struct Entry {
    /// Since the beginning of the run, by the world's clock.
    pub at: Duration,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    World(Event),
    /// A call, and which task of the process made it.
    Sent(Caller, Task, Call),
    Answered(Caller, Answer),
    /// A write or a claim took effect; whose it was, where that is known.
    Landed(Option<Caller>, Change),
    Handler(Work, Deed),
    /// People ask a process, and are told. The number says to which request an answer belongs.
    Asked(u64, Life, Wish),
    Told(u64, Reply),
}

/// What becomes of the world and its processes.
#[derive(Clone, Debug)]
pub enum Event {
    Starts {
        life: Life,
        node: NodeId,
        name: String,
        types: Vec<String>,
        off_by_ms: i64,
    },
    Joins {
        life: Life,
    },
    Crashes {
        life: Life,
    },
    Freezes {
        life: Life,
    },
    Thaws {
        life: Life,
    },
    Turns {
        life: Life,
        sky: Sky,
    },
    Jumps {
        life: Life,
        by_ms: i64,
    },
    IsToStop {
        life: Life,
    },
    Ends {
        life: Life,
    },
    /// What a process has counted until now.
    Counted {
        life: Life,
        counts: Counts,
    },
    /// From here on nothing goes wrong any more.
    Calms,
    /// The run is over.
    Closes,
    /// So much happened at one instant that somebody must be going round in circles: the run is broken off.
    Overflows,
}

/// What a node asks the store for.
#[derive(Clone, Debug)]
pub enum Call {
    /// To read, among others, the state of these nodes.
    ReadStates(Vec<NodeId>),
    Write(Vec<Target>),
    /// To claim jobs, of these sections or of all.
    Claim(Option<Vec<u32>>),
    /// Any other verb, and the collection it is about.
    Other(&'static str, &'static str),
}

/// Which task of a process did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// One of its own, in the order in which they first called the store.
    Own(u32),
    /// One that does what a person asked for.
    Request,
}

/// One document that a node wishes to write: its name, and the version it was read at.
#[derive(Clone, Debug)]
pub struct Target {
    pub collection: &'static str,
    pub id: String,
    pub version: Option<Version>,
}

#[derive(Clone, Debug)]
pub enum Answer {
    /// The version of each state that was asked for.
    States(Vec<Option<Version>>),
    Written(Vec<Written>),
    Claimed(Vec<String>),
    Done,
    Failed,
    Unknown,
}

/// What took effect on one document.
#[derive(Clone, Debug)]
pub struct Change {
    pub kind: Kind,
    pub version: Version,
    pub document: Document,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Created,
    Changed,
    Deleted,
    Purged,
}

/// What was there before and after, as far as it could be found.
#[derive(Clone, Debug)]
pub enum Document {
    Job { id: JobId, before: Option<Arc<Job>>, after: Option<Arc<Job>> },
    State { before: Option<Arc<NodeState>>, after: Option<Arc<NodeState>> },
    Key { before: Option<Arc<UniqueKey>>, after: Option<Arc<UniqueKey>> },
    Limit { before: Option<Arc<Limit>>, after: Option<Arc<Limit>> },
    Type { before: Option<Arc<JobType>>, after: Option<Arc<JobType>> },
    Tenant { after: Option<Arc<DomainDocument>> },
    Line { before: Option<Arc<Log>>, after: Option<Arc<Log>> },
    Bucket { before: Option<Arc<MetricsBucket>>, after: Option<Arc<MetricsBucket>> },
    Other { collection: &'static str, id: String },
}

/// One run of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    pub life: Life,
    pub job: JobId,
    pub epoch: u64,
    pub attempt: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    Begins,
    /// Does something that others could see.
    Acts,
    Ends(Ending),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Succeeded,
    Failed,
    FailedForGood,
    Panicked,
    /// It was told to stop, and did.
    Stopped,
    /// It was dropped in the middle of what it did.
    Dropped,
}

/// What a person asks for.
#[derive(Clone, Debug)]
pub enum Wish {
    /// Each with its serial number, and the caller's name for it if it has one.
    Submit(Vec<Submission>),
    Cancel(JobId),
    Requeue(JobId),
    Delete(JobId),
    DeleteMatching(Domain),
    Node(NodeId, Option<NodeWish>),
    /// That a type limits this in a domain, or is not defined there any more.
    Limit(Domain, String, Option<TypeLimits>),
}

#[derive(Clone, Debug)]
pub struct Submission {
    pub serial: u64,
    pub is_named: bool,
}

/// What a person is told.
#[derive(Clone, Debug)]
pub enum Reply {
    /// One for each that was submitted.
    Submitted(Vec<Accepted>),
    Done,
    Deleted(u64),
    Refused(String),
    Failed(String),
    /// Nothing: the node died, or took too long.
    Nothing,
}

#[derive(Clone, Debug)]
pub enum Accepted {
    New(JobId),
    Again(JobId),
    Twin(JobId),
    /// Whether it is new or was there is not said of one among many.
    InBatch(JobId),
    Refused(String),
    Failed(String),
}

impl Accepted {
    /// The job that was acknowledged, if one was.
    pub fn job(&self) -> Option<JobId> {
        match self {
            Accepted::New(id) | Accepted::Again(id) | Accepted::Twin(id) | Accepted::InBatch(id) => Some(*id),
            Accepted::Refused(_) | Accepted::Failed(_) => None,
        }
    }
}

/// More than ever happens at one instant.
const MOST_AT_ONCE: usize = 5_000;

/// Where everybody writes down what happens.
#[derive(Clone)]
pub struct Notebook {
    began: Instant,
    pages: Arc<Mutex<Pages>>,
    is_full: Arc<Notify>,
}

#[derive(Default)]
struct Pages {
    entries: Vec<Entry>,
    /// How many of them are about the present instant.
    at_once: usize,
}

impl Notebook {
    /// Must be called inside a runtime.
    pub fn begin() -> Self {
        Self { began: Instant::now(), pages: Arc::default(), is_full: Arc::default() }
    }

    pub fn note(&self, what: What) {
        let at = self.now();
        let mut pages = self.pages();
        let is_same = pages.entries.last().is_some_and(|last| last.at == at);
        pages.at_once = if is_same { pages.at_once + 1 } else { 0 };
        if pages.at_once < MOST_AT_ONCE {
            pages.entries.push(Entry { at, what });
        } else if pages.at_once == MOST_AT_ONCE {
            pages.entries.push(Entry { at, what: What::World(Event::Overflows) });
            self.is_full.notify_one();
        }
    }

    /// Waits until too much happened at once.
    pub async fn overflows(&self) {
        self.is_full.notified().await;
    }

    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut self.pages().entries)
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
