//! Why a call gave no answer. Three cases matter to a caller: Rota said no ([`Error::Problem`]), nobody is there
//! ([`Error::Unreachable`]), or what is there does not speak like Rota ([`Error::Unreadable`]).

use std::fmt;

use rota_model::check::FieldError;
use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("this address of Rota cannot be used: {why}")]
    Address { why: &'static str },
    /// What was asked cannot be put into a request.
    #[error("{what} has characters that cannot be sent")]
    Unsendable { what: &'static str },
    /// Rota answered, and refused or failed.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// No connection, or it broke before the answer was complete: what was asked may or may not have happened.
    #[error("Rota cannot be reached at {url}: {why}")]
    Unreachable { url: String, why: String },
    #[error("what answers at {url} does not speak like this version of Rota: {why}")]
    Unreadable { url: String, why: String },
}

impl Error {
    /// Whether what was asked may have happened or may do so at another time: nobody answered, or Rota asked to try again.
    pub fn is_passing(&self) -> bool {
        matches!(self, Error::Unreachable { .. }) || self.status() == Some(503)
    }

    /// The HTTP status, where Rota answered with one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Error::Problem(problem) => Some(problem.status),
            _ => None,
        }
    }
}

/// A refusal in the form of RFC 9457.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Problem {
    pub status: u16,
    /// Which problem it is; stable, for programs.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    /// What to do about it.
    pub detail: String,
    /// The fields at fault.
    pub errors: Vec<FieldError>,
}

impl Problem {
    /// What Rota would answer, could it be asked.
    pub(crate) fn nothing_has_this_name() -> Self {
        let detail = "nothing is called . or ..: these mean something else in an address".to_owned();
        Self { status: 404, title: reason_of(404), detail, ..Self::default() }
    }

    /// The problem that a body states, or the bare status where it states none: a proxy may have answered.
    pub(crate) fn read(status: u16, body: &[u8]) -> Self {
        let stated = serde_json::from_slice::<Problem>(body).unwrap_or_default();
        let title = if stated.title.is_empty() { reason_of(status) } else { stated.title };
        let kind = if stated.kind.is_empty() { "about:blank".to_owned() } else { stated.kind };
        Self { status, kind, title, ..stated }
    }
}

fn reason_of(status: u16) -> String {
    let code = reqwest::StatusCode::from_u16(status).ok();
    let reason = code.and_then(|code| code.canonical_reason()).unwrap_or("the call failed");
    format!("{reason} (HTTP status {status})")
}

/// One sentence for people, without the fields.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.detail.as_str() {
            "" => f.write_str(&self.title),
            detail => write!(f, "{}: {detail}", self.title),
        }
    }
}

/// What lies below an error, from the outside in. The outer layers of the HTTP library only repeat the address and
/// that something failed, so they are left out where there is more to say.
pub(crate) fn causes(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it did not answer in time".to_owned();
    }
    let mut layers: Vec<String> = Vec::new();
    let mut next = std::error::Error::source(error);
    while let Some(layer) = next {
        let text = layer.to_string();
        if layers.last() != Some(&text) && !text.starts_with("client error (") {
            layers.push(text);
        }
        next = layer.source();
    }
    if layers.is_empty() { error.to_string() } else { layers.join(": ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_read_whole() {
        let body =
            br#"{"type": "/problems/invalid", "title": "Refused", "status": 422, "detail": "Look below.",
            "errors": [{"pointer": "/input/payload/millis", "detail": "is missing"}], "instance": "/x"}"#;
        let problem = Problem::read(422, body);
        assert_eq!(problem.kind, "/problems/invalid");
        assert_eq!(problem.errors[0].pointer, "/input/payload/millis");
        assert_eq!(problem.to_string(), "Refused: Look below.");
    }

    #[test]
    fn an_answer_of_somebody_else_keeps_its_status() {
        let problem = Problem::read(502, b"<html>");
        assert_eq!((problem.status, problem.kind.as_str()), (502, "about:blank"));
        assert_eq!(problem.to_string(), "Bad Gateway (HTTP status 502)");
    }
}
