//! Pages: a walk by cursors shows whatever was there throughout exactly once, whatever comes, changes and goes meanwhile.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rota_model::time::UnixMillis;
use rota_store::StoreError;
use rota_store::collection::{JOBS, TIMERS, USERS};
use rota_store::cursor::Cursor;
use rota_store::limits::MAX_PAGE;
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Write, Written};
use serde_json::json;

use super::Subject;
use super::examples::{
    BY_NUMBER, change, create, delete, domain, job, job_with, jobs, named, numbered, timer, timer_body, user,
};
use super::patience::caught_up;
use super::verbs::{applied, document, fill, ids, job_numbers, one, refusal, total, walk};

const NEWEST: Order = Order { fields: &["metadata.createdAt", "jobNumber"], descending: true };

pub async fn pages_show_each_once(store: Subject) {
    fill(&store, 95).await;
    caught_up(&store, jobs(), 95).await;
    let mut query = Query::new(&JOBS, NEWEST).limit(10);
    let mut seen = Vec::new();
    loop {
        assert!(seen.len() <= 95, "{seen:?}");
        let page = store.find(query.clone()).await.unwrap();
        seen.extend(page.documents.iter().map(|document| document.body["jobNumber"].as_i64().unwrap()));
        let Some(next) = page.next else { break };
        query.after = Some(Cursor::parse(&next.to_string()).unwrap());
        let newcomer = 1_000 + i64::try_from(seen.len()).unwrap();
        applied(&store, create(newcomer)).await;
    }
    assert_eq!(seen, (0..95).rev().collect::<Vec<_>>());
}

pub async fn a_page_may_be_as_large_as_the_limit(store: Subject) {
    let count = MAX_PAGE + 200;
    let make = |nth| Write::Create { key: user(&format!("{nth:05}")), body: Body::new() };
    store.write((0..count).map(make).collect()).await.unwrap();
    let all = || Query::new(&USERS, Order::BY_ID).limit(MAX_PAGE);
    caught_up(&store, all(), count).await;
    let expected: Vec<_> = (0..count).map(|nth| format!("{nth:05}")).collect();
    assert_eq!(ids(&store, all()).await, expected);
    assert_eq!(ids(&store, all().limit(MAX_PAGE - 1)).await, expected);
}

/// A cursor may stand at a document without a value, and among many that are equal.
pub async fn pages_go_on_among_equals_and_absences(store: Subject) {
    for number in 0..40 {
        let owner = if number % 2 == 0 { json!(null) } else { json!("x") };
        let run_at = if number % 3 == 0 { json!(null) } else { json!(number / 8) };
        let body = job_with(number, json!({"owner": owner, "runAt": run_at}));
        applied(&store, Write::Create { key: numbered(number), body }).await;
    }
    caught_up(&store, jobs(), 40).await;
    for descending in [false, true] {
        let order = Order { fields: &["owner", "runAt"], descending };
        let whole = job_numbers(&store, Query::new(&JOBS, order)).await;
        assert_eq!(whole.len(), 40);
        for limit in [1, 2, 7, 39, 40] {
            assert_eq!(job_numbers(&store, Query::new(&JOBS, order).limit(limit)).await, whole);
        }
    }
}

/// Which values there are, each with where it begins, whatever else there is of it; in pages too.
pub async fn the_first_of_each_value_is_found(store: Subject) {
    for number in 0..40 {
        let lane = ["b", "a", "d", ""].get(usize::try_from(number % 5).unwrap()).map(|lane| json!(lane));
        let status = if number % 10 == 2 { "STARTED" } else { "QUEUED" };
        let body = job_with(number, json!({"lane": lane, "runAt": 100 - number, "status": status}));
        applied(&store, Write::Create { key: numbered(number), body }).await;
    }
    caught_up(&store, jobs(), 40).await;
    let firsts = Query::new(&JOBS, Order { fields: &["lane", "runAt", "jobNumber"], descending: false })
        .filter(Filter::Is("status", json!("QUEUED")))
        .firsts();
    let expected = [
        (json!(null), 61, 39),
        (json!(""), 62, 38),
        (json!("a"), 64, 36),
        (json!("b"), 65, 35),
        (json!("d"), 63, 37),
    ];
    for limit in [1, 2, 4, 5, 1_000] {
        let found = walk(&store, firsts.clone().limit(limit)).await;
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (document, (lane, run_at, number)) in found.iter().zip(&expected) {
            let mut body = json!({"runAt": run_at, "jobNumber": number});
            if !lane.is_null() {
                body["lane"] = lane.clone();
            }
            assert_eq!(json!(document.body), body, "the fields of the order alone");
        }
    }
    let refused = [
        firsts.clone().filter(Filter::Text("a".to_owned())),
        Query { order: Order { descending: true, ..firsts.order }, ..firsts.clone() },
        Query { order: Order::BY_ID, ..firsts.clone() },
        firsts.hidden_before(UnixMillis(1)),
    ];
    for query in refused {
        refusal(store.find(query).await);
    }
}

