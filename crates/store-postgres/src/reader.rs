//! What is asked: documents by their keys, lists page by page, totals.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;

use futures::TryStreamExt as _;
use rota_store::StoreError;
use rota_store::collection::{ALL, Kind, Reach};
use rota_store::cursor::Cursor;
use rota_store::query::{Filter, Page, Query};
use rota_store::seam::{Body, Document, Key, Tally};
use serde_json::Value;
use tokio_postgres::Row;

use crate::names::{column, counted, document, is_shown_by_key, key, table};
use crate::row::{document_in, key_in, sorted_in, whole_in};
use crate::select::{self, Part, Sql, order_columns};
use crate::session::{Pool, Session};
use crate::value::Param;
use crate::way::Look;

/// A page ends when its documents have more than this, in bytes: a thousand large ones are several pages.
const PAGE_BYTES: usize = 8 * 1024 * 1024;

pub(crate) async fn read(pool: &Pool, keys: Vec<Key>) -> Result<Vec<Option<Document>>, StoreError> {
    let mut found: HashMap<Key, Document> = HashMap::new();
    for collection in ALL {
        let asked = keys.iter().filter(|key| key.collection == collection);
        let (ids, domains): (Vec<_>, Vec<_>) =
            asked.map(|key| (Some(key.id.clone()), key.domain.as_ref().map(ToString::to_string))).unzip();
        if ids.is_empty() {
            continue;
        }
        let mut sql = Sql::default();
        let ids = sql.value(Param::Texts(ids));
        let matches = match collection.reach {
            Reach::Installation => format!("r.id = ANY({ids})"),
            Reach::Domain => {
                let domains = sql.value(Param::Texts(domains));
                format!("(r.id, r.in_domain) IN (SELECT * FROM unnest({ids}::text[], {domains}::text[]))")
            }
        };
        let (columns, rows, shown) =
            (document(collection, "r"), table(collection), is_shown_by_key(collection, "r."));
        sql.text = format!("SELECT {columns} FROM {rows} AS r WHERE {matches} AND {shown}");
        for row in pool.read("read", &sql).await? {
            let (document, _) = document_in(collection, &row, 0)?;
            found.insert(document.key.clone(), document);
        }
    }
    // A key may be asked for twice.
    Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
}

/// A row of a list: a document, and what it is sorted by.
struct Found {
    document: Document,
    sort_key: Vec<Value>,
}

pub(crate) async fn find(pool: &Pool, query: &Query) -> Result<Page, StoreError> {
    let session = pool.lend().await?;
    // One more than asked for, to know whether there is a next page.
    let limit = query.limit + 1;
    let (mut found, cut) = if query.firsts {
        (session.wholly(firsts(&session, query, limit)).await?, false)
    } else {
        session.wholly(list_looking(&session, query, limit)).await?
    };
    if cut {
        session.leave();
    }
    let more = found.len() > query.limit || cut;
    found.truncate(query.limit);
    let next = found.last().filter(|_| more).map(|last| Cursor::behind_key(last.sort_key.clone(), query));
    Ok(Page { documents: found.into_iter().map(|found| found.document).collect(), next })
}

/// Looks further as long as there is not enough.
async fn list_looking(
    session: &Session,
    query: &Query,
    limit: usize,
) -> Result<(Vec<Found>, bool), StoreError> {
    let mut listed = (Vec::new(), false);
    for look in select::looks(query) {
        listed = list(session, query, limit, *look).await?;
        if listed.0.len() == limit || listed.1 {
            break;
        }
    }
    Ok(listed)
}

/// The first documents of a list, and whether it was cut short because they are large.
async fn list(
    session: &Session,
    query: &Query,
    limit: usize,
    look: Look,
) -> Result<(Vec<Found>, bool), StoreError> {
    let (collection, order) = (query.collection, order_columns(query));
    let sorted: String = order.iter().map(|(name, _)| format!("r.{name}, ")).collect();
    let shown = if query.keys_only { key(collection, "r") } else { document(collection, "r") };
    let read = if query.whole { whole_in } else { document_in };
    let (mut found, mut bytes) = (Vec::new(), 0);
    for Part { list, goes_on } in select::lists(query, &format!("{sorted}{shown}"), limit, look) {
        let statement = session.prepare_for(&list).await.map_err(session.unavailable("find"))?;
        let rows =
            session.client.query_raw(&statement, &list.values).await.map_err(session.unavailable("find"))?;
        let mut rows = pin!(rows);
        while let Some(row) = rows.try_next().await.map_err(session.unavailable("find"))? {
            let sort_key = sort_key_in(query, &row, &order)?;
            let document = if query.keys_only {
                let (key, version) = key_in(collection, &row, order.len())?;
                Document { key, version, body: Body::new() }
            } else {
                let (document, length) = read(collection, &row, order.len())?;
                bytes += length;
                document
            };
            found.push(Found { document, sort_key });
            if found.len() == limit {
                return Ok((found, false));
            }
            if bytes > PAGE_BYTES {
                return Ok((found, true));
            }
        }
        if let Some(goes_on) = goes_on
            && !session.query(&goes_on).await.map_err(session.unavailable("find"))?.is_empty()
        {
            // What stands behind comes before what the next part would give.
            return Ok((found, false));
        }
    }
    Ok((found, false))
}

