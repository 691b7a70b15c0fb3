//! One request and its answer, over a connection of its own. When its future is dropped, the connection is closed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_util::task::AbortOnDropHandle;
use url::{Position, Url};

use crate::http::CallError;
use crate::http::addresses::Permitted;
use crate::http::payload::shown;
use crate::http::resolver::{Resolver, addresses};

/// How much of a body is kept, in bytes.
const MAX_BODY: usize = 64 * 1024;
/// An address that does not answer leaves time for the next.
const CONNECT: Duration = Duration::from_secs(10);

/// Whose certificates are believed.
pub enum Trust {
    /// Those of the authorities that the system trusts.
    System,
    /// Those of these authorities alone.
    Only(RootCertStore),
}

pub(super) struct Ask<'a> {
    pub(super) method: &'a Method,
    pub(super) url: &'a Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    /// Whether there was more of the body.
    pub(super) truncated: bool,
}

pub(super) struct Exchanger {
    permitted: Permitted,
    resolver: Arc<dyn Resolver>,
    trust: Trust,
    /// Made when it is first needed: reading the system's authorities takes a moment.
    tls: OnceCell<Arc<ClientConfig>>,
}

impl Exchanger {
    pub(super) fn new(permitted: Permitted, resolver: Arc<dyn Resolver>, trust: Trust) -> Self {
        Self { permitted, resolver, trust, tls: OnceCell::new() }
    }

    pub(super) async fn ask(&self, ask: Ask<'_>) -> Result<Answer, CallError> {
        let url = ask.url;
        let broken = |why: String| CallError::Broken(format!("{}: {why}", shown(url)));
        let open = addresses(url, self.resolver.as_ref(), &self.permitted).await?;
        let stream = connect(&open).await.map_err(broken)?;
        let request = request(ask).map_err(CallError::Refused)?;
        if url.scheme() == "http" {
            return exchange(stream, request).await.map_err(broken);
        }
        let stream = self.secured(url, stream).await?;
        exchange(stream, request).await.map_err(broken)
    }

    async fn secured(
        &self,
        url: &Url,
        stream: TcpStream,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, CallError> {
        let broken = |why: String| CallError::Broken(format!("{}: {why}", shown(url)));
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host);
        let name =
            name.map_err(|_| CallError::Refused(format!("{} cannot be called by https", shown(url))))?;
        let tls = TlsConnector::from(self.tls().await.map_err(broken)?);
        tls.connect(name, stream).await.map_err(|error| broken(format!("no secure connection: {error}")))
    }

    async fn tls(&self) -> Result<Arc<ClientConfig>, String> {
        self.tls.get_or_try_init(|| async { self.trust.config().await.map(Arc::new) }).await.cloned()
    }
}

impl Trust {
    /// The same for whoever else calls out by https.
    pub async fn config(&self) -> Result<ClientConfig, String> {
        let roots = match self {
            Trust::Only(roots) => roots.clone(),
            // From many files, which a handler must not wait for.
            Trust::System => spawn_blocking(system_roots).await.map_err(|error| error.to_string())??,
        };
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    }
}

fn system_roots() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!("a certificate authority of the system cannot be read: {error}");
    }
    let mut roots = RootCertStore::empty();
    let (taken, _) = roots.add_parsable_certificates(found.certs);
    if taken == 0 {
        return Err(
            "this machine has no certificate authorities (on Debian: install ca-certificates)".to_owned()
        );
    }
    Ok(roots)
}

async fn connect(open: &[SocketAddr]) -> Result<TcpStream, String> {
    let mut why = "no address".to_owned();
    for address in open {
        match tokio::time::timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // What little there is to send goes out at once; without it, it only goes out later.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => why = format!("cannot connect to {address}: {error}"),
            Err(_) => why = format!("cannot connect to {address}: no answer within {} s", CONNECT.as_secs()),
        }
    }
    Err(why)
}

fn request(ask: Ask<'_>) -> Result<Request<Full<Bytes>>, String> {
    let Ask { method, url, headers, body } = ask;
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let host = HeaderValue::from_str(host).map_err(|_| format!("{host} is no host"))?;
    let target = &url[Position::BeforePath..Position::AfterQuery];
    let request = Request::builder().method(method).uri(target).body(Full::new(body));
    let mut request = request.map_err(|error| format!("{} cannot be called: {error}", shown(url)))?;
    *request.headers_mut() = headers;
    request.headers_mut().insert(HOST, host);
    Ok(request)
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Answer, String> {
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| describe(&error))?;
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    let response = sender.send_request(request).await.map_err(|error| describe(&error))?;
    read(response).await
}

async fn read(response: Response<Incoming>) -> Result<Answer, String> {
    let (head, mut incoming) = response.into_parts();
    let (mut body, mut truncated) = (Vec::new(), false);
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| format!("the answer broke off: {}", describe(&error)))?;
        let Some(data) = frame.data_ref() else { continue };
        let room = MAX_BODY - body.len();
        body.extend(data.iter().take(room));
        if data.len() > room {
            truncated = true;
            break;
        }
    }
    Ok(Answer { status: head.status.as_u16(), headers: head.headers, body, truncated })
}

/// An error with its causes.
fn describe(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
