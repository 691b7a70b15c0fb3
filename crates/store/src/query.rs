//! What can be asked of a store: declared fields, compared; words; one order; pages.

use std::cmp::Ordering;

use rota_model::domain::Domain;
use rota_model::time::UnixMillis;
use serde_json::Value;

use crate::collection::{Collection, Kind, Reach};
use crate::cursor::Cursor;
use crate::seam::{Body, Document};
use crate::words::Words;

#[derive(Clone, Debug)]
pub struct Query {
    pub collection: &'static Collection,
    /// One domain's documents; those of all domains if none is given. Only where each domain has its own.
    pub domain: Option<Domain>,
    /// All of them hold.
    pub filters: Vec<Filter>,
    pub order: Order,
    pub limit: usize,
    pub after: Option<Cursor>,
    /// Documents that were hidden at this instant or before, instead of those that are there.
    pub hidden_before: Option<UnixMillis>,
    /// Whether bodies are left empty: for those who only want to know which documents there are.
    pub keys_only: bool,
    /// Whether a document of which a part cannot be read is a failure, for those who must not go on without it. Otherwise it is
    /// shown without that part.
    pub whole: bool,
    /// Of the documents with the same value in the first field of the order only the first, and of that only the fields of
    /// the order: which values there are, and where each begins. By the fields of an index it costs as much as there are
    /// values, however many documents have them.
    pub firsts: bool,
}

/// Declared fields, all in one direction. A document without a value comes before those that have one, or after them
/// where the order descends. The id is the last of them, unsaid; over all domains the domain comes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    pub fields: &'static [&'static str],
    pub descending: bool,
}

impl Order {
    pub const BY_ID: Order = Order { fields: &[], descending: false };
}

