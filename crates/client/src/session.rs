//! Who asks, as Rota sees it.

use rota_model::Extra;
use rota_model::domain::Domain;
use rota_model::user::{Role, UserId};
use serde::{Deserialize, Serialize};

use crate::{Client, Error};

/// Whose key this is and what it is good for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionInfo {
    pub user: UserId,
    #[serde(default)]
    pub installation_admin: bool,
    #[serde(default)]
    pub domains: Vec<DomainRole>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A domain that may be entered, and the role in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DomainRole {
    pub name: Domain,
    pub role: Role,
}

impl Client {
    pub async fn session(&self) -> Result<SessionInfo, Error> {
        self.get(&["api", "v1", "session"]).document().await
    }
}