/// The document that a cursor stands at may go.
pub async fn a_cursor_outlives_its_document(store: Subject) {
    fill(&store, 6).await;
    caught_up(&store, jobs(), 6).await;
    let page = store.find(jobs().limit(3)).await.unwrap();
    for document in &page.documents {
        applied(&store, delete(document.key.clone(), document.version)).await;
    }
    let seen = i64::try_from(page.documents.len()).unwrap();
    caught_up(&store, jobs(), 6 - page.documents.len()).await;
    assert_eq!(job_numbers(&store, jobs().after(page.next)).await, (seen..6).collect::<Vec<_>>());
}

pub async fn a_cursor_from_elsewhere_is_refused(store: Subject) {
    let here = domain("here");
    fill(&store, 3).await;
    for id in ["a", "b"] {
        applied(&store, Write::Create { key: timer(&here, id), body: timer_body(&here, id, 1) }).await;
        applied(&store, Write::Create { key: user(id), body: Body::new() }).await;
    }
    let timers = || Query::new(&TIMERS, Order::BY_ID);
    let lists = [
        jobs(),
        Query::new(&JOBS, Order { descending: true, ..BY_NUMBER }),
        Query::new(&JOBS, Order { fields: &["runAt"], descending: false }),
        Query::new(&JOBS, Order { fields: &["runAt", "jobNumber"], descending: false }),
        Query::new(&JOBS, Order::BY_ID),
        Query::new(&USERS, Order::BY_ID),
        timers(),
        timers().in_domain(&here),
        timers().in_domain(&domain("there")),
    ];
    for (list, count) in [(&lists[0], 3), (&lists[5], 2), (&lists[6], 2)] {
        caught_up(&store, list.clone(), count).await;
    }
    let mut refusals = 0;
    for (nth, from) in lists.iter().enumerate() {
        let Some(cursor) = store.find(from.clone().limit(1)).await.unwrap().next else { continue };
        let cursor = Cursor::parse(&cursor.to_string()).unwrap();
        for (other, to) in lists.iter().enumerate() {
            let answer = store.find(to.clone().after(Some(cursor.clone()))).await;
            if nth == other {
                answer.unwrap();
            } else {
                assert!(refusal(answer).contains("another list"));
                refusals += 1;
            }
        }
    }
    assert_eq!(refusals, 8 * 8, "every list but that of the empty domain has a cursor");
}

pub async fn a_mangled_cursor_is_refused(store: Subject) {
    fill(&store, 3).await;
    caught_up(&store, jobs(), 3).await;
    let cursor = store.find(jobs().limit(1)).await.unwrap().next.unwrap();
    let text = cursor.to_string();
    for end in 0..text.len() {
        assert!(Cursor::parse(&text[..end]).is_err(), "{end} characters of it");
    }
    for strange in ["bm90IGEgY3Vyc29y", "\u{0}", "🦀", "e30", "bnVsbA", "W10", " ", &format!("{text}=")] {
        assert!(Cursor::parse(strange).is_err(), "{strange}");
    }
    type Mangle = fn(&mut Cursor);
    let mangled: [Mangle; 5] = [
        |cursor| cursor.key.clear(),
        |cursor| cursor.key.push(json!("more")),
        |cursor| cursor.key[0] = json!([1]),
        |cursor| cursor.key[0] = json!(1.5),
        |cursor| cursor.key[0] = json!(u64::MAX),
    ];
    for mangle in mangled {
        let mut cursor = cursor.clone();
        mangle(&mut cursor);
        let cursor = Cursor::parse(&cursor.to_string()).unwrap();
        assert!(refusal(store.find(jobs().after(Some(cursor))).await).contains("cursor"));
    }
}

