//! A change of a part of a document that is set as a whole: read it, change what one wants to change, and write it if nobody else did
//! meanwhile.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Client, Error};

/// How often a change is tried when others change the same document.
const MAX_TRIES: u32 = 5;

impl Client {
    /// Writes what `changed` makes of the document at an address. If somebody else changes it at the same moment, the change is
    /// made anew on what they left.
    pub(crate) async fn change<T: DeserializeOwned, S: Serialize>(
        &self,
        parts: &[&str],
        changed: impl Fn(&T) -> S,
    ) -> Result<T, Error> {
        let mut tries_left = MAX_TRIES;
        loop {
            let (document, version): (T, _) = self.get(parts).versioned().await?;
            let call = self.put(parts).body(&changed(&document));
            let call = match &version {
                Some(version) => call.header("If-Match", version),
                None => call,
            };
            tries_left -= 1;
            match call.document().await {
                Err(error) if error.status() == Some(412) && tries_left > 0 => {}
                answered => return answered,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responder::{Answer, answer};
    use serde_json::json;
    use std::time::Duration;
    use tokio::time::timeout;

    const PATIENCE: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_change_is_made_anew_on_what_others_left() {
        let alice = |name: &str| json!({"id": "local:alice", "display_name": name}).to_string();
        let read = |name: &str, version| Answer::versioned(200, alice(name), version);
        let refused = Answer::json(412, "{}");
        let answers = vec![read("a", "1"), refused, read("b", "2"), read("b", "3")];
        let (url, asked) = answer(answers).await;
        let client = Client::new(&url, "rota_key").unwrap();
        let id = "local:alice".parse().unwrap();
        client.change_user(&id, |settings| settings.installation_admin = true).await.unwrap();
        let asked = asked.await.unwrap();
        assert!(
            asked[1].contains("if-match: \"1\"\r\n") && asked[3].contains("if-match: \"2\"\r\n"),
            "{asked:?}"
        );
        let expected = r#"{"domains":{},"installation_admin":true,"display_name":"b"}"#;
        assert!(asked[3].starts_with("PUT /api/v1/users/local:alice HTTP") && asked[3].ends_with(expected));
    }
    #[tokio::test]
    async fn who_is_always_overtaken_gives_up() {
        let domain = json!({"name": "red", "created": "2026-01-01T00:00:00Z"}).to_string();
        let round = |_| [Answer::versioned(200, domain.clone(), "1"), Answer::json(412, "{}")];
        let (url, asked) = answer((0..MAX_TRIES).flat_map(round).collect()).await;
        let client = Client::new(&url, "rota_key").unwrap();
        let red = "red".parse().unwrap();
        let error = client.change_domain(&red, |settings| settings.weight = Some(2)).await.unwrap_err();
        assert_eq!(error.status(), Some(412));
        let asked = timeout(PATIENCE, asked).await.expect("it was tried as often as it may be").unwrap();
        assert_eq!(asked.len(), 10);
        assert!(
            asked[9].starts_with("PUT /api/v1/domains/red HTTP") && asked[9].ends_with(r#"{"weight":2}"#)
        );
    }
}
