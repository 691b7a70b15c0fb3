//! Lines that wait to be stored: at most so many, and so many bytes. What does not fit is dropped and counted.
//!
//! Handlers may fill most of it and not all: what the node itself has to say when everything is slow is worth more than the
//! next line of whoever makes it slow.

use std::collections::{BTreeMap, VecDeque};

use rota_model::ids::{LogId, NodeId, Randomness};
use rota_model::log::{Level, Log};
use rota_model::time::UnixMillis;

use super::About;

/// How many lines wait at most.
const MAX_LINES: usize = 40_000;
/// How many bytes they have together, about.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// How many lines are stored at once.
pub(super) const BATCH_LINES: usize = 500;
/// How many bytes are stored at once, about.
const BATCH_BYTES: usize = 1024 * 1024;
/// What a line takes besides its text, about.
const LINE_BYTES: usize = 300;
/// For how many jobs dropped lines are counted apart.
const MAX_COUNTED: usize = 1_000;

/// Who says something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    Handler,
    Node,
}

impl Speaker {
    /// How much of `all` it may fill.
    fn share(self, all: usize) -> usize {
        match self {
            Speaker::Handler => all - all / 4,
            Speaker::Node => all,
        }
    }
}

#[derive(Default)]
pub(super) struct Buffer {
    lines: VecDeque<(LogId, Log)>,
    bytes: usize,
    /// What was dropped since that was last said, and about which job.
    dropped: BTreeMap<Option<About>, u64>,
    ids: Ids,
}

impl Buffer {
    /// Says whether there was room.
    pub(super) fn push(&mut self, log: Log, speaker: Speaker, randomness: Randomness) -> bool {
        let bytes = self.bytes + size(&log);
        if self.lines.len() >= speaker.share(MAX_LINES) || bytes > speaker.share(MAX_BYTES) {
            self.drop_one(&log);
            return false;
        }
        self.bytes = bytes;
        let id = self.ids.next(log.metadata.created_at, randomness);
        self.lines.push_back((id, log));
        true
    }

    /// A line is not stored: that is said later.
    pub(super) fn drop_one(&mut self, log: &Log) {
        let about = log.domain.clone().zip(log.job_id).map(|(domain, job)| About { domain, job });
        let about = about.filter(|_| self.dropped.len() < MAX_COUNTED);
        *self.dropped.entry(about).or_default() += 1;
    }

    pub(super) fn has_batch(&self) -> bool {
        self.lines.len() >= BATCH_LINES || self.bytes >= BATCH_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.dropped.is_empty()
    }

    /// The next lines to be stored. They make room: what was dropped is said behind what still waits.
    pub(super) fn take(
        &mut self,
        origin: NodeId,
        now: UnixMillis,
        mut randomness: impl FnMut() -> Randomness,
    ) -> Vec<(LogId, Log)> {
        let mut batch = self.next_batch();
        let dropped = std::mem::take(&mut self.dropped);
        for (about, count) in dropped {
            let id = self.ids.next(now, randomness());
            let notice = notice(count, about, origin, now);
            self.bytes += size(&notice);
            self.lines.push_back((id, notice));
        }
        if batch.is_empty() {
            batch = self.next_batch();
        }
        batch
    }

    fn next_batch(&mut self) -> Vec<(LogId, Log)> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH_LINES && bytes < BATCH_BYTES {
            let Some((id, log)) = self.lines.pop_front() else { break };
            bytes += size(&log);
            batch.push((id, log));
        }
        self.bytes = self.bytes.saturating_sub(bytes);
        batch
    }
}

fn notice(count: u64, about: Option<About>, origin: NodeId, now: UnixMillis) -> Log {
    let lines = if count == 1 { "1 line was".to_owned() } else { format!("{count} lines were") };
    let title = format!("{lines} dropped: more was said than could be stored");
    let mut log = Log::new(Level::Warn, title, origin, now);
    log.job_id = about.as_ref().map(|about| about.job);
    log.domain = about.map(|about| about.domain);
    log
}

