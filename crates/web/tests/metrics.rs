//! What was measured, over HTTP: the buckets of all nodes, and the text that Prometheus reads, held to its rules.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a surprise is a failure of the test"
)]

mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use axum::http::header;
use rota_model::user::{NewKey, Role};
use rota_testkit::process::KEY;
use serde_json::{Value, json};
use stage::{Stage, stage};
use tokio::time::sleep;
use tower::ServiceExt as _;

const JOBS: &str = "/api/v1/domains/default/jobs";

async fn run_jobs(stage: &Stage, count: usize) {
    for _ in 0..count {
        let job = json!({"jobName": "j", "input": {"type": "wait", "payload": {"millis": 20}}});
        let made = stage.post(JOBS, job).await;
        let path = format!("{JOBS}/{}?wait=30s", made.body["jobId"].as_str().unwrap());
        assert_eq!(stage.get(&path).await.body["status"], "SUCCESSFUL");
    }
}

/// A line of the text: its name, its labels, its value.
type Line = (String, BTreeMap<String, String>, f64);

#[derive(Default)]
struct Family {
    kind: String,
    lines: Vec<Line>,
}

/// Reads the text by the rules of the format, and panics where it breaks one.
fn parse(text: &str) -> BTreeMap<String, Family> {
    assert!(text.ends_with('\n') && !text.contains("\n\n") && !text.contains('\r'));
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let (mut current, mut helped) = (String::new(), String::new());
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(!help.is_empty() && is_name(name, true), "{line}");
            helped = name.to_owned();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, helped, "help comes first, and only once: {line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "by convention: {line}");
            current = name.to_owned();
            let new = Family { kind: kind.to_owned(), lines: Vec::new() };
            assert!(families.insert(current.clone(), new).is_none(), "each family stands together: {line}");
        } else {
            let read = sample(line);
            let family = families.get_mut(&current).unwrap();
            let rest = read.0.strip_prefix(&current).unwrap_or_else(|| panic!("{line} is not of {current}"));
            let known: &[&str] =
                if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(known.contains(&rest), "{line}");
            let twin = family.lines.iter().any(|(name, labels, _)| (name, labels) == (&read.0, &read.1));
            assert!(!twin, "twice: {line}");
            family.lines.push(read);
        }
    }
    families
        .iter()
        .filter(|(_, family)| family.kind == "histogram")
        .for_each(|(name, family)| histogram(name, family));
    families
}

fn is_name(name: &str, colons: bool) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || (colons && c == ':');
    !name.is_empty() && name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn sample(line: &str) -> Line {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let value: f64 = value.parse().unwrap();
    assert!(value >= 0.0 && value.is_finite(), "{line}");
    let Some((name, labels)) = series.split_once('{') else {
        assert!(is_name(series, true), "{line}");
        return (series.to_owned(), BTreeMap::new(), value);
    };
    assert!(is_name(name, true), "{line}");
    let mut read = BTreeMap::new();
    for label in labels.strip_suffix('}').unwrap().split(',') {
        let (label, text) = label.split_once('=').unwrap();
        let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap();
        assert!(is_name(label, false) && !label.starts_with("__") && !text.contains(['"', '\\']), "{line}");
        assert!(read.insert(label.to_owned(), text.to_owned()).is_none(), "{line}");
    }
    (name.to_owned(), read, value)
}

/// Buckets rise, the last is all of them, and there is a sum.
fn histogram(name: &str, family: &Family) {
    let mut by_labels: BTreeMap<BTreeMap<String, String>, Vec<(f64, f64)>> = BTreeMap::new();
    for (_, labels, value) in family.lines.iter().filter(|(line, ..)| line.ends_with("_bucket")) {
        let mut labels = labels.clone();
        let bound = labels.remove("le").unwrap();
        let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap() };
        by_labels.entry(labels).or_default().push((bound, *value));
    }
    assert!(!by_labels.is_empty(), "{name}");
    for (labels, buckets) in by_labels {
        assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{name} {labels:?}: {buckets:?}");
        let (bound, all) = *buckets.last().unwrap();
        assert!(bound.is_infinite(), "{name}");
        assert_eq!(value_of(family, &format!("{name}_count"), &labels), Some(all), "{name} {labels:?}");
        assert!(value_of(family, &format!("{name}_sum"), &labels).is_some(), "{name} {labels:?}");
    }
}

fn value_of(family: &Family, name: &str, labels: &BTreeMap<String, String>) -> Option<f64> {
    family.lines.iter().find(|line| line.0 == name && line.1 == *labels).map(|line| line.2)
}

fn value(families: &BTreeMap<String, Family>, name: &str, labels: &[(&str, &str)]) -> f64 {
    let family = families
        .iter()
        .filter(|(family, _)| name.starts_with(family.as_str()))
        .max_by_key(|(family, _)| family.len());
    let labels = labels.iter().map(|(label, text)| ((*label).to_owned(), (*text).to_owned())).collect();
    value_of(family.unwrap().1, name, &labels).unwrap_or_else(|| panic!("{name} {labels:?}"))
}

