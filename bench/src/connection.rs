//! HTTP/1.1 on one kept connection, with as little of a client as possible: what is measured is the server.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Connection {
    /// A connection that asks for the same again and again.
    pub(crate) async fn asking(address: &str, key: &str, path: &str) -> Self {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\r\n");
        Self::sending(address, head).await
    }

    /// A connection that sends the same request again and again.
    pub(crate) async fn open(address: &str, key: &str, path: &str, body: &str) -> Self {
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        Self::sending(address, request).await
    }

    async fn sending(address: &str, request: String) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, request: request.into_bytes(), answer: Vec::with_capacity(4_096) }
    }

    /// How many times a text stands in the last answer.
    pub(crate) fn count(&self, text: &str) -> usize {
        String::from_utf8_lossy(&self.answer).matches(text).count()
    }

    /// Sends it and waits for the whole answer.
    pub(crate) async fn call(&mut self) {
        self.stream.write_all(&self.request).await.unwrap();
        self.answer.clear();
        while !is_whole(&self.answer) {
            assert_ne!(self.stream.read_buf(&mut self.answer).await.unwrap(), 0, "the server hung up");
        }
        let good = self.answer.starts_with(b"HTTP/1.1 201") || self.answer.starts_with(b"HTTP/1.1 200");
        assert!(good, "{}", String::from_utf8_lossy(&self.answer));
    }
}

fn is_whole(answer: &[u8]) -> bool {
    let Some(head) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(answer.get(..head).unwrap_or_default()).to_ascii_lowercase();
    let length = text.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let length: usize = length.and_then(|length| length.trim().parse().ok()).expect("a length");
    answer.len() >= head + 4 + length
}
