//! Deleting: at once where the collection says so; elsewhere a document is hidden, and its id taken, until it is purged.

use rota_model::time::UnixMillis;
use rota_store::collection::{Collection, JOBS, TIMERS, USERS};
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Key, Version, Write, Written};
use serde_json::{Value, json};

use super::Subject;
use super::examples::{
    body, change, claim, create, delete, domain, job, jobs, numbered, timer, timer_body, token, user,
};
use super::patience::{caught_up, eventually};
use super::verbs::{applied, fill, ids, job_numbers, kinds, one, read, total, walk};

fn hide(key: Key, version: Version, at: i64) -> Write {
    Write::Delete { key, version, at: UnixMillis(at) }
}

/// A document of each collection that hides, with a body that could take its place.
fn hiding() -> [(&'static Collection, Key, Body); 2] {
    let here = domain("here");
    [(&JOBS, numbered(1), job(1)), (&TIMERS, timer(&here, "t"), timer_body(&here, "t", 1))]
}

pub async fn what_is_hidden_is_not_seen(store: Subject) {
    for (collection, key, body) in hiding() {
        let version = applied(&store, Write::Create { key: key.clone(), body }).await;
        let all = || Query::new(collection, Order::BY_ID);
        caught_up(&store, all(), 1).await;
        applied(&store, hide(key.clone(), version, 50)).await;
        assert_eq!(read(&store, key).await, None);
        eventually(&store, Vec::<String>::new(), async || ids(&store, all()).await).await;
        caught_up(&store, all(), 0).await;
        eventually(&store, vec![], async || store.count(all(), Some("status")).await.unwrap()).await;
    }
    assert_eq!(store.claim(claim(10, token(1))).await.unwrap(), []);
}

pub async fn a_hidden_id_stays_taken(store: Subject) {
    for (_, key, body) in hiding() {
        let version = applied(&store, Write::Create { key: key.clone(), body: body.clone() }).await;
        let hidden = applied(&store, hide(key.clone(), version, 50)).await;
        assert_ne!(version, hidden);
        assert_eq!(
            one(&store, Write::Create { key: key.clone(), body: body.clone() }).await,
            Written::Exists
        );
        for version in [version, hidden] {
            let replace = Write::Replace { key: key.clone(), version, body: body.clone() };
            let change = change(key.clone(), version, vec![]);
            let answers = store.write(vec![replace, change, delete(key.clone(), version)]).await.unwrap();
            assert_eq!(kinds(&answers), ["missing"; 3]);
        }
        assert_eq!(read(&store, key).await, None);
    }
}

pub async fn hidden_documents_are_found_from_their_instant_on(store: Subject) {
    for (collection, key, body) in hiding() {
        let version = applied(&store, Write::Create { key: key.clone(), body: body.clone() }).await;
        let hidden = applied(&store, hide(key.clone(), version, 50)).await;
        let before = |at| Query::new(collection, Order::BY_ID).hidden_before(UnixMillis(at));
        eventually(&store, vec![key.id.clone()], async || ids(&store, before(50)).await).await;
        assert_eq!(ids(&store, before(i64::MAX)).await, std::slice::from_ref(&key.id));
        assert_eq!(ids(&store, before(49)).await, Vec::<String>::new());
        assert_eq!(ids(&store, before(i64::MIN)).await, Vec::<String>::new());
        let found = walk(&store, before(51)).await;
        let [found] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((&found.key, found.version, &found.body), (&key, hidden, &body));
        eventually(&store, 1, async || total(&store, before(50)).await).await;
        assert_eq!(total(&store, before(49)).await, 0);
    }
}

/// Lists and counts of hidden documents know filters, orders and pages like those of the others.
pub async fn hidden_documents_are_listed_like_others(store: Subject) {
    fill(&store, 12).await;
    for number in 0..8 {
        let (version, _) = read(&store, numbered(number)).await.unwrap();
        applied(&store, hide(numbered(number), version, 100 + number)).await;
    }
    let hidden = || {
        Query { order: Order { fields: &["jobNumber"], descending: true }, ..jobs() }
            .hidden_before(UnixMillis(105))
            .filter(Filter::AtLeast("jobNumber", 1))
            .limit(2)
    };
    eventually(&store, vec![5, 4, 3, 2, 1], async || job_numbers(&store, hidden()).await).await;
    eventually(&store, 5, async || total(&store, hidden()).await).await;
    let by_status = async || store.count(hidden(), Some("status")).await.unwrap();
    eventually(&store, 5, async || by_status().await.first().map_or(0, |tally| tally.count)).await;
    eventually(&store, vec![8, 9, 10, 11], async || job_numbers(&store, jobs()).await).await;
}

pub async fn purging_frees_the_id(store: Subject) {
    for (collection, key, body) in hiding() {
        let version = applied(&store, Write::Create { key: key.clone(), body: body.clone() }).await;
        let hidden = applied(&store, hide(key.clone(), version, 50)).await;
        applied(&store, Write::Purge { key: key.clone(), version: hidden }).await;
        let before = || Query::new(collection, Order::BY_ID).hidden_before(UnixMillis(i64::MAX));
        eventually(&store, Vec::<String>::new(), async || ids(&store, before()).await).await;
        assert_eq!(one(&store, Write::Purge { key: key.clone(), version: hidden }).await, Written::Missing);
        let anew = applied(&store, Write::Create { key: key.clone(), body: body.clone() }).await;
        assert_eq!(read(&store, key.clone()).await, Some((anew, Value::Object(body.clone()))));
        for late in [version, hidden] {
            assert_ne!(late, anew);
            let replace = Write::Replace { key: key.clone(), version: late, body: Body::new() };
            let answers = store.write(vec![replace, delete(key.clone(), late)]).await.unwrap();
            assert_eq!(kinds(&answers), ["conflict"; 2]);
        }
    }
}

pub async fn only_what_is_hidden_is_purged(store: Subject) {
    for (_, key, body) in hiding() {
        let version = applied(&store, Write::Create { key: key.clone(), body: body.clone() }).await;
        let purge = |version| Write::Purge { key: key.clone(), version };
        assert_eq!(one(&store, purge(version)).await, Written::Conflict, "it is there");
        let hidden = applied(&store, hide(key.clone(), version, 50)).await;
        assert_eq!(one(&store, purge(version)).await, Written::Conflict, "another version was hidden");
        assert_eq!(one(&store, Write::Create { key: key.clone(), body }).await, Written::Exists);
        applied(&store, purge(hidden)).await;
    }
    let version = applied(&store, Write::Create { key: user("u"), body: Body::new() }).await;
    assert_eq!(one(&store, Write::Purge { key: user("u"), version }).await, Written::Conflict);
    assert_eq!(read(&store, user("u")).await, Some((version, json!({}))));
}

pub async fn what_is_not_hidden_is_gone_at_once(store: Subject) {
    let make = || Write::Create { key: user("u"), body: body(json!({"hashed_api_key": ["old"]})) };
    let all = || Query::new(&USERS, Order::BY_ID);
    let old = || all().filter(Filter::Is("hashed_api_key", json!("old")));
    let version = applied(&store, make()).await;
    eventually(&store, 1, async || ids(&store, old()).await.len()).await;
    applied(&store, delete(user("u"), version)).await;
    assert_eq!(read(&store, user("u")).await, None);
    eventually(&store, 0, async || ids(&store, old()).await.len()).await;
    caught_up(&store, all(), 0).await;
    assert_eq!(one(&store, Write::Purge { key: user("u"), version }).await, Written::Missing);
    assert_eq!(one(&store, delete(user("u"), version)).await, Written::Missing);

    let anew = applied(&store, Write::Create { key: user("u"), body: body(json!({"n": 1})) }).await;
    assert_eq!(read(&store, user("u")).await, Some((anew, json!({"n": 1}))));
    assert_eq!(one(&store, make()).await, Written::Exists);
    caught_up(&store, all(), 1).await;
    assert_eq!(ids(&store, old()).await, Vec::<String>::new(), "nothing is left of its predecessor");
}

/// Two that were deleted at different instants are purged each at its own time.
pub async fn what_was_deleted_first_is_purged_first(store: Subject) {
    let versions = [applied(&store, create(1)).await, applied(&store, create(2)).await];
    applied(&store, hide(numbered(1), versions[0], 2_000)).await;
    applied(&store, hide(numbered(2), versions[1], 1_000)).await;
    let before = |at| jobs().hidden_before(UnixMillis(at));
    eventually(&store, vec![1, 2], async || job_numbers(&store, before(2_000)).await).await;
    assert_eq!(job_numbers(&store, before(1_999)).await, [2]);
    assert_eq!(job_numbers(&store, before(999)).await, Vec::<i64>::new());
}
