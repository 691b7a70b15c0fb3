//! A store that many nodes share: PostgreSQL.
//!
//! - [`session`], [`tls`]: connections, and how callers come by one; [`server`]: whether it is one that can be used; [`opening`],
//!   [`strangers`]: how the database is made, unless it is somebody else's; [`refusals`]: what a failure means to the caller
//! - [`mod@schema`], [`names`]: tables, indexes and views, derived from the declarations of the collections
//! - [`mod@grants`]: what each role may do with them
//! - [`row`], [`value`]: a document as columns and a body
//! - [`writer`], [`inbox`]: writes of all callers, gathered into few commits; [`prepared`]: writes made ready for it; [`deeds`]: the
//!   statement for writes of one kind; [`bulk`]: many new documents without one; [`outcome`]: what came of it
//! - [`claim`]: what is found, changed and returned by one statement; [`floors`]: where it goes on from the last
//! - [`reader`], [`select`], [`way`]: what is asked, and where it is looked for
//! - [`numbers`]: what nobody was given before; [`totals`]: differences, folded now and then
//! - [`notices`]: hints between processes

mod bulk;
mod claim;
mod deeds;
mod floors;
mod grants;
mod inbox;
mod names;
mod notices;
mod numbers;
mod opening;
mod outcome;
mod prepared;
mod reader;
mod refusals;
mod row;
mod schema;
mod select;
mod server;
mod session;
mod strangers;
mod tls;
mod totals;
mod value;
mod way;
mod writer;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rota_store::collection::{Collection, Field};
use rota_store::hints::{Changes, Hint, HintSender};
use rota_store::query::{Page, Query};
use rota_store::seam::{Claim, Document, Key, Promises, Store, Tally, Write, Written};
use rota_store::{StoreError, limits};
use serde_json::Value;
use tokio_postgres::Row;

pub use grants::grants;
pub use opening::{schema, upgrade};

use crate::claim::Share;
use crate::floors::{Begin, Floors};
use crate::notices::{Messengers, Notices};
use crate::numbers::Versions;
use crate::row::changed_in;
use crate::session::{Address, Pool, Session};
use crate::totals::Folder;
use crate::writer::Writer;

/// How many connections callers share who read or claim.
const CONNECTIONS: usize = 8;

pub struct PostgresStore {
    pool: Arc<Pool>,
    writer: Writer,
    versions: Arc<Versions>,
    floors: Floors,
    hints: HintSender,
    notices: Notices,
    _messengers: Messengers,
    _folder: Folder,
}

impl PostgresStore {
    /// Opens the store at an address such as `postgres://rota:secret@db.example/rota`, and makes its tables if they are not
    /// there.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let address = Address::parse(url)?;
        let first = address.first().await?;
        let schema = opening::open(&first).await?;
        Ok(Self::start(address, first, &schema).await)
    }

    /// The store at an address as it is, to read from it; none if nobody made one. No table is made or changed.
    pub async fn open_as_it_is(url: &str) -> Result<Option<Self>, StoreError> {
        let address = Address::parse(url)?;
        let first = address.first().await?;
        match opening::open_as_it_is(&first).await? {
            None => Ok(None),
            Some(schema) => Ok(Some(Self::start(address, first, &schema).await)),
        }
    }

    async fn start(address: Address, first: Session, schema: &str) -> Self {
        let pool = Arc::new(Pool::new(address.clone(), first, CONNECTIONS));
        let hints = HintSender::default();
        let (notices, messengers) = notices::start(&address, &pool, channel(schema), &hints).await;
        let versions = Arc::<Versions>::default();
        let writer = Writer::start(&address, &versions, &notices);
        let folder = Folder::start(&pool);
        Self {
            pool,
            writer,
            versions,
            floors: Floors::default(),
            hints,
            notices,
            _messengers: messengers,
            _folder: folder,
        }
    }

    /// Claims for queries that are alike: each from where the last claim for it ended, if that is known, and once more from the
    /// beginning where that was not enough.
    async fn claim_alike(
        &self,
        claim: &Claim,
        alike: &claim::Alike<'_>,
        most: usize,
    ) -> Result<Vec<Document>, StoreError> {
        let begins: Vec<Begin> = alike.queries.iter().map(|query| self.floors.begin(claim, query)).collect();
        let share = |(query, begin): (&&Query, &Begin)| Share { limit: query.limit, floor: begin.floor };
        let mut shares: Vec<Share> = alike.queries.iter().zip(&begins).map(share).collect();
        let mut claimed = self.claim_shares(claim, alike, &shares, most).await?;
        let further_on = shares.iter().any(|share| share.floor.is_some());
        if further_on && claimed.len() < most {
            for (nth, share) in shares.iter_mut().enumerate() {
                share.limit -= of_query(&claimed, nth).count().min(share.limit);
                share.floor = None;
            }
            let in_part = |error: StoreError| if claimed.is_empty() { error } else { error.in_part() };
            let more =
                self.claim_shares(claim, alike, &shares, most - claimed.len()).await.map_err(in_part)?;
            claimed.splice(0..0, more);
            claimed.sort_by_key(|(nth, _)| *nth);
            // What was found before a floor may not have been all of it.
            begins.into_iter().for_each(|begin| self.floors.forget(begin));
        } else {
            self.floors.end(alike, begins, &claimed, most);
        }
        Ok(claimed.into_iter().map(|(_, document)| document).collect())
    }

    /// Each with the number of its query, in order.
    async fn claim_shares(
        &self,
        claim: &Claim,
        alike: &claim::Alike<'_>,
        shares: &[Share],
        most: usize,
    ) -> Result<Vec<(usize, Document)>, StoreError> {
        let lent = self.pool.lend().await?;
        let change = claim::change(claim);
        let claimed = async {
            let version = self.versions.take(&lent, 1).await?;
            let Some(sql) = claim::statement(claim, &change, alike, shares, most, version) else {
                return Ok(Vec::new());
            };
            lent.write("claim", &sql, |row| in_place(claim.collection, &row, &change)).await
        };
        let mut claimed = lent.wholly(claimed).await?;
        claimed.sort_by_key(|(place, ..)| *place);
        claimed.into_iter().map(|(_, nth, document)| Ok((nth, document?))).collect()
    }
}

