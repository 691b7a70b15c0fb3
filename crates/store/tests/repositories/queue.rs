//! The queue as those use it who work through it: many jobs at once, claims by section, what expires, what is deleted.

use rota_model::ids::{ClaimToken, Incarnation, JobId};
use rota_model::job::{Holder, Job, JobStatus};
use rota_model::time::UnixMillis;
use rota_store::Versioned;
use rota_store::collection::JOBS;
use rota_store::jobs::{JobFilter, Jobs, Share};
use rota_store::limits::MAX_BATCH;
use rota_store::repository::Saved;
use rota_store::seam::Key;
use rota_store::seam::Version;
use rota_testkit::faults::{Call, Effect, Fate, FaultyStore, Lot, Truth};
use serde_json::json;

use super::jobs::job;
use super::{Arc, domain, new, node, put, store};

fn queued(name: &str) -> Job {
    job("red", name, "QUEUED", "")
}

fn names(jobs: &[Versioned<Job>]) -> Vec<&str> {
    jobs.iter().map(|job| job.document.job_name.as_str()).collect()
}

/// Stored under an id, and understood by nobody.
fn unreadable(status: &str) -> (Key, serde_json::Value) {
    let key = Key::new(&JOBS, JobId::derived(&["unreadable", status]));
    (
        key,
        json!({"jobName": 7.to_string(), "status": status, "attempt": 1, "lost": 0, "expiresAt": 1,
        "input": {"type": "noop"}}),
    )
}

#[tokio::test]
async fn many_jobs_are_created_and_each_is_answered() {
    let jobs = Jobs::new(store());
    let first = new(jobs.create(queued("a")).await.unwrap());
    let twin = Job { section: 7, ..queued("a") };
    let batch = [queued("b"), twin, queued("c"), queued("b")];
    let created = jobs.create_all(&batch).await.unwrap();
    let [Some(b), None, Some(c), None] = created.as_slice() else { panic!("{created:?}") };
    let ids = [batch[2].job_id, JobId::derived(&["nobody"]), first.document.job_id, batch[0].job_id];
    let each = jobs.get_each(&ids).await.unwrap();
    let made = |nth: usize, version: &Version| {
        let (key, document) = (Key::new(&JOBS, batch[nth].job_id), batch[nth].clone());
        Some(Versioned { key, document, version: *version })
    };
    assert_eq!(each, [made(2, c), None, Some(first), made(0, b)]);
    assert_eq!(jobs.create_all(&[]).await.unwrap(), []);
}

#[tokio::test]
async fn more_jobs_than_one_batch_takes_are_written_in_several() {
    let jobs = Jobs::new(store());
    let many: Vec<Job> = (0..=MAX_BATCH).map(|nth| queued(&nth.to_string())).collect();
    let ids: Vec<JobId> = many.iter().map(|job| job.job_id).collect();
    let made = jobs.create_all(&many).await.unwrap();
    let each: Vec<_> = jobs.get_each(&ids).await.unwrap().into_iter().map(Option::unwrap).collect();
    assert!(made.into_iter().eq(each.iter().map(|job| Some(job.version))), "all of them, in the order given");
    let gone =
        jobs.delete_all(each.iter().map(|job| (job.key.clone(), job.version)).collect(), UnixMillis(1));
    assert!(gone.await.unwrap().iter().all(|gone| matches!(gone, Saved::Applied(_))));
}

#[tokio::test]
async fn a_job_that_cannot_be_decoded_does_not_hide_its_neighbours() {
    let store = store();
    let (key, body) = unreadable("QUEUED");
    put(&store, key.clone(), body).await;
    let jobs = Jobs::new(store);
    let made = new(jobs.create(queued("a")).await.unwrap());
    let each = jobs.get_each(&[key.id.parse().unwrap(), made.document.job_id]).await.unwrap();
    assert_eq!(each, [None, Some(made)]);
}

#[tokio::test]
async fn many_jobs_are_saved_each_on_its_own_version() {
    let jobs = Jobs::new(store());
    let made = [new(jobs.create(queued("a")).await.unwrap()), new(jobs.create(queued("b")).await.unwrap())];
    let failed = |job: &Versioned<Job>| Job { status: JobStatus::Failed, ..job.document.clone() };
    let renamed = |job: &Versioned<Job>| Job { job_name: "other".to_owned(), ..job.document.clone() };
    jobs.save(&made[0], &failed(&made[0])).await.unwrap();
    let changes = [(made[0].clone(), renamed(&made[0])), (made[1].clone(), renamed(&made[1]))];
    let saved = jobs.save_all(changes.iter().map(|(before, after)| (before, after))).await.unwrap();
    let [Saved::Overtaken, Saved::Applied(version)] = saved.as_slice() else { panic!("{saved:?}") };
    let each = jobs.get_each(&[made[0].document.job_id, made[1].document.job_id]).await.unwrap();
    assert_eq!(each[0].as_ref().unwrap().document, failed(&made[0]));
    assert_eq!(each[1], Some(made[1].written(renamed(&made[1]), *version)));
}

