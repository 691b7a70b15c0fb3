//! Each role opens a real PostgreSQL under a login of its own, does what it may, and is refused the rest: verb by verb against
//! the table of rights, and by the values that the program hands out.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a surprise is a failure of the test")]

use std::sync::Arc;

use futures::future::join_all;
use rota_model::domain::Domain;
use rota_model::execution::{Cause, Execution};
use rota_model::ids::{ClaimToken, TimerId};
use rota_model::progress::Progress;
use rota_model::time::UnixMillis;
use rota_model::timer::Timer;
use rota_model::user::{User, UserId, UserSettings};
use rota_store::access::{Recorder, Scheduler, WebService};
use rota_store::collection::{ALL, Collection, DOMAINS, JOBS, Kind, Reach, SETTINGS, USERS};
use rota_store::executions::ExecutionFilter;
use rota_store::query::{Filter, Order, Query};
use rota_store::repository::{Created, Saved};
use rota_store::rights::{Right, Role};
use rota_store::seam::{Body, Claim, Key, Version, Write, Written};
use rota_store::timers::{TimerFilter, TimerKey};
use rota_store::{Store, StoreError};
use rota_store_postgres::{PostgresStore, grants, schema};
use rota_testkit::postgres::{Server, run_sql};
use serde_json::json;

/// A server whose tables and roles somebody made by what the program prints.
struct Granted {
    _server: Server,
    owner: String,
}

impl Granted {
    fn new() -> Self {
        let server = Server::start(false);
        let owner = server.fresh();
        run_sql(&owner, &schema());
        // Twice: it may be run again.
        for _ in 0..2 {
            run_sql(&owner, &grants("rota"));
        }
        for role in Role::ALL.map(Role::name).into_iter().chain(["reader"]) {
            run_sql(&owner, &format!("CREATE ROLE a_{role} LOGIN; GRANT rota_{role} TO a_{role}"));
        }
        Self { _server: server, owner }
    }

    fn url(&self, role: &str) -> String {
        self.owner.replace("rota@", &format!("a_{role}@"))
    }

    async fn open(&self, role: Role) -> Arc<dyn Store> {
        Arc::new(PostgresStore::open(&self.url(role.name())).await.unwrap())
    }
}

/// Of a batch that is several commits, some may have happened when another is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_in_part_may_have_happened() {
    let granted = Granted::new();
    let store = granted.open(Role::Processor).await;
    let create =
        |collection, nth: usize| Write::Create { key: key(collection, &nth.to_string()), body: body() };
    let forbidden = |many| (0..many).map(|nth| create(&USERS, nth));
    let refused = store.write(forbidden(600).collect()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused:?}");
    let jobs = (0..550).map(|nth| create(&JOBS, nth));
    let in_part = store.write(jobs.chain(forbidden(50)).collect()).await.unwrap_err();
    assert!(matches!(in_part, StoreError::Unknown { .. }), "{in_part:?}");
    assert_eq!(run_sql(&granted.owner, "SELECT count(*) FROM jobs"), "500");
}

/// Many at once take another way than one, and are refused in the same words; whoever comes next finds a connection that works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_are_refused_like_one() {
    let granted = Granted::new();
    for role in Role::ALL {
        let store = granted.open(role).await;
        for collection in ALL {
            let many = |named: &'static str| {
                let id = move |nth: usize| format!("{} {named} {nth}", role.name());
                (0..250).map(move |nth| Write::Create { key: key(collection, &id(nth)), body: body() })
            };
            let is_allowed = role.right(collection) == Right::Writes;
            for named in ["once", "again"] {
                check(role, collection, is_allowed, store.write(many(named).collect()).await);
            }
            let there = format!(
                "SELECT count(*) FROM \"{}.rows\" WHERE id LIKE '{} %'",
                collection.name,
                role.name()
            );
            assert_eq!(
                run_sql(&granted.owner, &there),
                if is_allowed { "500" } else { "0" },
                "{collection:?}"
            );
        }
    }
}

fn here() -> Domain {
    Domain::default()
}

fn key(collection: &'static Collection, id: &str) -> Key {
    match collection.reach {
        Reach::Installation => Key::new(collection, id),
        Reach::Domain => Key::in_domain(collection, &here(), id),
    }
}

fn body() -> Body {
    json!({"status": "QUEUED", "name": "a name", "jobName": "a job"}).as_object().unwrap().clone()
}

const LATER: UnixMillis = UnixMillis(1);

/// Every way to write a document, and the right that it takes.
fn writes(collection: &'static Collection) -> Vec<(Right, Write)> {
    let (key, version) = (key(collection, "there"), Version(1));
    let mut writes = vec![
        (Right::Writes, Write::Create { key: key.clone(), body: body() }),
        (Right::Writes, Write::Replace { key: key.clone(), version, body: body() }),
        (Right::Writes, Write::Delete { key: key.clone(), version, at: LATER }),
    ];
    if let Some(field) = collection.changing().find(|field| field.kind == Kind::Keyword) {
        let fields = vec![(field.path, json!("other"))];
        writes.push((Right::Writes, Write::Change { key: key.clone(), version, fields }));
    }
    if collection.hides() {
        writes.push((Right::Writes, Write::Purge { key, version }));
    }
    writes
}

