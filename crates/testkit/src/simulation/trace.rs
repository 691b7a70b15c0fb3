//! A run as lines for people: the instant, who, and what happened. The same seed gives the same lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use rota_model::ids::{JobId, NodeId};
use rota_model::job::{Job, JobStatus};
use rota_model::job_type::JobType;
use rota_model::limit::{Holding, Limit};
use rota_model::metric::MetricsBucket;
use rota_model::node::NodeState;

use super::record::{
    Accepted, Answer, Call, Change, Deed, Document, Entry, Event, Kind, Life, Reply, Submission, What, Wish,
    Work,
};
use super::story::Story;
use super::work::Script;
use crate::faults::caller::Caller;

/// How a job is called: by the number of its submission.
pub fn name(story: &Story<'_>, id: JobId) -> String {
    let job = story.jobs.get(&id).and_then(|steps| steps.first()).and_then(|step| step.after);
    job.map_or_else(|| format!("job {id}"), job_name)
}

fn job_name(job: &Job) -> String {
    Script::of(&job.input.payload)
        .map_or_else(|| job.job_name.clone(), |script| format!("job-{}", script.serial))
}

/// Tells runs apart: everything that happened, in its order.
pub fn fingerprint(entries: &[Entry]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for entry in entries {
        entry.at.hash(&mut hasher);
        format!("{:?}", entry.what).hash(&mut hasher);
    }
    hasher.finish()
}

/// The whole run, a line for each thing that happened. Calls that went well are left out.
pub fn lines(entries: &[Entry]) -> String {
    let mut teller = Teller::default();
    let mut text = String::new();
    for entry in entries {
        if let Some((who, what)) = teller.tell(&entry.what) {
            let _ = writeln!(text, "{}  {who:<8} {what}", instant(entry.at));
        }
    }
    text
}

fn instant(at: Duration) -> String {
    format!("{:9.3}s", at.as_secs_f64())
}

/// Remembers the names of those it tells about.
#[derive(Default)]
struct Teller {
    lives: BTreeMap<Life, (NodeId, String)>,
    jobs: BTreeMap<JobId, String>,
    calls: BTreeMap<Caller, String>,
}

impl Teller {
    fn life(&self, life: Life) -> String {
        self.lives.get(&life).map_or_else(|| format!("life {life}"), |(_, name)| name.clone())
    }

    fn caller(&self, caller: Option<Caller>) -> String {
        caller.map_or_else(|| "nobody".to_owned(), |caller| self.life(caller.life))
    }

    fn job(&self, id: JobId) -> String {
        self.jobs.get(&id).cloned().unwrap_or_else(|| format!("job {id}"))
    }

    fn tell(&mut self, what: &What) -> Option<(String, String)> {
        match what {
            What::World(event) => Some(self.event(event)),
            What::Sent(caller, _, call) => {
                self.calls.insert(*caller, self.call(call));
                None
            }
            What::Answered(caller, answer) => self.answer(*caller, answer),
            What::Landed(caller, change) => Some((self.caller(*caller), self.change(*caller, change))),
            What::Handler(work, deed) => Some((self.life(work.life), self.deed(*work, deed))),
            What::Asked(number, life, wish) => Some((
                "people".to_owned(),
                format!("ask {} ({number}): {}", self.life(*life), self.wish(wish)),
            )),
            What::Told(number, reply) => {
                Some(("people".to_owned(), format!("are told ({number}): {}", self.reply(reply))))
            }
        }
    }

    fn wish(&self, wish: &Wish) -> String {
        match wish {
            Wish::Submit(all) => {
                let name = |one: &Submission| {
                    format!("job-{}{}", one.serial, if one.is_named { " by name" } else { "" })
                };
                format!("submit {}", all.iter().map(name).collect::<Vec<_>>().join(", "))
            }
            Wish::Cancel(job) => format!("cancel {}", self.job(*job)),
            Wish::Requeue(job) => format!("requeue {}", self.job(*job)),
            Wish::Delete(job) => format!("delete {}", self.job(*job)),
            Wish::DeleteMatching(domain) => format!("delete some of {domain}"),
            Wish::Node(node, wish) => {
                let name = self.lives.values().find(|(id, _)| id == node).map_or("a node", |(_, name)| name);
                let what = wish.map_or_else(|| "resume".to_owned(), |wish| format!("{wish:?}"));
                format!("{what} {name}")
            }
            Wish::Limit(domain, kind, limits) => {
                let what = limits.map_or_else(|| "by nothing".to_owned(), |limits| format!("by {limits:?}"));
                format!("limit {kind} in {domain} {what}")
            }
        }
    }

