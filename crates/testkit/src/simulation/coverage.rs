//! What a run exercised, in numbers. A simulator that never comes near a kind of trouble proves nothing about it.

use std::collections::BTreeSet;
use std::time::Duration;

use rota_model::job::{JobEvent, JobStatus};
use rota_model::limit::{Holding, Limit};
use rota_store::seam::Written;

use super::checks::deaths::{condemned, taken_over};
use super::record::{Accepted, Answer, Call, Document, Event, Kind, Life, Reply, What};
use super::story::{JobStep, Run, Story};

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident: $said:literal,)+) => {
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Coverage {
            $($(#[$doc])* pub $name: u64,)+
            /// The longest time it took others to take over, while all was calm.
            pub longest_take_over: Duration,
        }

        impl Coverage {
            /// Each count, as people call it.
            pub fn counts(&self) -> Vec<(&'static str, u64)> {
                vec![$(($said, self.$name),)+]
            }

            pub fn add(&mut self, other: &Coverage) {
                $(self.$name += other.$name;)+
                self.longest_take_over = self.longest_take_over.max(other.longest_take_over);
            }
        }
    };
}

counts! {
    entries: "things that happened",
    jobs: "jobs",
    claims: "claims",
    crashes: "crashes",
    freezes: "freezes",
    cuts: "cut off from the store",
    jumps: "clock jumps",
    stops: "stops",
    /// Jobs that were taken from those who were gone.
    take_overs: "take-overs",
    late_writes: "late writes that landed",
    unknown_answers: "unknown answers",
    /// Writes about a job that somebody else held by then.
    zombies_refused: "zombies refused",
    condemnations: "condemnations",
    /// Processes that went on under a new incarnation.
    rejoins: "rejoins",
    twins: "twins answered",
    repeats: "repeats answered",
    keys_moved: "keys moved",
    cancelled_running: "cancels of running jobs",
    requeues: "requeues",
    deletes: "deletes",
    /// Claims whose answer was lost, and that were taken up or given back all the same.
    claims_found: "lost claims found again",
    retries: "retries",
    timeouts: "timeouts",
    expiries: "expiries",
    rests: "nodes paused or drained",
    limited: "limited jobs begun",
    slots: "slots reserved",
    /// Limits of which somebody wanted more than there was.
    lines: "times in line for a slot",
    /// Slots of those who were gone, taken back by others.
    swept: "slots of the dead swept",
    starts: "portions of starts taken",
    changed_limits: "limits changed while jobs ran",
    /// Documents that nodes deleted because they were old.
    cleared: "old documents cleared",
    /// Buckets into which somebody merged what it had measured.
    merges: "buckets merged",
}

impl Coverage {
    pub fn of(story: &Story<'_>) -> Self {
        let mut coverage = Self { entries: story.entries.len() as u64, ..Self::default() };
        for (nth, entry) in story.entries.iter().enumerate() {
            coverage.count(story, nth, &entry.what);
        }
        for steps in story.jobs.values() {
            coverage.jobs += 1;
            steps.iter().for_each(|step| coverage.count_step(story, step));
        }
        let is_limited = |run: &&Run| {
            let job = story.claim(run.work.job, run.work.epoch).map(|(_, job)| job);
            job.is_some_and(|job| story.is_limited(job))
        };
        coverage.limited += story.runs.iter().filter(is_limited).count() as u64;
        coverage.changed_limits += story.eras.changes();
        coverage.condemnations += condemned(story).len() as u64;
        let lives: BTreeSet<_> = story.incarnations.values().collect();
        coverage.rejoins += (story.incarnations.len() - lives.len()) as u64;
        for taken in taken_over(story) {
            coverage.longest_take_over = coverage.longest_take_over.max(taken.took);
        }
        coverage
    }

    fn count(&mut self, story: &Story<'_>, nth: usize, what: &What) {
        match what {
            What::World(Event::Crashes { .. }) => self.crashes += 1,
            What::World(Event::Freezes { .. }) => self.freezes += 1,
            What::World(Event::Jumps { .. }) => self.jumps += 1,
            What::World(Event::IsToStop { .. }) => self.stops += 1,
            What::World(Event::Turns { sky, .. }) if sky.is_cut_off() => self.cuts += 1,
            What::Answered(_, Answer::Unknown) => self.unknown_answers += 1,
            What::Answered(caller, Answer::Written(written)) => {
                let Some(Call::Write(targets)) = story.calls.get(caller).map(|call| call.call) else {
                    return;
                };
                for (target, _) in targets.iter().zip(written).filter(|(_, one)| **one == Written::Conflict) {
                    let job = target.id.parse().ok().and_then(|id| story.jobs.get(&id));
                    let now = job.and_then(|steps| steps.iter().rfind(|step| step.nth < nth));
                    let owner = now.and_then(|step| step.after).and_then(|job| job.owner);
                    let holder = owner.and_then(|owner| story.incarnations.get(&owner));
                    self.zombies_refused += u64::from(job.is_some() && holder != Some(&caller.life));
                }
            }
            What::Landed(caller, change) => {
                let call = caller.and_then(|caller| story.calls.get(&caller));
                let told = call.and_then(|call| call.answered).is_some_and(|(answered, ..)| answered < nth);
                self.late_writes += u64::from(told);
                if let Document::Key { before: Some(before), after: Some(after) } = &change.document {
                    self.keys_moved += u64::from(before.job_id != after.job_id);
                }
                if let Document::Limit { before, after: Some(after) } = &change.document {
                    let life = caller.map(|caller| caller.life);
                    self.count_limit(story, life, before.as_deref(), after);
                }
                let is_old = matches!(change.document, Document::Line { .. } | Document::Bucket { .. });
                self.cleared += u64::from(is_old && change.kind == Kind::Deleted);
                let is_merge = matches!(&change.document, Document::Bucket { after: Some(_), .. });
                self.merges += u64::from(is_merge && caller.is_some());
                if let Document::State { before: Some(before), after: Some(after) } = &change.document {
                    self.rests += u64::from(before.wanted.is_none() && after.wanted.is_some());
                }
            }
            What::Told(_, Reply::Submitted(answers)) => {
                self.twins += count(answers, |answer| matches!(answer, Accepted::Twin(_)));
                self.repeats += count(answers, |answer| matches!(answer, Accepted::Again(_)));
            }
            _ => {}
        }
    }

    fn count_limit(&mut self, story: &Story<'_>, by: Option<Life>, before: Option<&Limit>, after: &Limit) {
        let held = |holding: &Holding| before.map_or(0, |before| before.slots_of(holding.incarnation));
        let more = |holding: &Holding| holding.slots.saturating_sub(held(holding));
        self.slots += u64::from(after.holders.iter().map(more).sum::<u32>());
        let waits = |limit: &Limit| limit.holders.iter().filter(|holding| holding.wants).count();
        self.lines += u64::from(waits(after) > before.map_or(0, waits));
        self.starts += u64::from(after.started_us > before.and_then(|before| before.started_us));
        let is_others = |holding: &&Holding| story.incarnations.get(&holding.incarnation).copied() != by;
        let gone = before.into_iter().flat_map(|before| &before.holders).filter(is_others);
        let swept = gone.filter(|holding| after.slots_of(holding.incarnation) == 0);
        self.swept += u64::from(swept.map(|holding| holding.slots).sum::<u32>());
    }

    fn count_step(&mut self, story: &Story<'_>, step: &JobStep<'_>) {
        self.deletes += u64::from(step.kind == Kind::Deleted);
        if let Some(claimed) = step.claim() {
            self.claims += 1;
            let answer =
                step.caller.and_then(|caller| story.calls.get(&caller)).and_then(|call| call.answered);
            let was_lost = !answer.is_some_and(|(_, _, answer)| matches!(answer, Answer::Claimed(_)));
            let life = step.caller.map(|caller| caller.life);
            let steps = story.jobs.get(&claimed.job_id).into_iter().flatten();
            let given_back = steps
                .filter(|later| later.nth > step.nth && later.ends_claim(claimed.epoch))
                .any(|later| later.caller.map(|caller| caller.life) == life);
            self.claims_found += u64::from(was_lost && given_back);
        }
        let Some((before, after)) = step.before.zip(step.after) else { return };
        let event = after.history.last().filter(|_| after.history.len() != before.history.len());
        match event.map(|entry| entry.event) {
            Some(JobEvent::Retry) => self.retries += 1,
            Some(JobEvent::Lose) => self.take_overs += 1,
            Some(JobEvent::Requeue) => self.requeues += 1,
            _ => {}
        }
        let said = |job: &rota_model::job::Job, what: &str, key: &str| {
            job.result.get(key).and_then(|text| text.as_str()).is_some_and(|text| text.contains(what))
        };
        let is_new = after.result != before.result;
        let was_retried = event.is_some_and(|entry| {
            entry.result.values().any(|text| text.to_string().contains("longer than its"))
        });
        self.timeouts += u64::from(was_retried || (is_new && said(after, "longer than its", "error")));
        self.expiries += u64::from(is_new && said(after, "expired", "error"));
        let was_running = before.status == JobStatus::Started;
        self.cancelled_running += u64::from(was_running && is_new && after.result.contains_key("cancelled"));
    }
}

fn count(answers: &[Accepted], is: impl Fn(&Accepted) -> bool) -> u64 {
    answers.iter().filter(|answer| is(answer)).count() as u64
}

impl std::fmt::Display for Coverage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (said, count) in self.counts() {
            writeln!(f, "{count:>10}  {said}")?;
        }
        write!(f, "{:>9.1}s  the longest take-over", self.longest_take_over.as_secs_f64())
    }
}
