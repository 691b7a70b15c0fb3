//! A record, sorted by whom it is about: lives, jobs, runs of handlers, states of nodes and their beats.

use std::collections::BTreeMap;
use std::time::Duration;

use rota_model::domain::{Domain, DomainDocument};
use rota_model::ids::{Incarnation, JobId, NodeId};
use rota_model::job::{Job, JobStatus};
use rota_model::node::NodeState;
use rota_model::time::UnixMillis;
use rota_store::seam::{Version, Written};

use super::eras::Eras;
use super::lives::Lived;
use super::record::{
    Answer, Call, Change, Counts, Deed, Document, Ending, Entry, Event, Kind, Life, Task, What, Work,
};
use crate::faults::caller::Caller;
use crate::surroundings::BEGINNING;

/// An answer that takes longer than this is trouble.
const SLOW: Duration = Duration::from_secs(1);

/// What was drawn for a run, as far as it decides what may be promised.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances {
    /// By how much finds may lag.
    pub lag: Duration,
    /// Whether the store did everything right from the beginning, cuts apart.
    pub is_smooth: bool,
}

#[derive(Default)]
pub struct Story<'a> {
    pub entries: &'a [Entry],
    pub circumstances: Circumstances,
    /// When all became calm.
    pub calm: Duration,
    pub end: Duration,
    pub lives: BTreeMap<Life, Lived>,
    pub jobs: BTreeMap<JobId, Vec<JobStep<'a>>>,
    pub runs: Vec<Run>,
    pub states: BTreeMap<NodeId, Vec<StateStep<'a>>>,
    pub incarnations: BTreeMap<Incarnation, Life>,
    pub beats: BTreeMap<Incarnation, Vec<Beat>>,
    pub calls: BTreeMap<Caller, CallStory<'a>>,
    /// What each process read of each node, in the order of the answers.
    pub readings: BTreeMap<(Life, NodeId), Vec<Reading>>,
    /// What was limited, and when.
    pub eras: Eras,
    /// How long tenants keep what is theirs.
    pub tenants: BTreeMap<Domain, &'a DomainDocument>,
    /// What each process had counted, and when.
    pub counted: BTreeMap<Life, Vec<(Duration, &'a Counts)>>,
    open: BTreeMap<(Life, JobId, u64), usize>,
    written: BTreeMap<u64, (Incarnation, Caller)>,
}

/// A change of a job that took effect.
#[derive(Clone, Copy, Debug)]
pub struct JobStep<'a> {
    /// Its place in the record.
    pub nth: usize,
    pub at: Duration,
    pub caller: Option<Caller>,
    pub kind: Kind,
    pub before: Option<&'a Job>,
    pub after: Option<&'a Job>,
}

impl<'a> JobStep<'a> {
    /// The job as claimed, if this is a claim.
    pub fn claim(&self) -> Option<&'a Job> {
        let is_started = |job: &Job| job.status == JobStatus::Started;
        let claimed = self.after.filter(|after| is_started(after))?;
        let was = self.before.filter(|before| is_started(before) && before.epoch == claimed.epoch);
        was.is_none().then_some(claimed)
    }

    /// Whether the job was running before, and no longer is under that epoch.
    pub fn ends_claim(&self, epoch: u64) -> bool {
        let held = |job: &Job| job.status == JobStatus::Started && job.epoch == epoch;
        self.before.is_some_and(held) && !self.after.is_some_and(held)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct StateStep<'a> {
    pub nth: usize,
    pub at: Duration,
    pub caller: Option<Caller>,
    pub version: Version,
    pub replaced: Option<Version>,
    pub before: Option<&'a NodeState>,
    pub after: Option<&'a NodeState>,
}

/// One run of a handler.
#[derive(Clone, Debug)]
pub struct Run {
    pub work: Work,
    pub nth: usize,
    pub begun: Duration,
    pub acts: Vec<(usize, Duration)>,
    pub ended: Option<(usize, Duration, Ending)>,
}

/// A beat that its node knows to have been written.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    pub sent: Duration,
    pub known: Duration,
}

#[derive(Clone, Copy, Debug)]
pub struct CallStory<'a> {
    /// Where in the record it was sent.
    pub nth: usize,
    pub task: Task,
    pub sent: Duration,
    pub call: &'a Call,
    pub answered: Option<(usize, Duration, &'a Answer)>,
}

#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub nth: usize,
    pub task: Task,
    pub sent: Duration,
    pub answered: Duration,
    /// None if the read failed.
    pub found: Option<Option<Version>>,
}

