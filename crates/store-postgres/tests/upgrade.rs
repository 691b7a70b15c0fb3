//! Databases that other versions made (rule 20): older ones are brought up to date by whoever comes first, newer ones are used as
//! they are where that is allowed, and refused where it is not.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use rota_model::time::UnixMillis;
use rota_store::collection::{ALL, JOBS, TIMERS};
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Key, Write, Written};
use rota_store::{Store, StoreError};
use rota_store_postgres::PostgresStore;
use rota_testkit::postgres::{self, Server, run_sql};
use serde_json::{Value, json};

/// What older versions made, as they printed it.
const VERSION_1: &str = include_str!("../fixtures/schema-1.sql");
const VERSION_2: &str = include_str!("../fixtures/schema-2.sql");
/// What this version calls itself.
const HERE: i64 = 3;
/// What is there: tables, columns, indexes, views and the version.
const EVERYTHING: &str = "SELECT string_agg(line, ' ' ORDER BY line) FROM ( \
    SELECT table_name || '.' || column_name AS line FROM information_schema.columns WHERE table_schema = current_schema() \
    UNION ALL SELECT replace(indexdef, current_schema(), '') FROM pg_indexes WHERE schemaname = current_schema() \
    UNION ALL SELECT name || '=' || value FROM facts WHERE name = 'schema') AS lines";

fn body(value: Value) -> Body {
    value.as_object().unwrap().clone()
}

fn job(name: &str) -> Body {
    body(
        json!({"domain": "default", "jobName": name, "status": "QUEUED", "input": {"type": "noop", "payload": {}}}),
    )
}

async fn create(store: &PostgresStore, key: Key, body: Body) {
    let written = store.write(vec![Write::Create { key, body }]).await.unwrap();
    assert!(matches!(written.as_slice(), [Written::Applied(_)]), "{written:?}");
}

fn fact(url: &str, name: &str) -> String {
    run_sql(url, &format!("SELECT value FROM facts WHERE name = '{name}'"))
}

/// A database as version 1 left it, with a document.
fn of_version_1() -> String {
    left_by(VERSION_1)
}

/// A database as some version left it, with a document.
fn left_by(version: &str) -> String {
    let url = postgres::fresh();
    run_sql(&url, version);
    made_by_older(&url, "a", "old");
    run_sql(&url, "INSERT INTO counts VALUES ('jobs', ARRAY['default', 'QUEUED', NULL], 1)");
    url
}

/// A job as nodes of versions 1 and 2 make it: its words stand apart, if it has any, and nothing else does.
fn made_by_older(url: &str, id: &str, name: &str) {
    let rows = format!(
        "WITH done AS (INSERT INTO \"jobs.rows\" (id, version, body, domain, \"jobName\", status, input_type, \
         \"metadata_createdAt\", \"jobNumber\") VALUES ('{id}', 7, '{{\"domain\": \"default\", \"jobName\": \"{name}\"}}', \
         'default', '{name}', 'QUEUED', NULL, 5, 5) RETURNING id) \
         INSERT INTO \"jobs.words\" AS w (id, \"words.jobName\") SELECT id, array_to_tsvector(ARRAY[coalesce(nullif('{name}', ''), 'none')]) FROM done \
         WHERE '{name}' <> '' ON CONFLICT (id) DO UPDATE SET \"words.jobName\" = excluded.\"words.jobName\""
    );
    run_sql(url, &rows);
}

