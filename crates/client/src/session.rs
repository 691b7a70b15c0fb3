//! Who asks, as Rota sees it.

use rota_model::user::Session;

use crate::{Client, Error};

impl Client {
    /// Whose key this is and what it is good for.
    pub async fn session(&self) -> Result<Session, Error> {
        self.get(&["api", "v1", "session"]).document().await
    }
}