    fn reply(&self, reply: &Reply) -> String {
        let Reply::Submitted(answers) = reply else { return format!("{reply:?}") };
        let answer = |answer: &Accepted| match answer {
            Accepted::New(id) => format!("{} is new", self.job(*id)),
            Accepted::Again(id) => format!("{} was there", self.job(*id)),
            Accepted::Twin(id) => format!("{} is its twin", self.job(*id)),
            Accepted::InBatch(id) => format!("{} is taken", self.job(*id)),
            Accepted::Refused(why) | Accepted::Failed(why) => why.clone(),
        };
        answers.iter().map(answer).collect::<Vec<_>>().join("; ")
    }

    fn event(&mut self, event: &Event) -> (String, String) {
        let (life, what) = match event {
            Event::Starts { life, node, name, types, off_by_ms } => {
                self.lives.insert(*life, (*node, name.clone()));
                (
                    life,
                    format!(
                        "starts as life {life}, its clock off by {off_by_ms} ms, for {}",
                        types.join(" ")
                    ),
                )
            }
            Event::Joins { life } => (life, "has joined".to_owned()),
            Event::Crashes { life } => (life, "CRASHES".to_owned()),
            Event::Freezes { life } => (life, "FREEZES".to_owned()),
            Event::Thaws { life } => (life, "THAWS".to_owned()),
            Event::Turns { life, sky } => (life, format!("has its way to the store: {sky:?}")),
            Event::Jumps { life, by_ms } => (life, format!("has its clock jump by {by_ms} ms")),
            Event::IsToStop { life } => (life, "is to stop".to_owned()),
            Event::Ends { life } => (life, "has stopped".to_owned()),
            Event::Counted { life, counts } => (life, format!("has counted {counts:?}")),
            Event::Calms => return ("world".to_owned(), "calms down".to_owned()),
            Event::Closes => return ("world".to_owned(), "closes".to_owned()),
            Event::Overflows => return ("world".to_owned(), "has seen enough".to_owned()),
        };
        (self.life(*life), what)
    }

    fn call(&self, call: &Call) -> String {
        match call {
            Call::ReadStates(nodes) => format!("read {} states", nodes.len()),
            Call::Write(targets) => {
                let names = targets.iter().map(|target| {
                    let job = target.id.parse().ok().and_then(|id| self.jobs.get(&id));
                    job.cloned().unwrap_or_else(|| target.collection.to_owned())
                });
                format!("write {}", names.collect::<Vec<_>>().join(", "))
            }
            Call::Claim(_) => "claim".to_owned(),
            Call::Other(verb, what) => format!("{verb} {what}"),
        }
    }

    fn answer(&mut self, caller: Caller, answer: &Answer) -> Option<(String, String)> {
        let call = self.calls.remove(&caller)?;
        let heard = match answer {
            Answer::Failed => "failed",
            Answer::Unknown => "is unknown",
            Answer::Written(written)
                if written.iter().any(|one| !matches!(one, rota_store::seam::Written::Applied(_))) =>
            {
                "conflicts"
            }
            _ => return None,
        };
        Some((self.life(caller.life), format!("hears: {call} {heard}")))
    }

    fn change(&mut self, caller: Option<Caller>, change: &Change) -> String {
        match &change.document {
            Document::Job { id, before, after } => {
                if let Some(job) = after {
                    self.jobs.entry(*id).or_insert_with(|| job_name(job));
                }
                self.job_change(*id, change.kind, before.as_deref(), after.as_deref())
            }
            Document::State { before, after } => {
                let own = caller.and_then(|caller| self.lives.get(&caller.life)).map(|(node, _)| *node);
                state_change(own, before.as_deref(), after.as_deref())
            }
            Document::Key { before, after } => {
                let key = after.as_deref().or(before.as_deref());
                let (key, job) = key.map_or(("", None), |key| (key.key.as_str(), Some(key.job_id)));
                let job = job.map_or_else(String::new, |job| self.job(job));
                let requeue = after.as_ref().and_then(|after| after.requeue);
                format!(
                    "{:?} {key} for {job}{}",
                    change.kind,
                    if requeue.is_some() { ", to requeue" } else { "" }
                )
            }
            Document::Limit { before, after } => limit_words(before.as_deref(), after.as_deref()),
            Document::Type { before, after } => type_words(before.as_deref(), after.as_deref()),
            Document::Tenant { after } => {
                let keeps = after.as_ref().map(|after| (after.name.to_string(), after.settings()));
                format!("{:?} the tenant {keeps:?}", change.kind)
            }
            Document::Line { before, after } => {
                let line = after.as_deref().or(before.as_deref());
                format!("{:?} a line: {}", change.kind, line.map_or("", |line| line.title.as_str()))
            }
            Document::Bucket { before, after } => {
                let bucket = after.as_deref().or(before.as_deref()).map(MetricsBucket::id);
                format!("{:?} the bucket {}", change.kind, bucket.unwrap_or_default())
            }
            Document::Other { collection, id } => format!("{:?} {collection}/{id}", change.kind),
        }
    }