fn size(log: &Log) -> usize {
    LINE_BYTES + log.title.len() + log.message.as_ref().map_or(0, String::len)
}

/// Ids that rise in the order in which lines were said, within one millisecond too.
#[derive(Default)]
struct Ids {
    last: Option<UnixMillis>,
    count: u32,
}

impl Ids {
    fn next(&mut self, now: UnixMillis, randomness: Randomness) -> LogId {
        self.count = if self.last == Some(now) { self.count.wrapping_add(1) } else { 0 };
        self.last = Some(now);
        let [high, second, third, low] = self.count.to_be_bytes();
        let [.., a, b, c, d, e] = randomness;
        // The first four bits and those of the third byte belong to the form of the id.
        LogId::rising(now, &[high & 0x0f, second, 0, third, low, a, b, c, d, e])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a surprise is a failure of the test")]
    use rota_model::domain::Domain;
    use rota_model::ids::JobId;

    use super::*;

    const NOW: UnixMillis = UnixMillis(1_000);

    fn origin() -> NodeId {
        NodeId::derived(&["n"])
    }

    fn line(title: &str, about: Option<&About>) -> Log {
        let mut log = Log::new(Level::Info, title, origin(), NOW);
        log.job_id = about.map(|about| about.job);
        log.domain = about.map(|about| about.domain.clone());
        log
    }

    fn drain(buffer: &mut Buffer) -> Vec<(LogId, Log)> {
        let mut all = Vec::new();
        while !buffer.is_empty() {
            all.extend(buffer.take(origin(), NOW, || [9; 10]));
        }
        all
    }

    #[test]
    fn lines_leave_in_batches_and_their_ids_rise_within_a_millisecond() {
        let mut buffer = Buffer::default();
        for nth in 0..BATCH_LINES + 10 {
            buffer.push(line(&nth.to_string(), None), Speaker::Node, [255; 10]);
        }
        assert!(buffer.has_batch());
        let first = buffer.take(origin(), NOW, || [0; 10]);
        assert_eq!(first.len(), BATCH_LINES);
        let all: Vec<_> = first.into_iter().chain(drain(&mut buffer)).collect();
        assert!(all.is_sorted_by(|(a, _), (b, _)| a < b));
        let titles = all.iter().map(|(_, log)| log.title.clone());
        assert!(titles.eq((0..BATCH_LINES + 10).map(|nth| nth.to_string())));
    }

    #[test]
    fn what_does_not_fit_is_dropped_counted_and_said_where_it_is_missed() {
        let mut buffer = Buffer::default();
        let about = About { domain: Domain::default(), job: JobId::derived(&["j"]) };
        for _ in 0..MAX_LINES {
            buffer.push(line("talk", Some(&about)), Speaker::Handler, [0; 10]);
        }
        buffer.push(line("the node has room left", None), Speaker::Node, [0; 10]);
        let all = drain(&mut buffer);
        assert_eq!(all.len(), MAX_LINES * 3 / 4 + 2);
        let (_, notice) = all.last().unwrap();
        let expected = format!("{} lines were dropped: more was said than could be stored", MAX_LINES / 4);
        assert_eq!((&notice.title, notice.level), (&expected, Some(Level::Warn)));
        assert_eq!((notice.job_id, &notice.domain), (Some(about.job), &Some(about.domain)));
        assert_eq!((buffer.bytes, buffer.lines.len()), (0, 0));
    }

    #[test]
    fn long_lines_are_bounded_by_their_bytes() {
        let mut buffer = Buffer::default();
        let long = || Log { message: Some("x".repeat(16 * 1024)), ..line("long", None) };
        for _ in 0..10_000 {
            buffer.push(long(), Speaker::Node, [0; 10]);
        }
        assert!(buffer.bytes <= MAX_BYTES && buffer.lines.len() > 1_000);
        let batch = buffer.take(origin(), NOW, || [0; 10]);
        assert!(batch.len() < 100, "{}", batch.len());
    }
}
