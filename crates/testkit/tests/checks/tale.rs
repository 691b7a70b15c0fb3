//! A run that a test makes up: two nodes that beat, and whatever is told of jobs, people and the world.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rota_model::Extra;
use rota_model::domain::{Domain, DomainDocument, DomainSettings};
use rota_model::ids::{ClaimToken, Incarnation, JobId, NodeId};
use rota_model::job::submission::Place;
use rota_model::job::{Holder, Job, JobStatus, NewJob};
use rota_model::job_type::JobType;
use rota_model::keep::Keep;
use rota_model::log::{Level, Log};
use rota_model::metadata::Metadata;
use rota_model::metric::{MetricsBucket, Sample, SampleKind, Samples};
use rota_model::node::{NodeRole, NodeState, NodeStatus};
use rota_model::time::UnixMillis;
use rota_model::unique_key::UniqueKey;
use rota_store::seam::{Version, Written};
use rota_testkit::faults::caller::Caller;
use rota_testkit::simulation::checks;
use rota_testkit::simulation::record::{
    Answer, Call, Change, Deed, Document, Ending, Entry, Event, Kind, Life, Reply, Task, What, Wish, Work,
};
use rota_testkit::simulation::story::{Circumstances, Story};
use rota_testkit::simulation::work::{How, Script};
use rota_testkit::surroundings::BEGINNING;
use serde_json::{Map, json};

/// The two lives of every tale.
pub(crate) const ONE: Life = 0;
pub(crate) const TWO: Life = 1;

pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

/// The task that deals with the states of nodes.
const STATES: Task = Task::Own(0);

pub(crate) fn node(life: Life) -> NodeId {
    NodeId::derived(&[&format!("node {life}")])
}

pub(crate) fn incarnation(life: Life) -> Incarnation {
    Incarnation::derived(&[&format!("life {life}")])
}

pub(crate) struct Tale {
    entries: Vec<Entry>,
    now: Duration,
    versions: u64,
    calls: u64,
    beating: BTreeSet<Life>,
    jobs: BTreeMap<JobId, Arc<Job>>,
    states: BTreeMap<NodeId, (Version, Arc<NodeState>)>,
    bucket: Option<Arc<MetricsBucket>>,
}

impl Tale {
    /// Two nodes that joined and beat.
    pub(crate) fn begin() -> Self {
        let mut tale = Self {
            entries: Vec::new(),
            now: Duration::ZERO,
            versions: 0,
            calls: 0,
            beating: BTreeSet::from([ONE, TWO]),
            jobs: BTreeMap::new(),
            states: BTreeMap::new(),
            bucket: None,
        };
        for life in [ONE, TWO] {
            let types = vec!["alpha".to_owned()];
            tale.event(Event::Starts {
                life,
                node: node(life),
                name: format!("node {life}"),
                types,
                off_by_ms: 0,
            });
            tale.state(life, life, |_| {});
            tale.event(Event::Joins { life });
        }
        tale
    }

    fn note(&mut self, what: What) {
        self.entries.push(Entry { at: self.now, what });
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.note(What::World(event));
    }

    /// Time passes, and those who live beat every second.
    pub(crate) fn pass(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        while self.now < end {
            self.now = end.min(self.now + Duration::from_secs(1));
            for life in self.beating.clone() {
                self.state(life, life, |_| {});
            }
        }
    }

    /// A node beats no more, or not any longer in silence.
    pub(crate) fn falls_silent(&mut self, life: Life) {
        self.beating.remove(&life);
    }

    pub(crate) fn crashes(&mut self, life: Life) {
        self.falls_silent(life);
        self.event(Event::Crashes { life });
    }

    /// A call that lands at once and is answered.
    fn writes(&mut self, life: Life, kind: Kind, document: Document) -> Version {
        self.lands(life, Call::Write(Vec::new()), kind, document)
    }

    fn lands(&mut self, life: Life, call: Call, kind: Kind, document: Document) -> Version {
        let task = if matches!(document, Document::State { .. }) { STATES } else { Task::Own(1) };
        self.lands_by(life, task, call, kind, document)
    }

    fn lands_by(&mut self, life: Life, task: Task, call: Call, kind: Kind, document: Document) -> Version {
        self.versions += 1;
        self.calls += 1;
        let (caller, version) = (Caller { life, call: self.calls }, Version(self.versions));
        self.note(What::Sent(caller, task, call));
        self.note(What::Landed(Some(caller), Change { kind, version, document }));
        self.note(What::Answered(caller, Answer::Written(vec![Written::Applied(version)])));
        version
    }

    /// One life writes the state of another, or its own.
    pub(crate) fn state(&mut self, by: Life, of: Life, change: impl FnOnce(&mut NodeState)) {
        let before = self.states.get(&node(of)).map(|(_, state)| Arc::clone(state));
        let mut after = before.as_deref().cloned().unwrap_or_else(|| fresh(of));
        change(&mut after);
        let after = Arc::new(after);
        let document = Document::State { before, after: Some(Arc::clone(&after)) };
        let version = self.writes(by, Kind::Changed, document);
        self.states.insert(node(of), (version, after));
    }

