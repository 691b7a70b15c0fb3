//! What became of one process.

use std::time::Duration;

use rota_model::ids::NodeId;

use super::record::Event;

/// From one instant to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub from: Duration,
    pub to: Duration,
}

#[derive(Clone, Debug)]
pub struct Lived {
    pub node: NodeId,
    pub name: String,
    pub types: Vec<String>,
    pub began: Duration,
    pub joined: Option<Duration>,
    pub crashed: Option<Duration>,
    /// When it was told to stop.
    pub to_stop: Option<Duration>,
    /// When it had stopped.
    pub ended: Option<Duration>,
    pub frozen: Vec<Span>,
    /// When no answer came through from the store.
    pub cut_off: Vec<Span>,
    /// By how much its wall clock was off, from when on.
    pub off_by_ms: Vec<(Duration, i64)>,
}

impl Lived {
    pub fn begin(at: Duration, node: NodeId, name: &str, types: &[String], off_by_ms: i64) -> Self {
        Self {
            node,
            name: name.to_owned(),
            types: types.to_vec(),
            began: at,
            joined: None,
            crashed: None,
            to_stop: None,
            ended: None,
            frozen: Vec::new(),
            cut_off: Vec::new(),
            off_by_ms: vec![(at, off_by_ms)],
        }
    }

    pub fn befall(&mut self, at: Duration, event: &Event) {
        match event {
            Event::Joins { .. } => self.joined = Some(at),
            Event::Crashes { .. } => self.crashed = Some(at),
            Event::Freezes { .. } => open(&mut self.frozen, at),
            Event::Thaws { .. } => shut(&mut self.frozen, at),
            Event::Turns { sky, .. } if sky.is_cut_off() => open(&mut self.cut_off, at),
            Event::Turns { .. } => shut(&mut self.cut_off, at),
            Event::Jumps { by_ms, .. } => {
                let off = self.off_by_ms.last().map_or(0, |(_, off)| *off);
                self.off_by_ms.push((at, off + by_ms));
            }
            Event::IsToStop { .. } => self.to_stop = Some(at),
            Event::Ends { .. } => self.ended = Some(at),
            Event::Starts { .. }
            | Event::Counted { .. }
            | Event::Calms
            | Event::Closes
            | Event::Overflows => {}
        }
    }

    pub fn close(&mut self, end: Duration) {
        let end = self.over().unwrap_or(end);
        shut(&mut self.frozen, end);
        shut(&mut self.cut_off, end);
    }

    /// When it was no more.
    pub fn over(&self) -> Option<Duration> {
        self.crashed.or(self.ended)
    }

    pub fn is_up(&self, at: Duration) -> bool {
        self.began <= at && self.over().is_none_or(|over| at < over)
    }

    pub fn thaws_at(&self, at: Duration) -> bool {
        self.frozen.iter().any(|span| span.to == at)
    }

    /// Whether it was not up, frozen or cut off at some instant between two, or told to stop.
    pub fn is_troubled(&self, from: Duration, to: Duration) -> bool {
        let meets = |spans: &[Span]| spans.iter().any(|span| span.from <= to && from <= span.to);
        let is_over = self.over().is_some_and(|over| over <= to);
        let stops = self.to_stop.is_some_and(|stop| stop <= to);
        self.began > from || is_over || stops || meets(&self.frozen) || meets(&self.cut_off)
    }

    /// The least that its wall clock was ahead up to an instant.
    pub fn least_ahead_ms(&self, at: Duration) -> i64 {
        self.off_by_ms.iter().filter(|(since, _)| *since <= at).map(|(_, off)| *off).min().unwrap_or(0)
    }

    /// The most that its wall clock was ahead up to an instant.
    pub fn most_ahead_ms(&self, at: Duration) -> i64 {
        self.off_by_ms.iter().filter(|(since, _)| *since <= at).map(|(_, off)| *off).max().unwrap_or(0)
    }
}

fn open(spans: &mut Vec<Span>, at: Duration) {
    if spans.last().is_none_or(|span| span.to != Duration::MAX) {
        spans.push(Span { from: at, to: Duration::MAX });
    }
}

fn shut(spans: &mut [Span], at: Duration) {
    if let Some(span) = spans.last_mut().filter(|span| span.to == Duration::MAX) {
        span.to = at;
    }
}