    fn job_change(&self, id: JobId, kind: Kind, before: Option<&Job>, after: Option<&Job>) -> String {
        let job = self.job(id);
        let Some(after) = after else { return format!("{kind:?} {job}") };
        let status = after.status.as_str();
        let from = before.map_or("nothing", |before| before.status.as_str());
        let event = after
            .history
            .last()
            .filter(|_| before.is_some_and(|before| before.history.len() < after.history.len()));
        let why = event.map_or_else(String::new, |event| format!(" by {:?}", event.event));
        let end = if after.status.is_terminal() {
            format!(", result {}", serde_json::Value::Object(after.result.clone()))
        } else if after.status == JobStatus::Started {
            let owner = after.owner.and_then(|owner| owner.to_string().get(28..).map(str::to_owned));
            format!(", owner …{}", owner.unwrap_or_default())
        } else {
            String::new()
        };
        let (epoch, attempt, lost) = (after.epoch, after.attempt, after.lost);
        let (lane, section) = (after.lane.as_deref().unwrap_or("no lane"), after.section);
        let place = if after.status.is_terminal() { String::new() } else { format!(", {lane} {section}") };
        format!("{job}: {from} -> {status}{why}{place}, epoch {epoch}, attempt {attempt}, lost {lost}{end}")
    }

    fn deed(&self, work: Work, deed: &Deed) -> String {
        let (job, epoch, attempt) = (self.job(work.job), work.epoch, work.attempt);
        match deed {
            Deed::Begins => format!("begins {job} under epoch {epoch}, attempt {attempt}"),
            Deed::Acts => format!("acts for {job} under epoch {epoch}"),
            Deed::Ends(ending) => format!("ends {job} under epoch {epoch}: {ending:?}"),
        }
    }
}

fn state_change(own: Option<NodeId>, before: Option<&NodeState>, after: Option<&NodeState>) -> String {
    let Some(after) = after else { return "removes a state".to_owned() };
    let incarnation = after.incarnation.map(|incarnation| incarnation.to_string());
    let incarnation = incarnation.as_deref().and_then(|text| text.get(28..)).unwrap_or("");
    let wanted = after.wanted.map_or_else(String::new, |wanted| format!(", wanted {wanted:?}"));
    let is_new = before.is_none_or(|before| before.incarnation != after.incarnation);
    let verb = if own != Some(after.id) {
        format!("writes the state of {}", after.name)
    } else if is_new {
        "enters".to_owned()
    } else {
        "beats".to_owned()
    };
    format!("{verb}: {} …{incarnation}{wanted}", after.status.as_str())
}

fn type_words(before: Option<&JobType>, after: Option<&JobType>) -> String {
    let Some(known) = after.or(before) else { return "removes a type".to_owned() };
    let domain = known.domain.as_ref().map_or("every domain", |domain| domain.as_str());
    let limits = after.map(JobType::limits).filter(|limits| !limits.is_none());
    let what = limits.map_or_else(|| "nothing".to_owned(), |limits| format!("{limits:?}"));
    format!("{} in {domain} is limited by {what}", known.kind)
}

/// Who has how many slots of a limit; a star for who waits for more.
fn limit_words(before: Option<&Limit>, after: Option<&Limit>) -> String {
    let Some(limit) = after.or(before) else { return "limit".to_owned() };
    let slots = |holding: &Holding| {
        let id = holding.incarnation.to_string();
        let short = id.get(id.len().saturating_sub(4)..).unwrap_or_default().to_owned();
        format!("{short} {}{}", holding.slots, if holding.wants { "*" } else { "" })
    };
    let holders: Vec<_> = limit.holders.iter().map(slots).collect();
    let key = limit.key.as_deref().unwrap_or("all");
    format!(
        "limit {}/{}/{key} [{}] until {:?}",
        limit.domain,
        limit.kind,
        holders.join(", "),
        limit.started_us
    )
}
