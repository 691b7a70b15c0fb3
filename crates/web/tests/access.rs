//! Who may do what: every route × every role × every domain. What is expected stands here once more, by hand, so that
//! a route that is added or opened by mistake fails this test.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

mod stage;

use std::collections::{BTreeMap, BTreeSet};

use rota_model::user::{NewKey, Role};
use rota_testkit::process::KEY;
use serde_json::json;
use stage::{Stage, stage};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Open {
    ToAll,
    ToKeys,
    InDomain(Role),
    ToOneself,
    Everywhere,
    ToInstallation,
}

const EXPECTED: &[(&str, &str, Open)] = &[
    ("GET", "/api/ping", Open::ToAll),
    ("GET", "/api/deep_ping", Open::ToKeys),
    ("POST", "/api/v1/session", Open::ToAll),
    ("GET", "/api/v1/session", Open::ToKeys),
    ("DELETE", "/api/v1/session", Open::ToKeys),
    ("GET", "/api/v1/openapi.json", Open::ToKeys),
    ("GET", "/api/v1/domains", Open::ToKeys),
    ("POST", "/api/v1/domains", Open::ToInstallation),
    ("GET", "/api/v1/domains/{domain}", Open::InDomain(Role::Viewer)),
    ("PUT", "/api/v1/domains/{domain}", Open::InDomain(Role::Admin)),
    ("GET", "/api/v1/domains/{domain}/jobs", Open::InDomain(Role::Viewer)),
    ("POST", "/api/v1/domains/{domain}/jobs", Open::InDomain(Role::Operator)),
    ("POST", "/api/v1/domains/{domain}/jobs/batch", Open::InDomain(Role::Operator)),
    ("POST", "/api/v1/domains/{domain}/jobs/delete", Open::InDomain(Role::Operator)),
    ("GET", "/api/v1/domains/{domain}/jobs/counts", Open::InDomain(Role::Viewer)),
    ("GET", "/api/v1/domains/{domain}/jobs/{jobId}", Open::InDomain(Role::Viewer)),
    ("DELETE", "/api/v1/domains/{domain}/jobs/{jobId}", Open::InDomain(Role::Operator)),
    ("POST", "/api/v1/domains/{domain}/jobs/{jobId}/cancel", Open::InDomain(Role::Operator)),
    ("POST", "/api/v1/domains/{domain}/jobs/{jobId}/requeue", Open::InDomain(Role::Operator)),
    ("GET", "/api/v1/domains/{domain}/jobs/{jobId}/waiting", Open::InDomain(Role::Viewer)),
    ("GET", "/api/v1/domains/{domain}/job-types", Open::InDomain(Role::Viewer)),
    ("GET", "/api/v1/domains/{domain}/job-types/{type}", Open::InDomain(Role::Viewer)),
    ("PUT", "/api/v1/domains/{domain}/job-types/{type}", Open::InDomain(Role::Admin)),
    ("DELETE", "/api/v1/domains/{domain}/job-types/{type}", Open::InDomain(Role::Admin)),
    ("POST", "/api/v1/domains/{domain}/timers/preview", Open::InDomain(Role::Viewer)),
    ("GET", "/api/v1/domains/{domain}/events", Open::InDomain(Role::Viewer)),
    ("GET", "/api/v1/events", Open::ToInstallation),
    ("GET", "/api/v1/observer", Open::ToInstallation),
    ("GET", "/api/v1/domains/{domain}/logs", Open::InDomain(Role::Viewer)),
    ("GET", "/api/v1/logs", Open::ToInstallation),
    ("GET", "/api/v1/metrics", Open::Everywhere),
    ("GET", "/metrics", Open::Everywhere),
    ("GET", "/api/v1/nodes", Open::ToInstallation),
    ("POST", "/api/v1/nodes/{id}/pause", Open::ToInstallation),
    ("POST", "/api/v1/nodes/{id}/resume", Open::ToInstallation),
    ("POST", "/api/v1/nodes/{id}/drain", Open::ToInstallation),
    ("GET", "/api/v1/users", Open::ToInstallation),
    ("POST", "/api/v1/users", Open::ToInstallation),
    ("GET", "/api/v1/users/{id}", Open::ToInstallation),
    ("PUT", "/api/v1/users/{id}", Open::ToInstallation),
    ("DELETE", "/api/v1/users/{id}", Open::ToInstallation),
    ("GET", "/api/v1/users/{id}/keys", Open::ToOneself),
    ("POST", "/api/v1/users/{id}/keys", Open::ToOneself),
    ("DELETE", "/api/v1/users/{id}/keys/{keyId}", Open::ToOneself),
];

#[derive(Clone)]
struct Person {
    name: &'static str,
    key: Option<String>,
    /// The role in `red`; nobody but the administrator has one in `blue`.
    role: Option<Role>,
    installation: bool,
    /// Whether the role is one in every domain.
    everywhere: bool,
    limited: bool,
}

