//! Users as they are asked for and shown over HTTP: the same types for whoever answers and whoever asks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Extra;
use crate::domain::Domain;
use crate::user::{Role, User, UserId, UserSettings};

/// A user as others may see it: without anything of its keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UserView {
    pub id: UserId,
    /// The domains the user may enter, with the role in each.
    #[serde(default)]
    #[schema(value_type = std::collections::HashMap<String, Role>)]
    pub domains: BTreeMap<Domain, Role>,
    /// Whether the user administers the whole installation, and with it every domain.
    #[serde(default)]
    pub installation_admin: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub created: Option<jiff::Timestamp>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

impl From<User> for UserView {
    fn from(user: User) -> Self {
        let User { id, domains, installation_admin, display_name, email, created, .. } = user;
        Self { id, domains, installation_admin, display_name, email, created, extra: Extra::new() }
    }
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

/// A user to be made. The settings are spelled out: flattened ones would let unknown names pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    pub id: UserId,
    #[serde(default)]
    #[schema(value_type = std::collections::HashMap<String, Role>)]
    pub domains: BTreeMap<Domain, Role>,
    #[serde(default)]
    pub installation_admin: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
}

impl NewUser {
    pub fn new(id: UserId, settings: UserSettings) -> Self {
        let UserSettings { domains, installation_admin, display_name, email } = settings;
        Self { id, domains, installation_admin, display_name, email }
    }

    pub fn into_parts(self) -> (UserId, UserSettings) {
        let Self { id, domains, installation_admin, display_name, email } = self;
        (id, UserSettings { domains, installation_admin, display_name, email })
    }
}

/// Who is signed in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Session {
    pub user: UserId,
    #[serde(default)]
    pub installation_admin: bool,
    #[serde(default)]
    pub domains: Vec<DomainRole>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// A domain that may be entered, and the role in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DomainRole {
    #[schema(value_type = String)]
    pub name: Domain,
    pub role: Role,
}
