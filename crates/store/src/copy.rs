//! A store becomes the same as another one: every document, and where the sequences stand.
//!
//! # What holds when it ends well
//!
//! The target has the documents of the source, each with the same body, and no others; what is hidden there is hidden here,
//! so that its id stays taken. No number that the source gave out is given out again by the target. Nothing is converted, and
//! nothing is left out: a document of the source that cannot be read ends the copy.
//!
//! # How it gets there
//!
//! ```text
//!   begin    the target is empty, or a copy of the same source was begun in it: the marker says so
//!   fill     every page of the source is created in the target, from where the marker says
//!   compare  both are walked through side by side; what differs is put right, and then compared again
//!   end      the sequences, then the marker
//! ```
//!
//! Filling is fast and careless: a create whose id is taken is left as it is, since it may be a repeated one. Comparing
//! decides. So it does not matter what a copy that was killed left behind, what the source wrote before it was begun again, or
//! which write landed late: what is different is found, document by document. Counts and checksums come from the last
//! comparison, and they are of what was read from both.
//!
//! The [`marker`] stands in the target from before the first document until after the last. A node refuses to work on a store
//! in which a copy is unfinished. One that was finished is taken over by the first node that opens it; until then the same
//! copy may be made once more, and brings over what has changed. Who finds the marker of another copy, or none, was overtaken,
//! and writes nothing more: it may have slept while the other one ended and a node began.
//!
//! Seven verbs are enough for all of it, so that any two stores will do.
//!
//! - [`filling`], [`comparing`]: the two walks; [`walk`]: documents in the order of their keys
//! - [`writes`]: what is written to the target, again and again until it is known what became of it
//! - [`digest`]: when two documents are the same
//! - [`alive`]: who works on the source

pub mod alive;
mod comparing;
mod digest;
mod filling;
pub(crate) mod marker;
mod walk;
mod writes;

use std::future::Future;
use std::time::Duration;

use rota_model::settings::{SETTINGS_ID, Settings};
use rota_model::time::UnixMillis;
use tokio::time::{Instant, sleep};

pub use comparing::Compared;
pub use digest::Sum;
pub use marker::Origin;

use crate::collection::{ALL, SETTINGS};
use crate::limits::MAX_NUMBERS;
use crate::repository::decode;
use crate::seam::{Key, Store};
use crate::{StoreError, sequences};
use marker::Held;
use walk::{Shown, everything};

/// How long a store may be away before a copy gives up.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it is left alone after it failed: from the first span, doubled, to the second.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// How often what differs is put right. Hiding takes a second time, since what is deleted is hidden first and then purged.
const REPAIRS: usize = 3;

/// A copy that somebody wants.
pub struct Copying<'a> {
    pub source: &'a dyn Store,
    pub target: &'a dyn Store,
    pub origin: Origin,
    /// Tells this attempt apart from any other.
    pub run: String,
    pub now: UnixMillis,
    /// Whether others write to the source meanwhile. What differs then is put right once, and what still differs is no fault.
    pub in_use: bool,
}

/// How far it has come, in documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub stage: Stage,
    pub done: u64,
    pub of: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Filling,
    Comparing,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Copied {
    pub collections: Vec<Compared>,
    /// Whether one that had begun before was continued.
    pub resumed: bool,
}

