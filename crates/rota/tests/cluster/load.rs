//! What is asked of the nodes while things happen to them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rota_client::{Client, Error};
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{Job, NewJob};
use rota_testkit::postgres::run_sql;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::members::{Member, until};

pub(crate) fn wait(name: &str, millis: u64) -> NewJob {
    NewJob::new(name, "wait", json!({"millis": millis}))
}

/// A job of the load. Its key stands in the job: were the client given the key, it would try once more by itself.
fn one_of_many(nth: usize) -> NewJob {
    let name = format!("load {nth}");
    let job = wait(&name, 1 + u64::try_from(nth % 20).unwrap());
    NewJob { idempotency_key: Some(name), ..job }
}

/// Submits jobs to any node, and keeps book of what was acknowledged.
#[derive(Default)]
pub(crate) struct Load {
    clients: Mutex<Vec<Client>>,
    acknowledged: Mutex<BTreeSet<JobId>>,
    next: AtomicUsize,
    over: AtomicBool,
    /// Of those that are tried once more.
    under_way: AtomicUsize,
    lost: AtomicUsize,
}

impl Load {
    const BATCH: usize = 25;
    /// Who is not answered by then asks another node.
    const GIVES_UP: Duration = Duration::from_secs(1);
    const PAUSE: Duration = Duration::from_millis(20);
    /// What comes beyond that which must come only keeps the nodes at work.
    const LONG_PAUSE: Duration = Duration::from_millis(200);

    pub(crate) fn on(members: &[&Member]) -> Arc<Self> {
        let clients = members.iter().map(|member| member.client.clone()).collect();
        Arc::new(Self { clients: Mutex::new(clients), ..Self::default() })
    }

    pub(crate) fn also_on(&self, member: &Member) {
        self.clients.lock().unwrap().push(member.client.clone());
    }

    /// A node came back at another address.
    pub(crate) fn moved(&self, nth: usize, member: &Member) {
        *self.clients.lock().unwrap().get_mut(nth).unwrap() = member.client.clone();
    }

    /// Submits batches until it is told that enough was done, and so many jobs at least.
    pub(crate) async fn run(self: Arc<Self>, count: usize) {
        loop {
            let first = self.next.fetch_add(Self::BATCH, Ordering::Relaxed);
            let is_enough = first >= count;
            if is_enough && self.is_over() {
                return;
            }
            self.submit(first).await;
            sleep(if is_enough { Self::LONG_PAUSE } else { Self::PAUSE }).await;
        }
    }

    /// Submits a batch at one node after the other until it is acknowledged.
    async fn submit(&self, first: usize) {
        let jobs: Vec<NewJob> = (first..first + Self::BATCH).map(one_of_many).collect();
        for turn in first.. {
            let client = self.client(turn);
            let asked = timeout(Self::GIVES_UP, client.submit_jobs(&Domain::default(), &jobs)).await;
            let answers = asked.into_iter().flatten().flatten();
            let made: Vec<JobId> = answers.flatten().map(|accepted| accepted.job_id).collect();
            if made.len() == jobs.len() {
                self.acknowledged.lock().unwrap().extend(made);
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Submits one job after the other until it is told that enough was done. What fails is tried once more, at the next node.
    pub(crate) async fn run_retrying_once(self: Arc<Self>) {
        while !self.is_over() {
            let nth = self.next.fetch_add(1, Ordering::Relaxed);
            let job = one_of_many(nth);
            self.under_way.fetch_add(1, Ordering::Relaxed);
            let mut answer = self.ask(nth, &job).await;
            if answer.is_err() {
                answer = self.ask(nth + 1, &job).await;
            }
            match answer {
                Ok(made) => _ = self.acknowledged.lock().unwrap().insert(made.job_id),
                Err(_) => _ = self.lost.fetch_add(1, Ordering::Relaxed),
            }
            self.under_way.fetch_sub(1, Ordering::Relaxed);
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// One request, and no more.
    async fn ask(&self, turn: usize, job: &NewJob) -> Result<Job, Error> {
        self.client(turn).submit_job(&Domain::default(), job, None).await
    }

    fn client(&self, turn: usize) -> Client {
        let clients = self.clients.lock().unwrap();
        clients.get(turn % clients.len()).unwrap().clone()
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Tells callers that enough was done, and returns when each has its last answer.
    pub(crate) async fn end(&self, callers: Vec<JoinHandle<()>>) {
        self.over.store(true, Ordering::Relaxed);
        for caller in callers {
            caller.await.unwrap();
        }
    }

    pub(crate) fn so_far(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    /// Waits until so many are acknowledged.
    pub(crate) async fn reaches(&self, count: usize) {
        until(&format!("that {count} jobs are acknowledged"), || async { self.so_far() >= count }).await;
    }

    /// Waits until so many more are.
    pub(crate) async fn goes_on_by(&self, count: usize) {
        self.reaches(self.so_far() + count).await;
    }

    /// How many requests wait for an answer.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }

    /// How many requests failed twice.
    pub(crate) fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }

    /// How many are in the store, whoever knows of it.
    pub(crate) fn stored(store: &str) -> usize {
        let stored = "SELECT count(*) FROM jobs WHERE document->>'jobName' LIKE 'load %'";
        run_sql(store, stored).parse().unwrap()
    }

    /// Waits until all that was acknowledged has ended. Each is there once, ended well, and every claim of it is accounted for; and
    /// the totals are those of what is there.
    pub(crate) async fn all_ended_once(&self, store: &str) {
        let count = self.so_far();
        let ended = "SELECT count(*) FROM jobs WHERE status NOT IN ('QUEUED', 'STARTED') AND document->>'jobName' LIKE 'load %'";
        until("that all of them end", || async { run_sql(store, ended) == count.to_string() }).await;
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
        totals_are_true(store);
    }
}

/// What is kept as a total, and what there is; by a single statement, so that both are of one moment.
fn totals_are_true(store: &str) {
    let kept = "SELECT key[2] AS status, sum(n) AS n FROM counts WHERE collection = 'jobs' GROUP BY 1 HAVING sum(n) <> 0";
    let there = "SELECT status, count(*) AS n FROM jobs GROUP BY 1";
    let differ = format!(
        "SELECT status, kept.n AS kept, there.n AS there FROM ({kept}) AS kept FULL JOIN ({there}) AS there \
         USING (status) WHERE kept.n IS DISTINCT FROM there.n"
    );
    assert_eq!(run_sql(store, &differ), "", "status, what is kept, what is there");
}
