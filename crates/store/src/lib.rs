//! Where documents are kept, and what is promised about it.
//!
//! # The seam
//!
//! A store is small: seven verbs, no transactions. That is all that a cluster of search nodes can promise, and it is
//! enough, because every caller is written for it. What a verb promises is the same on every backend, and one suite of
//! tests shows it on each of them. What is not promised here may hold on one backend by chance; nobody builds on it.
//!
//! | verb | promise |
//! |---|---|
//! | [`write`](Store::write) | each document on its own: create if the id is free; replace, change fields or delete if the version is still the one that was read. The answer says for each what became of it. On return it is durable: it survives the loss of power |
//! | [`read`](Store::read) | the newest version, as far as the store knows |
//! | [`find`](Store::find) | what matches, in one order, page by page. It may lag behind writes, by a bound that the store states |
//! | [`count`](Store::count) | totals by one field; those that people look at often take no longer with more documents |
//! | [`claim`](Store::claim) | documents, changed and handed to this caller alone |
//! | [`sequence`](Store::sequence) | numbers that nobody was given before |
//! | [`changes`](Store::changes) | hints that something happened |
//!
//! ## What a caller must live with
//!
//! - **A batch is many writes, and not one.** Any of them may be applied and its neighbour not, in whatever order. Only a
//!   batch that asks for something impossible is refused as a whole, before any of it is done.
//! - **Whoever comes second is told so.** A conflict is an answer and not an error: read again, and decide anew from
//!   what is there now. Versions are compared for equality and mean nothing else; no document ever has one again that it
//!   had before, even if it was deleted and made anew.
//! - **An answer may be lost.** [`StoreError::Unknown`] means that the write may have happened, or may yet, seconds from
//!   now. So ids are derived or chosen before the write: a create repeated is the same create, and finds itself there. A
//!   replace repeated finds another version; whoever needs to know reads, and recognises its own writing by what it wrote.
//!   [`StoreError::Unavailable`] means that it did not happen and will not; [`StoreError::Refused`], that it never will.
//! - **A read decides nothing.** The compare-and-set of the write that follows decides.
//! - **A find may lag, and a page may be short and still have a next.** Whoever walks through all pages meets every
//!   document once that was there throughout and kept its place in the order; those that come, go or move meanwhile may be
//!   met or not.
//! - **A claim may land after its caller gave up.** It names its caller by a token in the documents, and by that token
//!   the caller, or whoever looks after it, finds what it was given.
//! - **Hints may be late, doubled or lost.** Speed depends on them, correctness never.
//!
//! ## Durable
//!
//! What a write acknowledged survives the loss of power. A store may be opened to wait for its disk a moment later, as
//! an operator decides who would rather have speed: then what was acknowledged in the last span, which the operator names,
//! may be lost with the machine's power, never by a crash of the process. What is lost is the end of what happened, and
//! nothing before it; no number and no version that was lost is given out again.
//!
//! ## Deleting
//!
//! A create that was under way when its document was deleted would bring it back. Where that matters, a collection is
//! declared to hide what is deleted ([`collection::Deleting`]): the document is found no more, and its id stays taken until
//! it is purged, long after anything under way has landed. Purging is a write like any other ([`seam::Write::Purge`]), of
//! documents that a query for hidden ones finds; [`sweep`] does it in slices.
//!
//! ## Collections, and those of domains
//!
//! A collection is declared once ([`collection`]): its name, its fields with their types, where words are searched, which
//! totals are kept, how long its documents are. Backends derive their tables or mappings from that, and so their upgrades.
//! Some collections each domain has for itself: `timers-default` is the collection [`collection::TIMERS`] of the domain
//! `default`. A key names the domain; a query may leave it out, and then goes over all of them, as the scheduler needs.
//!
//! ## What is urgent
//!
//! A node whose beat is late is taken for dead (rule 2). So a write of nothing but documents of collections that are
//! declared [urgent](collection::Collection::urgent) does not queue behind other requests: it is part of what the store
//! does next, however much was asked of it before.
//!
//! ## Words
//!
//! Words are searched by a filter of their own ([`query::Filter::Text`]), which may lag longer than others: an index of
//! words must never stand in the way of a write. What a word is, is said once ([`words`]), and not by each engine.
//!
//! ## Time
//!
//! No store asks for the time. Where an instant matters, it is an argument.
//!
//! # The rooms
//!
//! - [`seam`]: the verbs; [`query`], [`cursor`]: what can be asked, and where a list goes on; [`limits`]: what is refused;
//!   [`error`]: what can go wrong; [`hints`]: how listeners learn of changes
//! - [`collection`]: what is declared about each collection, once, for every backend; [`sequences`]: which there are
//! - [`memory`]: the store that is obviously right, and the model for the others
//! - [`jobs`], [`unique_keys`], [`job_limits`], [`job_types`], [`nodes`], [`logs`], [`metrics`], [`domains`], [`settings`]: what the rest of
//!   Rota says instead of queries, built on [`repository`]
//! - [`users`], [`timers`], [`executions`], [`progress`]: the same, for those whom [`access`] lets; [`rights`]: what each process
//!   may touch, for stores that can see to it
//! - [`sweep`]: clearing out what is kept no longer; [`copy`]: everything, from one store to another

pub mod access;
pub mod collection;
pub mod copy;
pub mod cursor;
pub mod domains;
pub mod error;
pub mod executions;
pub mod hints;
pub mod job_limits;
pub mod job_types;
pub mod jobs;
pub mod limits;
pub mod logs;
pub mod memory;
pub mod metrics;
pub mod nodes;
pub mod progress;
pub mod query;
pub mod repository;
pub mod rights;
pub mod seam;
pub mod sequences;
pub mod settings;
pub mod sweep;
pub mod timers;
pub mod unique_keys;
pub mod users;
pub mod words;

pub use error::StoreError;
pub use repository::Versioned;
pub use seam::{Promises, Store};
