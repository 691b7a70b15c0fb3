//! A real HTTP server on loopback that hands over what it was sent, for what goes out of Rota. It answers with its statuses in
//! turn, the last of them from then on. It may prove who it is, to those who trust its authority.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver as Channel, Sender, channel};
use std::time::Duration;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The authority that says who a secure receiver is, as text.
pub const AUTHORITY: &[u8] = include_bytes!("../../handlers/fixtures/authority.pem");

/// How long to wait for what must come.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request, as it came.
#[derive(Debug)]
pub struct Request {
    /// `POST /v1/traces HTTP/1.1`
    pub line: String,
    /// In lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

pub struct Receiver {
    pub url: String,
    requests: Channel<Request>,
}

impl Receiver {
    pub fn start(statuses: &'static [u16]) -> Self {
        Self::start_with(statuses, None)
    }

    /// By https, as 127.0.0.1.
    pub fn start_secure(statuses: &'static [u16]) -> Self {
        Self::start_with(statuses, Some(Arc::new(identity())))
    }

    fn start_with(statuses: &'static [u16], identity: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let scheme = if identity.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let (tell, requests) = channel();
        std::thread::spawn(move || {
            let mut statuses = statuses.iter().copied();
            let mut status = statuses.next().unwrap_or(200);
            while let Ok((stream, _)) = listener.accept() {
                let served = match &identity {
                    None => serve(stream, status, &tell),
                    Some(identity) => {
                        let connection = ServerConnection::new(Arc::clone(identity)).unwrap();
                        serve(StreamOwned::new(connection, stream), status, &tell)
                    }
                };
                if served.is_none() {
                    continue;
                }
                status = statuses.next().unwrap_or(status);
            }
        });
        Self { url, requests }
    }

    /// The next request; fails the test if none comes.
    pub fn next(&self) -> Request {
        self.requests.recv_timeout(PATIENCE).expect("a request")
    }

    /// What has come by now and was not looked at.
    pub fn so_far(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }
}

fn identity() -> ServerConfig {
    let chain = CertificateDer::pem_slice_iter(include_bytes!("../../handlers/fixtures/server.pem"));
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("../../handlers/fixtures/server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    config.with_single_cert(chain.collect::<Result<_, _>>().unwrap(), key).unwrap()
}

/// One request per connection; none if the caller went away.
fn serve(stream: impl Read + Write, status: u16, tell: &Sender<Request>) -> Option<()> {
    let mut input = BufReader::new(stream);
    let mut line = String::new();
    input.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        input.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let request = Request { line: line.trim_end().to_owned(), headers, body: Vec::new() };
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    // Told first: who was answered may look at once.
    tell.send(Request { body, ..request }).ok()?;
    let stream = input.get_mut();
    write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").ok()?;
    stream.flush().ok()
}
