//! Plain SQLite, by a loop written for this one table: what the seam is measured against.

use rota_store::collection::JOBS;
use rota_store::seam::{Body, Key};
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, params_from_iter};
use serde_json::Value;
use tokio::time::Instant;

use super::{BATCH, Options, job, measured, median, open, per_second};
use crate::report::Measurement;

/// A job as the loop gets it: what stands in columns, and what is left.
struct Ready {
    id: String,
    columns: Vec<SqlValue>,
    rest: Body,
}

fn ready(number: u64) -> Ready {
    let (Key { id, .. }, mut rest) = job(number);
    let mut column = |path: &'static str| {
        let field = JOBS.field(path).unwrap();
        let value = if field.changes { field.take(&mut rest) } else { field.get(&rest).cloned() };
        match value.unwrap_or_default() {
            Value::Null => SqlValue::Null,
            Value::String(text) => SqlValue::Text(text),
            Value::Number(number) => SqlValue::Integer(number.as_i64().unwrap()),
            other => SqlValue::Text(other.to_string()),
        }
    };
    let columns = JOBS.fields.iter().map(|field| column(field.path)).collect();
    Ready { id, columns, rest }
}

/// Into the tables that the store made, in batches, each on disk.
pub(super) fn batches(documents: u64) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let connection = Connection::open(folder.path().join(rota_store_sqlite::FILE)).unwrap();
    connection.pragma_update(None, "synchronous", "FULL").unwrap();
    connection.pragma_update(None, "cache_size", -64_000).unwrap();
    let names: String =
        JOBS.fields.iter().map(|field| format!(", \"{}\"", field.path.replace('.', "_"))).collect();
    let holes = ", ?".repeat(JOBS.fields.len());
    let text = format!("INSERT INTO \"jobs.rows\" (pk, id, version, body{names}) VALUES (?, ?, ?, ?{holes})");
    let ready: Vec<Ready> = (0..documents).map(ready).collect();
    let began = Instant::now();
    let mut pk = 0;
    for batch in ready.chunks(BATCH) {
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut insert = connection.prepare_cached(&text).unwrap();
        for job in batch {
            pk += 1;
            let body = serde_json::to_string(&job.rest).unwrap();
            let head = [
                SqlValue::Integer(pk),
                SqlValue::Text(job.id.clone()),
                SqlValue::Integer(pk),
                SqlValue::Text(body),
            ];
            insert.execute(params_from_iter(head.iter().chain(&job.columns))).unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
    }
    per_second(documents, began)
}

/// What was decided about pages, columns and indexes, measured on a table of its own.
pub(super) fn variants(options: &Options) -> Vec<Measurement> {
    let cases = [
        ("8 KiB pages, changes in columns", Variant { page: 8_192, columns: true, status_index: false }),
        ("4 KiB pages", Variant { page: 4_096, columns: true, status_index: false }),
        ("16 KiB pages", Variant { page: 16_384, columns: true, status_index: false }),
        ("the body written again", Variant { page: 8_192, columns: false, status_index: false }),
        ("an index over the status", Variant { page: 8_192, columns: true, status_index: true }),
    ];
    let rates = |variant: Variant| -> f64 {
        median((0..options.runs).map(|_| variant.lives(options.documents)).collect())
    };
    let mut measurements = Vec::new();
    let mut first = None;
    for (name, variant) in cases {
        eprintln!("whole lives on plain SQLite: {name}");
        let rate = rates(variant);
        let measurement = measured(format!("whole lives on plain SQLite: {name}"), rate, "jobs/s");
        measurements.push(match first {
            Some(first) => super::beside(measurement, "the first", first),
            None => measurement,
        });
        first.get_or_insert(rate);
    }
    measurements
}

#[derive(Clone, Copy)]
struct Variant {
    page: i64,
    columns: bool,
    status_index: bool,
}

impl Variant {
    /// Made, claimed and ended, in batches of a thousand, each on disk.
    fn lives(self, documents: u64) -> f64 {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("plain.db")).unwrap();
        connection.pragma_update(None, "page_size", self.page).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.pragma_update(None, "synchronous", "FULL").unwrap();
        let table = "CREATE TABLE jobs (pk INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, body TEXT NOT NULL, domain TEXT,
            number INTEGER, status TEXT, epoch INTEGER, owner TEXT, result TEXT);
            CREATE INDEX due ON jobs (number) WHERE status = 'QUEUED'; CREATE INDEX newest ON jobs (domain, number);";
        connection.execute_batch(table).unwrap();
        if self.status_index {
            connection.execute_batch("CREATE INDEX by_status ON jobs (domain, status, number)").unwrap();
        }
        let ready: Vec<(String, String)> =
            (0..documents).map(job).map(|(key, body)| (key.id, Value::Object(body).to_string())).collect();
        let began = Instant::now();
        for (nth, batch) in ready.chunks(BATCH).enumerate() {
            let first = nth * BATCH;
            self.step(&connection, batch, first, None);
        }
        for (nth, batch) in ready.chunks(BATCH).enumerate() {
            self.step(&connection, batch, nth * BATCH, Some(("STARTED", "{}")));
            self.step(&connection, batch, nth * BATCH, Some(("SUCCESSFUL", "{\"sent\":true}")));
        }
        per_second(documents, began)
    }

    fn step(
        self,
        connection: &Connection,
        batch: &[(String, String)],
        first: usize,
        to: Option<(&str, &str)>,
    ) {
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        for (nth, (id, body)) in batch.iter().enumerate() {
            let pk = i64::try_from(first + nth).unwrap();
            match to {
                None => connection
                    .prepare_cached(
                        "INSERT INTO jobs VALUES (?, ?, ?, 'default', ?, 'QUEUED', 0, NULL, '{}')",
                    )
                    .and_then(|mut insert| insert.execute(rusqlite::params![pk, id, body, pk])),
                Some((status, result)) if self.columns => connection
                    .prepare_cached(
                        "UPDATE jobs SET status = ?, epoch = epoch + 1, owner = ?, result = ? WHERE id = ?",
                    )
                    .and_then(|mut update| update.execute(rusqlite::params![status, id, result, id])),
                Some((status, result)) => {
                    let mut whole: Value = serde_json::from_str(body).unwrap();
                    whole["status"] = status.into();
                    whole["result"] = result.into();
                    connection.prepare_cached("UPDATE jobs SET status = ?, body = ? WHERE id = ?").and_then(
                        |mut update| update.execute(rusqlite::params![status, whole.to_string(), id]),
                    )
                }
            }
            .unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
    }
}
