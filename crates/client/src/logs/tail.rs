//! A listener. It hears lines as server-sent events; when the connection breaks it goes on behind the last line that it
//! heard, and tells no line twice.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use reqwest::Response;
use reqwest::header::HeaderValue;
use rota_model::domain::Domain;
use rota_model::ids::LogId;
use rota_model::log::LogLine;
use tokio::time::{Instant, sleep, timeout};

use super::LogFilter;
use crate::{Client, Error};

/// How long nothing may come: Rota says every 15 seconds that it is there.
const SILENCE: Duration = Duration::from_secs(45);
/// How long Rota may be out of reach: long enough for a restart.
const MAX_ABSENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(250);
/// How many lines are remembered, so that none is told twice.
const MAX_HEARD: usize = 10_000;
/// A stream has no end: it is open for as long as somebody listens.
const ENDLESS: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Lines as they are stored.
pub struct Tail {
    client: Client,
    domain: Option<Domain>,
    filter: LogFilter,
    stream: Option<Stream>,
    last: Option<LogId>,
    heard: BTreeSet<LogId>,
    order: VecDeque<LogId>,
    /// Since when Rota is out of reach, once it was there.
    absent: Option<Instant>,
}

impl Client {
    /// Listens to a domain, or to the whole installation. On return Rota has accepted that.
    pub async fn tail_logs(&self, domain: Option<&Domain>, filter: LogFilter) -> Result<Tail, Error> {
        let mut tail = Tail {
            client: self.clone(),
            domain: domain.cloned(),
            filter,
            stream: None,
            last: None,
            heard: BTreeSet::new(),
            order: VecDeque::new(),
            absent: None,
        };
        tail.stream = Some(tail.open().await?);
        Ok(tail)
    }
}

impl Tail {
    /// The next line. Fails when Rota is out of reach for longer than a restart takes, or refuses to go on. Whoever gives up
    /// waiting loses nothing.
    pub async fn next(&mut self) -> Result<LogLine, Error> {
        loop {
            let line = match &mut self.stream {
                Some(stream) => stream.next().await,
                None => {
                    self.reopen().await?;
                    continue;
                }
            };
            match line {
                Some(line) if self.is_new(line.log_id) => return Ok(line),
                Some(_) => {}
                None => self.stream = None,
            }
        }
    }

    async fn reopen(&mut self) -> Result<(), Error> {
        let since = *self.absent.get_or_insert_with(Instant::now);
        sleep(PAUSE).await;
        match self.open().await {
            Ok(stream) => {
                self.stream = Some(stream);
                self.absent = None;
                Ok(())
            }
            Err(error) if error.is_passing() && since.elapsed() < MAX_ABSENCE => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn open(&self) -> Result<Stream, Error> {
        let call = self.client.logs_call(self.domain.as_ref()).query(&self.filter).query(&[("follow", true)]);
        let call = match self.last {
            Some(last) => {
                let last = HeaderValue::from_str(&last.to_string())
                    .map_err(|_| Error::Unsendable { what: "the id of a line" })?;
                call.header("Last-Event-ID", &last)
            }
            None => call,
        };
        Ok(Stream { response: call.timeout(ENDLESS).stream().await?, text: Vec::new() })
    }

    fn is_new(&mut self, id: LogId) -> bool {
        self.last = Some(id);
        if !self.heard.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > MAX_HEARD
            && let Some(oldest) = self.order.pop_front()
        {
            self.heard.remove(&oldest);
        }
        true
    }
}

/// One connection.
struct Stream {
    response: Response,
    /// What came and is not a whole event yet.
    text: Vec<u8>,
}

impl Stream {
    /// The next line; none if the connection is over.
    async fn next(&mut self) -> Option<LogLine> {
        loop {
            while let Some(end) = self.text.windows(2).position(|two| two == b"\n\n") {
                let rest = self.text.split_off(end + 2);
                let event = std::mem::replace(&mut self.text, rest);
                if let Some(line) = line_of(&String::from_utf8_lossy(&event)) {
                    return Some(line);
                }
            }
            let piece = timeout(SILENCE, self.response.chunk()).await.ok()?.ok()??;
            self.text.extend_from_slice(&piece);
        }
    }
}

/// The line of an event; none of a comment, or an event that we do not know.
fn line_of(event: &str) -> Option<LogLine> {
    let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    if field("event") != Some("log") {
        return None;
    }
    serde_json::from_str(field("data")?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responder::{Answer, answer};

    fn event(nth: u8) -> String {
        let id = format!("018f0000-0000-7000-8000-0000000000{nth:02}");
        let data = format!(
            r#"{{"logId": "{id}", "title": "line {nth}", "origin": "{id}", "metadata": {{"createdAt": 1, "updatedAt": 1, "updatedBy": "{id}"}}}}"#
        );
        format!("event: log\nid: {id}\ndata: {data}\n\n")
    }

    fn events(numbers: &[u8]) -> Answer {
        let body = format!(": listening\n\n{}", numbers.iter().map(|nth| event(*nth)).collect::<String>());
        Answer::Status(200, "text/event-stream", body)
    }

    #[tokio::test]
    async fn a_tail_goes_on_behind_the_last_line_and_tells_none_twice() {
        let answers = vec![events(&[1, 2]), Answer::HangUp, events(&[2, 3]), Answer::json(403, "{}")];
        let (url, asked) = answer(answers).await;
        let client = Client::new(&url, "rota_key").unwrap();
        let filter = LogFilter { limit: Some(5), ..LogFilter::default() };
        let mut tail = client.tail_logs(Some(&Domain::default()), filter).await.unwrap();
        for expected in ["line 1", "line 2", "line 3"] {
            assert_eq!(tail.next().await.unwrap().log.title, expected);
        }
        assert!(matches!(tail.next().await, Err(Error::Problem(_))), "it may not any more");
        let asked = asked.await.unwrap();
        let path = "GET /api/v1/domains/default/logs?limit=5&follow=true HTTP";
        assert!(asked.iter().all(|asked| asked.starts_with(path)), "{asked:?}");
        assert!(!asked[0].contains("last-event-id"));
        assert!(asked[2].contains("last-event-id: 018f0000-0000-7000-8000-000000000002\r\n"), "{}", asked[2]);
        assert!(asked[3].contains("last-event-id: 018f0000-0000-7000-8000-000000000003\r\n"), "{}", asked[3]);
    }
}
