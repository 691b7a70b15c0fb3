//! The contract of the seam: one suite, run on every store. `store_contract!(make)` makes a test of each promise;
//! `make` returns a fresh, empty store and whatever must live as long as it.

use std::collections::BTreeSet;
use std::sync::Arc;

use rota_model::ids::ClaimToken;
use rota_model::time::UnixMillis;
use rota_store::StoreError;
use rota_store::collection::{JOBS, USERS};
use rota_store::cursor::Cursor;
use rota_store::hints::{Hint, News};
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Claim, Key, Store, Version, Write, Written};
use serde_json::{Value, json};

pub type Subject = Arc<dyn Store>;

/// Makes a test of every promise.
#[macro_export]
macro_rules! store_contract {
    ($make:expr) => {
        $crate::store_contract!(@each $make,
            an_id_is_taken_once, a_write_needs_the_version, fields_change_on_their_own, a_deleted_document_is_gone,
            a_document_made_anew_has_a_new_version, answers_come_in_order, filters_select, pages_show_each_once,
            a_cursor_from_elsewhere_is_refused, claims_never_overlap, a_claim_marks_what_it_takes,
            numbers_are_never_given_twice, changes_are_hinted, nonsense_is_refused, odd_text_survives);
    };
    (@each $make:expr, $($promise:ident),+) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $promise() {
            let (store, _alive) = $make();
            $crate::contract::$promise(store).await;
        }
    )+};
}

fn body(value: Value) -> Body {
    value.as_object().unwrap().clone()
}

fn job(number: i64) -> Body {
    body(json!({
        "jobName": "a job", "jobNumber": number, "domain": "default", "status": "QUEUED", "priority": 5,
        "runAt": 1_000 - number, "input": {"type": "noop", "payload": {"nothing": null}}, "result": {},
        "metadata": {"createdAt": number / 10, "updatedAt": 0, "updatedBy": "somebody"},
    }))
}

fn key(id: impl ToString) -> Key {
    Key::new(&JOBS, id)
}

fn create(number: i64) -> Write {
    Write::Create { key: key(format!("job-{number:04}")), body: job(number) }
}

async fn one(store: &Subject, write: Write) -> Written {
    store.write(vec![write]).await.unwrap()[0]
}

async fn applied(store: &Subject, write: Write) -> Version {
    match one(store, write).await {
        Written::Applied(version) => version,
        other => panic!("it was not applied: {other:?}"),
    }
}

async fn read(store: &Subject, key: Key) -> Option<(Version, Value)> {
    let found = store.read(vec![key]).await.unwrap().remove(0)?;
    Some((found.version, Value::Object(found.body)))
}

pub async fn an_id_is_taken_once(store: Subject) {
    let version = applied(&store, create(1)).await;
    assert_eq!(one(&store, create(1)).await, Written::Exists);
    let (read_version, read_body) = read(&store, key("job-0001")).await.unwrap();
    assert_eq!(read_version, version);
    assert_eq!(read_body, Value::Object(job(1)));
    assert_eq!(read(&store, key("elsewhere")).await, None);
}

pub async fn a_write_needs_the_version(store: Subject) {
    let first = applied(&store, create(1)).await;
    let replace = |version| Write::Replace { key: key("job-0001"), version, body: job(2) };
    let second = applied(&store, replace(first)).await;
    assert_ne!(first, second);
    assert_eq!(one(&store, replace(first)).await, Written::Conflict);
    let change = |version| Write::Change { key: key("job-0001"), version, fields: vec![("epoch", json!(1))] };
    assert_eq!(one(&store, change(first)).await, Written::Conflict);
    assert_eq!(one(&store, Write::Delete { key: key("job-0001"), version: first }).await, Written::Conflict);
    assert_eq!(read(&store, key("job-0001")).await.unwrap(), (second, Value::Object(job(2))));
    let missing = Write::Replace { key: key("nowhere"), version: second, body: job(3) };
    assert_eq!(one(&store, missing).await, Written::Missing);
    assert_eq!(read(&store, key("nowhere")).await, None);
}

