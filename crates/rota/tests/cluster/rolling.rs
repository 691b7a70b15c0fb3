//! One node after the other is stopped and started again, while clients submit at any of them and try once more what failed, at
//! the next. No request fails twice, and no job is lost or doubled. The same while a newer version comes (rule 20): it brings the
//! tables up to date when its first node starts, and old and new nodes run side by side until the last is replaced.
//!
//! `ROTA_PREVIOUS_PROGRAM` names a program of an older version for the first nodes; `cargo xtask soak upgrade` builds one. Without
//! it they are of this version, on tables that are taken back to what an older one made, and a newer one changes these meanwhile.

use std::path::PathBuf;
use std::sync::Arc;

use rota_testkit::postgres::{Server, run_sql};

use crate::load::Load;
use crate::members::{CONDEMNED, join_as, start};

/// Of the tables that this program makes: `VERSION` in the schema of the store.
const VERSION: i64 = 3;
const VERSION_1: &str = include_str!("../../../store-postgres/fixtures/schema-1.sql");
/// What a newer node finds that comes to nodes of version 1.
const OLDER: &str = "UPDATE facts SET value = 1 WHERE name = 'schema'; DROP INDEX \"timers.of_type\"";
/// What a version to come may do: add, and say that this one understands it.
const NEWER: &str = "ALTER TABLE \"jobs.rows\" ADD COLUMN \"weather\" text; CREATE TABLE \"clouds.rows\" (id text PRIMARY KEY); \
                     UPDATE facts SET value = 99 WHERE name = 'schema'";
const NEWER_VERSION: i64 = 99;
const NAMES: [&str; 3] = ["one", "two", "three"];

fn version(store: &str) -> i64 {
    run_sql(store, "SELECT value FROM facts WHERE name = 'schema'").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_and_upgrade_lose_no_request_that_is_tried_once_more() {
    let this = PathBuf::from(env!("CARGO_BIN_EXE_rota"));
    let previous = std::env::var_os("ROTA_PREVIOUS_PROGRAM").map(|path| std::fs::canonicalize(path).unwrap());
    let server = Server::start(true);
    let store = server.fresh();
    if previous.is_none() {
        run_sql(&store, VERSION_1);
    }
    let mut members = Vec::new();
    for name in NAMES {
        members.push(Some(join_as(previous.as_ref().unwrap_or(&this), &store, name).await));
    }
    if previous.is_none() {
        run_sql(&store, OLDER);
    }
    assert!(version(&store) < VERSION, "there is something to bring up to date");
    let load = Load::on(&members.iter().flatten().collect::<Vec<_>>());
    let callers: Vec<_> = (0..4).map(|_| tokio::spawn(Arc::clone(&load).run_retrying_once())).collect();

    for round in 0..2 {
        for (nth, name) in NAMES.into_iter().enumerate() {
            load.goes_on_by(100).await;
            let old = members[nth].take().unwrap();
            assert!(!old.home.log().contains(CONDEMNED), "nobody alive is condemned: {}", old.home.log());
            assert!(old.rota.terminate().success(), "{name} stops in order");
            let new = start(old.home.with(&this), &store, name).await;
            load.moved(nth, &new);
            members[nth] = Some(new);
            let expected = if round == 0 { VERSION } else { NEWER_VERSION };
            assert_eq!(
                version(&store),
                expected,
                "older tables are brought up to date, newer ones left alone"
            );
        }
        if round == 0 {
            let indexed = "SELECT count(*) FROM pg_indexes WHERE schemaname = current_schema() AND indexname = 'timers.of_type'";
            assert_eq!(run_sql(&store, indexed), "1", "brought up to date while others worked");
            run_sql(&store, NEWER);
        }
    }
    load.end(callers).await;
    println!("{} jobs submitted while every node was replaced twice", load.so_far());
    assert_eq!(load.lost(), 0, "no request fails twice");
    load.all_ended_once(&store).await;
}
