//! The keys of this user, one per Rota, and which Rota is meant when none is named.
//!
//! They stand in `rota/credentials.toml` below the platform's configuration folder, readable by this user alone. The
//! file is replaced in one step: whoever reads it finds the old or the new one, never half of either.
//!
//! ```toml
//! current = "http://127.0.0.1:7682"
//!
//! [servers."http://127.0.0.1:7682"]
//! api_key = "rota_…"
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rota_client::Address;
use rota_model::secret::Secret;
use serde::{Deserialize, Serialize, Serializer};

use crate::exit::{Exit, Failure};

#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Credentials {
    /// The address that is meant when none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(default)]
    servers: BTreeMap<String, Server>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Server {
    #[serde(serialize_with = "in_clear")]
    api_key: Secret,
}

/// This file is where a key is kept; everywhere else a [`Secret`] cannot be written.
fn in_clear<S: Serializer>(key: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(key.expose())
}

impl Credentials {
    pub(crate) fn key_of(&self, url: &str) -> Option<&Secret> {
        self.servers.get(&spelled(url)).map(|server| &server.api_key)
    }
}

/// One spelling per address; what is none is left as it is, and simply not found.
fn spelled(url: &str) -> String {
    url.parse::<Address>().map_or_else(|_| url.to_owned(), |address| address.to_string())
}

/// Everything that is stored; nothing if there is no file.
pub(crate) fn load() -> Result<Credentials, Failure> {
    path().map_or_else(|_| Ok(Credentials::default()), |path| load_from(&path))
}

/// Keeps the key of a Rota, from now on the one that is meant when none is named, and says where it is kept.
pub(crate) fn store(url: &str, key: &str) -> Result<PathBuf, Failure> {
    let path = path()?;
    change(&path, |stored| {
        stored.servers.insert(spelled(url), Server { api_key: Secret::new(key.to_owned()) });
        stored.current = Some(spelled(url));
    })?;
    Ok(path)
}

/// Keeps no key of this Rota any more.
pub(crate) fn forget(url: &str) -> Result<(), Failure> {
    change(&path()?, |stored| drop(stored.servers.remove(&spelled(url))))
}

/// Says which Rota is meant when none is named.
pub(crate) fn set_current(url: &str) -> Result<(), Failure> {
    change(&path()?, |stored| stored.current = Some(spelled(url)))
}

fn path() -> Result<PathBuf, Failure> {
    let folder = dirs::config_dir();
    let folder = folder.ok_or_else(|| {
        Failure::new(
            Exit::Failed,
            "there is no configuration folder to keep a key in: set HOME or XDG_CONFIG_HOME",
        )
    })?;
    Ok(folder.join("rota").join("credentials.toml"))
}

fn load_from(path: &Path) -> Result<Credentials, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Credentials::default()),
        Err(error) => return Err(fault(path, "cannot be read", &error.to_string())),
    };
    // The whole error would quote the line, and with it a key.
    toml::from_str(&text).map_err(|error| fault(path, "cannot be understood", error.message()))
}

fn change(path: &Path, change: impl FnOnce(&mut Credentials)) -> Result<(), Failure> {
    let mut stored = load_from(path)?;
    change(&mut stored);
    let text =
        toml::to_string(&stored).map_err(|error| fault(path, "cannot be written", &error.to_string()))?;
    replace(path, &text).map_err(|error| fault(path, "cannot be written", &error.to_string()))
}

/// A new file beside the old one, made for this user alone from the start, takes its place when it is complete.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(".credentials-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

fn fault(path: &Path, what: &str, why: &str) -> Failure {
    Failure::new(Exit::Failed, format!("{} {what}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(path: &Path, url: &str, key: &str) {
        let server = Server { api_key: Secret::new(key.to_owned()) };
        change(path, |stored| drop(stored.servers.insert(spelled(url), server))).unwrap();
    }

    fn key_in(path: &Path, url: &str) -> Option<String> {
        load_from(path).unwrap().key_of(url).map(|key| key.expose().to_owned())
    }

    #[test]
    fn what_was_kept_is_found_again_under_any_spelling() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rota").join("credentials.toml");
        assert!(load_from(&path).unwrap().current.is_none());
        keep(&path, "http://127.0.0.1:7682", "rota_one");
        keep(&path, "http://Two.example:80/", "rota_two");
        change(&path, |stored| stored.current = Some("http://two.example".to_owned())).unwrap();
        assert_eq!(key_in(&path, "http://127.0.0.1:7682/").as_deref(), Some("rota_one"));
        assert_eq!(key_in(&path, "http://two.example").as_deref(), Some("rota_two"));
        assert_eq!(key_in(&path, "http://three.example"), None);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("current = \"http://two.example\""), "{text}");
        assert!(text.contains("[servers.\"http://127.0.0.1:7682\"]\napi_key = \"rota_one\""), "{text}");
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_for_this_user_alone_even_if_it_was_not() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials.toml");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        keep(&path, "http://h", "rota_one");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_replaced_in_one_step_and_nothing_is_left_beside_it() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials.toml");
        keep(&path, "http://h", "rota_one");
        let before = fs::File::open(&path).unwrap();
        keep(&path, "http://h", "rota_two");
        // Who had opened the old file still reads the old one, whole.
        assert_ne!(before.metadata().unwrap().ino(), fs::metadata(&path).unwrap().ino());
        assert!(io::read_to_string(before).unwrap().contains("rota_one"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_broken_file_is_named_and_its_keys_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials.toml");
        fs::write(&path, "[servers.\"http://h\"]\napi_key = rota_topsecret\n").unwrap();
        let failure = load_from(&path).unwrap_err();
        assert!(failure.message.contains("credentials.toml cannot be understood"), "{}", failure.message);
        assert!(!failure.message.contains("topsecret"), "{}", failure.message);
        keep(&folder.path().join("other.toml"), "http://h", "rota_topsecret");
        assert!(
            !format!("{:?}", load_from(&folder.path().join("other.toml")).unwrap()).contains("topsecret")
        );
    }
}