async fn firsts(session: &Session, query: &Query, limit: usize) -> Result<Vec<Found>, StoreError> {
    let order = order_columns(query);
    let mut found = Vec::new();
    for sql in select::firsts(query, limit) {
        for row in session.query(&sql).await.map_err(session.unavailable("find"))? {
            let sort_key = sort_key_in(query, &row, &order)?;
            let (key, version) = key_in(query.collection, &row, order.len())?;
            let document = Document { key, version, body: query.order_of(&sort_key) };
            found.push(Found { document, sort_key });
        }
    }
    found.truncate(limit);
    Ok(found)
}

fn sort_key_in(query: &Query, row: &Row, order: &[(String, Kind)]) -> Result<Vec<Value>, StoreError> {
    let values = order.iter().enumerate().map(|(nth, (_, kind))| sorted_in(*kind, row, nth));
    let damaged = |why| StoreError::damaged(format!("read from {}", query.collection.name), why);
    values.collect::<Result<_, _>>().map_err(damaged)
}

pub(crate) async fn count(
    pool: &Pool,
    query: &Query,
    by: Option<&'static str>,
) -> Result<Vec<Tally>, StoreError> {
    if let Some(kept) = kept(pool, query, by).await? {
        return Ok(kept);
    }
    let kind = by.and_then(|path| query.collection.field(path)).map_or(Kind::Keyword, |field| field.kind);
    let (value, group) = match by {
        Some(path) => (format!("r.{}", column(path)), " GROUP BY 1 ORDER BY 1 NULLS FIRST"),
        None => ("NULL::text".to_owned(), ""),
    };
    let mut sql = select::matching(query);
    sql.text = format!("SELECT {value}, count(*){}{group}", sql.text);
    let damaged = |why: String| StoreError::damaged(format!("count {}", query.collection.name), why);
    let tally = |row: Row| {
        let count: i64 = row.try_get(1).map_err(|error| error.to_string())?;
        Ok(Tally { value: sorted_in(kind, &row, 0)?, count: count.unsigned_abs() })
    };
    pool.read("count", &sql).await?.into_iter().map(|row| tally(row).map_err(damaged)).collect()
}

/// The totals that a query asks for, if they are among those kept.
async fn kept(
    pool: &Pool,
    query: &Query,
    by: Option<&'static str>,
) -> Result<Option<Vec<Tally>>, StoreError> {
    let names = counted(query.collection);
    let place = |path: &str| names.iter().position(|name| *name == path);
    if names.is_empty() || query.hidden_before.is_some() || by.is_some_and(|by| place(by).is_none()) {
        return Ok(None);
    }
    let mut sql = Sql::default();
    let mut narrow = format!("collection = {}", sql.value(Param::Text(query.collection.name.to_owned())));
    if let Some(domain) = &query.domain {
        narrow.push_str(&format!(" AND key[1] = {}", sql.value(Param::Text(domain.to_string()))));
    }
    for filter in &query.filters {
        let Some(nth) = filter.path().and_then(place).map(|nth| nth + 1) else { return Ok(None) };
        let condition = match filter {
            Filter::Is(_, value) => format!("key[{nth}] = {}", sql.value(select::param(value))),
            Filter::In(_, values) => {
                format!("key[{nth}] = ANY({})", sql.value(select::params(values, Kind::Keyword)))
            }
            Filter::Absent(_) => format!("key[{nth}] IS NULL"),
            _ => return Ok(None),
        };
        narrow.push_str(" AND ");
        narrow.push_str(&condition);
    }
    let value = by.and_then(place).map_or("NULL::text".to_owned(), |nth| format!("key[{}]", nth + 1));
    sql.text =
        format!("SELECT {value}, sum(n)::bigint FROM counts WHERE {narrow} GROUP BY 1 HAVING sum(n) <> 0");
    let mut totals: BTreeMap<Option<String>, u64> = BTreeMap::new();
    if by.is_none() {
        totals.insert(None, 0);
    }
    for row in pool.read("count", &sql).await? {
        let read = |error: tokio_postgres::Error| StoreError::damaged("count", error);
        let (value, n): (Option<String>, i64) =
            (row.try_get(0).map_err(read)?, row.try_get(1).map_err(read)?);
        totals.insert(value, n.unsigned_abs());
    }
    let tally = |(value, count): (Option<String>, u64)| Tally {
        value: value.map_or(Value::Null, Value::from),
        count,
    };
    Ok(Some(totals.into_iter().map(tally).collect()))
}