impl<'a> Story<'a> {
    pub fn of(entries: &'a [Entry], circumstances: Circumstances) -> Self {
        let mut story = Self { entries, circumstances, ..Self::default() };
        for (nth, entry) in entries.iter().enumerate() {
            story.end = entry.at;
            match &entry.what {
                What::World(event) => story.world(entry.at, event),
                What::Sent(caller, task, call) => {
                    story.calls.insert(
                        *caller,
                        CallStory { nth, task: *task, sent: entry.at, call, answered: None },
                    );
                }
                What::Answered(caller, answer) => story.answered(nth, entry.at, *caller, answer),
                What::Landed(caller, change) => story.landed(nth, entry.at, *caller, change),
                What::Handler(work, deed) => story.handler(nth, entry.at, *work, deed),
                What::Asked(..) | What::Told(..) => {}
            }
        }
        let end = story.end;
        story.lives.values_mut().for_each(|life| life.close(end));
        story
    }

    fn world(&mut self, at: Duration, event: &'a Event) {
        match event {
            Event::Starts { life, node, name, types, off_by_ms } => {
                self.lives.insert(*life, Lived::begin(at, *node, name, types, *off_by_ms));
            }
            Event::Calms => self.calm = at,
            Event::Counted { life, counts } => {
                self.counted.entry(*life).or_default().push((at, counts));
            }
            Event::Closes | Event::Overflows => {}
            Event::Joins { life }
            | Event::Crashes { life }
            | Event::Freezes { life }
            | Event::Thaws { life }
            | Event::Turns { life, .. }
            | Event::Jumps { life, .. }
            | Event::IsToStop { life }
            | Event::Ends { life } => {
                if let Some(life) = self.lives.get_mut(life) {
                    life.befall(at, event);
                }
            }
        }
    }

    fn answered(&mut self, nth: usize, at: Duration, caller: Caller, answer: &'a Answer) {
        let Some(call) = self.calls.get_mut(&caller) else { return };
        call.answered = Some((nth, at, answer));
        let (task, sent, call) = (call.task, call.sent, call.call);
        match (call, answer) {
            (Call::ReadStates(nodes), Answer::States(versions)) => {
                for (node, version) in nodes.iter().zip(versions) {
                    let reading = Reading { nth, task, sent, answered: at, found: Some(*version) };
                    self.readings.entry((caller.life, *node)).or_default().push(reading);
                    version.iter().for_each(|version| self.know(at, caller.life, *version));
                }
            }
            (Call::ReadStates(nodes), _) => {
                for node in nodes {
                    let reading = Reading { nth, task, sent, answered: at, found: None };
                    self.readings.entry((caller.life, *node)).or_default().push(reading);
                }
            }
            (Call::Write(_), Answer::Written(written)) => {
                for written in written {
                    if let Written::Applied(version) = written {
                        self.know(at, caller.life, *version);
                    }
                }
            }
            _ => {}
        }
    }

    /// A process learns that a version was written; if it was its own beat, it is acknowledged.
    fn know(&mut self, at: Duration, life: Life, version: Version) {
        let Some((incarnation, caller)) = self.written.get(&version.0).copied() else { return };
        if caller.life != life {
            return;
        }
        self.written.remove(&version.0);
        if let Some(call) = self.calls.get(&caller) {
            self.beats.entry(incarnation).or_default().push(Beat { sent: call.sent, known: at });
        }
    }

    fn landed(&mut self, nth: usize, at: Duration, caller: Option<Caller>, change: &'a Change) {
        match &change.document {
            Document::Job { id, before, after } => {
                let (before, after) = (before.as_deref(), after.as_deref());
                let step = JobStep { nth, at, caller, kind: change.kind, before, after };
                self.jobs.entry(*id).or_default().push(step);
            }
            Document::State { before, after } => {
                let (before, after) = (before.as_deref(), after.as_deref());
                self.state(nth, at, caller, change.version, before, after);
            }
            Document::Type { before, after } => self.eras.note(at, before.as_deref(), after.as_deref()),
            Document::Tenant { after } => {
                self.tenants.extend(after.as_deref().map(|tenant| (tenant.name.clone(), tenant)));
            }
            Document::Key { .. }
            | Document::Limit { .. }
            | Document::Line { .. }
            | Document::Bucket { .. }
            | Document::Other { .. } => {}
        }
    }

    fn state(
        &mut self,
        nth: usize,
        at: Duration,
        caller: Option<Caller>,
        version: Version,
        before: Option<&'a NodeState>,
        after: Option<&'a NodeState>,
    ) {
        let Some(node) = after.or(before).map(|state| state.id) else { return };
        let steps = self.states.entry(node).or_default();
        let replaced = steps.last().map(|step| step.version);
        steps.push(StateStep { nth, at, caller, version, replaced, before, after });
        let Some((caller, incarnation)) = caller.zip(after.and_then(|after| after.incarnation)) else {
            return;
        };
        if self.lives.get(&caller.life).is_some_and(|life| life.node == node) {
            self.incarnations.entry(incarnation).or_insert(caller.life);
            self.written.insert(version.0, (incarnation, caller));
        }
    }

