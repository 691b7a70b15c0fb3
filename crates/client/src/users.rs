//! Users: people and programs, and what they may do.

use std::collections::BTreeMap;

use rota_model::Extra;
use rota_model::domain::Domain;
use rota_model::user::{Role, UserId, UserSettings};
use serde::{Deserialize, Serialize};

use crate::{Client, Error};

/// How often a change is tried when others change the same user.
const MAX_TRIES: u32 = 5;

/// A user as Rota shows it: without anything of the keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserView {
    pub id: UserId,
    #[serde(default)]
    pub domains: BTreeMap<Domain, Role>,
    #[serde(default)]
    pub installation_admin: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<jiff::Timestamp>,
    #[serde(flatten)]
    pub extra: Extra,
}

impl UserView {
    /// What can be changed about the user, as it is now.
    pub fn settings(&self) -> UserSettings {
        UserSettings {
            domains: self.domains.clone(),
            installation_admin: self.installation_admin,
            display_name: self.display_name.clone(),
            email: self.email.clone(),
        }
    }
}

#[derive(Serialize)]
struct NewUser<'a> {
    id: &'a UserId,
    #[serde(flatten)]
    settings: &'a UserSettings,
}

impl Client {
    pub async fn users(&self) -> Result<Vec<UserView>, Error> {
        self.all(&["api", "v1", "users"]).await
    }

    pub async fn user(&self, id: &UserId) -> Result<UserView, Error> {
        self.get(&["api", "v1", "users", id.as_str()]).document().await
    }

    /// Makes a user, who has no key yet; status 409 if there is one of that id.
    pub async fn create_user(&self, id: &UserId, settings: &UserSettings) -> Result<UserView, Error> {
        self.post(&["api", "v1", "users"]).body(&NewUser { id, settings }).document().await
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

    #[test]
    fn a_new_user_is_sent_flat() {
        let id = "local:alice".parse().unwrap();
        let domains = [(Domain::default(), Role::Operator)].into();
        let settings = UserSettings { domains, ..UserSettings::default() };
        let sent = serde_json::to_value(NewUser { id: &id, settings: &settings }).unwrap();
        let expected =
            json!({"id": "local:alice", "domains": {"default": "operator"}, "installation_admin": false});
        assert_eq!(sent, expected);
    }
}