    /// A life reads the state of another, or fails to.
    pub(crate) fn reads(&mut self, life: Life, of: Life, succeeds: bool) {
        self.calls += 1;
        let caller = Caller { life, call: self.calls };
        let version = self.states.get(&node(of)).map(|(version, _)| *version);
        self.note(What::Sent(caller, STATES, Call::ReadStates(vec![node(of)])));
        let answer = if succeeds { Answer::States(vec![version]) } else { Answer::Failed };
        self.note(What::Answered(caller, answer));
    }

    /// Jobs of the one type there is are limited, from the beginning.
    pub(crate) fn limits(&mut self, concurrency: Option<u32>, starts_per_second: Option<f64>) {
        self.versions += 1;
        let (kind, version) = (Kind::Created, Version(self.versions));
        let change = Change { kind, version, document: limited(concurrency, starts_per_second) };
        self.entries.insert(0, Entry { at: Duration::ZERO, what: What::Landed(None, change) });
    }

    /// They are limited from now on.
    pub(crate) fn limits_now(&mut self, concurrency: Option<u32>, starts_per_second: Option<f64>) {
        self.writes(ONE, Kind::Changed, limited(concurrency, starts_per_second));
    }

    /// A job of a submission, waiting.
    pub(crate) fn submit(&mut self, serial: u64) -> JobId {
        self.submit_as(&format!("job {serial}"), serial, |_| {})
    }

    pub(crate) fn submit_as(&mut self, id: &str, serial: u64, change: impl FnOnce(&mut Job)) -> JobId {
        let script = Script {
            serial,
            steps: 1,
            step_ms: 1,
            fails: 0,
            how: How::Fails,
            is_stubborn: false,
            reports: false,
        };
        let place = Place {
            domain: Domain::default(),
            job_id: JobId::derived(&[id]),
            job_number: self.versions,
            sections: 1,
            accepted_by: node(ONE),
        };
        let mut job = NewJob::new(id, "alpha", script.payload()).into_job(place, self.wall());
        change(&mut job);
        let (id, job) = (job.job_id, Arc::new(job));
        let before = self.jobs.insert(id, Arc::clone(&job));
        self.writes(ONE, Kind::Created, Document::Job { id, before, after: Some(job) });
        id
    }

    /// A job of a submission that is stored as already claimed.
    pub(crate) fn seat(&mut self, serial: u64) -> JobId {
        let (now, holder) = (self.wall(), Holder { node: node(ONE), incarnation: incarnation(ONE) });
        let token = ClaimToken::derived(&[&self.calls.to_string()]);
        self.submit_as(&format!("job {serial}"), serial, |job| job.claim(holder, token, now).unwrap())
    }

    /// Writes to a job that is there.
    pub(crate) fn job(&mut self, by: Life, id: JobId, change: impl FnOnce(&mut Job)) {
        self.changes(by, Call::Write(Vec::new()), id, change);
    }

    fn changes(&mut self, by: Life, call: Call, id: JobId, change: impl FnOnce(&mut Job)) {
        let before = Arc::clone(&self.jobs[&id]);
        let mut after = Job::clone(&before);
        change(&mut after);
        let after = Arc::new(after);
        self.jobs.insert(id, Arc::clone(&after));
        self.lands(by, call, Kind::Changed, Document::Job { id, before: Some(before), after: Some(after) });
    }

    /// A person deletes a job.
    pub(crate) fn delete(&mut self, id: JobId) {
        let document = Document::Job { id, before: self.jobs.remove(&id), after: None };
        self.lands_by(ONE, Task::Request, Call::Write(Vec::new()), Kind::Deleted, document);
    }

    /// A node deletes a job because it is old.
    pub(crate) fn clear(&mut self, id: JobId) {
        let document = Document::Job { id, before: self.jobs.remove(&id), after: None };
        self.writes(ONE, Kind::Deleted, document);
    }

    /// The one tenant there is keeps its jobs and lines for an hour.
    pub(crate) fn keeps_for_an_hour(&mut self) {
        let keep = Some(Keep::For(HOUR));
        let settings = DomainSettings { keep_jobs: keep, keep_logs: keep, weight: None };
        let tenant = DomainDocument::new(Domain::default(), BEGINNING.to_date(), settings);
        self.writes(ONE, Kind::Created, Document::Tenant { after: Some(Arc::new(tenant)) });
    }

    /// A job that ended so long ago, before all this.
    pub(crate) fn ended_ago(&mut self, serial: u64, ago: Duration, change: impl FnOnce(&mut Job)) -> JobId {
        let at = UnixMillis(BEGINNING.0 - i64::try_from(ago.as_millis()).unwrap());
        self.submit_as(&format!("job {serial}"), serial, |job| {
            end(job, JobStatus::Successful);
            (job.epoch, job.finished_at) = (1, Some(at));
            (job.metadata.created_at, job.metadata.updated_at) = (at, at);
            job.result.insert("epoch".to_owned(), json!(1));
            change(job);
        })
    }

