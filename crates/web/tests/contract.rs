//! What is promised to callers. The OpenAPI document is a golden file: a change of the contract shows in the review. `cargo xtask bless` writes it.

use rota_model::time::UnixMillis;
use rota_model::user::UserId;
use rota_web::problem::Kind;

#[test]
fn golden_openapi() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/openapi.json");
    let document = rota_web::contract::document().to_pretty_json().unwrap() + "\n";
    if std::env::var_os("ROTA_BLESS").is_some() {
        std::fs::write(path, &document).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    assert!(golden == document, "the contract changed: run `cargo xtask bless` and look at the difference");
}

/// Programs decide by the type of a problem: each has its line in the documentation, with its status.
#[test]
fn every_kind_of_problem_is_documented() {
    let documented = include_str!("../../../docs/problems.md");
    for Kind(name, _, status) in Kind::ALL {
        let row = format!("| `{name}` | {} |", status.as_u16());
        assert!(documented.contains(&row), "{row}");
    }
    assert_eq!(documented.lines().filter(|line| line.starts_with("| `")).count(), Kind::ALL.len());
}

/// Programs that are made from the contract call a route by its name.
#[test]
fn every_route_has_a_name_of_its_own() {
    let contract = serde_json::to_value(rota_web::contract::document()).unwrap();
    let operations =
        contract["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values());
    let mut names: Vec<_> = operations.map(|operation| operation["operationId"].as_str().unwrap()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "{names:?}");
}

/// What a caller may send is said as it is taken: no more, no less.
#[test]
fn the_contract_says_what_is_taken() {
    let contract = serde_json::to_value(rota_web::contract::document()).unwrap();
    let schemas = &contract["components"]["schemas"];
    assert_eq!(schemas["NewJobs"]["additionalProperties"], false);
    assert_eq!(schemas["JobsToDelete"]["properties"]["section"]["maximum"], u32::MAX);
    assert_eq!(schemas["NewJob"]["properties"]["runAt"]["maximum"], UnixMillis::MAX.0);
    let pattern = regex::Regex::new(schemas["UserId"]["pattern"].as_str().unwrap()).unwrap();
    for id in ["local:alice", "google:1093", "a:é", "a:b:c"] {
        assert!(pattern.is_match(id) && id.parse::<UserId>().is_ok(), "{id}");
    }
    for id in ["alice", ":alice", "local:", "Local:a", "local:a b", "local:a/b", "local:a\u{7}"] {
        assert!(!pattern.is_match(id) && id.parse::<UserId>().is_err(), "{id}");
    }
}

/// A stream is described by its events.
#[test]
fn streams_are_described_by_their_events() {
    let contract = serde_json::to_value(rota_web::contract::document()).unwrap();
    for path in ["/api/v1/events", "/api/v1/logs", "/api/v1/domains/{domain}/events"] {
        let content = &contract["paths"][path]["get"]["responses"]["200"]["content"]["text/event-stream"];
        assert_eq!(content["schema"]["$ref"], "#/components/schemas/StreamEvent", "{path}");
    }
}