/// The ids of the jobs that a list shows.
async fn listed(store: &PostgresStore, filter: Option<Filter>) -> Vec<String> {
    let newest = Order { fields: &["metadata.createdAt", "jobNumber"], descending: true };
    let mut query = Query::new(&JOBS, newest).filter(Filter::Is("domain", json!("default")));
    query.filters.extend(filter);
    store.find(query).await.unwrap().documents.into_iter().map(|job| job.key.id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_older_version_made_is_brought_up_to_date_once_and_keeps_its_documents() {
    for (version, schema) in [(VERSION_1, "1"), (VERSION_2, "2")] {
        let url = left_by(version);
        assert_eq!((fact(&url, "schema").as_str(), fact(&url, "reader").as_str()), (schema, "1"));
        is_brought_up_to_date_once(url).await;
    }
}

async fn is_brought_up_to_date_once(url: String) {
    let opened = (0..4).map(|_| {
        let url = url.clone();
        tokio::spawn(async move { PostgresStore::open(&url).await })
    });
    let opened: Vec<_> = opened.collect();
    for one in opened {
        let store = one.await.unwrap().unwrap();
        let read = store.read(vec![Key::new(&JOBS, "a")]).await.unwrap();
        let read = read.into_iter().flatten().next().unwrap();
        assert_eq!(
            read.body.get("jobName").zip(read.body.get("status")),
            Some((&json!("old"), &json!("QUEUED")))
        );
        assert_eq!(listed(&store, None).await, ["a"]);
        assert_eq!(listed(&store, Some(Filter::Text("old".to_owned()))).await, ["a"]);
    }
    assert_eq!((fact(&url, "schema"), fact(&url, "reader")), (HERE.to_string(), "1".to_owned()));
    let new = postgres::fresh();
    drop(PostgresStore::open(&new).await.unwrap());
    assert_eq!(run_sql(&url, EVERYTHING), run_sql(&new, EVERYTHING), "it is as a new one");
    assert_eq!(fact(&new, "reader"), HERE.to_string(), "older nodes would leave out what is listed");
}

/// Whoever comes while another brings the tables up to date waits for it, and nobody who searches waits behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_while_tables_are_brought_up_to_date_is_in_nobodys_way() {
    let server = Server::start(false);
    let url = server.fresh();
    run_sql(&url, VERSION_2);
    made_by_older(&url, "a", "old");
    let upgrade = rota_store_postgres::upgrade();
    let (before, rest) = upgrade.split_once("BEGIN").unwrap();
    run_sql(&url, before);
    let rest = format!("BEGIN{rest}").replace("COMMIT;", "SELECT pg_sleep(3); COMMIT;");
    let upgrading = {
        let url = url.clone();
        tokio::task::spawn_blocking(move || run_sql(&url, &rest))
    };
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    while run_sql(&url, sleeps) == "0" {
        assert!(!upgrading.is_finished(), "it was not seen");
    }
    let opens = {
        let url = url.clone();
        tokio::spawn(async move { PostgresStore::open(&url).await })
    };
    // It waits for the row that whoever makes the tables holds, and for no table.
    let held_up = "SELECT string_agg(DISTINCT locktype, ' ') FROM pg_locks WHERE NOT granted";
    let mut met = run_sql(&url, held_up);
    while met.is_empty() && !upgrading.is_finished() {
        met = run_sql(&url, held_up);
    }
    assert_eq!(met, "transactionid");
    upgrading.await.unwrap();
    assert_eq!(listed(&opens.await.unwrap().unwrap(), None).await, ["a"]);
}

/// Nodes that are at work on tables that somebody brings up to date go on, and what they make is listed like everything else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_older_nodes_make_beside_newer_ones_is_listed() {
    let url = left_by(VERSION_2);
    let store = PostgresStore::open(&url).await.unwrap();
    made_by_older(&url, "b", "beside");
    made_by_older(&url, "c", "");
    let ours = body(
        json!({"domain": "default", "jobName": "ours", "status": "QUEUED", "metadata": {"createdAt": 6}, "jobNumber": 6}),
    );
    create(&store, Key::new(&JOBS, "d"), ours).await;
    assert_eq!(listed(&store, None).await, ["d", "c", "b", "a"]);
    for (word, id) in [("beside", "b"), ("ours", "d")] {
        assert_eq!(listed(&store, Some(Filter::Text(word.to_owned()))).await, [id]);
    }
    // They hide and purge without the register, or with its words alone.
    run_sql(&url, "UPDATE \"jobs.rows\" SET hidden_at = 1 WHERE id IN ('b', 'd')");
    assert_eq!(listed(&store, None).await, ["c", "a"]);
    run_sql(
        &url,
        "WITH gone AS (DELETE FROM \"jobs.rows\" WHERE hidden_at = 1 RETURNING id) \
                   DELETE FROM \"jobs.words\" AS w USING gone WHERE w.id = gone.id",
    );
    assert_eq!(run_sql(&url, "SELECT string_agg(id, ' ' ORDER BY id) FROM \"jobs.words\""), "a c");
}

