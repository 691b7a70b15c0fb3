//! `rota key recover`: the way back in for an administrator who lost the last key. Whoever can write the folder owns what
//! is in it, so nothing is given away; and only a Rota that is stopped lets go of its folder.

use std::path::Path;
use std::sync::Arc;

use rota_model::user::{NewKey, UserId};
use rota_store::Store;
use rota_store_sqlite::SqliteStore;
use rota_store_sqlite::holder::Holder;
use rota_web::accounts::Accounts;
use serde_json::json;

use crate::commands::{Context, store};
use crate::exit::{Exit, Failure};

pub(crate) async fn run(context: &Context, data: &Path) -> Result<(), Failure> {
    store::must_be_in(data)?;
    let holder = Holder::take(data, &format!("rota key recover with process id {}", std::process::id()))?;
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(data, holder)?);
    let accounts = Accounts::new(&store, context.surroundings.clone());
    let new = NewKey { name: "recovered".to_owned(), ..NewKey::default() };
    let made = accounts.create_key(&UserId::first_administrator(), new).await;
    let made = made.map_err(|error| Failure::new(Exit::Unreachable, error.to_string()))?;
    let (key, info) = made.ok_or_else(|| {
        Failure::new(Exit::NotFound, format!("there is no administrator in the folder {}", data.display()))
    })?;
    context.out.text(&key, &json!({"key": key, "info": info}))?;
    context.out.note(
        "This is a new key of the administrator. It is not shown again; `rota login` keeps it for you.",
    );
    Ok(())
}