#[tokio::test]
async fn a_claim_may_be_about_some_sections() {
    let jobs = Jobs::new(store());
    let of = |section: u32| Job { section, job_number: section.into(), ..queued(&format!("of {section}")) };
    jobs.create_all(&(0..6).map(of).collect::<Vec<_>>()).await.unwrap();
    let holder = Holder { node: node("a"), incarnation: Incarnation::derived(&["a"]) };
    let claim = async |sections: Option<&[u32]>, max: usize| {
        let token = ClaimToken::derived(&["a"]);
        let from = [Share { lane: None, types: vec!["noop".to_owned()], limit: max }];
        let claimed = jobs.claim_due(UnixMillis(5), holder, &from, sections, token, max);
        claimed.await.unwrap().iter().map(|job| job.document.section).collect::<Vec<_>>()
    };
    assert_eq!(claim(Some(&[]), 10).await, Vec::<u32>::new());
    assert_eq!(claim(Some(&[4, 1, 9]), 10).await, [1, 4]);
    assert_eq!(claim(Some(&[4, 1, 2, 3]), 1).await, [2]);
    assert_eq!(claim(None, 10).await, [0, 3, 5]);
}

/// Every write fails.
struct Unwritable;

impl Fate for Unwritable {
    fn of(&self, call: &Call<'_>) -> Lot {
        let effect = if matches!(call, Call::Write(_)) { Effect::Fails } else { Effect::Done };
        Lot { effect, ..Lot::CALM }
    }
}

#[tokio::test]
async fn a_claim_brings_what_can_be_read_though_the_rest_cannot_be_set_aside() {
    let truth = Truth::new(store());
    let (key, mut body) = unreadable("QUEUED");
    body["runAt"] = json!(0);
    put(truth.store(), key.clone(), body).await;
    Jobs::new(Arc::clone(truth.store())).create_all(&[queued("a"), queued("b")]).await.unwrap();
    let jobs = Jobs::new(Arc::new(FaultyStore::new(&truth, Arc::new(Unwritable))));
    let holder = Holder { node: node("a"), incarnation: Incarnation::derived(&["a"]) };
    let from = [Share { lane: None, types: vec!["noop".to_owned()], limit: 10 }];
    let claimed = jobs.claim_due(UnixMillis(5), holder, &from, None, ClaimToken::derived(&["a"]), 10).await;
    let mut claimed = names(&claimed.unwrap()).iter().map(ToString::to_string).collect::<Vec<_>>();
    claimed.sort();
    assert_eq!(claimed, ["a", "b"]);
    let held = jobs.held_by(Some(&holder.incarnation.to_string()), 10, None).await.unwrap();
    let left: Vec<&Key> = held.unreadable.iter().map(|unreadable| &unreadable.key).collect();
    assert_eq!((held.jobs.len(), left), (2, vec![&key]), "whoever looks after its claims finds it");
}

#[tokio::test]
async fn what_expired_comes_with_the_earliest_first() {
    let store = store();
    let jobs = Jobs::new(Arc::clone(&store));
    let expiring = |name: &str, at: i64, status: JobStatus| Job {
        expires_at: Some(UnixMillis(at)),
        status,
        ..queued(name)
    };
    let all = vec![
        expiring("third", 30, JobStatus::Queued),
        expiring("later", 31, JobStatus::Queued),
        queued("never"),
        expiring("first", 10, JobStatus::Queued),
        expiring("begun", 10, JobStatus::Started),
        expiring("ended", 10, JobStatus::Failed),
        // It was claimed and given back, without a beginning.
        Job { epoch: 3, ..expiring("second", 20, JobStatus::Queued) },
        Job { epoch: 1, attempt: 2, ..expiring("failed once", 10, JobStatus::Queued) },
        Job { epoch: 1, lost: 1, ..expiring("lost once", 10, JobStatus::Queued) },
    ];
    jobs.create_all(&all).await.unwrap();
    let (key, body) = unreadable("QUEUED");
    put(&store, key, body).await;
    assert_eq!(names(&jobs.expired(UnixMillis(9), 10).await.unwrap()), Vec::<&str>::new());
    // The one that nobody understands is out of the way now.
    assert_eq!(names(&jobs.expired(UnixMillis(30), 2).await.unwrap()), ["first", "second"]);
    let found = jobs.expired(UnixMillis(30), 10).await.unwrap();
    assert_eq!(names(&found), ["first", "second", "third"]);
    let ended = Job { status: JobStatus::Error, ..found[0].document.clone() };
    jobs.save(&found[0], &ended).await.unwrap();
    assert_eq!(names(&jobs.expired(UnixMillis(30), 10).await.unwrap()), ["second", "third"]);
}

