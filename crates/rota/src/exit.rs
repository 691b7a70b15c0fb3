//! How a command ends: a code for scripts and a sentence for people.

use std::process::ExitCode;

use rota_client::{Error, Problem};
use rota_model::check::{FieldError, Invalid};

/// What the process ends with. Scripts rely on these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Done = 0,
    /// The job or the work failed.
    Failed = 1,
    /// Wrong usage, or input that was refused.
    Refused = 2,
    NotFound = 3,
    Conflict = 4,
    /// Rota or its store cannot be reached.
    Unreachable = 5,
    /// Not signed in, or not allowed.
    NotAllowed = 6,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Why a command did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// A sentence that says what to do; more lines name the fields at fault. Nothing is shown if it is empty.
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Exit::Refused, message)
    }

    /// Whoever read our output has seen enough: an end, and no failure.
    pub(crate) fn nobody_reads() -> Self {
        Self::new(Exit::Done, "")
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Self::refused(with_fields("this cannot be sent", &invalid.0))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Problem(problem) => Self::new(exit_of(problem.status), sentence_of(&problem)),
            Error::Unreachable { .. } => Self::new(Exit::Unreachable, format!("{error}; is it running?")),
            Error::Unreadable { .. } => Self::new(Exit::Unreachable, error.to_string()),
            Error::Address { .. } | Error::Unsendable { .. } => Self::refused(error.to_string()),
        }
    }
}

fn exit_of(status: u16) -> Exit {
    match status {
        401 | 403 => Exit::NotAllowed,
        404 => Exit::NotFound,
        409 | 412 => Exit::Conflict,
        429 | 500.. => Exit::Unreachable,
        _ => Exit::Refused,
    }
}

fn sentence_of(problem: &Problem) -> String {
    if !problem.errors.is_empty() {
        return with_fields(&problem.title, &problem.errors);
    }
    match problem.status {
        401 => format!("{problem} (`rota login` stores another key)"),
        _ => problem.to_string(),
    }
}

fn with_fields(sentence: &str, errors: &[FieldError]) -> String {
    format!("{sentence}:\n  {}", details(errors, "\n  "))
}

/// The fields at fault and what is wrong with each.
pub(crate) fn details(errors: &[FieldError], separator: &str) -> String {
    let details: Vec<_> = errors
        .iter()
        .map(|error| match error.pointer.as_str() {
            "" => error.detail.clone(),
            pointer => format!("{pointer}: {}", error.detail),
        })
        .collect();
    details.join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(status: u16) -> Problem {
        Problem { status, title: "Title".to_owned(), detail: "what to do".to_owned(), ..Problem::default() }
    }

    #[test]
    fn every_status_has_its_code() {
        let codes = [
            (400, 2),
            (401, 6),
            (403, 6),
            (404, 3),
            (405, 2),
            (409, 4),
            (412, 4),
            (413, 2),
            (415, 2),
            (422, 2),
            (429, 5),
            (500, 5),
            (502, 5),
            (503, 5),
        ];
        for (status, code) in codes {
            let failure = Failure::from(Error::Problem(Box::new(problem(status))));
            assert_eq!(failure.exit as u8, code, "status {status}");
        }
    }

    #[test]
    fn who_cannot_be_reached_is_code_5_and_a_bad_address_code_2() {
        let nobody = Error::Unreachable { url: "http://h".to_owned(), why: "refused".to_owned() };
        let failure = Failure::from(nobody);
        assert_eq!(failure.exit, Exit::Unreachable);
        assert_eq!(failure.message, "Rota cannot be reached at http://h: refused; is it running?");
        let stranger = Error::Unreadable { url: "http://h".to_owned(), why: "no JSON".to_owned() };
        assert_eq!(Failure::from(stranger).exit, Exit::Unreachable);
        assert_eq!(Failure::from(Error::Address { why: "odd" }).exit, Exit::Refused);
    }

    #[test]
    fn fields_at_fault_are_listed_one_per_line() {
        let field = |pointer: &str| FieldError { pointer: pointer.to_owned(), detail: "is wrong".to_owned() };
        let errors = vec![field("/input/payload/millis"), field("")];
        let failure = Failure::from(Error::Problem(Box::new(Problem { errors, ..problem(422) })));
        assert_eq!(failure.message, "Title:\n  /input/payload/millis: is wrong\n  is wrong");
    }

    #[test]
    fn whoever_is_not_signed_in_is_told_how_to() {
        let failure = Failure::from(Error::Problem(Box::new(problem(401))));
        assert_eq!(failure.message, "Title: what to do (`rota login` stores another key)");
    }
}