async fn scraped(stage: &Stage) -> String {
    let answer = stage.get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers[header::CONTENT_TYPE], "text/plain; version=0.0.4; charset=utf-8");
    answer.body.as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn prometheus_reads_what_the_node_did() {
    let stage = stage().await;
    run_jobs(&stage, 3).await;
    let families = parse(&scraped(&stage).await);
    assert_eq!(value(&families, "rota_jobs_processed_total", &[("outcome", "successful")]), 3.0);
    assert_eq!(value(&families, "rota_jobs_submitted_total", &[]), 3.0);
    assert_eq!(value(&families, "rota_job_request_duration_seconds_count", &[("kind", "single")]), 3.0);
    assert_eq!(value(&families, "rota_job_run_duration_seconds_count", &[]), 3.0);
    let sum = value(&families, "rota_job_run_duration_seconds_sum", &[]);
    assert!((0.06..0.07).contains(&sum), "in seconds: {sum}");
    assert_eq!(value(&families, "rota_job_run_duration_seconds_bucket", &[("le", "0.01")]), 0.0);
    assert_eq!(value(&families, "rota_job_run_duration_seconds_bucket", &[("le", "0.05")]), 3.0);
    assert_eq!(value(&families, "rota_jobs", &[("status", "SUCCESSFUL")]), 3.0);
    assert_eq!(value(&families, "rota_jobs", &[("status", "QUEUED")]), 0.0);
    assert_eq!(value(&families, "rota_nodes", &[("status", "ACTIVE")]), 1.0);
    assert_eq!(value(&families, "rota_store_up", &[]), 1.0);
    assert_eq!(value(&families, "rota_build_info", &[("version", "test")]), 1.0);
    assert_eq!(value(&families, "process_start_time_seconds", &[]), 1_767_225_600.0);
    assert_eq!(value(&families, "rota_jobs_capacity", &[]), 4.0);
    assert!(value(&families, "rota_store_duration_seconds_count", &[("verb", "write")]) > 0.0);
    let series: usize = families.values().map(|family| family.lines.len()).sum();
    assert!(series < 400, "bounded, whatever tenants do: {series}");
    for _ in 0..5 {
        run_jobs(&stage, 1).await;
    }
    let later = parse(&scraped(&stage).await);
    assert_eq!(later.values().map(|family| family.lines.len()).sum::<usize>(), series);
}

#[tokio::test(start_paused = true)]
async fn alerts_ask_for_figures_that_exist() {
    let rules = include_str!("../../../docs/examples/prometheus-alerts.yml");
    let stage = stage().await;
    let families = parse(&scraped(&stage).await);
    let lines = families.values().flat_map(|family| &family.lines);
    let known: BTreeSet<_> = lines.map(|line| line.0.as_str()).collect();
    let words = rules.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let asked: BTreeSet<_> = words.filter(|word| word.starts_with("rota_")).collect();
    assert!(asked.len() >= 10, "{asked:?}");
    for name in asked {
        let is_family = families.contains_key(name) && rules.contains(name);
        assert!(known.contains(name) || is_family, "{name} is not among the figures");
    }
    let count = |what: &str| rules.lines().filter(|line| line.trim_start().starts_with(what)).count();
    let alerts = count("- alert: ");
    for part in ["expr: ", "severity: ", "summary: ", "description: "] {
        assert_eq!(count(part), alerts, "{part}");
    }
    assert!(alerts >= 10 && !rules.contains('\t'));
}

