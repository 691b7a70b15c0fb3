//! Words: found wherever they are searched, in whatever case, and only while they stand there.

use rota_model::time::UnixMillis;
use rota_store::collection::{JOBS, LOGS, TIMERS};
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Write};
use serde_json::json;

use super::Subject;
use super::examples::{
    BY_NUMBER, body, change, delete, domain, job_with, jobs, log, numbered, timer, timer_body,
};
use super::patience::eventually_worded;
use super::verbs::{applied, job_numbers, read, total, worded};

async fn make_job(store: &Subject, number: i64, name: &str, error: Option<&str>) {
    let result = error.map_or(json!({}), |error| json!({"error": error}));
    let body = job_with(number, json!({"jobName": name, "result": result}));
    applied(store, Write::Create { key: numbered(number), body }).await;
}

/// Waits until words find these jobs.
async fn find_jobs(store: &Subject, words: &str, expected: &[i64]) {
    let query = || jobs().filter(Filter::Text(words.to_owned()));
    let shown = async || (words, job_numbers(store, query()).await);
    eventually_worded(store, (words, expected.to_vec()), shown).await;
}

pub async fn words_are_found_where_they_are_searched(store: Subject) {
    make_job(&store, 0, "Nightly Report", None).await;
    make_job(&store, 1, "nightly backup (router-7)", Some("Disk FULL: /dev/sda1")).await;
    make_job(&store, 2, "hourly report", Some("the report's disk is slow")).await;
    for (words, expected) in [
        ("nightly", vec![0, 1]),
        ("NIGHTLY report", vec![0]),
        ("report", vec![0, 2]),
        ("disk", vec![1, 2]),
        ("backup full", vec![1]),
        ("router 7", vec![1]),
        ("router-7", vec![1]),
        ("SDA1", vec![1]),
        ("slow hourly disk", vec![2]),
    ] {
        find_jobs(&store, words, &expected).await;
    }
    for nowhere in ["night", "ightly", "disk empty", "noop", "default", "QUEUED", "reportdisk"] {
        find_jobs(&store, nowhere, &[]).await;
    }
}

pub async fn a_star_finds_what_begins_like_it(store: Subject) {
    make_job(&store, 0, "nightly report", None).await;
    make_job(&store, 1, "night", Some("reporter gone")).await;
    make_job(&store, 2, "tonight", None).await;
    for (words, expected) in [
        ("night*", vec![0, 1]),
        ("NIGHTLY*", vec![0]),
        ("n* rep*", vec![0, 1]),
        ("report*", vec![0, 1]),
        ("report", vec![0]),
        ("to*", vec![2]),
        ("tonight*", vec![2]),
        ("night* reporter", vec![1]),
        ("nights*", vec![]),
    ] {
        find_jobs(&store, words, &expected).await;
    }
}

/// Whatever a person may type is a question about words and nothing else.
pub async fn what_is_typed_is_only_words(store: Subject) {
    make_job(&store, 0, "alpha beta", None).await;
    make_job(&store, 1, "alpha or beta and not near gamma", None).await;
    for (words, expected) in [
        ("alpha", vec![0, 1]),
        ("\"alpha beta\"", vec![0, 1]),
        ("alpha OR nothing", vec![]),
        ("alpha NOT beta", vec![1]),
        ("alpha AND beta", vec![1]),
        ("NEAR(alpha beta)", vec![1]),
        ("-beta +alpha", vec![0, 1]),
        ("jobName:alpha", vec![]),
        ("alpha'); DROP", vec![]),
        ("(alpha", vec![0, 1]),
        ("^alpha~2 \\ / [beta]", vec![]),
        ("{alpha} & | ! beta %", vec![0, 1]),
    ] {
        find_jobs(&store, words, &expected).await;
    }
}

pub async fn words_of_many_writings_are_found(store: Subject) {
    make_job(&store, 0, "Nächtliche Übung straße", None).await;
    make_job(&store, 1, "ночной ОТЧЁТ", None).await;
    make_job(&store, 2, "夜間 バックアップ", None).await;
    make_job(&store, 3, "تقرير الليل", None).await;
    make_job(&store, 4, "𝔘𝔫𝔦 🦀crab🦀 42", None).await;
    for (words, expected) in [
        ("nächtliche ÜBUNG", vec![0]),
        ("nachtliche", vec![]),
        ("straße", vec![0]),
        ("отчёт НОЧНОЙ", vec![1]),
        ("夜間", vec![2]),
        ("バック*", vec![2]),
        ("الليل", vec![3]),
        ("𝔘𝔫𝔦", vec![4]),
        ("crab", vec![4]),
        ("42", vec![4]),
    ] {
        find_jobs(&store, words, &expected).await;
    }
}

