//! `kill -9` at random moments under load, again and again: nothing acknowledged is missing, everything is recorded once and
//! ends as it should, a death of the program costs no attempt, and work goes on within two seconds of each start.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use rota_client::{Client, JobFilter};
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::job::{Job, JobStatus, NewJob};
use rota_store::jobs::Jobs;
use rota_store_sqlite::check::check;
use rota_testkit::process::{Home, Rota};
use tokio::time::sleep;

use crate::ledger::Ledger;
use crate::load::Load;
use crate::requests::Request;
use crate::{begun, client, dice, ended, home, number, stored, submit, verdict, wait};

/// Once the program is started, work that it left when it died goes on within this.
const GOES_ON_WITHIN: Duration = Duration::from_secs(2);
/// Every so many rounds the program lives long enough for its longest jobs.
const LONG_LIFE_EVERY: u64 = 8;
const TOLD_EVERY: u64 = 10;
/// Milliseconds: such a job ends when it is cancelled, or given up because the program died too often with it.
const ENDLESS: u64 = 600_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_and_nothing_is_recorded_twice() {
    let rounds = number("ROTA_KILL_ROUNDS").unwrap_or(10);
    let (home, mut dice, ledger) = (home(), dice(), Arc::new(Ledger::default()));
    ledger.asks(&wait("first job", 500));
    let load = Load::new(&ledger, &mut dice);
    let (mut pilots, mut deadly) = (Pilots::default(), None);
    for round in 1..=rounds {
        let rota = home.up_with(durability(&mut dice));
        load.rota_is_up(&rota);
        pilots.next(&rota, &ledger).await;
        if round == 1 {
            deadly = Some(begin(&rota, &ledger, &wait("dies with every life", ENDLESS)).await);
        }
        sleep(life(round, &mut dice)).await;
        rota.kill();
        load.rota_is_down();
        load.must_go_on();
        if dice.random_bool(0.3) {
            home.up_and_kill(Duration::from_millis(dice.random_range(0..300)));
        }
        if round % TOLD_EVERY == 0 {
            println!("{round} kills: {} jobs acknowledged, {pilots}", ledger.count());
        }
    }
    let rota = home.up();
    load.rota_is_up(&rota);
    pilots.land(&rota, &ledger).await;
    load.end(&rota).await;
    if let Some(id) = deadly {
        Request::Cancel(id).send(&client(&rota), &ledger).await;
    }
    let jobs = all_ended(&client(&rota)).await;
    let totals = verdict::judge(&ledger.copy(), &jobs);
    println!("{rounds} kills: {totals}; {pilots}");
    assert!(totals.jobs > 50, "there was load");
    assert!(totals.lost > 0, "the kills hit running jobs");
    rota.terminate();
    store_agrees(&home, &jobs).await;
}

async fn begin(rota: &Rota, ledger: &Ledger, job: &NewJob) -> JobId {
    ledger.asks(job);
    let made = submit(&client(rota), job).await;
    ledger.told_of_ours(job, &made);
    made.job_id
}

fn life(round: u64, dice: &mut StdRng) -> Duration {
    let millis = if round.is_multiple_of(LONG_LIFE_EVERY) { 3_000 } else { dice.random_range(0..900) };
    Duration::from_millis(millis)
}

/// A kill leaves to the system what was written: it does not matter whether the disk was waited for.
fn durability(dice: &mut StdRng) -> &'static [&'static str] {
    if dice.random_bool(0.5) { &["--durability", "50ms"] } else { &[] }
}

/// One job in each life that does not end in it, ahead of the others: it shows when work goes on after a kill.
#[derive(Default)]
struct Pilots {
    open: Option<JobId>,
    launched: u64,
    waits: Vec<Duration>,
}

impl Pilots {
    async fn next(&mut self, rota: &Rota, ledger: &Ledger) {
        self.land(rota, ledger).await;
        self.launched += 1;
        let pilot = NewJob { priority: Some(9), ..wait(&format!("pilot {}", self.launched), ENDLESS) };
        self.open = Some(begin(rota, ledger, &pilot).await);
    }

    /// The pilot of the life before is being worked on again, and has done its duty.
    async fn land(&mut self, rota: &Rota, ledger: &Ledger) {
        let Some(pilot) = self.open.take() else { return };
        let job = begun(&client(rota), pilot).await;
        let waited = rota.started_at.elapsed();
        assert_eq!(job.status, JobStatus::Started, "{job:?}");
        assert!(waited <= GOES_ON_WITHIN, "only {waited:?} after the start work went on with {job:?}");
        self.waits.push(waited);
        Request::Cancel(pilot).send(&client(rota), ledger).await;
    }
}

impl std::fmt::Display for Pilots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut waits = self.waits.clone();
        waits.sort();
        let (median, longest) = (waits.get(waits.len() / 2), waits.last());
        let millis = |wait: Option<&Duration>| wait.map_or(0, Duration::as_millis);
        write!(f, "work went on {} ms after a start, {} at most", millis(median), millis(longest))
    }
}

/// Every job, once none is open.
async fn all_ended(client: &Client) -> Vec<Job> {
    for status in [JobStatus::Queued, JobStatus::Started] {
        while let Some(open) = list(client, Some(status), 1).await.first() {
            ended(client, open.job_id).await;
        }
    }
    loop {
        let jobs = list(client, None, usize::MAX).await;
        let Some(open) = jobs.iter().find(|job| !job.status.is_terminal()) else { return jobs };
        ended(client, open.job_id).await;
    }
}

/// So many, or a few more.
async fn list(client: &Client, status: Option<JobStatus>, limit: usize) -> Vec<Job> {
    let page_of = u32::try_from(limit.min(1_000)).unwrap();
    let mut filter = JobFilter { status, limit: Some(page_of), ..JobFilter::default() };
    let mut jobs = Vec::new();
    loop {
        let page = client.jobs(&Domain::default(), &filter).await.unwrap();
        jobs.extend(page.items);
        filter.cursor = page.next;
        if filter.cursor.is_none() || jobs.len() >= limit {
            return jobs;
        }
    }
}

/// The store holds together, and counts what the list showed.
async fn store_agrees(home: &Home, jobs: &[Job]) {
    let findings = check(&home.data(), &mut |_| {}).unwrap();
    assert!(findings.is_sound(), "{findings:?}");
    let mut listed: BTreeMap<JobStatus, u64> = BTreeMap::new();
    for job in jobs {
        *listed.entry(job.status).or_default() += 1;
    }
    assert_eq!(Jobs::new(stored(home)).totals(Some(&Domain::default())).await.unwrap(), listed);
}