impl Copied {
    pub fn is_equal(&self) -> bool {
        self.collections.iter().all(Compared::is_equal)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Of the source: a copy leaves nothing out.
    #[error("{0}")]
    Damaged(StoreError),
    #[error("no node has ever worked on it")]
    NoSource,
    #[error("it holds a copy of {from} that was not finished")]
    HalfSource { from: String },
    #[error("it is not empty: it holds {0}")]
    NotEmpty(Key),
    #[error("it holds a copy of {from}")]
    OtherCopy { from: String },
    #[error("another copy into it has begun")]
    Overtaken,
}

impl Copying<'_> {
    /// Makes the target the same as the source, or says why not. Where they still differ in the end, the copy stays
    /// unfinished.
    pub async fn run(&self, report: &mut (dyn FnMut(Progress) + Send)) -> Result<Copied, CopyError> {
        check_source(self.source).await?;
        let mut held = Held::begin(self).await?;
        let of = self.size().await;
        filling::fill(self, &mut held, of, report).await?;
        let mut collections = self.compare(&held, of, report, true).await?;
        let repairs = if self.in_use { 1 } else { REPAIRS };
        for nth in 1..=repairs {
            if collections.iter().all(Compared::is_equal) {
                break;
            }
            collections = self.compare(&held, of, report, nth < repairs).await?;
        }
        let copied = Copied { collections, resumed: held.resumed };
        if copied.is_equal() || self.in_use {
            self.move_sequences().await?;
            held.finish().await?;
        }
        Ok(copied)
    }

    /// How many documents there are, as far as that is to be had: it is for people who wait.
    async fn size(&self) -> u64 {
        let mut size = 0;
        for (collection, shown) in everything() {
            let counted = self.source.count(shown.query(collection), None).await;
            size += counted.ok().and_then(|tallies| Some(tallies.first()?.count)).unwrap_or(0);
        }
        size
    }

    /// What was written must be found by whoever looks, or it would be written again.
    async fn compare(
        &self,
        held: &Held<'_>,
        of: u64,
        report: &mut (dyn FnMut(Progress) + Send),
        repair: bool,
    ) -> Result<Vec<Compared>, CopyError> {
        sleep(self.target.promises().find_lag).await;
        let mut done = 0;
        let mut collections = Vec::with_capacity(ALL.len());
        for collection in ALL {
            let mut compared = Compared::new(collection);
            for shown in Shown::of(collection) {
                let mut tell = |more: u64| {
                    done += more;
                    report(Progress { stage: Stage::Comparing, done, of: of.max(done) });
                };
                comparing::compare(self, held, shown, &mut compared, repair, &mut tell).await?;
            }
            collections.push(compared);
        }
        Ok(collections)
    }

    /// The source gives a number, and the target is moved to where it would give a later one. Whatever is lost or doubled on
    /// the way leaves a gap and nothing else.
    async fn move_sequences(&self) -> Result<(), StoreError> {
        for name in sequences::ALL {
            let given = patiently(|| self.source.sequence(name, 1)).await?.start;
            loop {
                let next = patiently(|| self.target.sequence(name, 1)).await?.end;
                if next > given {
                    break;
                }
                let missing = (given - next).clamp(1, MAX_NUMBERS);
                patiently(|| self.target.sequence(name, missing)).await?;
            }
        }
        Ok(())
    }
}

/// Half a store must not be taken for a whole one, and one of a newer version may hold what is not known here. Whoever makes
/// a place for the copy asks before that.
pub async fn check_source(source: &dyn Store) -> Result<(), CopyError> {
    let keys = vec![Key::new(&SETTINGS, SETTINGS_ID), marker::key()];
    let mut found = patiently(|| source.read(keys.clone())).await?.into_iter();
    let (settings, marker) = (found.next().flatten(), found.next().flatten());
    if let Some(from) = marker::unfinished(marker)? {
        return Err(CopyError::HalfSource { from });
    }
    let settings = decode::<Settings>(settings.ok_or(CopyError::NoSource)?)?.document;
    if settings.is_readable() {
        return Ok(());
    }
    let why = "it was written by a newer Rota and needs at least that version to be read";
    Err(StoreError::refused("read from the store", why).into())
}

/// Asks again while the store is away or its answer is lost, for as long as that may help.
async fn patiently<T, F>(mut ask: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let began = Instant::now();
    let mut pause = PAUSES.0;
    loop {
        match ask().await {
            Err(error) if error.is_passing() && began.elapsed() + pause < PATIENCE => sleep(pause).await,
            answer => return answer,
        }
        pause = (pause * 2).min(PAUSES.1);
    }
}