pub async fn fields_change_on_their_own(store: Subject) {
    let version = applied(&store, create(1)).await;
    let fields = vec![
        ("status", json!("STARTED")),
        ("owner", json!("me")),
        ("result", json!({"kept": {"null": null}, "list": [1, "two"]})),
        ("metadata.updatedAt", json!(77)),
    ];
    let version = applied(&store, Write::Change { key: key("job-0001"), version, fields }).await;
    let mut expected = Value::Object(job(1));
    expected["status"] = json!("STARTED");
    expected["owner"] = json!("me");
    expected["result"] = json!({"kept": {"null": null}, "list": [1, "two"]});
    expected["metadata"]["updatedAt"] = json!(77);
    assert_eq!(read(&store, key("job-0001")).await.unwrap().1, expected);

    let gone = vec![("owner", Value::Null)];
    applied(&store, Write::Change { key: key("job-0001"), version, fields: gone }).await;
    expected.as_object_mut().unwrap().shift_remove("owner");
    assert_eq!(read(&store, key("job-0001")).await.unwrap().1, expected);
}

pub async fn a_deleted_document_is_gone(store: Subject) {
    let version = applied(&store, create(1)).await;
    applied(&store, Write::Delete { key: key("job-0001"), version }).await;
    assert_eq!(read(&store, key("job-0001")).await, None);
    assert_eq!(one(&store, Write::Delete { key: key("job-0001"), version }).await, Written::Missing);
}

pub async fn a_document_made_anew_has_a_new_version(store: Subject) {
    let first = applied(&store, create(1)).await;
    applied(&store, Write::Delete { key: key("job-0001"), version: first }).await;
    let second = applied(&store, create(1)).await;
    assert_ne!(first, second);
    let late = Write::Replace { key: key("job-0001"), version: first, body: job(9) };
    assert_eq!(one(&store, late).await, Written::Conflict);
}

pub async fn answers_come_in_order(store: Subject) {
    let batch = vec![create(1), create(2), create(1), create(3)];
    let answers = store.write(batch).await.unwrap();
    let kinds: Vec<bool> = answers.iter().map(|answer| matches!(answer, Written::Applied(_))).collect();
    assert_eq!(kinds, [true, true, false, true]);
    let found = store.read(vec![key("job-0003"), key("none"), key("job-0001")]).await.unwrap();
    let ids: Vec<_> = found.iter().map(|found| found.as_ref().map(|document| document.id.as_str())).collect();
    assert_eq!(ids, [Some("job-0003"), None, Some("job-0001")]);
}

async fn fill(store: &Subject, count: i64) {
    let answers = store.write((0..count).map(create).collect()).await.unwrap();
    assert!(answers.iter().all(|answer| matches!(answer, Written::Applied(_))));
}

const BY_NUMBER: Order = Order { fields: &["jobNumber"], descending: false };

async fn numbers(store: &Subject, query: Query) -> Vec<i64> {
    let page = store.find(query).await.unwrap();
    page.documents.iter().map(|document| document.body["jobNumber"].as_i64().unwrap()).collect()
}

pub async fn filters_select(store: Subject) {
    fill(&store, 10).await;
    let query = || Query::new(&JOBS, BY_NUMBER);
    let at_most = query().filter(Filter::AtMost("jobNumber", 2));
    assert_eq!(numbers(&store, at_most).await, [0, 1, 2]);
    let both = query().filter(Filter::AtLeast("jobNumber", 3)).filter(Filter::AtMost("jobNumber", 4));
    assert_eq!(numbers(&store, both).await, [3, 4]);
    let within = query().filter(Filter::In("jobNumber", vec![json!(7), json!(5), json!(70)]));
    assert_eq!(numbers(&store, within).await, [5, 7]);
    assert_eq!(
        numbers(&store, query().filter(Filter::Is("domain", json!("other")))).await,
        Vec::<i64>::new()
    );
    assert_eq!(numbers(&store, query().filter(Filter::Is("input.type", json!("noop")))).await.len(), 10);
    assert_eq!(
        numbers(&store, query().filter(Filter::Is("owner", json!("nobody")))).await,
        Vec::<i64>::new()
    );

    let user = Write::Create {
        key: Key::new(&USERS, "local:a"),
        body: body(json!({"hashed_api_key": ["one", "two"]})),
    };
    applied(&store, user).await;
    let by_hash =
        |hash: &str| Query::new(&USERS, Order::BY_ID).filter(Filter::Is("hashed_api_key", json!(hash)));
    assert_eq!(store.find(by_hash("two")).await.unwrap().documents.len(), 1);
    assert_eq!(store.find(by_hash("tw")).await.unwrap().documents.len(), 0);
}

