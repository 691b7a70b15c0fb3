//! One listener. It misses no line, hears none twice, and holds nobody up: it takes what it can from the store at its own
//! pace.
//!
//! A hint names the lines that were stored, and these are read. Hints may be lost, and a line may be stored late, under an
//! instant that is past: so the listener looks back some seconds now and then, and whenever it was told too much to read line
//! by line, and takes what it has not had. Lines come in the order of their instants as far as they are known; one that was
//! stored late comes late.

use std::collections::VecDeque;
use std::time::Duration;

use rota_model::ids::LogId;
use rota_model::log::LogLine;
use rota_model::time::UnixMillis;
use rota_store::StoreError;
use rota_store::cursor::Cursor;
use rota_store::hints::{Changes, News};
use rota_store::logs::{LogFilter, Logs};
use tokio::time::{Instant, timeout, timeout_at};

use super::Start;
use super::seen::Seen;
use crate::patience::{STORE_PAUSE, answered};
use crate::surroundings::Surroundings;

/// How long lines are gathered.
const GATHER: Duration = Duration::from_millis(100);
/// How long it is quiet before the listener is told so.
const QUIET: Duration = Duration::from_secs(5);
/// How often it looks back although no hint was lost, as far as it knows.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How late a line may be stored and still be found by looking back.
const LATE: Duration = Duration::from_secs(15);
/// More lines than this are not read one by one: few of them may be wanted.
const MAX_HINTS: usize = 500;
/// How many lines are looked up at once.
const PAGE: usize = 500;

pub struct Follower {
    logs: Logs,
    surroundings: Surroundings,
    filter: LogFilter,
    start: Option<Start>,
    changes: Changes,
    seen: Seen,
    /// Everything that was stored before this instant was had.
    had: UnixMillis,
    /// A look back that is under way.
    look: Option<Look>,
    /// Nobody tells any more what was stored, or too much at once: a look back is wanted.
    behind: bool,
    looked: Instant,
}

/// A look back: from this instant on, oldest first.
struct Look {
    began: UnixMillis,
    from: UnixMillis,
    cursor: Option<Cursor>,
    /// A line that was had, and with it all that its node said before.
    behind: Option<LogLine>,
}

impl Follower {
    pub(super) fn new(logs: Logs, surroundings: Surroundings, filter: LogFilter, start: Start) -> Self {
        let changes = logs.changes();
        let had = surroundings.now();
        let (seen, looked) = (Seen::default(), Instant::now());
        Self {
            logs,
            surroundings,
            filter,
            start: Some(start),
            changes,
            seen,
            had,
            look: None,
            behind: false,
            looked,
        }
    }

    /// What was said since the last time; nothing if it was quiet for a while, or the store does not answer. None if the store
    /// is closed. Whoever gives up waiting loses nothing.
    pub async fn next(&mut self) -> Option<Vec<LogLine>> {
        match self.try_next().await {
            Ok(lines) => lines,
            Err(_) => {
                // What was told of is found by looking back, once the store answers again.
                self.behind = true;
                tokio::time::sleep(STORE_PAUSE).await;
                Some(Vec::new())
            }
        }
    }

    async fn try_next(&mut self) -> Result<Option<Vec<LogLine>>, StoreError> {
        if let Some(start) = self.start {
            let first = self.begin(start).await?;
            self.start = None;
            return Ok(Some(first));
        }
        if self.look.is_none() && (self.behind || self.looked.elapsed() >= LOOK_EVERY) {
            self.behind = false;
            self.look = Some(self.look_back());
        }
        if self.look.is_some() {
            let lines = self.go_on_looking().await?;
            if self.look.is_some() || !lines.is_empty() {
                return Ok(Some(lines));
            }
        }
        self.listen().await
    }

    /// What a listener begins with.
    async fn begin(&mut self, start: Start) -> Result<Vec<LogLine>, StoreError> {
        let now = self.surroundings.now();
        match start {
            Start::Now => self.know_the_past(now).await.map(|()| Vec::new()),
            Start::Newest(count) => {
                self.know_the_past(now).await?;
                let search = self.logs.search(&self.filter, count, None);
                let (mut newest, _) = answered("search the log", search).await?;
                newest.reverse();
                newest.iter().for_each(|line| {
                    self.seen.is_new(line);
                });
                Ok(newest)
            }
            Start::After(from) => {
                self.look = Some(Look { began: now, from, cursor: None, behind: None });
                Ok(Vec::new())
            }
            Start::Behind(id) => {
                let found = answered("read the log", self.logs.pick(&self.filter, &[id])).await?.pop();
                let at = found.as_ref().map_or_else(|| instant_of(id), |line| line.log.metadata.created_at);
                // Of a line that is not there, only the instant is known.
                let from =
                    if found.is_some() { earlier(at, LATE) } else { earlier(at, Duration::from_millis(1)) };
                self.seen.add(at, id);
                self.look = Some(Look { began: now, from, cursor: None, behind: found });
                Ok(Vec::new())
            }
        }
    }

