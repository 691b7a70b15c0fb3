//! Where files are kept (seed 001, `server-configuration`). Its secrets are stored sealed (promise 7).
//!
//! A password has no other way into the document than through [`crate::secret::SealingKey::seal`]: the fields are
//! [`Sealed`], clear text is refused on reading, and the address must not carry one either.

use serde::{Deserialize, Serialize};

use crate::Extra;
use crate::check::{Checker, Invalid, MAX_NAME_CHARS};
use crate::domain::Domain;
use crate::ids::ServerId;
use crate::secret::Sealed;

/// The length of the address of a server, in characters.
pub const MAX_URI_CHARS: usize = 2_000;
/// How long files may be kept, in days: a century.
pub const MAX_RETENTION_DAYS: u32 = 36_500;

/// A stored file server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ServerConfiguration {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username_at_file_server: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_at_file_server: Option<Sealed>,
    /// Such as `sftp://files.example.org/backups`.
    pub destination_uri: String,
    #[serde(rename = "serverName")]
    pub server_name: String,
    #[serde(rename = "serverId")]
    pub server_id: ServerId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_key: Option<Sealed>,
    /// In days, since the seed names no unit; files are kept for ever if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_period: Option<u32>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// The fields that are sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretField {
    PasswordAtFileServer,
    SshKey,
}

impl ServerConfiguration {
    /// What a secret of this document is bound to, so that it opens nowhere else.
    pub fn context(server: ServerId, field: SecretField) -> String {
        let name = match field {
            SecretField::PasswordAtFileServer => "password-at-file-server",
            SecretField::SshKey => "ssh-key",
        };
        format!("server-configuration/{server}/{name}")
    }

    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        let user = self.username_at_file_server.as_deref();
        check.optional_line("/username-at-file-server", user, 1..=MAX_NAME_CHARS);
        check.line("/serverName", &self.server_name, 1..=MAX_NAME_CHARS);
        check.line("/destination-uri", &self.destination_uri, 1..=MAX_URI_CHARS);
        match self.destination_uri.split_once("://") {
            Some((scheme, rest)) if is_scheme(scheme) && !rest.is_empty() => {
                if rest.split('/').next().is_some_and(|authority| authority.contains('@')) {
                    check.refuse(
                        "/destination-uri",
                        "must not carry a user or a password: they have fields of their own",
                    );
                }
            }
            _ => check
                .refuse("/destination-uri", "must be an address such as sftp://files.example.org/backups"),
        }
        if let Some(days) = self.retention_period {
            check.range("/retention-period", days, 1..=MAX_RETENTION_DAYS);
        }
        check.extra("", &self.extra);
        check.finish()
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn document(fields: &Value) -> Result<ServerConfiguration, serde_json::Error> {
        let mut document = json!({
            "serverId": ServerId::derived(&["s"]), "serverName": "files", "destination-uri": "sftp://files/backups"
        });
        document.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(document)
    }

    #[test]
    fn a_password_in_clear_is_not_read() {
        for field in ["password-at-file-server", "ssh-key"] {
            let error = document(&json!({field: "hunter2"})).unwrap_err().to_string();
            assert!(error.contains("must be sealed") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn an_address_carries_no_password() {
        assert_eq!(document(&json!({"retention-period": 30})).unwrap().check(), Ok(()));
        assert_eq!(document(&json!({"destination-uri": "file:///var/backups/a@b"})).unwrap().check(), Ok(()));
        for uri in ["sftp://me:hunter2@files/x", "files/backups", "sftp://", "S3 x://y"] {
            let refused =
                document(&json!({"destination-uri": uri})).unwrap().check().unwrap_err().to_string();
            assert!(refused.starts_with("/destination-uri") && !refused.contains("hunter2"), "{refused}");
        }
        assert!(document(&json!({"retention-period": 0})).unwrap().check().is_err());
    }
}
