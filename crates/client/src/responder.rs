//! For tests: a listener that gives prepared answers, one connection each, and keeps what it was asked.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What happens to one connection.
pub(crate) enum Answer {
    /// Closed without a word after the request was read.
    HangUp,
    Status(u16, &'static str, String),
    Versioned(u16, String, &'static str),
}

impl Answer {
    pub(crate) fn json(status: u16, body: impl Into<String>) -> Self {
        Answer::Status(status, "application/json", body.into())
    }

    pub(crate) fn versioned(status: u16, body: impl Into<String>, version: &'static str) -> Self {
        Answer::Versioned(status, body.into(), version)
    }

    /// The whole answer as it goes over the wire.
    fn text(&self) -> Option<String> {
        let (status, header, body) = match self {
            Answer::HangUp => return None,
            Answer::Status(status, kind, body) => (status, format!("content-type: {kind}"), body),
            Answer::Versioned(status, body, version) => (status, format!("etag: \"{version}\""), body),
        };
        let length = body.len();
        Some(format!(
            "HTTP/1.1 {status} x\r\n{header}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ))
    }
}

/// Answers in order, then ends with the requests as text.
pub(crate) async fn answer(answers: Vec<Answer>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut connection, _) = listener.accept().await.unwrap();
            requests.push(read_request(&mut connection).await);
            if let Some(text) = answer.text() {
                connection.write_all(text.as_bytes()).await.unwrap();
            }
        }
        requests
    });
    (url, task)
}

async fn read_request(connection: &mut TcpStream) -> String {
    let mut text = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let count = connection.read(&mut chunk).await.unwrap();
        text.extend_from_slice(&chunk[..count]);
        let so_far = String::from_utf8_lossy(&text);
        let (head, body) = so_far.split_once("\r\n\r\n").unwrap_or((&so_far, ""));
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if count == 0
            || (so_far.contains("\r\n\r\n") && body.len() >= length.map_or(0, |n| n.parse().unwrap()))
        {
            return so_far.into_owned();
        }
    }
}
