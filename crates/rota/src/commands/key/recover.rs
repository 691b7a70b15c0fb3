//! `rota key recover`: the way back in for an administrator who lost the last key. Whoever can write to the store owns what
//! is in it, so nothing is given away; only a Rota that is stopped lets go of its folder, while those on a PostgreSQL go on.

use std::path::Path;
use std::sync::Arc;

use rota_model::user::{NewKey, UserId};
use rota_store::Store;
use rota_store_postgres::PostgresStore;
use rota_store_sqlite::SqliteStore;
use rota_store_sqlite::holder::Holder;
use rota_web::accounts::Accounts;
use serde_json::json;

use crate::commands::{Context, store};
use crate::exit::{Exit, Failure};
use crate::stores::StoreAt;

pub(crate) async fn run(context: &Context, at: &StoreAt) -> Result<(), Failure> {
    let nobody = || Failure::new(Exit::NotFound, format!("there is no administrator in {at}"));
    let store: Arc<dyn Store> = match at {
        StoreAt::Folder(folder) => Arc::new(open_folder(folder)?),
        // Nothing is made where nothing is.
        StoreAt::Postgres(url) => {
            Arc::new(PostgresStore::open_as_it_is(url.as_str()).await?.ok_or_else(nobody)?)
        }
    };
    let accounts = Accounts::new(&store, context.surroundings.clone());
    let new = NewKey { name: "recovered".to_owned(), ..NewKey::default() };
    let made = accounts.create_key(&UserId::first_administrator(), new).await;
    let made = made.map_err(|error| Failure::new(Exit::Unreachable, error.to_string()))?;
    let (key, info) = made.ok_or_else(nobody)?;
    context.out.text(&key, &json!({"key": key, "info": info}))?;
    context.out.note(
        "This is a new key of the administrator. It is not shown again; `rota login` keeps it for you.",
    );
    Ok(())
}

fn open_folder(folder: &Path) -> Result<SqliteStore, Failure> {
    store::must_be_in(folder)?;
    let holder = Holder::take(folder, &format!("rota key recover with process id {}", std::process::id()))?;
    Ok(SqliteStore::open(folder, holder)?)
}