fn check<T: std::fmt::Debug>(
    role: Role,
    collection: &Collection,
    is_allowed: bool,
    got: Result<T, StoreError>,
) {
    let who = format!("a_{}", role.name());
    match got {
        Ok(_) if is_allowed => {}
        Err(StoreError::Refused { why, .. }) if !is_allowed => {
            assert!(why.contains(&who) && why.contains(&format!(" with {} ", collection.name)), "{why}");
        }
        got => panic!("{who} and {collection:?}, which it may: {is_allowed}; {got:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_role_may_what_the_table_says_and_nothing_else() {
    let granted = Granted::new();
    let owner = PostgresStore::open(&granted.owner).await.unwrap();
    for collection in ALL {
        owner.write(vec![Write::Create { key: key(collection, "there"), body: body() }]).await.unwrap();
    }
    let mut pairs = 0;
    for role in Role::ALL {
        let store = granted.open(role).await;
        for collection in ALL {
            let right = role.right(collection);
            let reads = right >= Right::Reads;
            check(role, collection, reads, store.read(vec![key(collection, "there")]).await);
            let query = Query::new(collection, Order::BY_ID);
            check(role, collection, reads, store.find(query.clone()).await);
            let worded = query.clone().filter(Filter::Text("name".to_owned()));
            if !collection.text.is_empty() {
                check(role, collection, reads, store.find(worded).await);
            }
            if collection.counted.is_empty() {
                check(role, collection, reads, store.count(query, None).await);
            }
            for (needs, write) in writes(collection) {
                check(role, collection, right >= needs, store.write(vec![write]).await);
                pairs += 1;
            }
        }
        check(role, &JOBS, role.right(&JOBS) == Right::Writes, store.claim(claim()).await);
        assert!(store.sequence("numbers", 1).await.is_ok(), "{role:?} takes numbers");
    }
    assert!(pairs >= Role::ALL.len() * ALL.len() * 3, "{pairs}");
    let there = run_sql(&granted.owner, "SELECT count(*) FROM users WHERE id = 'there'");
    assert_eq!(there, "1", "what was refused did not happen");
}

fn claim() -> Claim {
    let from = Query::new(&JOBS, Order { fields: &["runAt"], descending: false })
        .filter(Filter::Is("status", json!("NONE")))
        .limit(1);
    Claim {
        collection: &JOBS,
        from: vec![from],
        max: 1,
        set: vec![("status", json!("STARTED"))],
        add_one: None,
        token: ("claimToken", ClaimToken::derived(&["claim"])),
    }
}

/// Writes of all callers share commits: who may is not refused along with who may not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_is_not_refused_with_who_may_not() {
    let granted = Granted::new();
    let store = granted.open(Role::Processor).await;
    let write = |nth: usize| {
        let collection = if nth.is_multiple_of(3) { &USERS } else { &JOBS };
        let store = Arc::clone(&store);
        async move { store.write(vec![Write::Create { key: Key::new(collection, nth), body: body() }]).await }
    };
    let answers = join_all((0..300).map(write)).await;
    for (nth, answer) in answers.into_iter().enumerate() {
        match answer {
            Ok(written) => {
                assert!(!nth.is_multiple_of(3) && matches!(written[..], [Written::Applied(_)]), "{nth}");
            }
            Err(error) => {
                assert!(
                    nth.is_multiple_of(3) && matches!(error, StoreError::Refused { .. }),
                    "{nth}: {error}"
                );
            }
        }
    }
    assert_eq!(
        run_sql(&granted.owner, "SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM jobs)"),
        "0|200"
    );
}

fn refused<T: std::fmt::Debug>(got: Result<T, StoreError>) {
    assert!(matches!(got, Err(StoreError::Refused { .. })), "{got:?}");
}

/// The three of seed 000, each with its own login, by what the program hands to its parts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_three_of_the_seed_work_together_each_with_its_own_login() {
    let granted = Granted::new();
    let (web, recorder, scheduler) = (
        granted.open(Role::Web).await,
        granted.open(Role::Recorder).await,
        granted.open(Role::Scheduler).await,
    );
    let timer = TimerKey { domain: here(), uuid: TimerId::derived(&["timer"]) };
    let document: Timer =
        serde_json::from_value(json!({"name": "hourly report", "status": "ACTIVE", "section": 1,
        "task": {"type": "noop"}, "schedule": {"cron": "0 * * * *"}}))
        .unwrap();
    let due = "2026-03-01T12:00:00Z".parse().unwrap();

    let writes = Recorder::new(Arc::clone(&recorder));
    assert!(matches!(writes.timers().create(&timer, document.clone()).await.unwrap(), Created::New(_)));
    let Created::New(progress) = writes.progress().create(&timer, Progress::default()).await.unwrap() else {
        panic!("it is new")
    };
    let execution = Execution::new(timer.uuid, due, Cause::Schedule);
    assert!(matches!(writes.executions().record(&here(), execution.clone()).await.unwrap(), Created::New(_)));

    let decides = Scheduler::new(Arc::clone(&scheduler));
    assert_eq!(decides.timers().active_in(&[1], 10, None).await.unwrap().0.len(), 1);
    let read = decides.progress().get(&timer).await.unwrap().unwrap();
    assert_eq!(read.version, progress.version);
    assert!(decides.executions().get(&timer, due, &Cause::Schedule).await.unwrap().is_some());
    let saved =
        writes.progress().save(&read, &Progress { completed_executions: 1, ..Progress::default() }).await;
    assert!(matches!(saved.unwrap(), Saved::Applied(_)), "what the scheduler read the recorder replaces");

    let serves = WebService::new(Arc::clone(&web));
    let words = TimerFilter { text: Some("report".to_owned()), ..TimerFilter::default() };
    assert_eq!(serves.timers(&here()).list(&words, 10, None).await.unwrap().0.len(), 1);
    assert_eq!(serves.timers(&here()).totals().await.unwrap().len(), 1);
    assert_eq!(
        serves.executions(&here()).list(&ExecutionFilter::default(), 10, None).await.unwrap().0.len(),
        1
    );
    let admin = User::new(UserId::first_administrator(), UserSettings::default(), due);
    assert!(matches!(serves.users().create(admin.clone()).await.unwrap(), Created::New(_)));

    // Each with the hands of another, under its own login.
    refused(Scheduler::new(Arc::clone(&web)).progress().get(&timer).await);
    for other in [&web, &scheduler] {
        let writes = Recorder::new(Arc::clone(other));
        refused(writes.timers().create(&timer, document.clone()).await);
        refused(writes.executions().record(&here(), execution.clone()).await);
        refused(writes.progress().save(&read, &Progress::default()).await);
    }
    for other in [&recorder, &scheduler, &granted.open(Role::Processor).await] {
        let users = WebService::new(Arc::clone(other)).users();
        refused(users.get(&admin.id).await);
        refused(users.list(1, None).await);
        refused(users.create(admin.clone()).await);
    }
}

