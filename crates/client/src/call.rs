//! One call: what is sent, and how its answer is told to be a document, a refusal or nothing of use.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, LOCATION};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::address::Address;
use crate::error::{Error, Problem, causes};

/// How long an answer may take that nobody asked to wait for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Call<'a> {
    address: &'a Address,
    request: RequestBuilder,
    /// Whether its address would lead elsewhere.
    is_astray: bool,
}

impl<'a> Call<'a> {
    pub(crate) fn new(address: &'a Address, request: RequestBuilder) -> Self {
        Self { address, request: request.timeout(ANSWER_TIMEOUT), is_astray: false }
    }

    /// One that is not made if some of its parts are `.` or `..`: in an address they mean another place, and nothing has
    /// such a name.
    pub(crate) fn to(self, parts: &[&str]) -> Self {
        Self { is_astray: parts.iter().any(|part| [".", ".."].contains(part)), ..self }
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

    /// What is answered bit by bit, if it was a success; its body is still to be read.
    pub(crate) async fn stream(self) -> Result<Response, Error> {
        let address = self.address;
        self.must_lead_there()?;
        let begun = timeout(ANSWER_TIMEOUT, self.request.send()).await;
        let silent =
            |_| Error::Unreachable { url: address.to_string(), why: "no answer came in time".to_owned() };
        let response = begun.map_err(silent)?.map_err(|error| unreachable(address, &error))?;
        let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
        match (response.status(), is_stream) {
            (status, true) if status.is_success() => Ok(response),
            (status, _) if status.is_success() => {
                let why = "it did not answer with a stream of events".to_owned();
                Err(Error::Unreadable { url: address.to_string(), why })
            }
            _ => Err(Self::refusal(address, response).await),
        }
    }

    fn must_lead_there(&self) -> Result<(), Error> {
        if self.is_astray {
            return Err(Error::Problem(Box::new(Problem::nothing_has_this_name())));
        }
        Ok(())
    }

    /// What came back, if it was a success.
    async fn answer(self) -> Result<Answer, Error> {
        let address = self.address;
        self.must_lead_there()?;
        let response = self.request.send().await.map_err(|error| unreachable(address, &error))?;
        Self::judge(address, response).await
    }

    async fn judge(address: &Address, response: Response) -> Result<Answer, Error> {
        if !response.status().is_success() {
            return Err(Self::refusal(address, response).await);
        }
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.map_err(|error| unreachable(address, &error))?.into();
        Ok(Answer { status, headers, body })
    }

    /// Why an answer is no success.
    async fn refusal(address: &Address, response: Response) -> Error {
        let status = response.status();
        if status.is_redirection() {
            let place = response.headers().get(LOCATION).and_then(|place| place.to_str().ok());
            let place = place.unwrap_or("another place");
            let why = format!("it leads on to {place}, which may be the address to use");
            return Error::Unreadable { url: address.to_string(), why };
        }
        match response.bytes().await {
            Ok(body) => Error::Problem(Box::new(Problem::read(status.as_u16(), &body))),
            Err(error) => unreachable(address, &error),
        }
    }
}

fn unreachable(address: &Address, error: &reqwest::Error) -> Error {
    Error::Unreachable { url: address.to_string(), why: causes(error) }
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}
