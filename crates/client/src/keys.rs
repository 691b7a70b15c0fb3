//! API keys of a user.

use rota_model::secret::Secret;
use rota_model::user::{KeyInfo, NewKey, UserId};
use serde::Deserialize;

use crate::{Client, Error};

/// A key right after it was made, which is the only time it is told.
#[derive(Clone, Debug, Deserialize)]
pub struct CreatedKey {
    pub key: Secret,
    pub info: KeyInfo,
}

impl Client {
    /// What is told about the keys of a user; never the keys.
    pub async fn keys(&self, user: &UserId) -> Result<Vec<KeyInfo>, Error> {
        self.all(&["api", "v1", "users", user.as_str(), "keys"]).await
    }

    pub async fn create_key(&self, user: &UserId, key: &NewKey) -> Result<CreatedKey, Error> {
        let call = self.post(&["api", "v1", "users", user.as_str(), "keys"]).body(key);
        call.document().await.map_err(hushed)
    }

    /// Ends a key: whoever holds it is not let in any more.
    pub async fn revoke_key(&self, user: &UserId, key_id: &str) -> Result<(), Error> {
        self.delete(&["api", "v1", "users", user.as_str(), "keys", key_id]).nothing().await
    }
}

/// An answer that cannot be read may still hold a key, and what is said of it would quote it.
fn hushed(error: Error) -> Error {
    match error {
        Error::Unreadable { url, .. } => {
            let why = "it made a key, but the answer has another form; revoke the key".to_owned();
            Error::Unreadable { url, why }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responder::{Answer, answer};

    #[tokio::test]
    async fn a_key_shows_in_no_error_and_no_debug_text() {
        let bare = Answer::json(201, r#""rota_topsecret""#);
        let whole = r#"{"key": "rota_topsecret", "info":
            {"id": "1", "name": "ci", "hint": "rota_…", "created": "2026-01-01T00:00:00Z"}}"#;
        let (url, _) = answer(vec![bare, Answer::json(201, whole)]).await;
        let client = Client::new(&url, "rota_mine").unwrap();
        let (user, new) =
            (UserId::first_administrator(), NewKey { name: "ci".to_owned(), ..NewKey::default() });
        let error = client.create_key(&user, &new).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("topsecret"), "{error:?}");
        let created = client.create_key(&user, &new).await.unwrap();
        assert_eq!(created.key.expose(), "rota_topsecret");
        let shown = format!("{created:?} {client:?}");
        assert!(!shown.contains("topsecret") && !shown.contains("rota_mine"), "{shown}");
    }
}