/// What a role has not it may not get by another way: neither by the views, nor by making tables.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_show_a_role_what_it_may_read() {
    let granted = Granted::new();
    let may = |role: &str, relation: &str, right: &str| {
        let asked = format!("SELECT has_table_privilege('a_{role}', '\"{relation}\"', '{right}')");
        run_sql(&granted.owner, &asked) == "t"
    };
    for collection in ALL {
        for role in Role::ALL {
            let reads = role.right(collection) >= Right::Reads;
            assert_eq!(may(role.name(), collection.name, "SELECT"), reads, "{role:?} {collection:?}");
        }
        let is_shown = Role::Web.right(collection) >= Right::Reads && *collection != USERS;
        assert_eq!(may("reader", collection.name, "SELECT"), is_shown, "{collection:?}");
        assert!(!may("reader", &format!("{}.rows", collection.name), "SELECT"), "{collection:?}");
    }
    let makes = "SELECT bool_or(has_schema_privilege(rolname, current_schema(), 'CREATE')) FROM pg_roles WHERE rolname LIKE 'a\\_%'";
    assert_eq!(run_sql(&granted.owner, makes), "f");
    // It is no node: it sees, and cannot open the store.
    let Err(error) = PostgresStore::open(&granted.url("reader")).await else { panic!("it opened") };
    assert!(matches!(&error, StoreError::Refused { why, .. } if why.contains("--grants")), "{error}");
}

/// A login with two roles has the rights of both; one whose rights were taken back has none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_come_and_go_with_membership() {
    let granted = Granted::new();
    let store = granted.open(Role::Processor).await;
    let change = || {
        let (key, body) = (Key::new(&DOMAINS, "one"), body());
        store.write(vec![Write::Replace { key, version: Version(1), body }])
    };
    let make = || store.write(vec![Write::Create { key: Key::new(&SETTINGS, "one"), body: body() }]);
    refused(change().await);
    assert!(make().await.is_ok(), "whoever comes first makes the settings");
    run_sql(&granted.owner, "GRANT rota_web TO a_processor");
    assert!(change().await.is_ok());
    let schema = run_sql(&granted.owner, "SELECT current_schema()");
    let taken = format!(
        "GRANT USAGE ON SCHEMA {schema} TO a_processor; REVOKE rota_web, rota_processor FROM a_processor"
    );
    run_sql(&granted.owner, &taken);
    refused(change().await);
    refused(make().await);
    refused(store.sequence("numbers", 1).await);
}

/// Where several share a server, each has roles of its own.
#[test]
fn roles_can_have_other_names() {
    let printed = grants("other");
    assert!(printed.contains("\"other_web\"") && !printed.contains("\"rota_"), "{printed}");
    let server = Server::start(false);
    let owner = server.fresh();
    run_sql(&owner, &schema());
    run_sql(&owner, &printed);
    assert_eq!(
        run_sql(&owner, "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'other\\_%' AND NOT rolcanlogin"),
        "5"
    );
}
