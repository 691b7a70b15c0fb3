//! One batch to the collector, over a connection of its own: batches are few, and a collector that came back is found at once.

use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_util::task::AbortOnDropHandle;
use url::Position;

use crate::endpoint::Endpoint;

/// How long a collector may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Knows the way to the collector.
pub(crate) struct Poster {
    pub(crate) endpoint: Endpoint,
    /// Says who is believed, where the collector has to prove who it is.
    pub(crate) tls: Option<TlsConnector>,
}

impl Poster {
    /// What the collector answers; otherwise why there is no answer.
    pub(crate) async fn post(&self, body: Bytes) -> Result<StatusCode, String> {
        timeout(PATIENCE, self.exchange(body)).await.map_err(|_| "it did not answer in time".to_owned())?
    }

    async fn exchange(&self, body: Bytes) -> Result<StatusCode, String> {
        let url = self.endpoint.url();
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = url.port_or_known_default().unwrap_or_default();
        let request = self.request(body)?;
        let stream =
            TcpStream::connect((host, port)).await.map_err(|error| format!("no connection: {error}"))?;
        let Some(tls) = &self.tls else { return send(stream, request).await };
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let stream = tls.connect(name, stream).await;
        send(stream.map_err(|error| format!("no secure connection: {error}"))?, request).await
    }

    fn request(&self, body: Bytes) -> Result<Request<Full<Bytes>>, String> {
        let url = self.endpoint.url();
        let host = &url[Position::BeforeHost..Position::AfterPort];
        let request = Request::post(&url[Position::BeforePath..])
            .header(HOST, host)
            .header(USER_AGENT, concat!("rota/", env!("CARGO_PKG_VERSION")))
            .header(CONNECTION, HeaderValue::from_static("close"))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        request.body(Full::new(body)).map_err(|error| error.to_string())
    }
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<StatusCode, String> {
    let broken = |error: hyper::Error| format!("the connection broke: {error}");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    let answer = sender.send_request(request).await.map_err(broken)?;
    Ok(answer.status())
}
