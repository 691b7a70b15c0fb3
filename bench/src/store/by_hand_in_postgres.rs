//! Plain PostgreSQL, by a loop written for this one table: what the seam is measured against.

use rota_store::collection::{JOBS, Kind};
use rota_store::seam::{Body, Key};
use rota_store_postgres::PostgresStore;
use serde_json::Value;
use tokio::time::Instant;
use tokio_postgres::NoTls;
use tokio_postgres::types::{Json, ToSql};

use super::{BATCH, job, per_second};
use crate::ground::fresh;

/// A batch as the loop gets it: an array for each column.
struct Ready {
    ids: Vec<String>,
    versions: Vec<i64>,
    bodies: Vec<Json<Body>>,
    columns: Vec<Column>,
}

enum Column {
    Texts(Vec<Option<String>>),
    Ints(Vec<Option<i64>>),
    Jsons(Vec<Option<Json<Value>>>),
}

impl Column {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Integer | Kind::Date => Self::Ints(Vec::new()),
            Kind::Json => Self::Jsons(Vec::new()),
            Kind::Keyword | Kind::Keywords => Self::Texts(Vec::new()),
        }
    }

    fn push(&mut self, value: Option<Value>) {
        match self {
            Self::Texts(column) => column.push(value.and_then(|value| value.as_str().map(str::to_owned))),
            Self::Ints(column) => column.push(value.and_then(|value| value.as_i64())),
            Self::Jsons(column) => column.push(value.map(Json)),
        }
    }

    fn param(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Texts(column) => column,
            Self::Ints(column) => column,
            Self::Jsons(column) => column,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Texts(_) => "text[]",
            Self::Ints(_) => "bigint[]",
            Self::Jsons(_) => "jsonb[]",
        }
    }
}

fn ready(numbers: std::ops::Range<u64>) -> Ready {
    let columns = JOBS.fields.iter().map(|field| Column::of(field.kind)).collect();
    let mut ready = Ready { ids: Vec::new(), versions: Vec::new(), bodies: Vec::new(), columns };
    for number in numbers {
        let (Key { id, .. }, mut body) = job(number);
        for (field, column) in JOBS.fields.iter().zip(&mut ready.columns) {
            column.push(if field.changes { field.take(&mut body) } else { field.get(&body).cloned() });
        }
        ready.ids.push(id);
        ready.versions.push(number.cast_signed());
        ready.bodies.push(Json(body));
    }
    ready
}

/// Into the table that the store made, in batches, each on disk, as one statement over arrays.
pub(super) async fn batches(documents: u64) -> f64 {
    let url = fresh();
    drop(PostgresStore::open(&url).await.unwrap());
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let batches: Vec<Ready> =
        (0..documents).step_by(BATCH).map(|first| ready(first..first + BATCH as u64)).collect();
    let names: String =
        JOBS.fields.iter().map(|field| format!(", \"{}\"", field.path.replace('.', "_"))).collect();
    let arrays: String = batches[0]
        .columns
        .iter()
        .zip(4..)
        .map(|(column, nth)| format!(", ${nth}::{}", column.kind()))
        .collect();
    let insert = format!(
        "INSERT INTO \"jobs.rows\" (id, version, body{names}) \
         SELECT * FROM unnest($1::text[], $2::bigint[], $3::jsonb[]{arrays})"
    );
    let insert = client.prepare(&insert).await.unwrap();
    let began = Instant::now();
    for batch in &batches {
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&batch.ids, &batch.versions, &batch.bodies];
        values.extend(batch.columns.iter().map(Column::param));
        client.execute(&insert, &values).await.unwrap();
    }
    let rate = per_second(documents, began);
    drop(client);
    connection.await.unwrap().unwrap();
    rate
}