/// What a query got.
fn of_query(claimed: &[(usize, Document)], nth: usize) -> impl Iterator<Item = &Document> {
    claimed.iter().filter(move |(of, _)| *of == nth).map(|(_, document)| document)
}

/// A document that was claimed, where it stands among those that were, and by which query.
fn in_place(
    collection: &'static Collection,
    row: &Row,
    change: &[(&'static Field, Value)],
) -> (i64, usize, Result<Document, StoreError>) {
    let told = |behind: usize| row.try_get(row.len().saturating_sub(behind)).unwrap_or(i64::MAX);
    let nth = usize::try_from(told(1) - 1).unwrap_or(usize::MAX);
    (told(2), nth, changed_in(collection, row, change))
}

/// The channel of all who use the store in this schema. Names are at most 63 bytes long.
fn channel(schema: &str) -> String {
    let mut name = format!("rota {schema}");
    while name.len() > 63 {
        name.pop();
    }
    name
}

#[async_trait]
impl Store for PostgresStore {
    fn promises(&self) -> Promises {
        Promises { find_lag: Duration::ZERO, text_lag: Duration::ZERO, exclusive: false }
    }

    async fn write(&self, batch: Vec<Write>) -> Result<Vec<Written>, StoreError> {
        limits::check_writes(&batch)?;
        let lows = self.floors.lows(&batch);
        let written = self.writer.write(batch).await;
        self.floors.written(lows);
        written
    }

    async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<Document>>, StoreError> {
        limits::check_keys(&keys)?;
        reader::read(&self.pool, keys).await
    }

    async fn find(&self, query: Query) -> Result<Page, StoreError> {
        limits::check_query(&query)?;
        reader::find(&self.pool, &query).await
    }

    async fn count(&self, query: Query, by: Option<&'static str>) -> Result<Vec<Tally>, StoreError> {
        limits::check_count(&query, by)?;
        reader::count(&self.pool, &query, by).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Document>, StoreError> {
        limits::check_claim(&claim)?;
        let mut claimed = Vec::new();
        for alike in claim::alike(&claim.from) {
            let most = claim.max.saturating_sub(claimed.len());
            // Some may have been claimed before.
            let in_part = |error: StoreError| if claimed.is_empty() { error } else { error.in_part() };
            if most == 0 {
                break;
            }
            let some = self.claim_alike(&claim, &alike, most).await.map_err(in_part)?;
            claimed.extend(some);
        }
        self.notices.tell(
            claimed.iter().map(|found: &Document| Hint { key: found.key.clone(), is_new: false }).collect(),
        );
        Ok(claimed)
    }

    async fn sequence(&self, name: &'static str, n: u64) -> Result<Range<u64>, StoreError> {
        limits::check_sequence(name, n)?;
        let lent = self.pool.lend().await?;
        lent.wholly(numbers::take(&lent, name, n)).await
    }

    fn changes(&self, collection: &'static Collection) -> Changes {
        self.hints.listen(collection)
    }
}
