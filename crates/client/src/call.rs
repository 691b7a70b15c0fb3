//! One call: what is sent, and how its answer is told to be a document, a refusal or nothing of use.

use std::time::Duration;

use reqwest::header::{ETAG, HeaderMap, HeaderValue, LOCATION};
use reqwest::{RequestBuilder, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::address::Address;
use crate::error::{Error, Problem, causes};

/// How long an answer may take that nobody asked to wait for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Call<'a> {
    address: &'a Address,
    request: RequestBuilder,
}

impl<'a> Call<'a> {
    pub(crate) fn new(address: &'a Address, request: RequestBuilder) -> Self {
        Self { address, request: request.timeout(ANSWER_TIMEOUT) }
    }

    pub(crate) fn query(self, query: &impl Serialize) -> Self {
        Self { request: self.request.query(query), ..self }
    }

    pub(crate) fn header(self, name: &'static str, value: &HeaderValue) -> Self {
        Self { request: self.request.header(name, value), ..self }
    }

    pub(crate) fn body(self, document: &impl Serialize) -> Self {
        Self { request: self.request.json(document), ..self }
    }

    pub(crate) fn timeout(self, limit: Duration) -> Self {
        Self { request: self.request.timeout(limit), ..self }
    }

    /// The document that is answered.
    pub(crate) async fn document<T: DeserializeOwned>(self) -> Result<T, Error> {
        self.read().await.map(|(document, _)| document)
    }

    /// The document that is answered, and its `ETag` where it has one.
    pub(crate) async fn versioned<T: DeserializeOwned>(self) -> Result<(T, Option<HeaderValue>), Error> {
        let (document, answer) = self.read().await?;
        Ok((document, answer.headers.get(ETAG).cloned()))
    }

    /// The document that is answered, and whether it was made just now.
    pub(crate) async fn made<T: DeserializeOwned>(self) -> Result<(T, bool), Error> {
        let (document, answer) = self.read().await?;
        Ok((document, answer.status == StatusCode::CREATED))
    }

    async fn read<T: DeserializeOwned>(self) -> Result<(T, Answer), Error> {
        let address = self.address;
        let answer = self.answer().await?;
        let document = serde_json::from_slice(&answer.body)
            .map_err(|error| Error::Unreadable { url: address.to_string(), why: error.to_string() })?;
        Ok((document, answer))
    }

    pub(crate) async fn text(self) -> Result<String, Error> {
        Ok(String::from_utf8_lossy(&self.answer().await?.body).into_owned())
    }

    /// For what is answered by no document.
    pub(crate) async fn nothing(self) -> Result<(), Error> {
        self.answer().await.map(drop)
    }

    /// What came back, if it was a success.
    async fn answer(self) -> Result<Answer, Error> {
        let unreachable =
            |error: reqwest::Error| Error::Unreachable { url: self.address.to_string(), why: causes(&error) };
        let response = self.request.send().await.map_err(unreachable)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.map_err(unreachable)?.into();
        if status.is_success() {
            return Ok(Answer { status, headers, body });
        }
        if status.is_redirection() {
            let place =
                headers.get(LOCATION).and_then(|place| place.to_str().ok()).unwrap_or("another place");
            let why = format!("it leads on to {place}, which may be the address to use");
            return Err(Error::Unreadable { url: self.address.to_string(), why });
        }
        Err(Error::Problem(Box::new(Problem::read(status.as_u16(), &body))))
    }
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}
