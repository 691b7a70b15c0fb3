//! Collections that each domain has for itself: an id names one document in each, and a list may go over all of them.

use rota_model::time::UnixMillis;
use rota_store::collection::{EXECUTIONS, TIMERS};
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Write, Written};
use serde_json::{Value, json};

use super::Subject;
use super::examples::{body, delete, domain, execution, timer, timer_body};
use super::patience::{caught_up, eventually};
use super::verbs::{applied, one, read, total, walk};

const IDS: [&str; 4] = ["a", "b", "c", "d"];
/// Some begin like others, and the dash that divides them from the collection's name stands in them, too.
const DOMAINS: [&str; 4] = ["a", "a-a", "b", "default"];

fn timers(order: Order) -> Query {
    Query::new(&TIMERS, order)
}

async fn fill_domains(store: &Subject) {
    for name in DOMAINS {
        let domain = domain(name);
        let make =
            |(section, id)| Write::Create { key: timer(&domain, id), body: timer_body(&domain, id, section) };
        store.write((0..).zip(IDS).map(make).collect()).await.unwrap();
    }
    caught_up(store, timers(Order::BY_ID), 16).await;
}

/// As people say it: `timers-default/a`.
async fn keys(store: &Subject, query: Query) -> Vec<String> {
    walk(store, query).await.iter().map(|document| document.key.to_string()).collect()
}

pub async fn an_id_is_free_in_every_domain(store: Subject) {
    let (here, there) = (domain("here"), domain("there"));
    let make = |domain| Write::Create { key: timer(domain, "t"), body: timer_body(domain, "t", 1) };
    let first = applied(&store, make(&here)).await;
    assert_eq!(read(&store, timer(&there, "t")).await, None);
    let replace =
        Write::Replace { key: timer(&there, "t"), version: first, body: timer_body(&there, "t", 9) };
    assert_eq!(one(&store, replace).await, Written::Missing);
    let second = applied(&store, make(&there)).await;
    assert_eq!(one(&store, make(&here)).await, Written::Exists);

    applied(&store, delete(timer(&here, "t"), first)).await;
    assert_eq!(read(&store, timer(&here, "t")).await, None);
    let other = read(&store, timer(&there, "t")).await;
    assert_eq!(other, Some((second, Value::Object(timer_body(&there, "t", 1)))));
    let hidden = |domain| timers(Order::BY_ID).in_domain(domain).hidden_before(UnixMillis(1));
    eventually(&store, vec!["timers-here/t".to_owned()], async || keys(&store, hidden(&here)).await).await;
    assert_eq!(keys(&store, hidden(&there)).await, Vec::<String>::new());
}

pub async fn a_domain_is_asked_by_itself(store: Subject) {
    fill_domains(&store).await;
    for name in DOMAINS {
        let mine = || timers(Order::BY_ID).in_domain(&domain(name)).limit(3);
        let expected = IDS.map(|id| format!("timers-{name}/{id}"));
        assert_eq!(keys(&store, mine()).await, expected);
        let some = mine().filter(Filter::AtLeast("section", 2));
        assert_eq!(keys(&store, some.clone()).await, expected[2..]);
        assert_eq!(total(&store, some).await, 2);
        assert_eq!(store.count(mine(), Some("status")).await.unwrap()[0].count, 4);
        for found in walk(&store, mine()).await {
            assert_eq!(found.body["name"], json!(format!("{name} {}", found.key.id)));
        }
    }
    let nobody = || timers(Order::BY_ID).in_domain(&domain("nobody"));
    assert_eq!(keys(&store, nobody()).await, Vec::<String>::new());
    assert_eq!(total(&store, nobody()).await, 0);
}

pub async fn all_domains_are_one_list(store: Subject) {
    fill_domains(&store).await;
    let by_id: Vec<String> =
        DOMAINS.iter().flat_map(|domain| IDS.map(|id| format!("timers-{domain}/{id}"))).collect();
    let by_section: Vec<String> =
        IDS.iter().flat_map(|id| DOMAINS.map(|domain| format!("timers-{domain}/{id}"))).collect();
    let sections = |descending| Order { fields: &["section"], descending };
    let reversed = |keys: &[String]| keys.iter().rev().cloned().collect::<Vec<_>>();
    for limit in [1, 3, 4, 5, 16, 1_000] {
        assert_eq!(keys(&store, timers(Order::BY_ID).limit(limit)).await, by_id, "pages of {limit}");
        let falling = Order { fields: &[], descending: true };
        assert_eq!(keys(&store, timers(falling).limit(limit)).await, reversed(&by_id), "pages of {limit}");
        let bare = timers(sections(false)).limit(limit).keys_only();
        assert_eq!(keys(&store, bare).await, by_section, "pages of {limit}");
        let falling = timers(sections(true)).limit(limit);
        assert_eq!(keys(&store, falling).await, reversed(&by_section), "pages of {limit}");
    }
    assert_eq!(store.count(timers(Order::BY_ID), Some("section")).await.unwrap().len(), 4);
}

/// Only the domain tells them apart.
pub async fn equal_documents_of_all_domains_are_shown_once(store: Subject) {
    for name in DOMAINS {
        let body = body(json!({"timer_uuid": "same", "due": 5, "outcome": "FIRED"}));
        applied(&store, Write::Create { key: execution(&domain(name), "same"), body }).await;
    }
    for descending in [false, true] {
        let order = Order { fields: &["timer_uuid", "due"], descending };
        let list = || Query::new(&EXECUTIONS, order).filter(Filter::Is("outcome", json!("FIRED"))).limit(1);
        let mut expected = DOMAINS.map(|name| format!("executions-{name}/same"));
        if descending {
            expected.reverse();
        }
        eventually(&store, expected.to_vec(), async || keys(&store, list()).await).await;
    }
}
