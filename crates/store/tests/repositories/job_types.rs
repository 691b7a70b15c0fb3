//! Job types: a domain's own stand before the installation's, and behind a damaged one there is nothing.

use rota_model::job_type::JobType;
use rota_model::time::UnixMillis;
use rota_store::StoreError;
use rota_store::collection::JOB_TYPES;
use rota_store::job_types::JobTypes;
use rota_store::repository::{Created, Saved};
use rota_store::seam::Key;
use serde_json::json;

use super::{Arc, domain, new, put, store};

fn job_type(owner: Option<&str>, kind: &str, attempts: u32) -> JobType {
    let kind = kind.to_owned();
    JobType { domain: owner.map(domain), kind, attempts: Some(attempts), ..JobType::default() }
}

async fn filled(store: &Arc<dyn rota_store::Store>) -> JobTypes {
    let types = JobTypes::new(Arc::clone(store));
    for made in [
        job_type(None, "http", 1),
        job_type(None, "wait", 2),
        job_type(Some("red"), "http", 3),
        job_type(Some("red"), "invoice", 4),
        job_type(Some("blue"), "wait", 5),
    ] {
        new(types.create(made).await.unwrap());
    }
    types
}

#[tokio::test]
async fn a_type_means_the_domains_own_and_otherwise_the_installations() {
    let types = filled(&store()).await;
    for (owner, kind, attempts) in
        [("red", "http", 3), ("red", "wait", 2), ("blue", "http", 1), ("blue", "wait", 5)]
    {
        let found = types.get(&domain(owner), kind).await.unwrap().unwrap();
        assert_eq!(found.document.attempts, Some(attempts), "{owner} {kind}");
    }
    assert_eq!(types.get(&domain("blue"), "invoice").await.unwrap(), None);
    assert_eq!(types.own(&domain("red"), "wait").await.unwrap(), None, "it is the installation's");
    assert!(types.own(&domain("red"), "http").await.unwrap().is_some());
    assert_eq!(
        (types.count(&domain("red")).await.unwrap(), types.count(&domain("green")).await.unwrap()),
        (2, 0)
    );
}

#[tokio::test]
async fn a_domain_lists_each_type_as_it_would_find_it() {
    let types = filled(&store()).await;
    let listed = types.of_domain(&domain("red")).await.unwrap();
    let listed: Vec<_> =
        listed.iter().map(|found| (found.document.kind.as_str(), found.document.attempts)).collect();
    assert_eq!(listed, [("http", Some(3)), ("invoice", Some(4)), ("wait", Some(2))]);
    assert_eq!(types.of_domain(&domain("green")).await.unwrap().len(), 2);
}

#[tokio::test]
async fn built_in_types_are_found_beyond_the_first_page() {
    let store = store();
    let types = filled(&store).await;
    for nth in 0..1_100 {
        new(types.create(job_type(None, &format!("more-{nth:04}"), 1)).await.unwrap());
    }
    assert_eq!(types.of_domain(&domain("blue")).await.unwrap().len(), 1_102);
}

#[tokio::test]
async fn a_damaged_type_is_not_replaced_by_the_installations() {
    let store = store();
    let types = filled(&store).await;
    put(
        &store,
        Key::new(&JOB_TYPES, "green:http"),
        json!({"domain": "green", "type": "http", "attempts": "x"}),
    )
    .await;
    assert!(matches!(types.get(&domain("green"), "http").await, Err(StoreError::Damaged { .. })));
}

#[tokio::test]
async fn a_type_is_changed_on_the_version_that_was_read() {
    let types = filled(&store()).await;
    let again = types.create(job_type(Some("red"), "http", 9)).await.unwrap();
    assert!(matches!(again, Created::Exists(_)));
    let read = types.get(&domain("red"), "http").await.unwrap().unwrap();
    let after = job_type(Some("red"), "http", 9);
    assert!(matches!(types.save(&read, &after).await.unwrap(), Saved::Applied(_)));
    assert_eq!(types.save(&read, &after).await.unwrap(), Saved::Overtaken);
    let read = types.get(&domain("red"), "http").await.unwrap().unwrap();
    assert_eq!(read.document, after);
    assert!(matches!(types.delete(&read, UnixMillis(1)).await.unwrap(), Saved::Applied(_)));
    let behind = types.get(&domain("red"), "http").await.unwrap().unwrap();
    assert_eq!(behind.document, job_type(None, "http", 1));
}

#[tokio::test]
async fn many_types_are_read_at_once_each_as_it_would_be_alone() {
    let store = store();
    let types = filled(&store).await;
    put(
        &store,
        Key::new(&JOB_TYPES, "blue:broken"),
        json!({"domain": "blue", "type": "broken", "attempts": "many"}),
    )
    .await;
    let asked =
        [("red", "http"), ("blue", "http"), ("blue", "nobody's"), ("blue", "broken"), ("red", "wait")];
    let asked: Vec<_> = asked.iter().map(|(owner, kind)| (domain(owner), (*kind).to_owned())).collect();
    let found = types.get_each(&asked).await.unwrap();
    let attempts: Vec<_> =
        found.iter().map(|found| found.as_ref().ok().map(|found| found.as_ref()?.attempts)).collect();
    assert_eq!(attempts, [Some(Some(3)), Some(Some(1)), Some(None), None, Some(Some(2))]);
}

#[tokio::test]
async fn types_that_limit_something_are_found_without_the_others() {
    let types = filled(&store()).await;
    let kinds = async || {
        let mut kinds: Vec<_> = types.limited().await.unwrap().into_iter().map(|found| found.kind).collect();
        kinds.sort();
        kinds
    };
    assert_eq!(kinds().await, Vec::<String>::new());
    let before = types.own(&domain("red"), "invoice").await.unwrap().unwrap();
    let limited = JobType { concurrency: Some(2), ..before.document.clone() };
    let Saved::Applied(version) = types.save(&before, &limited).await.unwrap() else {
        panic!("nobody else writes")
    };
    new(types.create(JobType { starts_per_second: Some(0.5), ..job_type(None, "exec", 1) }).await.unwrap());
    assert_eq!(kinds().await, ["exec", "invoice"]);
    let read = types.own(&domain("red"), "invoice").await.unwrap().unwrap();
    assert_eq!((read.version, &read.document), (version, &limited), "nothing is added to it");
    types.save(&read, &before.document).await.unwrap();
    assert_eq!(kinds().await, ["exec"], "it limits nothing any more");
}