async fn people(stage: &Stage) -> Vec<Person> {
    let person = |name, key: Option<String>, role| {
        let (installation, everywhere, limited) = (false, false, false);
        Person { name, key, role, installation, everywhere, limited }
    };
    let mut people = vec![
        person("nobody", None, None),
        person("stranger", Some("rota_not_a_key_of_this_installation".to_owned()), None),
        Person {
            installation: true,
            everywhere: true,
            ..person("admin", Some(KEY.to_owned()), Some(Role::Admin))
        },
    ];
    for (name, role) in [("vera", Role::Viewer), ("otto", Role::Operator), ("anna", Role::Admin)] {
        people.push(person(name, Some(stage.user(name, "red", role).await), Some(role)));
    }
    let viewing = NewKey { name: "read only".to_owned(), role: Some(Role::Viewer), ..NewKey::default() };
    let key = Some(stage.key("anna", viewing.clone()).await);
    people.push(Person { limited: true, ..person("anna", key, Some(Role::Viewer)) });
    let key = Some(stage.key("admin", viewing.clone()).await);
    people.push(Person { everywhere: true, limited: true, ..person("admin", key, Some(Role::Viewer)) });
    let elsewhere = NewKey { domain: Some("blue".parse().unwrap()), ..viewing };
    let key = Some(stage.key("otto", elsewhere).await);
    people.push(Person { limited: true, ..person("otto", key, None) });
    people
}

/// What a person must be told, or none if the request must be let through.
fn refusal(open: Open, person: &Person, domain: &str, user: &str) -> Option<u16> {
    if open == Open::ToAll {
        return None;
    }
    if person.key.is_none() || person.name == "stranger" {
        return Some(401);
    }
    match open {
        Open::ToAll | Open::ToKeys => None,
        Open::ToInstallation => (!person.installation).then_some(403),
        Open::Everywhere => (!person.everywhere).then_some(403),
        Open::ToOneself if person.limited => Some(403),
        Open::ToOneself => (!person.installation && user != format!("local:{}", person.name)).then_some(404),
        Open::InDomain(needed) => {
            let role = person.role.filter(|_| domain == "red" || person.everywhere);
            match role {
                _ if domain == "nowhere" => Some(404),
                None => Some(404),
                Some(held) => (held < needed).then_some(403),
            }
        }
    }
}