    /// A line that was said so long ago goes.
    pub(crate) fn clear_line(&mut self, ago: Duration) {
        let at = UnixMillis(BEGINNING.0 - i64::try_from(ago.as_millis()).unwrap());
        let log = Log { domain: Some(Domain::default()), ..Log::new(Level::Info, "a line", node(ONE), at) };
        let document = Document::Line { before: Some(Arc::new(log)), after: None };
        self.writes(ONE, Kind::Deleted, document);
    }

    /// A node merges what its runs have counted into the bucket there is, in place of what is there.
    pub(crate) fn merges(&mut self, life: Life, claims: &[(&str, i64)]) {
        let mut bucket = MetricsBucket::empty(BEGINNING, node(life));
        for (run, value) in claims {
            let sample = Sample::of(SampleKind::Total, *value, "claims").of_run(*run);
            bucket = bucket.merge(node(life), &Samples::from([("claims".to_owned(), sample)]), BEGINNING);
        }
        let after = Arc::new(bucket);
        let before = self.bucket.replace(Arc::clone(&after));
        self.writes(life, Kind::Changed, Document::Bucket { before, after: Some(after) });
    }

    /// A process has counted so many claims until now.
    pub(crate) fn counted(&mut self, life: Life, claims: u64) {
        self.event(Event::Counted { life, counts: BTreeMap::from([("claims", claims)]) });
    }

    pub(crate) fn purge(&mut self, id: JobId) {
        self.writes(ONE, Kind::Purged, Document::Job { id, before: None, after: None });
    }

    pub(crate) fn claim(&mut self, life: Life, id: JobId) {
        let (now, holder) = (self.wall(), Holder { node: node(life), incarnation: incarnation(life) });
        let token = ClaimToken::derived(&[&self.calls.to_string()]);
        self.changes(life, Call::Claim(None), id, |job| job.claim(holder, token, now).unwrap());
    }

    pub(crate) fn handler(&mut self, life: Life, id: JobId, deed: Deed) {
        let job = &self.jobs[&id];
        let work = Work { life, job: id, epoch: job.epoch, attempt: job.attempt };
        self.note(What::Handler(work, deed));
    }

    /// A handler does something under an epoch that may be over.
    pub(crate) fn acts_under(&mut self, life: Life, id: JobId, epoch: u64) {
        self.note(What::Handler(Work { life, job: id, epoch, attempt: 1 }, Deed::Acts));
    }

    /// A job is claimed, runs and ends well.
    pub(crate) fn runs(&mut self, life: Life, id: JobId) {
        self.claim(life, id);
        self.handler(life, id, Deed::Begins);
        self.pass(100);
        self.handler(life, id, Deed::Acts);
        self.handler(life, id, Deed::Ends(Ending::Succeeded));
        let (now, epoch) = (self.wall(), self.jobs[&id].epoch);
        let result = Map::from_iter([("epoch".to_owned(), json!(epoch))]);
        self.job(life, id, |job| job.succeed(epoch, result, now, node(life)).unwrap());
    }

    pub(crate) fn key(&mut self, key: &str, id: JobId) {
        let key = UniqueKey {
            domain: Domain::default(),
            key: key.to_owned(),
            job_id: id,
            requeue: None,
            metadata: Metadata::new(self.wall(), node(ONE)),
            extra: Extra::new(),
        };
        self.writes(ONE, Kind::Created, Document::Key { before: None, after: Some(Arc::new(key)) });
    }

    pub(crate) fn asks(&mut self, wish: Wish) {
        self.note(What::Asked(0, ONE, wish));
    }

    pub(crate) fn told(&mut self, reply: Reply) {
        self.note(What::Told(0, reply));
    }

    pub(crate) fn wall(&self) -> UnixMillis {
        BEGINNING.plus(self.now)
    }

    /// The names of the checks that find something, once all is over.
    pub(crate) fn ends(mut self) -> BTreeSet<&'static str> {
        self.event(Event::Closes);
        let circumstances = Circumstances { lag: Duration::ZERO, is_smooth: true };
        let story = Story::of(&self.entries, circumstances);
        checks::violations(&story).into_iter().map(|violation| violation.check).collect()
    }
}

fn limited(concurrency: Option<u32>, starts_per_second: Option<f64>) -> Document {
    let (domain, kind) = (Some(Domain::default()), "alpha".to_owned());
    let job_type = JobType { domain, kind, concurrency, starts_per_second, ..JobType::default() };
    Document::Type { before: None, after: Some(Arc::new(job_type)) }
}

fn fresh(life: Life) -> NodeState {
    NodeState {
        name: format!("node {life}"),
        id: node(life),
        job_queue_section: 0,
        last_seen_at: BEGINNING,
        status: NodeStatus::Active,
        incarnation: Some(incarnation(life)),
        roles: vec![NodeRole::Processor],
        types: vec!["alpha".to_owned()],
        sections: Vec::new(),
        version: None,
        capacity: Some(4),
        running: None,
        wanted: None,
        controllable: true,
        metadata: Metadata::new(BEGINNING, node(life)),
        extra: Extra::new(),
    }
}

/// Whether a job has ended, for tales that make up their own ends.
pub(crate) fn end(job: &mut Job, status: JobStatus) {
    job.status = status;
    job.owner = None;
}
