//! What is measured stands on a store: the embedded one, or a PostgreSQL that this process starts. Both put on disk what they
//! acknowledge.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rota_store::Store;
use rota_store_postgres::PostgresStore;
use rota_store_sqlite::SqliteStore;
use rota_store_sqlite::durability::Durability;
use rota_store_sqlite::holder::Holder;
use rota_testkit::postgres::{Server, URL, fresh_in};
use tempfile::TempDir;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum On {
    /// The embedded store
    #[default]
    Sqlite,
    /// A private PostgreSQL with its default settings
    Postgres,
}

/// A store of its own, and the folder that it may need.
pub(crate) struct Ground {
    pub(crate) store: Arc<dyn Store>,
    folder: Option<TempDir>,
}

impl Ground {
    pub(crate) async fn new(on: On, durability: Durability) -> Self {
        match on {
            On::Sqlite => {
                let folder = tempfile::tempdir().unwrap();
                let holder = Holder::take(folder.path(), "a bench").unwrap();
                let store = SqliteStore::open_with(folder.path(), holder, durability).unwrap();
                Self::in_folder(Arc::new(store), folder)
            }
            On::Postgres => {
                let store = PostgresStore::open(&fresh()).await.unwrap();
                Self { store: Arc::new(store), folder: None }
            }
        }
    }

    pub(crate) fn in_folder(store: Arc<dyn Store>, folder: TempDir) -> Self {
        Self { store, folder: Some(folder) }
    }

    /// Where the embedded store is.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.as_ref().unwrap().path()
    }

    /// The folder of the embedded store, which nobody has open any more.
    pub(crate) fn closed(self) -> TempDir {
        drop(self.store);
        self.folder.unwrap()
    }
}

/// The address of an empty place in the PostgreSQL of this process, or in the one that a person named.
pub(crate) fn fresh() -> String {
    static SERVER: OnceLock<Server> = OnceLock::new();
    match std::env::var(URL) {
        Ok(url) => fresh_in(&url),
        Err(_) => SERVER.get_or_init(|| Server::start(true)).fresh(),
    }
}