#[tokio::test(start_paused = true)]
async fn buckets_are_listed_oldest_first_by_time_and_name() {
    let stage = stage().await;
    for _ in 0..4 {
        run_jobs(&stage, 2).await;
        sleep(Duration::from_secs(6)).await;
    }
    let all = stage.get("/api/v1/metrics").await.body;
    let items = all["items"].as_array().unwrap();
    let start = |bucket: &Value| bucket["bucketStart"].as_str().unwrap().parse::<i64>().unwrap();
    assert!(items.len() >= 4 && items.iter().map(start).is_sorted());
    let processed = |items: &[Value]| {
        let of = |bucket: &Value| bucket["metrics"]["jobsProcessed"].as_object().cloned().unwrap_or_default();
        let values = items
            .iter()
            .flat_map(|item| of(item).into_iter().map(|(_, sample)| sample["value"].as_i64().unwrap()));
        values.sum::<i64>()
    };
    assert_eq!(processed(items), 8);
    let (first, last) = (start(&items[0]), start(items.last().unwrap()));
    let some = stage.get(&format!("/api/v1/metrics?from={}&to={last}&name=queueWait", first + 1)).await.body;
    let some = some["items"].as_array().unwrap();
    assert!(!some.is_empty() && some.iter().all(|bucket| start(bucket) > first && start(bucket) < last));
    for bucket in some {
        let names: Vec<_> = bucket["metrics"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["queueWait"]);
        let sample = bucket["metrics"]["queueWait"].as_object().unwrap().values().next().unwrap();
        assert_eq!((&sample["units"], &sample["kind"]), (&json!("microseconds"), &json!("latency")));
        assert!(
            sample["p50"].as_i64() <= sample["p99"].as_i64()
                && sample["p99"].as_i64() <= sample["max"].as_i64()
        );
    }
    let (mut paged, mut path) = (Vec::new(), "/api/v1/metrics?limit=1".to_owned());
    loop {
        let page = stage.get(&path).await.body;
        paged.extend(page["items"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/api/v1/metrics?limit=1&cursor={next}");
    }
    assert_eq!(paged[..items.len()], items[..]);
}

/// Buckets without the metric are left out, and no page is lost over them.
#[tokio::test(start_paused = true)]
async fn one_metric_is_listed_page_by_page() {
    let stage = stage().await;
    for runs in [2, 0, 0, 1, 0, 3] {
        run_jobs(&stage, runs).await;
        sleep(Duration::from_secs(6)).await;
    }
    sleep(Duration::from_secs(6)).await;
    let at_once = stage.get("/api/v1/metrics?name=runTime&limit=1000").await.body;
    let at_once = at_once["items"].as_array().unwrap().clone();
    let all = stage.get("/api/v1/metrics?limit=1000").await.body["items"].as_array().unwrap().len();
    assert!(at_once.len() >= 3 && at_once.len() < all, "{} of {all}", at_once.len());
    for limit in [1, 2] {
        let (mut paged, mut path) = (Vec::new(), format!("/api/v1/metrics?name=runTime&limit={limit}"));
        let mut pages = 0;
        loop {
            let page = stage.get(&path).await.body;
            let items = page["items"].as_array().unwrap();
            assert!(items.len() <= limit, "{items:?}");
            paged.extend(items.clone());
            pages += 1;
            let Some(next) = page["next"].as_str() else { break };
            path = format!("/api/v1/metrics?name=runTime&limit={limit}&cursor={next}");
        }
        assert_eq!(paged, at_once);
        assert!(pages > 1);
    }
    let count = |bucket: &Value| {
        let by_node = bucket["metrics"]["runTime"].as_object().unwrap();
        by_node.values().map(|sample| sample["count"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(at_once.iter().map(count).sum::<u64>(), 6);
}

/// What is sent to the observer and how soon it has it, of a real listener that follows real jobs.
#[tokio::test(start_paused = true)]
async fn the_observer_is_measured_while_somebody_listens() {
    let stage = stage().await;
    let request = axum::http::Request::get("/api/v1/domains/default/events");
    let request = request.header(header::AUTHORIZATION, format!("Bearer {KEY}"));
    let request = request.body(axum::body::Body::empty()).unwrap();
    let stream = stage.router.clone().oneshot(request).await.unwrap();
    run_jobs(&stage, 3).await;
    sleep(Duration::from_secs(12)).await;
    drop(stream);
    let families = parse(&scraped(&stage).await);
    let heard = value(&families, "rota_observer_messages_total", &[]);
    let timed = value(&families, "rota_observer_latency_seconds_count", &[]);
    assert!(
        heard >= 6.0 && timed >= 3.0,
        "each job is told of when it is made and when it ends: {heard}, {timed}"
    );
    for (name, field) in [("observerMessages", "value"), ("observerLatency", "count")] {
        let buckets = stage.get(&format!("/api/v1/metrics?name={name}")).await.body;
        let of = |bucket: &Value| {
            let by_node = bucket["metrics"][name].as_object().unwrap();
            by_node.values().map(|sample| sample[field].as_u64().unwrap()).sum::<u64>()
        };
        assert!(buckets["items"].as_array().unwrap().iter().map(of).sum::<u64>() >= 3, "{name}: {buckets}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_asked_is_refused() {
    let stage = stage().await;
    for query in ["from=yesterday", "limit=0", "limit=1001", "cursor=x", "name=", "nmae=x"] {
        let refused = stage.get(&format!("/api/v1/metrics?{query}")).await;
        assert!([400, 422].contains(&refused.status.as_u16()), "{query}: {}", refused.body);
    }
    let none = stage.get("/api/v1/metrics?from=10&to=5").await;
    assert_eq!((none.status.as_u16(), &none.body["items"]), (200, &json!([])));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_only_looks_reads_figures_and_a_tenant_does_not() {
    let stage = stage().await;
    let viewing = NewKey { name: "prometheus".to_owned(), role: Some(Role::Viewer), ..NewKey::default() };
    let prometheus = stage.key("admin", viewing).await;
    let tenant = stage.user("anna", "red", Role::Admin).await;
    for path in ["/metrics", "/api/v1/metrics"] {
        assert_eq!(stage.call("GET", path, Some(&prometheus), None).await.status, 200);
        let refused = stage.call("GET", path, Some(&tenant), None).await;
        assert_eq!(refused.status, 403);
        assert!(refused.body["detail"].as_str().unwrap().contains("limited to a viewer"), "{}", refused.body);
        assert_eq!(stage.call("GET", path, None, None).await.status, 401);
    }
    let paused = stage.call("POST", "/api/v1/domains", Some(&prometheus), Some(json!({"name": "x"}))).await;
    assert_eq!(paused.status, 403, "it changes nothing");
    assert_eq!(stage.call("GET", "/metrics", Some(KEY), None).await.status, 200);
}
