//! Which store an address names, and how it is opened.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rota_store::{Store, StoreError};
use rota_store_postgres::PostgresStore;
use rota_store_sqlite::SqliteStore;
use rota_store_sqlite::durability::Durability;
use rota_store_sqlite::holder::{Holder, HolderError};
use url::Url;

use crate::config::Config;
use crate::exit::Failure;

/// Where documents are kept.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum StoreAt {
    /// The embedded store, in a folder.
    Folder(PathBuf),
    /// PostgreSQL, at an address that may hold a password.
    Postgres(Url),
}

impl StoreAt {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        if let Some(folder) = text.strip_prefix("sqlite:").filter(|folder| !folder.is_empty()) {
            return Ok(Self::Folder(folder.into()));
        }
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "postgres" | "postgresql"));
        // A password with / or # in it ends where it should not, and the rest of it would be taken for what may be shown.
        let url = url.filter(|url| url.fragment().is_none() && !url.path().contains('@'));
        // Without what was written: it may hold a password.
        let refused = || {
            Failure::refused(
                "the store must be sqlite:DIR or postgres://USER:PASSWORD@HOST/DATABASE, with %2F for / and %23 for # in a password"
                    .to_owned(),
            )
        };
        url.map(Self::Postgres).ok_or_else(refused)
    }

    /// The same for two addresses of the same store, as far as addresses can tell. It holds no password, and is not for people.
    pub(crate) fn identity(&self) -> String {
        match self {
            Self::Folder(folder) => {
                let whole = folder.canonicalize().or_else(|_| std::path::absolute(folder));
                format!("sqlite:{}", whole.as_ref().unwrap_or(folder).display())
            }
            Self::Postgres(url) => {
                let mut bare = url.clone();
                let _ = bare.set_password(None);
                let kept: Vec<_> = url.query_pairs().filter(|(name, _)| name != "password").collect();
                bare.query_pairs_mut().clear().extend_pairs(kept);
                bare.to_string()
            }
        }
    }

    /// Opens it, and makes what is not there. A folder is ours alone as long as it is open; `who` tells others about us.
    pub(crate) async fn open(&self, who: &str, durability: Durability) -> Result<Arc<dyn Store>, NotOpened> {
        Ok(match self {
            Self::Folder(folder) => {
                let holder = Holder::take(folder, who)?;
                Arc::new(SqliteStore::open_with(folder, holder, durability)?)
            }
            Self::Postgres(url) => Arc::new(PostgresStore::open(url.as_str()).await?),
        })
    }
}

/// Why a store could not be opened.
#[derive(Debug)]
pub(crate) enum NotOpened {
    Folder(HolderError),
    Store(StoreError),
}

impl From<HolderError> for NotOpened {
    fn from(error: HolderError) -> Self {
        Self::Folder(error)
    }
}

impl From<StoreError> for NotOpened {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<NotOpened> for Failure {
    fn from(error: NotOpened) -> Self {
        match error {
            NotOpened::Folder(error) => error.into(),
            NotOpened::Store(error) => error.into(),
        }
    }
}

/// As it may be shown to anybody.
impl fmt::Display for StoreAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "{}", folder.display()),
            Self::Postgres(url) => {
                let mut shown = url.clone();
                if shown.password().is_some() {
                    // An address that has a password can have another.
                    let _ = shown.set_password(Some("***"));
                }
                // Which schema is meant is a part of where it is.
                let options: Vec<_> = url.query_pairs().filter(|(name, _)| name == "options").collect();
                shown.set_query(None);
                if !options.is_empty() {
                    shown.query_pairs_mut().extend_pairs(options);
                }
                write!(f, "{shown}")
            }
        }
    }
}

impl fmt::Debug for StoreAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A store that is open, and what must live as long as the node on it: the lock on its folder.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) _identity: Option<Holder>,
}

/// Opens what was decided on. The folder with the identity of the node is ours alone, whichever store it uses.
pub(crate) async fn open(config: &Config, holder: Holder) -> Result<Opened, Failure> {
    Ok(match &config.store {
        StoreAt::Folder(folder) if *folder == config.data => {
            let store = SqliteStore::open_with(folder, holder, config.durability)?;
            Opened { store: Arc::new(store), _identity: None }
        }
        other => {
            let store = other.open("a Rota that keeps its store here", config.durability).await?;
            Opened { store, _identity: Some(holder) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_shown_to_nobody() {
        let store = StoreAt::parse("postgres://rota:secret@db.example:5432/rota?sslmode=require").unwrap();
        assert_eq!(store.to_string(), "postgres://rota:***@db.example:5432/rota");
        assert_eq!(format!("{store:?}"), store.to_string());
        let schema =
            StoreAt::parse("postgres://rota@db/rota?password=secret&options=-csearch_path%3Da").unwrap();
        assert_eq!(schema.to_string(), "postgres://rota@db/rota?options=-csearch_path%3Da");
        for wrong in [
            "postgre://rota:secret@db.example/rota",
            "postgres://rota:12/secret@db.example/rota",
            "postgres://rota:#secret@db.example/rota",
            "postgres://rota:?secret@db.example/rota",
        ] {
            let wrong = StoreAt::parse(wrong).map(|store| store.to_string()).map_err(|wrong| wrong.message);
            let shown = wrong.unwrap_or_else(|message| message);
            assert!(!shown.contains("secret"), "{shown}");
        }
    }

    #[test]
    fn a_store_is_the_same_under_another_password() {
        let identity = |url: &str| StoreAt::parse(url).unwrap().identity();
        let one = identity("postgres://rota:secret@db.example/rota?password=x&options=-csearch_path%3Da");
        assert_eq!(one, identity("postgres://rota@db.example/rota?options=-csearch_path%3Da"));
        assert_ne!(one, identity("postgres://rota@db.example/rota?options=-csearch_path%3Db"));
        assert!(!one.contains("secret"), "{one}");
        let folder = tempfile::tempdir().unwrap();
        let (path, dotted) = (folder.path().display(), folder.path().join("."));
        assert_eq!(identity(&format!("sqlite:{path}")), identity(&format!("sqlite:{}", dotted.display())));
    }

    #[test]
    fn a_store_is_named_by_its_scheme() {
        assert_eq!(StoreAt::parse("sqlite:./data").unwrap(), StoreAt::Folder("./data".into()));
        for wrong in ["", "sqlite:", "./data", "mysql://db/rota", "postgres"] {
            assert!(StoreAt::parse(wrong).is_err(), "{wrong}");
        }
    }
}
