//! Hints between processes. They are sent beside the commit, coalesced: `NOTIFY` within every transaction takes a lock that
//! all who commit share. Where a pooler swallows them, everybody still looks now and then.

use std::sync::Arc;
use std::time::Duration;

use rota_store::StoreError;
use rota_store::collection::ALL;
use rota_store::hints::{Hint, HintSender};
use rota_store::seam::Key;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_postgres::Notification;

use crate::names::quoted;
use crate::select::Sql;
use crate::session::{Address, Pool, Session};
use crate::value::Param;

/// The longest message that PostgreSQL takes is a little longer.
const MOST_BYTES: usize = 7_900;
/// Between two messages: what happens meanwhile goes into the next.
const REST: Duration = Duration::from_millis(5);
/// The same where there is too much to name: everybody looks at everything then, and a message costs the server a commit.
const LONG_REST: Duration = Duration::from_millis(20);
/// How many commits may wait to be told of.
const BACKLOG: usize = 1_024;
/// How long to leave a server alone that cannot be reached, or does not know how to tell: at first,
const PAUSE: Duration = Duration::from_millis(500);
/// and at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Who tells others of what was written here.
#[derive(Clone)]
pub(crate) struct Notices {
    here: HintSender,
    elsewhere: mpsc::Sender<Arc<[Hint]>>,
}

impl Notices {
    pub(crate) fn tell(&self, hints: Vec<Hint>) {
        if hints.is_empty() {
            return;
        }
        // Who cannot keep up tells of less: hints may be lost.
        let _ = self.elsewhere.try_send(hints.clone().into());
        self.here.send(hints);
    }
}

/// The tasks that tell and hear; they end with this.
pub(crate) struct Messengers(Vec<JoinHandle<()>>);

impl Drop for Messengers {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Who cannot hear goes without: whoever needs to know looks now and then.
pub(crate) async fn start(
    address: &Address,
    pool: &Arc<Pool>,
    channel: String,
    here: &HintSender,
) -> (Notices, Messengers) {
    let (elsewhere, told) = mpsc::channel(BACKLOG);
    let mut name = [0; 8];
    // Without randomness our own hints come back to us, which does no harm.
    let _ = getrandom::fill(&mut name);
    let us = format!("{:x}", u64::from_ne_bytes(name));
    let ear = Ear::open(address, &channel).await;
    let ear = ear.inspect_err(
        |error| tracing::warn!(%error, "it is not told what others change, and will look now and then"),
    );
    let tells = tokio::spawn(tell(Arc::clone(pool), channel.clone(), us.clone(), told));
    let hears = tokio::spawn(hear(ear.ok(), address.clone(), channel, us, here.clone()));
    (Notices { here: here.clone(), elsewhere }, Messengers(vec![tells, hears]))
}

async fn tell(pool: Arc<Pool>, channel: String, us: String, mut told: mpsc::Receiver<Arc<[Hint]>>) {
    let mut waiting = Vec::new();
    while told.recv_many(&mut waiting, BACKLOG).await > 0 {
        let named = naming(&us, waiting.drain(..).flat_map(|hints| hints.to_vec()));
        let rest = if named.is_some() { REST } else { LONG_REST };
        let message = named.unwrap_or_else(|| in_short(&us));
        let mut sql = Sql::default();
        let (channel, message) = (sql.value(Param::Text(channel.clone())), sql.value(Param::Text(message)));
        sql.text = format!("SELECT pg_notify({channel}, {message})");
        if let Err(error) = pool.read("tell others of changes", &sql).await {
            tracing::debug!(%error, "others were not told of changes");
        }
        sleep(rest).await;
    }
}

/// That something happened.
fn in_short(us: &str) -> String {
    json!({"from": us, "lost": true}).to_string()
}

/// A message that names what happened, unless that is too much for one.
fn naming(us: &str, hints: impl Iterator<Item = Hint>) -> Option<String> {
    let envelope = 64;
    let (mut of, mut bytes) = (Vec::new(), envelope);
    for hint in hints {
        let Hint { key: Key { collection, domain, id }, is_new } = hint;
        let one = json!([collection.name, domain.map(|domain| domain.to_string()), id, is_new]);
        bytes += one.to_string().len() + 1;
        if bytes > MOST_BYTES {
            return None;
        }
        of.push(one);
    }
    Some(json!({"from": us, "of": of}).to_string())
}

/// A connection that hears what others tell.
struct Ear {
    _session: Session,
    hears: mpsc::Receiver<Notification>,
}

impl Ear {
    async fn open(address: &Address, channel: &str) -> Result<Self, StoreError> {
        let (session, hears) = address.listen().await?;
        let listen = format!("LISTEN {}", quoted(channel));
        session.client.batch_execute(&listen).await.map_err(session.unavailable("hear of changes"))?;
        Ok(Self { _session: session, hears })
    }
}

async fn hear(mut ear: Option<Ear>, address: Address, channel: String, us: String, here: HintSender) {
    loop {
        while let Some(Ear { hears, .. }) = &mut ear
            && let Some(notice) = hears.recv().await
        {
            match understood(notice.payload(), &us) {
                Some(hints) => here.send(hints),
                None => here.lose(),
            }
        }
        let mut pause = PAUSE;
        ear = loop {
            sleep(pause).await;
            match Ear::open(&address, &channel).await {
                Ok(ear) => break Some(ear),
                Err(error) => tracing::debug!(%error, "cannot hear of changes"),
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        };
        // Whatever was told meanwhile was not heard.
        here.lose();
    }
}

/// What a message tells of: nothing new if it is our own; none if it says too little.
fn understood(message: &str, us: &str) -> Option<Vec<Hint>> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message.get("from").and_then(Value::as_str) == Some(us) {
        return Some(Vec::new());
    }
    let hint = |one: &Value| {
        let [collection, domain, id, is_new] = one.as_array()?.as_slice() else { return None };
        let collection = ALL.into_iter().find(|known| Some(known.name) == collection.as_str())?;
        let domain = domain.as_str().and_then(|domain| domain.parse().ok());
        Some(Hint { key: Key { collection, domain, id: id.as_str()?.to_owned() }, is_new: is_new.as_bool()? })
    };
    Some(message.get("of")?.as_array()?.iter().filter_map(hint).collect())
}

#[cfg(test)]
mod tests {
    use rota_store::collection::{JOBS, TIMERS};

    use super::*;

    #[test]
    fn what_is_told_is_understood() {
        let here = "here".parse().unwrap();
        let hints = vec![
            Hint { key: Key::new(&JOBS, "a \"b\""), is_new: true },
            Hint { key: Key::in_domain(&TIMERS, &here, "t"), is_new: false },
        ];
        let told = naming("us", hints.clone().into_iter()).unwrap();
        assert_eq!(understood(&told, "them"), Some(hints));
        assert_eq!(understood(&told, "us"), Some(Vec::new()));
    }

    #[test]
    fn what_is_told_fits_into_a_message() {
        let many = |count: usize| {
            (0..count).map(|nth| Hint { key: Key::new(&JOBS, format!("{nth:032}")), is_new: true })
        };
        let most = (1..500).rev().find_map(|count| naming("us", many(count))).unwrap();
        assert!(most.len() <= MOST_BYTES && most.len() > MOST_BYTES * 9 / 10, "{}", most.len());
        assert_eq!(naming("us", many(500)), None);
        assert_eq!(understood(&in_short("us"), "them"), None);
    }
}