/// A cursor whose values are not of the kind that its fields are leads nowhere, or is refused; nothing else.
pub async fn a_forged_cursor_does_no_harm(store: Subject) {
    fill(&store, 3).await;
    caught_up(&store, jobs(), 3).await;
    let cursor = store.find(jobs().limit(1)).await.unwrap().next.unwrap();
    let long = "x".repeat(100_000);
    for key in [
        [json!("text"), json!("job-0000")],
        [json!(0), json!(5)],
        [json!(0), json!(null)],
        [json!(null), json!("' OR 1=1 --")],
        [json!(i64::MIN), json!("\0")],
        [json!(i64::MAX), json!(long)],
    ] {
        let mut forged = cursor.clone();
        forged.key = key.to_vec();
        let forged = Cursor::parse(&forged.to_string()).unwrap();
        match store.find(jobs().after(Some(forged))).await {
            Ok(page) => assert!(page.documents.len() <= 3),
            Err(StoreError::Refused { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(total(&store, jobs()).await, 3);
}

/// While tasks make, change, replace, hide and purge documents between those that stay, every walk shows each of
/// these once and in order, and nothing twice.
pub async fn a_walk_shows_what_stays_once(store: Subject) {
    const STAYING: i64 = 120;
    let expected: Vec<i64> = (0..STAYING).map(|nth| nth * 10).collect();
    let make = |number: &i64| Write::Create { key: numbered(*number), body: job(*number) };
    store.write(expected.iter().map(make).collect()).await.unwrap();
    caught_up(&store, jobs(), expected.len()).await;

    let over = Arc::new(AtomicBool::new(false));
    let churn: Vec<_> = (1..=4i64)
        .map(|lane| tokio::spawn(churn(Arc::clone(&store), lane, STAYING, Arc::clone(&over))))
        .collect();
    for round in 0..6 {
        let order = Order { descending: round % 2 == 1, ..NEWEST };
        let query = Query { keys_only: round % 3 == 2, ..Query::new(&JOBS, order).limit(7) };
        let seen = walk(&store, query).await;
        let mut times: BTreeMap<&str, u32> = BTreeMap::new();
        for document in &seen {
            *times.entry(&document.key.id).or_default() += 1;
        }
        assert!(
            times.values().all(|times| *times == 1),
            "in round {round} something was shown twice: {times:?}"
        );
        let stayed = seen.iter().filter_map(|document| document.key.id.strip_prefix("job-"));
        let mut stayed: Vec<i64> = stayed.map(|number| number.parse().unwrap()).collect();
        if order.descending {
            stayed.reverse();
        }
        assert_eq!(stayed, expected, "in round {round}");
    }
    over.store(true, Ordering::Relaxed);
    for lane in churn {
        lane.await.unwrap();
    }
}

/// Never the same id twice, so that what a walk shows once it shows once in all; never more than a few at a time.
async fn churn(store: Subject, lane: i64, staying: i64, over: Arc<AtomicBool>) {
    let mut passing = VecDeque::new();
    for step in 0.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let between = (step * 7 + lane) % staying * 10 + lane;
        let key = named(format!("passing-{lane}-{step}"));
        let made = applied(&store, Write::Create { key: key.clone(), body: job(between) }).await;
        passing.push_back((key, made));
        let stays = document(&store, numbered((step * 3 + lane) % staying * 10)).await.unwrap();
        let fields = vec![("status", json!("STARTED")), ("runAt", json!(step)), ("epoch", json!(lane))];
        let touch = if step % 2 == 0 {
            change(stays.key, stays.version, fields)
        } else {
            Write::Replace { key: stays.key, version: stays.version, body: stays.body }
        };
        let touched = one(&store, touch).await;
        assert!(matches!(touched, Written::Applied(_) | Written::Conflict), "{touched:?}");
        // A store may answer without ever waiting; others want a turn.
        tokio::task::yield_now().await;
        if passing.len() > 10 {
            let (key, version) = passing.pop_front().unwrap();
            let hidden = applied(&store, delete(key.clone(), version)).await;
            applied(&store, Write::Purge { key, version: hidden }).await;
        }
    }
}
