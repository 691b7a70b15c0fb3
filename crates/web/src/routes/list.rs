//! What all lists share: `{"items": […], "next": "<cursor>"}`, `?limit=` and `?cursor=`.

use rota_model::check::{Checker, Invalid};
use rota_store::StoreError;
use rota_store::cursor::Cursor;
use rota_store::limits::MAX_WORDS;
use rota_store::words::Words;
use serde::{Deserialize, Serialize};

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 1_000;

#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct List<T> {
    pub items: Vec<T>,
    /// Where to go on; absent on the last page. A page may be short and still have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl<T> List<T> {
    pub(crate) fn new(items: Vec<T>, next: Option<&Cursor>) -> Self {
        Self { items, next: next.map(ToString::to_string) }
    }
}

/// Which page of a list.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// How many, 50 if left out.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// The `next` of the page before.
    pub cursor: Option<String>,
}

impl PageQuery {
    pub(crate) fn limit(&self) -> Result<usize, Invalid> {
        limit(self.limit)
    }

    pub(crate) fn cursor(&self) -> Result<Option<Cursor>, Invalid> {
        cursor(self.cursor.as_deref())
    }
}

pub(crate) fn limit(asked: Option<usize>) -> Result<usize, Invalid> {
    let limit = asked.unwrap_or(DEFAULT_LIMIT);
    let mut check = Checker::new();
    check.range("/limit", limit, 1..=MAX_LIMIT);
    check.finish().map(|()| limit)
}

pub(crate) fn cursor(text: Option<&str>) -> Result<Option<Cursor>, Invalid> {
    let refused = |_: StoreError| Invalid::one("/cursor", "must be the `next` of the page before");
    text.map(Cursor::parse).transpose().map_err(refused)
}

/// Words to search for.
pub(crate) fn searched(text: String) -> Result<String, Invalid> {
    match Words::parse(&text).0.len() {
        1..=MAX_WORDS => Ok(text),
        0 => Err(Invalid::one("/text", "must hold a word to search for: letters or digits")),
        count => Err(Invalid::one("/text", format!("may hold {MAX_WORDS} words at most; these are {count}"))),
    }
}