#[tokio::test]
async fn what_a_filter_names_is_deleted_unless_it_runs() {
    let jobs = Jobs::new(store());
    let all = [("a", "QUEUED"), ("b", "STARTED"), ("c", "FAILED"), ("d", "SUCCESSFUL"), ("e", "ERROR")];
    let all = all.map(|(name, status)| job("red", name, status, ""));
    jobs.create_all(&[all.to_vec(), vec![job("blue", "a", "FAILED", "")]].concat()).await.unwrap();
    let keys = async |filter: JobFilter| {
        let (mut keys, mut cursor) = (Vec::new(), None);
        loop {
            let (page, next) = jobs.keys_to_delete(&domain("red"), &filter, 2, cursor).await.unwrap();
            keys.extend(page);
            cursor = next;
            if cursor.is_none() {
                return keys;
            }
        }
    };
    let of = |status| JobFilter { status: Some(status), ..JobFilter::default() };
    assert_eq!(keys(of(JobStatus::Started)).await, []);
    assert_eq!(keys(JobFilter { name: Some("b".to_owned()), ..JobFilter::default() }).await, []);
    let failed = keys(of(JobStatus::Failed)).await;
    assert_eq!(failed.iter().map(|(key, _)| &key.id).collect::<Vec<_>>(), [&all[2].job_id.to_string()]);
    let mut found = keys(JobFilter::default()).await;
    assert_eq!(found.len(), 4);

    // A node begins with one of them before it is deleted.
    let waiting = jobs.get_any(all[0].job_id).await.unwrap().unwrap();
    let begun = Job { status: JobStatus::Started, ..waiting.document.clone() };
    jobs.save(&waiting, &begun).await.unwrap();
    found.sort_by_key(|(key, _)| key.id != waiting.key.id);
    let deleted = jobs.delete_all(found, UnixMillis(9)).await.unwrap();
    let [Saved::Overtaken, rest @ ..] = deleted.as_slice() else { panic!("{deleted:?}") };
    assert!(rest.len() == 3 && rest.iter().all(|saved| matches!(saved, Saved::Applied(_))));
    let left = jobs.totals(None).await.unwrap();
    assert_eq!(left.into_iter().collect::<Vec<_>>(), [(JobStatus::Started, 2), (JobStatus::Failed, 1)]);
    assert_eq!(jobs.delete_all(Vec::new(), UnixMillis(9)).await.unwrap(), []);
}

#[tokio::test]
async fn what_waits_of_a_type_is_found_in_pages_in_its_domain_alone() {
    let jobs = Jobs::new(store());
    let kind = queued("any").input.kind;
    let lane = |priority: u8| Some(format!("red|{priority}|{kind}"));
    let mine: Vec<Job> = (0..5).map(|nth| Job { lane: lane(5), ..queued(&format!("mine {nth}")) }).collect();
    let mut others = vec![job("blue", "theirs", "QUEUED", ""), job("red", "ended", "SUCCESSFUL", "")];
    others.push(Job { priority: 9, lane: lane(9), ..queued("urgent") });
    let mut of_another = queued("another type");
    of_another.input.kind = "another".to_owned();
    others.push(of_another);
    others.push(queued("of an older version"));
    jobs.create_all(&mine).await.unwrap();
    jobs.create_all(&others).await.unwrap();
    let found = async |priority: Option<u8>| {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = jobs.queued(&domain("red"), &kind, priority, 2, after).await.unwrap();
            assert!(page.0.len() <= 2);
            found.extend(page.0.into_iter().map(|job| job.job_name));
            after = page.1;
            if after.is_none() {
                found.sort();
                return found;
            }
        }
    };
    assert_eq!(found(Some(5)).await, ["mine 0", "mine 1", "mine 2", "mine 3", "mine 4"]);
    assert_eq!(found(Some(9)).await, ["urgent"]);
    assert_eq!(found(Some(0)).await, Vec::<String>::new());
    assert_eq!(found(None).await, ["of an older version"]);
}