/// Whoever copies a store only reads it. Older nodes may be at work on it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_older_version_made_is_read_as_it_is() {
    let url = of_version_1();
    let before = run_sql(&url, EVERYTHING);
    let store = PostgresStore::open_as_it_is(&url).await.unwrap().unwrap();
    for collection in ALL {
        let listed = store.find(Query::new(collection, Order::BY_ID)).await.unwrap().documents;
        assert_eq!(listed.len(), usize::from(*collection == JOBS), "{}", collection.name);
        let hidden = Query::new(collection, Order::BY_ID).hidden_before(UnixMillis(i64::MAX));
        if collection.hides() {
            assert!(store.find(hidden).await.unwrap().documents.is_empty());
        }
    }
    let counted = store.count(Query::new(&JOBS, Order::BY_ID), None).await.unwrap();
    assert_eq!(counted[0].count, 1);
    store.sequence("jobs", 1).await.unwrap();
    assert_eq!(run_sql(&url, EVERYTHING), before, "nothing of it is changed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_old_or_too_new_to_be_read_is_refused_and_nothing_is_made_where_nothing_is() {
    let url = of_version_1();
    for (schema, reader, words) in [(0, 0, "`rota store schema --upgrade`"), (99, 98, "knows 98")] {
        let facts =
            format!("UPDATE facts SET value = CASE name WHEN 'schema' THEN {schema} ELSE {reader} END");
        run_sql(&url, &facts);
        let before = run_sql(&url, EVERYTHING);
        let Err(error) = PostgresStore::open_as_it_is(&url).await else { panic!("{schema}: it was opened") };
        assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(run_sql(&url, EVERYTHING), before, "nothing of it is changed");
    }
    let empty = postgres::fresh();
    assert!(PostgresStore::open_as_it_is(&empty).await.unwrap().is_none());
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()";
    assert_eq!(run_sql(&empty, tables), "0");
}

/// Whoever runs on the older tables goes on while a newer one brings them up to date, and understands what it makes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_version_that_can_be_read_is_used_as_it_is() {
    let url = postgres::fresh();
    let runs = PostgresStore::open(&url).await.unwrap();
    create(&runs, Key::new(&JOBS, "before"), job("before")).await;
    let newer = "ALTER TABLE \"jobs.rows\" ADD COLUMN \"weather\" text; CREATE INDEX \"jobs.weather\" ON \"jobs.rows\" (weather); \
                 CREATE TABLE \"clouds.rows\" (id text PRIMARY KEY); UPDATE facts SET value = 99 WHERE name = 'schema'";
    run_sql(&url, newer);
    let before = run_sql(&url, EVERYTHING);
    create(&runs, Key::new(&JOBS, "meanwhile"), job("meanwhile")).await;
    let joins = PostgresStore::open(&url).await.unwrap();
    let strange =
        body(json!({"domain": "default", "jobName": "strange", "status": "QUEUED", "weather": {"wind": 3}}));
    create(&joins, Key::new(&JOBS, "strange"), strange.clone()).await;
    for store in [&runs, &joins] {
        let ids = ["before", "meanwhile", "strange"].map(|id| Key::new(&JOBS, id)).to_vec();
        let read = store.read(ids).await.unwrap();
        assert!(read.iter().all(Option::is_some));
        assert_eq!(read[2].as_ref().unwrap().body, strange, "what is unknown here survives");
    }
    assert_eq!(run_sql(&url, EVERYTHING), before, "nothing of it is changed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_version_that_cannot_be_read_is_refused_and_left_alone() {
    let url = of_version_1();
    run_sql(
        &url,
        "UPDATE facts SET value = 99 WHERE name = 'schema'; UPDATE facts SET value = 98 WHERE name = 'reader'",
    );
    let before = run_sql(&url, EVERYTHING);
    let Err(error) = PostgresStore::open(&url).await else { panic!("it was opened") };
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    assert!(error.to_string().contains("needs a Rota that knows 98"), "{error}");
    assert_eq!(run_sql(&url, EVERYTHING), before, "nothing of it is changed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_may_not_change_tables_waits_for_somebody_who_may() {
    let server = Server::start(false);
    let url = server.fresh();
    run_sql(&url, VERSION_1);
    let schema = run_sql(&url, "SELECT current_schema()");
    let granted = format!(
        "CREATE ROLE guest LOGIN; GRANT USAGE ON SCHEMA {schema} TO guest; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO guest"
    );
    run_sql(&url, &granted);
    let guest = url.replace("rota@", "guest@");
    let Err(error) = PostgresStore::open(&guest).await else { panic!("it changed tables") };
    assert!(error.to_string().contains("rota store schema --upgrade"), "{error}");
    assert_eq!(fact(&url, "schema"), "1");
    run_sql(&url, &rota_store_postgres::upgrade());
    let store = PostgresStore::open(&guest).await.unwrap();
    create(&store, Key::new(&JOBS, "a"), job("a")).await;
}

/// Whoever has an older program at hand, and runs what it prints, does no harm.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_older_program_prints_does_not_make_a_newer_schema_older() {
    let url = postgres::fresh();
    drop(PostgresStore::open(&url).await.unwrap());
    run_sql(&url, "UPDATE facts SET value = 99");
    run_sql(&url, &rota_store_postgres::upgrade());
    assert_eq!((fact(&url, "schema").as_str(), fact(&url, "reader").as_str()), ("99", "99"));
}