    fn handler(&mut self, nth: usize, at: Duration, work: Work, deed: &Deed) {
        let name = (work.life, work.job, work.epoch);
        match deed {
            Deed::Begins => {
                self.open.insert(name, self.runs.len());
                self.runs.push(Run { work, nth, begun: at, acts: Vec::new(), ended: None });
            }
            Deed::Acts => {
                let run = self.open.get(&name).and_then(|run| self.runs.get_mut(*run));
                run.into_iter().for_each(|run| run.acts.push((nth, at)));
            }
            Deed::Ends(ending) => {
                let run = self.open.get(&name).and_then(|run| self.runs.get_mut(*run));
                run.into_iter().for_each(|run| run.ended = Some((nth, at, *ending)));
            }
        }
    }

    /// When a call was sent, or took effect if nobody knows.
    pub fn sent(&self, step: &JobStep<'_>) -> Duration {
        let call = step.caller.and_then(|caller| self.calls.get(&caller));
        call.map_or(step.at, |call| call.sent)
    }

    /// When the last beat was sent that an incarnation knew of at an instant.
    pub fn last_beat(&self, incarnation: Incarnation, at: Duration) -> Option<Duration> {
        let beats = self.beats.get(&incarnation)?;
        beats.iter().filter(|beat| beat.known <= at).map(|beat| beat.sent).max()
    }

    /// The claim of a job under an epoch; the first, if there are several.
    pub fn claim(&self, job: JobId, epoch: u64) -> Option<(&JobStep<'a>, &'a Job)> {
        let steps = self.jobs.get(&job)?.iter();
        steps.filter_map(|step| Some((step, step.claim()?))).find(|(_, claimed)| claimed.epoch == epoch)
    }

    pub fn runs_of(&self, job: JobId, epoch: u64) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.work.job == job && run.work.epoch == epoch)
    }

    /// Whether a job was under a limit at any time.
    pub fn is_limited(&self, job: &Job) -> bool {
        self.eras.ever_limit(job)
    }

    /// The jobs that are there at the end.
    pub fn left(&self) -> impl Iterator<Item = (&'a Job, &JobStep<'a>)> {
        self.jobs.values().filter_map(|steps| steps.last()).filter_map(|step| Some((step.after?, step)))
    }

    /// The world's time, as documents write it.
    pub fn wall(at: Duration) -> UnixMillis {
        BEGINNING.plus(at)
    }

    /// Whether the store did what it should for a process, at every instant between two.
    pub fn is_untroubled(&self, life: Life, from: Duration, to: Duration) -> bool {
        let Some(lived) = self.lives.get(&life) else { return false };
        let is_calm = self.circumstances.is_smooth || from >= self.calm;
        is_calm && !lived.is_troubled(from, to) && !self.is_kept_waiting(life, from, to)
    }

    /// The first instant at which nothing had troubled a process for this long, after an instant.
    pub fn untroubled_for(&self, life: Life, from: Duration, span: Duration) -> Option<Duration> {
        let lived = self.lives.get(&life)?;
        let mut from = if self.circumstances.is_smooth { from } else { from.max(self.calm) };
        while !self.is_untroubled(life, from, from + span) {
            // Nothing ends between two instants at which a trouble ends.
            from = self.ends_of_trouble(life, lived).filter(|end| *end > from).min()?;
        }
        Some(from + span)
    }

    fn ends_of_trouble<'s>(&'s self, life: Life, lived: &'s Lived) -> impl Iterator<Item = Duration> + 's {
        const A_BIT: Duration = Duration::from_millis(1);
        let spans = lived.frozen.iter().chain(&lived.cut_off).map(|span| span.to);
        let calls = Caller { life, call: 0 }..=Caller { life, call: u64::MAX };
        let answers = self.calls.range(calls).filter_map(|(_, call)| Some((call.sent, call.answered?.1)));
        let slow = answers.filter(|(sent, at)| at.saturating_sub(*sent) > SLOW).map(|(_, at)| at);
        spans.chain(slow).map(|end| end.saturating_add(A_BIT))
    }

    /// Whether a call of a process was without an answer for long.
    fn is_kept_waiting(&self, life: Life, from: Duration, to: Duration) -> bool {
        let calls = Caller { life, call: 0 }..=Caller { life, call: u64::MAX };
        self.calls.range(calls).any(|(_, call)| {
            let until = call.answered.map_or(self.end, |(_, at, _)| at);
            call.sent <= to && until >= from && until.saturating_sub(call.sent) > SLOW
        })
    }

    /// Whether a process held no good lease for an incarnation at some instant between two.
    pub fn loses_lease(
        &self,
        incarnation: Incarnation,
        from: Duration,
        to: Duration,
        lease: Duration,
    ) -> bool {
        let beats = self.beats.get(&incarnation).map_or(&[][..], Vec::as_slice);
        let mut good_until = Duration::ZERO;
        let mut by_known: Vec<&Beat> = beats.iter().collect();
        by_known.sort_by_key(|beat| beat.known);
        for beat in by_known {
            if beat.known > to {
                break;
            }
            if beat.known > good_until && beat.known > from {
                return true;
            }
            good_until = good_until.max(beat.sent + lease);
        }
        good_until < to
    }
}
