//! What a failure means to the caller: what this login may not do and what is wrong with the address is refused, since
//! repeating it changes nothing; everything else may pass.

use std::error::Error as _;

use rota_store::StoreError;
use rota_store::collection::{ALL, Collection};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;
use tokio_rustls::rustls;

use crate::session::said;

/// The refusal, if it is one: of rights, or of what the server cannot hold.
pub(crate) fn refused(what: &str, user: &str, error: &Error) -> Option<StoreError> {
    let unfit =
        error.code().is_some_and(|code| ["22", "54"].iter().any(|class| code.code().starts_with(class)));
    if unfit { Some(StoreError::refused(what, said(error))) } else { denied(what, user, error) }
}

fn denied(what: &str, user: &str, error: &Error) -> Option<StoreError> {
    error.code().filter(|code| **code == SqlState::INSUFFICIENT_PRIVILEGE)?;
    let said = said(error);
    let with = named_in(&said).map_or_else(String::new, |collection| format!(" with {}", collection.name));
    let why = format!(
        "{user} may not do this{with} ({said}); `rota store schema --grants` prints what each role may"
    );
    Some(StoreError::refused(what, why))
}

/// The collection whose table is named. Messages are translated, names are not; a name may end in another.
fn named_in(said: &str) -> Option<&'static Collection> {
    let is_named = |collection: &&Collection| {
        [".rows", ".words"].iter().any(|part| said.contains(&format!("{}{part}", collection.name)))
    };
    ALL.into_iter().filter(is_named).max_by_key(|collection| collection.name.len())
}

/// Why there is no connection.
pub(crate) enum NoConnection {
    Failed(Error),
    /// Nobody is there, or somebody who says nothing.
    Silence,
}

impl NoConnection {
    /// For a store that was open before: whatever is wrong may be put right again.
    pub(crate) fn later(self) -> StoreError {
        let why = match self {
            Self::Failed(error) => said(&error),
            Self::Silence => "no answer in time".to_owned(),
        };
        StoreError::unavailable("reach PostgreSQL", why)
    }

    /// For whoever gave us the address of this place.
    pub(crate) fn at_opening(self, place: &str) -> StoreError {
        let what = "open the store";
        let Self::Failed(error) = self else {
            let why = format!(
                "nobody answers at {place} in time: is that a PostgreSQL, and are host and port right?"
            );
            return StoreError::unavailable(what, why);
        };
        if let Some(code) = error.code() {
            return turned_away(code, place, &said(&error));
        }
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        match error.to_string().as_str() {
            "error connecting to server" => StoreError::unavailable(
                what,
                format!(
                    "PostgreSQL cannot be reached at {place} ({cause}): is it running, and are host and port right?"
                ),
            ),
            // Whoever is there said that it can do it, and then something else.
            "error performing TLS handshake"
                if !matches!(tls(&error), Some(rustls::Error::InvalidMessage(_))) =>
            {
                StoreError::refused(what, untrusted(&error, place))
            }
            "invalid configuration" | "authentication error" => StoreError::refused(
                what,
                format!("PostgreSQL at {place} wants what the address of the store does not give ({cause})"),
            ),
            _ => StoreError::unavailable(
                what,
                format!(
                    "whoever answers at {place} is no PostgreSQL, or breaks off ({}): are host and port right?",
                    said(&error)
                ),
            ),
        }
    }
}

/// A server that is there and lets nobody in by this address.
fn turned_away(code: &SqlState, place: &str, said: &str) -> StoreError {
    let what = "open the store";
    let code = code.code();
    let look = match code {
        "3D000" => "make the database, or name another in the address of the store",
        "42501" => "let somebody who may grant it",
        _ if code.starts_with("28") => "look at the user and the password in the address of the store",
        _ => return StoreError::unavailable(what, format!("PostgreSQL at {place} says: {said}")),
    };
    StoreError::refused(what, format!("PostgreSQL at {place} says: {said}; {look}"))
}

/// What went wrong in TLS itself, if anything did.
fn tls(error: &Error) -> Option<rustls::Error> {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    // An error of reading holds that of TLS without being caused by it.
    let inner = |cause: &(dyn std::error::Error + 'static)| {
        let io = cause.downcast_ref::<std::io::Error>()?.get_ref()?;
        io.downcast_ref::<rustls::Error>().cloned()
    };
    causes.filter_map(inner).next()
}

/// Why there is no secure connection, and what to do about it.
fn untrusted(error: &Error, place: &str) -> String {
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    match tls(error) {
        Some(rustls::Error::InvalidCertificate(_)) => format!(
            "the certificate of PostgreSQL at {place} is not trusted ({cause}): name the file of its authority as sslrootcert in the \
             address of the store, or do without TLS by sslmode=disable"
        ),
        _ => format!("no secure connection to PostgreSQL at {place} ({cause})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_is_known_by_its_table() {
        let of = |said| named_in(said).map(|collection| collection.name);
        assert_eq!(of("permission denied for table users.rows (42501)"), Some("users"));
        assert_eq!(of("keine Berechtigung für Tabelle jobs.words (42501)"), Some("jobs"));
        assert_eq!(of("permission denied for table unique-keys.rows (42501)"), Some("unique-keys"));
        assert_eq!(of("permission denied for table counts (42501)"), None);
    }
}