pub async fn words_that_no_longer_stand_there_are_not_found(store: Subject) {
    make_job(&store, 0, "first name", Some("disk full")).await;
    find_jobs(&store, "disk", &[0]).await;
    let (version, _) = read(&store, numbered(0)).await.unwrap();
    let fields = vec![("result", json!({"error": "network down"}))];
    let version = applied(&store, change(numbered(0), version, fields)).await;
    find_jobs(&store, "network", &[0]).await;
    find_jobs(&store, "disk", &[]).await;
    find_jobs(&store, "name network", &[0]).await;

    let body = job_with(0, json!({"jobName": "second name"}));
    let version = applied(&store, Write::Replace { key: numbered(0), version, body }).await;
    find_jobs(&store, "second", &[0]).await;
    find_jobs(&store, "first", &[]).await;
    find_jobs(&store, "network", &[]).await;

    let hidden = applied(&store, delete(numbered(0), version)).await;
    find_jobs(&store, "second", &[]).await;
    let buried = || jobs().hidden_before(UnixMillis(1));
    eventually_worded(&store, vec![numbered(0).id], async || worded(&store, buried(), "second").await).await;
    applied(&store, Write::Purge { key: numbered(0), version: hidden }).await;
    eventually_worded(&store, Vec::<String>::new(), async || worded(&store, buried(), "second").await).await;
    make_job(&store, 0, "third name", None).await;
    find_jobs(&store, "third", &[0]).await;
    find_jobs(&store, "second", &[]).await;
}

/// Fields that others change often leave the words alone.
pub async fn words_stay_while_other_fields_change(store: Subject) {
    make_job(&store, 0, "steady", Some("trouble")).await;
    let mut version = read(&store, numbered(0)).await.unwrap().0;
    for epoch in 1..=5 {
        let fields = vec![("epoch", json!(epoch)), ("status", json!("STARTED"))];
        version = applied(&store, change(numbered(0), version, fields)).await;
    }
    find_jobs(&store, "steady trouble", &[0]).await;
    applied(&store, change(numbered(0), version, vec![("result", json!(null))])).await;
    find_jobs(&store, "trouble", &[]).await;
    find_jobs(&store, "steady", &[0]).await;
}

pub async fn words_are_one_filter_among_others(store: Subject) {
    for number in 0..25 {
        let name = if number % 2 == 0 { "even common" } else { "odd common" };
        make_job(&store, number, name, None).await;
    }
    let common = |order| Query::new(&JOBS, order).filter(Filter::Text("common".to_owned()));
    eventually_worded(&store, 25, async || total(&store, common(BY_NUMBER)).await).await;
    let falling = Order { descending: true, ..BY_NUMBER };
    let some = || common(falling).filter(Filter::AtLeast("jobNumber", 10)).limit(4);
    let expected: Vec<i64> = (10..25).rev().collect();
    assert_eq!(job_numbers(&store, some()).await, expected, "on pages");
    assert_eq!(total(&store, some()).await, 15);
    let by_status = store.count(some(), Some("status")).await.unwrap();
    assert_eq!(by_status.iter().map(|tally| tally.count).collect::<Vec<_>>(), [15]);
    let odd = jobs().filter(Filter::Text("odd comm*".to_owned())).filter(Filter::AtMost("jobNumber", 5));
    assert_eq!(job_numbers(&store, odd).await, [1, 3, 5]);
    let nobody = some().filter(Filter::Is("owner", json!("nobody")));
    assert_eq!(job_numbers(&store, nobody).await, Vec::<i64>::new());
}

pub async fn words_of_logs_and_timers_are_found(store: Subject) {
    let entry = |title: &str, message: &str, at: i64| -> Body {
        body(json!({"title": title, "message": message, "level": "INFO", "metadata": {"createdAt": at}}))
    };
    applied(&store, Write::Create { key: log("1"), body: entry("Started", "attempt one", 1) }).await;
    applied(&store, Write::Create { key: log("2"), body: entry("Failed", "attempt two: timeout", 2) }).await;
    let logs = || Query::new(&LOGS, Order { fields: &["metadata.createdAt"], descending: true });
    let found = |expected: &[&str]| expected.iter().map(ToString::to_string).collect::<Vec<_>>();
    for (words, expected) in
        [("attempt", found(&["2", "1"])), ("failed TIMEOUT", found(&["2"])), ("info", found(&[]))]
    {
        eventually_worded(&store, expected, async || worded(&store, logs(), words).await).await;
    }
    for name in ["here", "there"] {
        let domain = domain(name);
        applied(&store, Write::Create { key: timer(&domain, name), body: timer_body(&domain, "same", 1) })
            .await;
    }
    let timers = || Query::new(&TIMERS, Order::BY_ID);
    eventually_worded(&store, found(&["here", "there"]), async || worded(&store, timers(), "same").await)
        .await;
    let mine = || timers().in_domain(&domain("there"));
    assert_eq!(worded(&store, mine(), "same").await, ["there"]);
    assert_eq!(worded(&store, mine(), "here").await, Vec::<String>::new());
}