#[derive(Clone, Debug)]
pub enum Filter {
    /// The field has this value; one of its values, if it has several.
    Is(&'static str, Value),
    /// The field has one of these values.
    In(&'static str, Vec<Value>),
    /// The integer or date is this or more; of a date, Unix milliseconds.
    AtLeast(&'static str, i64),
    /// The integer or date is this or less; of a date, Unix milliseconds.
    AtMost(&'static str, i64),
    /// The field has no value.
    Absent(&'static str),
    /// Each of these words stands somewhere in the fields that are searched, in whatever case; a word with `*` at its end
    /// is the beginning of one. It may lag behind writes by more than the others.
    Text(String),
}

impl Filter {
    /// The field it is about; none for words.
    pub fn path(&self) -> Option<&'static str> {
        match self {
            Filter::Is(path, _)
            | Filter::In(path, _)
            | Filter::AtLeast(path, _)
            | Filter::AtMost(path, _)
            | Filter::Absent(path) => Some(path),
            Filter::Text(_) => None,
        }
    }

    /// Whether a document matches.
    pub fn holds(&self, collection: &Collection, body: &Body) -> bool {
        let field = self.path().and_then(|path| collection.field(path));
        let held = field.map(|field| field.sort_value(body)).unwrap_or_default();
        match self {
            Filter::Is(_, wanted) => is(&held, wanted),
            Filter::In(_, wanted) => wanted.iter().any(|one| is(&held, one)),
            Filter::AtLeast(_, least) => held.as_i64().is_some_and(|held| held >= *least),
            Filter::AtMost(_, most) => held.as_i64().is_some_and(|held| held <= *most),
            Filter::Absent(_) => held.is_null(),
            Filter::Text(text) => Words::parse(text).are_in(collection, body),
        }
    }
}

fn is(held: &Value, wanted: &Value) -> bool {
    held.as_array().map_or(held == wanted, |several| several.contains(wanted))
}

impl Query {
    /// Everything in a collection: of all domains, where each has its own.
    pub fn new(collection: &'static Collection, order: Order) -> Self {
        Self {
            collection,
            domain: None,
            filters: Vec::new(),
            order,
            limit: crate::limits::MAX_PAGE,
            after: None,
            hidden_before: None,
            keys_only: false,
            whole: false,
            firsts: false,
        }
    }

    /// Only this domain's documents.
    #[must_use]
    pub fn in_domain(mut self, domain: &Domain) -> Self {
        self.domain = Some(domain.clone());
        self
    }

    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filters.push(filter);
        self
    }

    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    #[must_use]
    pub fn after(mut self, cursor: Option<Cursor>) -> Self {
        self.after = cursor;
        self
    }

    #[must_use]
    pub fn hidden_before(mut self, at: UnixMillis) -> Self {
        self.hidden_before = Some(at);
        self
    }

    #[must_use]
    pub fn keys_only(mut self) -> Self {
        self.keys_only = true;
        self
    }

    #[must_use]
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    #[must_use]
    pub fn firsts(mut self) -> Self {
        self.firsts = true;
        self
    }

    /// Whether documents of several domains are listed together.
    pub fn is_over_all_domains(&self) -> bool {
        self.collection.reach == Reach::Domain && self.domain.is_none()
    }

    /// What a document is sorted by: the values of the order's fields, where needed the domain, and the id.
    pub fn sort_key(&self, document: &Document) -> Vec<Value> {
        let fields = self.order.fields.iter().filter_map(|path| self.collection.field(path));
        let mut key: Vec<Value> = fields.map(|field| field.sort_value(&document.body)).collect();
        if self.is_over_all_domains() {
            key.push(document.key.domain.as_ref().map_or(Value::Null, |domain| domain.as_str().into()));
        }
        key.push(Value::String(document.key.id.clone()));
        key
    }

    /// A page of all that matches and stands behind the cursor, in order.
    pub fn page_of(&self, mut documents: Vec<Document>) -> Page {
        if self.firsts {
            let first = |document: &Document| self.sort_key(document).into_iter().next();
            let shown = self.after.as_ref().and_then(|cursor| cursor.key.first().cloned());
            documents.retain(|document| first(document) != shown);
            documents.dedup_by_key(|document| first(document));
        }
        let more = documents.len() > self.limit;
        documents.truncate(self.limit);
        let next = documents.last().filter(|_| more).map(|last| Cursor::behind(last, self));
        for document in &mut documents {
            if self.firsts {
                document.body = self.order_of(&self.sort_key(document));
            } else if self.keys_only {
                document.body = Body::new();
            }
        }
        Page { documents, next }
    }

    /// A body with the fields of the order alone.
    pub fn order_of(&self, sort_key: &[Value]) -> Body {
        let mut body = Body::new();
        let fields = self.order.fields.iter().filter_map(|path| self.collection.field(path));
        for (field, value) in fields.zip(sort_key).filter(|(_, value)| !value.is_null()) {
            field.set(&mut body, value.clone());
        }
        body
    }

    /// Which of two comes first in the list, by what they are sorted by: what is absent before numbers before texts.
    pub fn compare(&self, a: &[Value], b: &[Value]) -> Ordering {
        let order = a.iter().map(rank).cmp(b.iter().map(rank));
        if self.order.descending { order.reverse() } else { order }
    }

    /// The words that are searched, if any are.
    pub fn words(&self) -> Option<Words> {
        self.filters.iter().find_map(|filter| match filter {
            Filter::Text(text) => Some(Words::parse(text)),
            _ => None,
        })
    }
}

/// What a value is compared by.
pub fn rank(value: &Value) -> (bool, Option<i64>, Option<&str>) {
    (value.is_string(), value.as_i64(), value.as_str())
}

/// Some of the documents that match.
#[derive(Clone, Debug)]
pub struct Page {
    pub documents: Vec<Document>,
    /// Where to go on; none at the end.
    pub next: Option<Cursor>,
}

/// Whether a value may stand in a field of this kind. Null is absence, and may stand anywhere.
pub fn fits(kind: Kind, value: &Value) -> bool {
    match kind {
        _ if value.is_null() => true,
        Kind::Keyword => is_keyword(value),
        Kind::Keywords => value.as_array().is_some_and(|several| several.iter().all(is_keyword)),
        Kind::Integer => value.is_i64(),
        Kind::Date => crate::collection::millis(value).is_some(),
        Kind::Json => true,
    }
}

fn is_keyword(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() <= crate::limits::MAX_KEYWORD_BYTES && !text.contains('\0'))
}
