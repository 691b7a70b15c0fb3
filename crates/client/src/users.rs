//! Users: people and programs, and what they may do.

use rota_model::user::{NewUser, UserId, UserSettings, UserView};

use crate::{Client, Error};

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
        let changed = |user: &UserView| {
            let mut settings = user.settings();
            change(&mut settings);
            settings
        };
        self.change(&["api", "v1", "users", id.as_str()], changed).await
    }

    /// Deletes a user, and with it every key.
    pub async fn delete_user(&self, id: &UserId) -> Result<(), Error> {
        self.delete(&["api", "v1", "users", id.as_str()]).nothing().await
    }
}