/// What is printed is run with whatever is at hand: a statement that fails undoes the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_printed_happens_wholly_or_not_at_all() {
    let url = of_version_1();
    run_sql(&url, "DROP VIEW metrics; CREATE TABLE metrics (in_the_way text)");
    // Columns that nobody asks for yet are added before.
    let upgrade = rota_store_postgres::upgrade();
    run_sql(&url, upgrade.split_once("BEGIN").unwrap().0);
    let before = run_sql(&url, EVERYTHING);
    let said = postgres::pipe_sql(&url, &rota_store_postgres::upgrade());
    assert!(said.contains("\"metrics\" is not a view"), "{said}");
    assert_eq!(run_sql(&url, EVERYTHING), before, "nothing of it is changed");
}

/// The index that version 2 added serves those who look for the timers of a type.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_are_found_by_their_type() {
    let url = of_version_1();
    let store = PostgresStore::open(&url).await.unwrap();
    let red = "red".parse().unwrap();
    for (id, kind) in [("1", "invoice"), ("2", "noop"), ("3", "invoice")] {
        let timer =
            body(json!({"task": {"type": kind}, "schedule": {"cron": "0 0 * * *"}, "status": "ACTIVE"}));
        create(&store, Key::in_domain(&TIMERS, &red, id), timer).await;
    }
    let query = Query::new(&TIMERS, Order::BY_ID).in_domain(&red);
    let found = store.find(query.filter(Filter::Is("task.type", json!("invoice")))).await.unwrap();
    let ids: Vec<&str> = found.documents.iter().map(|timer| timer.key.id.as_str()).collect();
    assert_eq!(ids, ["1", "3"]);
    assert_eq!(
        run_sql(
            &url,
            "SELECT count(*) FROM pg_indexes WHERE indexname = 'timers.of_type'  AND schemaname = current_schema()"
        ),
        "1"
    );
}

/// Tables further along the search path are not brought up to date by making empty ones before them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_that_stand_in_another_schema_are_not_hidden_by_new_ones() {
    let url = of_version_1();
    let there = run_sql(&url, "SELECT current_schema()");
    let (before, first) = (run_sql(&url, EVERYTHING), format!("{there}_before"));
    run_sql(&url, &format!("CREATE SCHEMA {first}"));
    let path = url.replace(&format!("search_path%3D{there}"), &format!("search_path%3D{first},{there}"));
    let Err(error) = PostgresStore::open(&path).await else { panic!("it was opened") };
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    assert!(error.to_string().contains(&format!("stand in the schema {there}")), "{error}");
    assert_eq!(run_sql(&url, EVERYTHING), before, "nothing of it is changed");
    let made = format!("SELECT count(*) FROM pg_tables WHERE schemaname = '{first}'");
    assert_eq!(run_sql(&url, &made), "0", "nothing is made");
}
