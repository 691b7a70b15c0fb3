//! Users: people and programs, and what they may do.

use rota_model::user::{NewUser, UserId, UserSettings, UserView};

use crate::{Client, Error};

/// How often a change is tried when others change the same user.
const MAX_TRIES: u32 = 5;

impl Client {
    pub async fn users(&self) -> Result<Vec<UserView>, Error> {
        self.all(&["api", "v1", "users"]).await
    }

    pub async fn user(&self, id: &UserId) -> Result<UserView, Error> {
        self.get(&["api", "v1", "users", id.as_str()]).document().await
    }

    /// Makes a user, who has no key yet; status 409 if there is one of that id.
    pub async fn create_user(&self, id: &UserId, settings: &UserSettings) -> Result<UserView, Error> {
        self.post(&["api", "v1", "users"]).body(&NewUser::new(id.clone(), settings.clone())).document().await
    }

    /// Replaces everything that can be set about a user.
    pub async fn set_user(&self, id: &UserId, settings: &UserSettings) -> Result<UserView, Error> {
        self.put(&["api", "v1", "users", id.as_str()]).body(settings).document().await
    }

    /// Changes some of what can be set about a user and keeps the rest. If somebody else changes the user at the same
    /// moment, the change is made anew on what they left.
    pub async fn change_user(
        &self,
        id: &UserId,
        change: impl Fn(&mut UserSettings),
    ) -> Result<UserView, Error> {
        let parts = ["api", "v1", "users", id.as_str()];
        let mut tries_left = MAX_TRIES;
        loop {
            let (user, version): (UserView, _) = self.get(&parts).versioned().await?;
            let mut settings = user.settings();
            change(&mut settings);
            let call = self.put(&parts).body(&settings);
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

    /// Deletes a user, and with it every key.
    pub async fn delete_user(&self, id: &UserId) -> Result<(), Error> {
        self.delete(&["api", "v1", "users", id.as_str()]).nothing().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responder::{Answer, answer};
    use serde_json::json;

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
}