    /// What was said before is not for who listens from now on.
    async fn know_the_past(&mut self, now: UnixMillis) -> Result<(), StoreError> {
        let filter = LogFilter { after: Some(earlier(now, LATE * 2)), ..self.filter.clone() };
        let mut cursor = None;
        loop {
            let (ids, next) = answered("search the log", self.logs.ids(&filter, PAGE, cursor)).await?;
            for id in ids {
                self.seen.add(instant_of(id), id);
            }
            cursor = next;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    fn look_back(&self) -> Look {
        let now = self.surroundings.now();
        let from = self.seen.reaches(earlier(self.had.min(now), LATE));
        Look { began: now, from, cursor: None, behind: None }
    }

    /// The next lines of a look back that were not had.
    async fn go_on_looking(&mut self) -> Result<Vec<LogLine>, StoreError> {
        let Some(look) = &self.look else { return Ok(Vec::new()) };
        let from = self.filter.after.map_or(look.from, |after| after.max(look.from));
        let filter = LogFilter { after: Some(from), ..self.filter.clone() };
        let cursor = look.cursor.clone();
        let (ids, next) = answered("search the log", self.logs.ids(&filter, PAGE, cursor)).await?;
        let new: Vec<LogId> = ids.into_iter().filter(|id| !self.seen.has(*id)).collect();
        let lines = answered("read the log", self.logs.pick(&self.filter, &new)).await?;
        let had = look.behind.as_ref();
        let new: Vec<LogLine> = lines
            .into_iter()
            .filter(|line| self.seen.is_new(line) && !had.is_some_and(|had| was_said_before(line, had)))
            .collect();
        match (next, &mut self.look) {
            (Some(next), Some(look)) => look.cursor = Some(next),
            (_, look) => {
                let began = look.take().map(|look| look.began);
                self.had = began.unwrap_or(self.had);
                self.looked = Instant::now();
            }
        }
        Ok(new)
    }

    /// Waits for hints, and reads the lines that they name.
    async fn listen(&mut self) -> Result<Option<Vec<LogLine>>, StoreError> {
        let mut told = VecDeque::new();
        let Ok(first) = timeout(QUIET, self.changes.next()).await else { return Ok(Some(Vec::new())) };
        // Whoever is dropped while it gathers has not had what it was told of.
        let before = std::mem::replace(&mut self.behind, true);
        let began = self.surroundings.now();
        let mut complete = take(first, &mut told);
        let end = Instant::now() + GATHER;
        while complete == Some(true) && Instant::now() < end {
            let Ok(news) = timeout_at(end, self.changes.next()).await else { break };
            complete = take(news, &mut told);
        }
        match complete {
            None => return Ok(None),
            Some(false) => return Ok(Some(Vec::new())),
            Some(true) => {}
        }
        let ids: Vec<LogId> = told.into_iter().filter(|id| !self.seen.has(*id)).collect();
        let lines = answered("read the log", self.logs.pick(&self.filter, &ids)).await?;
        let new = lines.into_iter().filter(|line| self.seen.is_new(line)).collect();
        self.behind = before;
        self.had = self.had.max(began);
        Ok(Some(new))
    }
}

/// Takes in what was told. False if it was too much, or something was lost; none if nobody tells any more.
fn take(news: News, told: &mut VecDeque<LogId>) -> Option<bool> {
    match news {
        News::Of(hints) => {
            let new = hints.iter().filter(|hint| hint.is_new);
            told.extend(new.filter_map(|hint| hint.key.id.parse::<LogId>().ok()));
            Some(told.len() <= MAX_HINTS)
        }
        News::Lost => Some(false),
        News::Closed => None,
    }
}

/// Whether a node said a line before another of its own, or it is that one: it stores them in the order in which it says them.
fn was_said_before(line: &LogLine, had: &LogLine) -> bool {
    line.log.origin == had.log.origin && line.position() <= had.position()
}

/// When an id was made.
fn instant_of(id: LogId) -> UnixMillis {
    let millis = id.0.get_timestamp().map_or(0, |at| {
        let (seconds, nanos) = at.to_unix();
        seconds.saturating_mul(1_000).saturating_add(u64::from(nanos / 1_000_000))
    });
    UnixMillis(i64::try_from(millis).unwrap_or(i64::MAX))
}

fn earlier(at: UnixMillis, span: Duration) -> UnixMillis {
    UnixMillis(at.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
}
