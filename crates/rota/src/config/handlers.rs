//! What handlers that reach out of Rota may do: the tables `[http]` and `[exec]` of the file. A flag would be too easily given for what
//! opens a network, so the file alone says it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rota_handlers::exec::ExecSettings;
use rota_handlers::http::{HttpSettings, Secret};
use serde::Deserialize;

/// More is a loop.
const MAX_REDIRECTS: u8 = 20;
pub(super) const HTTP_KEYS: [&str; 4] =
    ["allow_private", "allow_hosts", "follow_redirects", "signing_secret_file"];

pub(super) const EXEC_KEYS: [&str; 1] = ["programs"];

/// Without programs, there is no such type.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ExecTable {
    #[serde(default)]
    programs: BTreeMap<String, PathBuf>,
}

impl ExecTable {
    pub(super) fn settings(self) -> Result<ExecSettings, String> {
        ExecSettings::new(self.programs).map_err(|error| format!("exec.programs: {error}"))
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct HttpTable {
    #[serde(default)]
    allow_private: bool,
    #[serde(default)]
    allow_hosts: Vec<String>,
    #[serde(default)]
    follow_redirects: u8,
    signing_secret_file: Option<PathBuf>,
}

impl HttpTable {
    /// Checked, with the secret read; or what is wrong with it.
    pub(super) fn settings(self) -> Result<HttpSettings, String> {
        if self.follow_redirects > MAX_REDIRECTS {
            let told = self.follow_redirects;
            return Err(format!("http.follow_redirects must be from 0 to {MAX_REDIRECTS}; it is {told}"));
        }
        let hosts = self.allow_hosts.iter().map(|host| host.parse());
        let allow_hosts =
            hosts.collect::<Result<_, _>>().map_err(|error| format!("http.allow_hosts: {error}"))?;
        Ok(HttpSettings {
            allow_private: self.allow_private,
            allow_hosts,
            follow_redirects: self.follow_redirects,
            signing_secret: self.signing_secret_file.as_deref().map(secret).transpose()?,
        })
    }
}

fn secret(file: &Path) -> Result<Secret, String> {
    let told = |why: String| format!("http.signing_secret_file: {}: {why}", file.display());
    let content = std::fs::read(file).map_err(|error| told(format!("cannot be read: {error}")))?;
    Secret::new(&content).map_err(|error| told(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<HttpSettings, String> {
        toml::from_str::<HttpTable>(text).map_err(|error| error.message().to_owned())?.settings()
    }

    #[test]
    fn nothing_is_open_unless_it_is_said() {
        assert_eq!(settings("").unwrap(), HttpSettings::default());
        let some =
            settings("allow_hosts = [\"intranet.example\", \"10.0.0.0/8\"]\nfollow_redirects = 3\n").unwrap();
        assert_eq!((some.allow_hosts.len(), some.follow_redirects, some.allow_private), (2, 3, false));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (text, words) in [
            ("allow_hosts = [\"*.example\"]", "http.allow_hosts: '*.example'"),
            ("follow_redirects = 21", "from 0 to 20"),
            ("signing_secret_file = \"no/such/file\"", "no/such/file: cannot be read"),
        ] {
            let why = settings(text).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "short\n").unwrap();
        let why = settings(&format!("signing_secret_file = {file:?}")).unwrap_err();
        assert!(why.contains("at least 16 bytes") && !why.contains("short"), "{why}");
        std::fs::write(&file, "long enough for a key\n").unwrap();
        assert!(settings(&format!("signing_secret_file = {file:?}")).unwrap().signing_secret.is_some());
    }
}