pub async fn pages_show_each_once(store: Subject) {
    fill(&store, 95).await;
    let order = Order { fields: &["metadata.createdAt", "jobNumber"], descending: true };
    let mut query = Query::new(&JOBS, order).limit(10);
    let mut seen = Vec::new();
    loop {
        let page = store.find(query.clone()).await.unwrap();
        seen.extend(page.documents.iter().map(|document| document.body["jobNumber"].as_i64().unwrap()));
        let Some(next) = page.next else { break };
        query.after = Some(Cursor::parse(&next.to_string()).unwrap());
        let newcomer = 1_000 + i64::try_from(seen.len()).unwrap();
        applied(&store, create(newcomer)).await;
    }
    assert_eq!(seen, (0..95).rev().collect::<Vec<_>>());
}

pub async fn a_cursor_from_elsewhere_is_refused(store: Subject) {
    fill(&store, 3).await;
    let mut query = Query::new(&JOBS, BY_NUMBER).limit(1);
    let cursor = store.find(query.clone()).await.unwrap().next.unwrap();
    query.order = Order { fields: &["runAt"], descending: false };
    query.after = Some(cursor);
    assert!(matches!(store.find(query).await, Err(StoreError::Refused { .. })));
    assert!(Cursor::parse("bm90IGEgY3Vyc29y").is_err());
    assert!(Cursor::parse("\u{0}").is_err());
}

fn claim(max: usize, token: ClaimToken) -> Claim {
    let due = Query::new(&JOBS, Order { fields: &["runAt", "jobNumber"], descending: false })
        .filter(Filter::Is("status", json!("QUEUED")))
        .filter(Filter::Is("priority", json!(5)))
        .filter(Filter::AtMost("runAt", 2_000))
        .limit(max);
    Claim {
        collection: &JOBS,
        from: vec![due],
        max,
        set: vec![("status", json!("STARTED")), ("owner", json!("me")), ("metadata.updatedAt", json!(5))],
        add_one: Some("epoch"),
        token: ("claimToken", token),
    }
}

fn token(number: u8) -> ClaimToken {
    ClaimToken::rising(UnixMillis(0), &[number; 10])
}

/// Sixteen at once take everything, and nothing twice.
pub async fn claims_never_overlap(store: Subject) {
    fill(&store, 400).await;
    let takers = (0..16u8).map(|taker| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut mine = Vec::new();
            loop {
                let taken = store.claim(claim(7, token(taker))).await.unwrap();
                if taken.is_empty() {
                    return mine;
                }
                mine.extend(taken.into_iter().map(|document| document.id));
            }
        })
    });
    let mut all = Vec::new();
    for taker in takers.collect::<Vec<_>>() {
        all.extend(taker.await.unwrap());
    }
    assert_eq!(all.len(), 400);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 400);
}

pub async fn a_claim_marks_what_it_takes(store: Subject) {
    fill(&store, 5).await;
    let taken = store.claim(claim(2, token(1))).await.unwrap();
    let ids: Vec<_> = taken.iter().map(|document| document.id.as_str()).collect();
    assert_eq!(ids, ["job-0004", "job-0003"], "the earliest run-at comes first");
    for document in &taken {
        let (version, stored) = read(&store, key(&document.id)).await.unwrap();
        assert_eq!((version, &stored), (document.version, &Value::Object(document.body.clone())));
        assert_eq!(stored["status"], "STARTED");
        assert_eq!(stored["epoch"], 1);
        assert_eq!(stored["claimToken"], json!(token(1)));
    }
    let rest = store.claim(claim(10, token(2))).await.unwrap();
    assert_eq!(rest.len(), 3);
}

