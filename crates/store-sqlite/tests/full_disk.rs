//! A full disk: writes are refused as unavailable, nothing is lost, and it goes on when there is room. The disk is a small
//! file system of its own, in memory.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a surprise is a failure of the test"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

use rota_model::ids::ClaimToken;
use rota_model::time::UnixMillis;
use rota_store::collection::JOBS;
use rota_store::query::{Filter, Order, Query};
use rota_store::seam::{Body, Claim, Key, Write, Written};
use rota_store::{Store, StoreError};
use rota_store_sqlite::SqliteStore;
use rota_store_sqlite::check::check;
use rota_store_sqlite::holder::Holder;
use serde_json::json;

/// A folder on a file system of this many bytes; none where this user may not mount one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(bytes: u64) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={bytes}");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then_some(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder, Holder::take(folder, "a test").unwrap()).unwrap()
}

fn create(n: u32) -> Write {
    let body =
        json!({"jobNumber": n, "status": "QUEUED", "priority": 5, "runAt": 0, "text": "x".repeat(9_000)});
    Write::Create { key: Key::new(&JOBS, format!("{n:05}")), body: body.as_object().unwrap().clone() }
}

fn claim() -> Claim {
    let due = Query::new(&JOBS, Order::BY_ID).filter(Filter::Is("status", json!("QUEUED"))).limit(100);
    let large: Body = json!({"why": "y".repeat(200_000)}).as_object().unwrap().clone();
    Claim {
        collection: &JOBS,
        from: vec![due],
        max: 100,
        set: vec![("status", json!("STARTED")), ("result", json!(large))],
        add_one: None,
        token: ("claimToken", ClaimToken::rising(UnixMillis(0), &[1; 10])),
    }
}

async fn fill(store: &SqliteStore, numbers: impl Iterator<Item = u32>) -> (Vec<u32>, StoreError) {
    let mut there = Vec::new();
    for n in numbers {
        match store.write(vec![create(n)]).await {
            Ok(written) => {
                assert!(matches!(written[0], Written::Applied(_)));
                there.push(n);
            }
            Err(error) => return (there, error),
        }
    }
    panic!("the disk never filled up")
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_is_survived() {
    let Some(disk) = SmallDisk::mount(12 << 20) else {
        let left_out = std::env::var_os("ROTA_TEST_WITHOUT_MOUNT").is_some();
        assert!(
            left_out,
            "this user may not mount a file system; ROTA_TEST_WITHOUT_MOUNT=1 leaves this test out"
        );
        return;
    };
    let ballast = disk.path().join("ballast");
    fs::write(&ballast, vec![0_u8; 4 << 20]).unwrap();
    let folder = disk.path().join("data");
    let store = open(&folder);
    let (mut there, error) = fill(&store, 0..).await;
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(there.len() > 20, "{}", there.len());
    // Whatever is asked while it is full: nothing happens, and reading goes on.
    let refused = store.claim(claim()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable { .. }), "{refused:?}");
    // Also to a batch that would be several commits: it fails with the first of them.
    let refused = store.write((50_000..51_500).map(create).collect()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable { .. }), "{refused:?}");
    assert_all_there(&store, &there).await;

    fs::remove_file(&ballast).unwrap();
    let next = *there.last().unwrap() + 1;
    // What was refused did not happen: the same documents are made now, each of them new.
    for n in next..next + 20 {
        let written = store.write(vec![create(n)]).await.unwrap();
        assert!(matches!(written[0], Written::Applied(_)), "{written:?}");
        there.push(n);
    }
    assert_all_there(&store, &there).await;
    drop(store);
    let store = open(&folder);
    assert_all_there(&store, &there).await;
    drop(store);
    let findings = check(&folder, &mut |_| {}).unwrap();
    assert!(findings.is_sound(), "{:?}", findings.faults);
}

async fn assert_all_there(store: &SqliteStore, numbers: &[u32]) {
    let keys = numbers.iter().map(|n| Key::new(&JOBS, format!("{n:05}"))).collect();
    let found = store.read(keys).await.unwrap();
    for (n, found) in numbers.iter().zip(found) {
        let found = found.unwrap_or_else(|| panic!("{n} is missing"));
        assert_eq!((&found.body["jobNumber"], &found.body["status"]), (&json!(n), &json!("QUEUED")));
    }
    let total = store.count(Query::new(&JOBS, Order::BY_ID), None).await.unwrap()[0].count;
    assert_eq!(total, numbers.len() as u64);
}
