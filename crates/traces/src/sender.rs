//! Gathers spans for a moment and sends them together. A collector that is busy or away is asked again, some times; then they are
//! given up.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::StatusCode;
use hyper::body::Bytes;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;
use rota_engine::traces::Span;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_util::sync::CancellationToken;

use crate::Queue;
use crate::endpoint::{Endpoint, NoEndpoint};
use crate::otlp;
use crate::post::Poster;

/// How many are sent at once.
const TOGETHER: usize = 512;
/// How long one waits for company.
const GATHER: Duration = Duration::from_millis(500);
/// How long to wait before asking again; there are as many tries as pauses, and one more.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];
/// How often losses are told at most.
const TELL_EVERY: Duration = Duration::from_secs(60);

pub(crate) struct Sender {
    poster: Poster,
    resource: Resource,
    queue: Arc<Queue>,
    /// When losses were told, and how many there were.
    told: Option<(Instant, u64)>,
}

/// How a try ended that took nothing.
enum Refusal {
    /// The same would be refused again.
    Final(String),
    Passing(String),
}

impl Sender {
    pub(crate) fn new(
        endpoint: Endpoint,
        tls: Option<ClientConfig>,
        resource: Resource,
        queue: Arc<Queue>,
    ) -> Result<Self, NoEndpoint> {
        let tls = tls.filter(|_| endpoint.is_secure()).map(|tls| TlsConnector::from(Arc::new(tls)));
        if endpoint.is_secure() && tls.is_none() {
            return Err(NoEndpoint(format!("nobody said whose certificates to believe for {endpoint}")));
        }
        Ok(Self { poster: Poster { endpoint, tls }, resource, queue, told: None })
    }

    /// Until it is stopped and has sent what was left.
    pub(crate) async fn run(mut self, mut queued: Receiver<Span>, stop: CancellationToken) {
        loop {
            let spans = gather(&mut queued, &stop).await;
            if spans.is_empty() {
                return;
            }
            let count = spans.len() as u64;
            let body: Bytes = otlp::request(&self.resource, spans).encode_to_vec().into();
            if let Err(why) = self.send(body, &stop).await {
                self.queue.lost.fetch_add(count, Ordering::Relaxed);
                self.tell(&why);
            } else if self.queue.lost.load(Ordering::Relaxed) > self.told.map_or(0, |(_, lost)| lost) {
                self.tell("they came faster than they could be sent");
            }
        }
    }

    async fn send(&self, body: Bytes, stop: &CancellationToken) -> Result<(), String> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let why = match self.try_once(body.clone()).await {
                Ok(()) => return Ok(()),
                Err(Refusal::Final(why)) => return Err(why),
                Err(Refusal::Passing(why)) => why,
            };
            let Some(pause) = pauses.next().filter(|_| !stop.is_cancelled()) else { return Err(why) };
            tokio::select! {
                () = stop.cancelled() => {}
                () = sleep(pause) => {}
            }
        }
    }

    async fn try_once(&self, body: Bytes) -> Result<(), Refusal> {
        let status = self.poster.post(body).await.map_err(Refusal::Passing)?;
        let why = format!("the collector answered {status}");
        match status {
            status if status.is_success() => Ok(()),
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Err(Refusal::Passing(why)),
            _ => Err(Refusal::Final(why)),
        }
    }

    /// Says that spans were lost, now and then.
    fn tell(&mut self, why: &str) {
        if self.told.is_some_and(|(at, _)| at.elapsed() < TELL_EVERY) {
            return;
        }
        let lost = self.queue.lost.load(Ordering::Relaxed);
        self.told = Some((Instant::now(), lost));
        tracing::warn!("{lost} spans were not sent to {} so far: {why}", self.poster.endpoint);
    }
}

/// What came within a moment. Nothing once it is stopped and all is sent.
async fn gather(queued: &mut Receiver<Span>, stop: &CancellationToken) -> Vec<Span> {
    let mut spans = Vec::new();
    tokio::select! {
        biased;
        () = stop.cancelled() => queued.close(),
        count = queued.recv_many(&mut spans, TOGETHER) => if count == 0 { return spans },
    }
    let more = async { while spans.len() < TOGETHER && queued.recv_many(&mut spans, TOGETHER).await > 0 {} };
    let _ = timeout(GATHER, more).await;
    spans
}