#[tokio::test]
async fn every_route_asks_for_what_it_needs() {
    let stage = stage().await;
    let people = people(&stage).await;
    let job = json!({"jobName": "j", "input": {"type": "noop"}});
    let mut jobs = BTreeMap::new();
    for domain in ["red", "blue"] {
        let made = stage.post(&format!("/api/v1/domains/{domain}/jobs"), job.clone()).await;
        jobs.insert(domain, made.body["jobId"].as_str().unwrap().to_owned());
    }
    let mut checked = 0;
    for (method, template, open) in EXPECTED {
        for person in &people {
            for domain in ["red", "blue", "nowhere"] {
                for user in ["local:otto", "local:anna"] {
                    let job = jobs.get(domain).map_or("11111111-1111-7111-8111-111111111111", String::as_str);
                    let path = template.replace("{domain}", domain).replace("{jobId}", job);
                    let path = path
                        .replace("{id}", user)
                        .replace("{keyId}", "0123456789ab")
                        .replace("{type}", "wait");
                    // A body that is never accepted: whoever gets as far as having it refused was let in.
                    let body = (*method == "POST" || *method == "PUT").then(|| json!({"nonsense": true}));
                    if *method == "DELETE" && template.ends_with("{id}") && person.installation {
                        continue;
                    }
                    let answer = stage.call(method, &path, person.key.as_deref(), body).await;
                    let status = answer.status.as_u16();
                    let case = format!(
                        "{} (limited: {}): {method} {path}: {status} {}",
                        person.name, person.limited, answer.body
                    );
                    match refusal(*open, person, domain, user) {
                        Some(expected) => assert_eq!(status, expected, "{case}"),
                        None => assert!(![401, 403].contains(&status) && status < 500, "{case}"),
                    }
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 900, "{checked}");
}

#[test]
fn the_table_above_lists_every_route() {
    let contract = serde_json::to_value(rota_web::contract::document()).unwrap();
    let mut declared = BTreeSet::new();
    for (path, item) in contract["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let security = operation["security"].as_array();
            let security = security.unwrap_or_else(|| panic!("{method} {path} does not say what it needs"));
            let open = EXPECTED.iter().find(|(m, p, _)| m.to_lowercase() == *method && p == path);
            let open = open.unwrap_or_else(|| panic!("{method} {path} is not in the table of this test")).2;
            assert_eq!(security[0] == json!({}), open == Open::ToAll, "{method} {path}");
            declared.insert((method.to_uppercase(), path.clone()));
        }
    }
    assert_eq!(declared.len(), EXPECTED.len());
}

#[tokio::test]
async fn what_is_permitted_works_and_another_domains_ids_are_not_there() {
    let stage = stage().await;
    let otto = stage.user("otto", "red", Role::Operator).await;
    let vera = stage.user("vera", "blue", Role::Viewer).await;
    let job = json!({"jobName": "j", "input": {"type": "noop"}});
    let made = stage.call("POST", "/api/v1/domains/red/jobs", Some(&otto), Some(job)).await;
    assert_eq!(made.status, 201);
    let id = made.body["jobId"].as_str().unwrap();
    let seen = stage.call("GET", &format!("/api/v1/domains/red/jobs/{id}"), Some(&otto), None).await;
    assert_eq!(seen.status, 200);
    let hidden = stage.call("GET", &format!("/api/v1/domains/blue/jobs/{id}"), Some(&vera), None).await;
    assert_eq!(hidden.status, 404);
    for (method, verb) in [("POST", "/cancel"), ("POST", "/requeue"), ("DELETE", "")] {
        let path = format!("/api/v1/domains/blue/jobs/{id}{verb}");
        assert_eq!(stage.call(method, &path, Some(KEY), None).await.status, 404, "{path}");
    }
    let path = "/api/v1/domains/blue/jobs/delete";
    let deleted = stage.call("POST", path, Some(KEY), Some(json!({"all": true}))).await;
    assert_eq!(deleted.body, json!({"deleted": 0}), "each domain has its own");
    let none = stage.call("GET", "/api/v1/domains/blue/jobs", Some(&vera), None).await;
    assert_eq!(none.body["items"], json!([]));
    let domains = stage.call("GET", "/api/v1/domains", Some(&vera), None).await;
    assert_eq!(domains.body["items"].as_array().unwrap().len(), 1);
    assert_eq!(domains.body["items"][0]["name"], "blue");
}

#[tokio::test]
async fn a_revoked_key_and_a_changed_role_count_at_once() {
    let stage = stage().await;
    let otto = stage.user("otto", "red", Role::Operator).await;
    let path = "/api/v1/domains/red/jobs";
    let job = json!({"jobName": "j", "input": {"type": "noop"}});
    assert_eq!(stage.call("POST", path, Some(&otto), Some(job.clone())).await.status, 201);
    let viewer = json!({"domains": {"red": "viewer"}});
    assert_eq!(stage.call("PUT", "/api/v1/users/local:otto", Some(KEY), Some(viewer)).await.status, 200);
    assert_eq!(stage.call("POST", path, Some(&otto), Some(job.clone())).await.status, 403);
    let keys = stage.call("GET", "/api/v1/users/local:otto/keys", Some(&otto), None).await;
    let id = keys.body["items"][0]["id"].as_str().unwrap().to_owned();
    let long = json!({"jobName": "j", "input": {"type": "wait", "payload": {"millis": 600_000}}});
    let long = stage.post(path, long).await.body["jobId"].as_str().unwrap().to_owned();
    let waits = format!("{path}/{long}?wait=2s");
    let waiting = stage.call("GET", &waits, Some(&otto), None);
    let revoking = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        let revoked =
            stage.call("DELETE", &format!("/api/v1/users/local:otto/keys/{id}"), Some(&otto), None).await;
        assert_eq!(revoked.status, 204);
    };
    let (waited, ()) = tokio::join!(waiting, revoking);
    assert_eq!(waited.status, 404, "who waited is told nothing any more");
    assert_eq!(stage.call("GET", path, Some(&otto), None).await.status, 401);
}

/// The cursor of a list must not tell what the list does not show.
#[tokio::test]
async fn a_tenant_learns_nothing_of_other_domains() {
    let stage = stage().await;
    let vera = stage.user("vera", "red", Role::Viewer).await;
    let list = async |path: &str| stage.call("GET", path, Some(&vera), None).await.body;
    let mut page = list("/api/v1/domains?limit=1").await;
    assert_eq!((page["items"][0]["name"].as_str(), page.get("next")), (Some("red"), None), "{page}");
    let both = json!({"domains": {"red": "viewer", "default": "viewer"}});
    stage.call("PUT", "/api/v1/users/local:vera", Some(KEY), Some(both)).await;
    page = list("/api/v1/domains?limit=1").await;
    assert_eq!(page["items"][0]["name"], "default");
    page = list(&format!("/api/v1/domains?limit=1&cursor={}", page["next"].as_str().unwrap())).await;
    assert_eq!((page["items"][0]["name"].as_str(), page.get("next")), (Some("red"), None));
}
