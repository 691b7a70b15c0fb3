//! A server with prepared answers, a resolver that says what it is told to, and a job to run.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rota_engine::handler::{Context, Handler as _, HandlerError, Reports};
use rota_engine::surroundings::{Clock, Surroundings};
use rota_handlers::http::{Http, HttpSettings, Resolver, Trust};
use rota_model::domain::Domain;
use rota_model::ids::JobId;
use rota_model::log::Level;
use rota_model::time::UnixMillis;
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

pub(crate) const NOW: i64 = 1_700_000_000_000;
pub(crate) const JOB: &str = "0190c8a0-0000-7000-8000-000000000001";
/// What a server tells when the other side has gone.
pub(crate) const GONE: &str = "gone";

/// What becomes of one connection, once its request is read.
#[derive(Clone)]
pub(crate) enum Answer {
    /// Status, further header lines, body.
    With(u16, String, Vec<u8>),
    /// A body without an end.
    Endless,
    /// A body of which a byte comes now and then.
    Trickle,
    /// Nothing at all.
    Silence,
    HangUp,
}

pub(crate) fn with(status: u16, headers: &str, body: &str) -> Answer {
    Answer::With(status, headers.to_owned(), body.as_bytes().to_vec())
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    heard: UnboundedReceiver<String>,
}

impl Server {
    /// Answers one connection after the other, the last answer again and again.
    pub(crate) async fn start(answers: Vec<Answer>) -> Self {
        Self::start_with(answers, None).await
    }

    pub(crate) async fn start_with(answers: Vec<Answer>, tls: Option<tokio_rustls::TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (hear, heard) = unbounded_channel();
        tokio::spawn(async move {
            for nth in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let answer = answers[nth.min(answers.len() - 1)].clone();
                match &tls {
                    None => drop(tokio::spawn(serve(stream, answer, hear.clone()))),
                    Some(tls) => match tls.accept(stream).await {
                        Ok(stream) => drop(tokio::spawn(serve(stream, answer, hear.clone()))),
                        Err(_) => hear.send(GONE.to_owned()).unwrap(),
                    },
                }
            }
        });
        Self { address, heard }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The next thing that was heard, in lower case.
    pub(crate) async fn heard(&mut self) -> String {
        tokio::time::timeout(Duration::from_secs(10), self.heard.recv())
            .await
            .unwrap()
            .unwrap()
            .to_lowercase()
    }

    /// Whether nobody called.
    pub(crate) fn heard_nothing(&mut self) -> bool {
        self.heard.try_recv().is_err()
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: Answer,
    hear: UnboundedSender<String>,
) {
    let _ = hear.send(request(&mut stream).await);
    match answer {
        Answer::HangUp => {}
        Answer::With(status, headers, body) => {
            let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(&body).await;
            let _ = stream.shutdown().await;
        }
        Answer::Silence => {
            let _ = stream.read(&mut [0; 16]).await;
            let _ = hear.send(GONE.to_owned());
        }
        Answer::Endless => pour(stream, &[b'x'; 8192], Duration::ZERO, hear).await,
        Answer::Trickle => pour(stream, b"x", Duration::from_millis(20), hear).await,
    }
}

/// Writes until nobody listens.
async fn pour(
    mut stream: impl AsyncWrite + Unpin,
    piece: &[u8],
    pause: Duration,
    hear: UnboundedSender<String>,
) {
    let _ = stream.write_all(b"HTTP/1.1 200 x\r\ncontent-type: application/json\r\n\r\n").await;
    while stream.write_all(piece).await.is_ok() {
        tokio::time::sleep(pause).await;
    }
    let _ = hear.send(GONE.to_owned());
}

async fn request(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut text = String::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece).await.unwrap_or(0);
        text += &String::from_utf8_lossy(&piece[..count]);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if count == 0 {
                return text;
            }
            continue;
        };
        let length =
            head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if count == 0 || body.len() >= length.unwrap_or(0) {
            return text;
        }
    }
}

/// Names and their addresses; one that has several sets of them answers with the next each time.
#[derive(Default)]
pub(crate) struct Names {
    known: BTreeMap<&'static str, Vec<Vec<IpAddr>>>,
    pub(crate) asked: AtomicUsize,
}

impl Names {
    pub(crate) fn new(known: &[(&'static str, &[&[&str]])]) -> Arc<Self> {
        let addresses = |sets: &[&[&str]]| {
            sets.iter().map(|set| set.iter().map(|one| one.parse().unwrap()).collect()).collect()
        };
        let known = known.iter().map(|(name, sets)| (*name, addresses(sets))).collect();
        Arc::new(Self { known, asked: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let nth = self.asked.fetch_add(1, Ordering::SeqCst);
        let sets = self.known.get(name).ok_or_else(|| io::Error::other("nobody knows it"))?;
        Ok(sets[nth.min(sets.len() - 1)].clone())
    }
}

struct StandingClock;

impl Clock for StandingClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(NOW)
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

#[derive(Default)]
pub(crate) struct Heard(pub(crate) Mutex<Vec<(Level, String)>>);

impl Reports for Heard {
    fn progress(&self, _: f64, _: Option<String>) {}

    fn log(&self, level: Level, text: String) {
        self.0.lock().unwrap().push((level, text));
    }
}

pub(crate) fn job(payload: Value) -> Context {
    let Value::Object(payload) = payload else { panic!("{payload}") };
    Context {
        job_id: JOB.parse::<JobId>().unwrap(),
        domain: Domain::default(),
        payload,
        epoch: 3,
        attempt: 2,
        traceparent: None,
        deadline: None,
        cancelled: CancellationToken::new(),
        reports: Arc::new(Heard::default()),
    }
}

pub(crate) fn surroundings() -> Surroundings {
    Surroundings::new(Arc::new(StandingClock), [7; 32])
}

/// The address of the server may be called, and no other that is private.
pub(crate) fn this_address() -> HttpSettings {
    HttpSettings { allow_hosts: vec!["127.0.0.1".parse().unwrap()], ..HttpSettings::default() }
}

pub(crate) async fn run(
    settings: HttpSettings,
    names: &Arc<Names>,
    payload: Value,
) -> Result<Map<String, Value>, HandlerError> {
    let resolver = Arc::clone(names) as Arc<dyn Resolver>;
    Http::with(settings, surroundings(), resolver, Trust::System).run(job(payload)).await
}

/// The same, where no names matter.
pub(crate) async fn call(settings: HttpSettings, payload: Value) -> Result<Map<String, Value>, HandlerError> {
    run(settings, &Arc::new(Names::default()), payload).await
}
