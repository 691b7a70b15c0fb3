//! What is asked of the nodes while things happen to them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rota_client::Client;
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::NewJob;
use rota_testkit::postgres::run_sql;
use serde_json::json;
use tokio::time::sleep;

use crate::members::{Member, until};

pub(crate) fn wait(name: &str, millis: u64) -> NewJob {
    NewJob::new(name, "wait", json!({"millis": millis}))
}

/// Submits jobs to any node, each until it is acknowledged.
pub(crate) struct Load {
    clients: Mutex<Vec<Client>>,
    acknowledged: Mutex<BTreeSet<JobId>>,
    next: AtomicUsize,
    lost: AtomicUsize,
}

impl Load {
    const BATCH: usize = 25;

    pub(crate) fn on(members: &[&Member]) -> Arc<Self> {
        let clients = members.iter().map(|member| member.client.clone()).collect();
        Arc::new(Self {
            clients: Mutex::new(clients),
            acknowledged: Mutex::default(),
            next: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
        })
    }

    pub(crate) fn also_on(&self, member: &Member) {
        self.clients.lock().unwrap().push(member.client.clone());
    }

    /// A node came back at another address.
    pub(crate) fn moved(&self, nth: usize, member: &Member) {
        *self.clients.lock().unwrap().get_mut(nth).unwrap() = member.client.clone();
    }

    pub(crate) async fn run(self: Arc<Self>, count: usize) {
        loop {
            let first = self.next.fetch_add(Self::BATCH, Ordering::Relaxed);
            if first >= count {
                return;
            }
            let one = |nth: usize| {
                let mut job = wait(&format!("load {nth}"), 1 + u64::try_from(nth % 20).unwrap());
                job.idempotency_key = Some(format!("load {nth}"));
                job
            };
            let jobs: Vec<NewJob> = (first..first + Self::BATCH).map(one).collect();
            for turn in first.. {
                let client = self.client(turn);
                let answers = client.submit_jobs(&Domain::default(), &jobs).await.unwrap_or_default();
                let made: Vec<JobId> = answers.into_iter().flatten().map(|made| made.job_id).collect();
                if made.len() == jobs.len() {
                    self.acknowledged.lock().unwrap().extend(made);
                    break;
                }
                sleep(Duration::from_millis(100)).await;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn so_far(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    fn client(&self, turn: usize) -> Client {
        let clients = self.clients.lock().unwrap();
        clients.get(turn % clients.len()).unwrap().clone()
    }

    /// Submits one job after the other until it is told that enough was done. What fails is tried once more, at the next node.
    pub(crate) async fn run_retrying_once(self: Arc<Self>, over: Arc<AtomicBool>) {
        while !over.load(Ordering::Relaxed) {
            let nth = self.next.fetch_add(1, Ordering::Relaxed);
            let key = format!("load {nth}");
            let job = wait(&key, 1 + u64::try_from(nth % 20).unwrap());
            let mut made = None;
            for turn in [nth, nth + 1] {
                made = self.client(turn).submit_job(&Domain::default(), &job, Some(&key)).await.ok();
                if made.is_some() {
                    break;
                }
            }
            match made {
                Some(made) => _ = self.acknowledged.lock().unwrap().insert(made.job_id),
                None => _ = self.lost.fetch_add(1, Ordering::Relaxed),
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// How many requests failed twice.
    pub(crate) fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until so many have ended. Each is there once, ended well, and every claim of it is accounted for.
    pub(crate) async fn all_ended_once(&self, store: &str, count: usize) {
        let ended = "SELECT count(*) FROM jobs WHERE status NOT IN ('QUEUED', 'STARTED') AND document->>'jobName' LIKE 'load %'";
        until("that all of them end", || async { run_sql(store, ended) == count.to_string() }).await;
        assert_eq!(self.so_far(), count);
        let stored = "SELECT count(*), count(DISTINCT document->>'jobName'), count(*) FILTER (WHERE status = 'SUCCESSFUL') \
                      FROM jobs WHERE document->>'jobName' LIKE 'load %'";
        assert_eq!(
            run_sql(store, stored),
            format!("{count}|{count}|{count}"),
            "each is there once, and ended well"
        );
        let results = "SELECT count(*) FROM jobs WHERE document->>'jobName' LIKE 'load %' AND (document->>'attempt' <> '1' \
                       OR epoch <> 1 + jsonb_array_length(coalesce(document->'history', '[]')))";
        assert_eq!(run_sql(store, results), "0", "every claim is accounted for, and none cost an attempt");
    }
}