pub async fn numbers_are_never_given_twice(store: Subject) {
    let takers = (0..8u64).map(|taker| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut mine = Vec::new();
            for _ in 0..20 {
                mine.extend(store.sequence("jobs", taker + 1).await.unwrap());
            }
            assert!(mine.is_sorted(), "they rise for one caller");
            mine
        })
    });
    let (mut all, mut count) = (BTreeSet::new(), 0);
    for taker in takers.collect::<Vec<_>>() {
        let mine = taker.await.unwrap();
        count += mine.len();
        all.extend(mine);
    }
    assert_eq!(all.len(), count);
    assert_eq!(all.first(), Some(&1));
    assert_eq!(store.sequence("others", 1).await.unwrap(), 1..2);
}

pub async fn changes_are_hinted(store: Subject) {
    let mut changes = store.changes(&JOBS);
    let elsewhere = Write::Create { key: Key::new(&USERS, "local:a"), body: Body::new() };
    applied(&store, elsewhere).await;
    applied(&store, create(1)).await;
    let hint = |is_new| News::Of(vec![Hint { collection: &JOBS, id: "job-0001".to_owned(), is_new }]);
    assert_eq!(changes.next().await, hint(true));
    store.claim(claim(1, token(1))).await.unwrap();
    assert_eq!(changes.next().await, hint(false));
}

pub async fn nonsense_is_refused(store: Subject) {
    let version = applied(&store, create(1)).await;
    let before = read(&store, key("job-0001")).await;
    let wrong = [
        Write::Create { key: key("job-2"), body: body(json!({"jobNumber": "two"})) },
        Write::Change { key: key("job-0001"), version, fields: vec![("jobName", json!("fixed"))] },
        Write::Change { key: key("job-0001"), version, fields: vec![("nowhere", json!(1))] },
        Write::Change { key: key("job-0001"), version, fields: vec![("epoch", json!("one"))] },
    ];
    for write in wrong {
        let refused = store.write(vec![write.clone()]).await;
        assert!(matches!(refused, Err(StoreError::Refused { .. })), "{write:?}: {refused:?}");
    }
    let queries = [
        Query::new(&JOBS, BY_NUMBER).filter(Filter::Is("nowhere", json!(1))),
        Query::new(&JOBS, BY_NUMBER).filter(Filter::AtLeast("status", 1)),
        Query::new(&JOBS, BY_NUMBER).filter(Filter::Is("result", json!({}))),
        Query::new(&JOBS, Order { fields: &["nowhere"], descending: true }),
        Query::new(&JOBS, BY_NUMBER).limit(0),
        Query::new(&JOBS, BY_NUMBER).limit(1_001),
    ];
    for query in queries {
        assert!(matches!(store.find(query).await, Err(StoreError::Refused { .. })));
    }
    assert_eq!(read(&store, key("job-0001")).await, before);
    assert_eq!(read(&store, key("job-2")).await, None);
}

pub async fn odd_text_survives(store: Subject) {
    let odd = "\u{1F980} ' \" % \\ \r\n\t \u{202e} ; DROP TABLE jobs";
    let mut document = job(1);
    document.insert("jobName".to_owned(), json!(odd));
    document.insert(odd.to_owned(), json!({"1": [odd, 1.5, -0.25, true, null, i64::MAX]}));
    document.insert("result".to_owned(), json!({"text": "x".repeat(1_000_000)}));
    applied(&store, Write::Create { key: key(odd), body: document.clone() }).await;
    assert_eq!(read(&store, key(odd)).await.unwrap().1, Value::Object(document));
    let by_name = Query::new(&JOBS, BY_NUMBER).filter(Filter::Is("jobName", json!(odd)));
    assert_eq!(numbers(&store, by_name).await, [1]);
}
