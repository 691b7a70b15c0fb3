//! What happens once in the life of an installation, at the first node that serves people: the first domain, the first
//! administrator and its key, and a first job to look at.

use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::sync::Arc;

use rota_engine::desk::JobDesk;
use rota_engine::surroundings::Surroundings;
use rota_model::domain::Domain;
use rota_model::ids::NodeId;
use rota_model::job::NewJob;
use rota_model::settings::Settings;
use rota_model::user::{KeyHash, check_given_key, new_key};
use rota_store::{Store, settings};
use rota_web::accounts::Accounts;
use serde_json::json;

use crate::exit::{Exit, Failure};

const KEY_VARIABLE: &str = "ROTA_BOOTSTRAP_KEY";

/// The key of the first administrator, as long as it is known: at the first start.
pub(crate) struct FirstKey {
    pub(crate) key: String,
    /// Whether whoever started us knows it already.
    pub(crate) given: bool,
}

/// The key that the first administrator is going to have; none if it was made before.
pub(crate) async fn key(
    settings: &Settings,
    accounts: &Accounts,
    surroundings: &Surroundings,
) -> Result<Option<FirstKey>, Failure> {
    if settings.bootstrapped || accounts.has_users().await? {
        return Ok(None);
    }
    let first = match std::env::var(KEY_VARIABLE) {
        Ok(key) => FirstKey { key, given: true },
        Err(_) => FirstKey { key: new_key(&surroundings.random_bytes()), given: false },
    };
    if let Err(invalid) = check_given_key(&first.key) {
        let why: Vec<String> = invalid.0.into_iter().map(|fault| fault.detail).collect();
        return Err(Failure::new(Exit::Refused, format!("{KEY_VARIABLE} is refused: {}", why.join("; "))));
    }
    Ok(Some(first))
}

/// Makes the first job, then the first administrator: a start that is cut short in between is a first start again. The
/// key was kept for the command line before, and is stored only as its hash. Says whether it is good: of nodes that start
/// together for the first time, one makes the administrator.
pub(crate) async fn run(
    store: &Arc<dyn Store>,
    accounts: &Accounts,
    desk: &JobDesk,
    first: &FirstKey,
) -> Result<bool, Failure> {
    job(desk).await?;
    let made = accounts.bootstrap(&first.key).await?;
    settings::mark_bootstrapped(Arc::clone(store)).await?;
    // The others may have been given the same.
    Ok(made || accounts.authenticate(&KeyHash::of(&first.key)).await?.is_some())
}

/// Something to see in the page and in the list from the first minute on.
async fn job(desk: &JobDesk) -> Result<(), Failure> {
    let mut first = NewJob::new("first job", "wait", json!({"millis": 500}));
    first.idempotency_key = Some("first job".to_owned());
    let submitted = desk.submit(&Domain::default(), first).await;
    submitted.map(|_| ()).map_err(|error| Failure::new(Exit::Unreachable, error.to_string()))
}

/// The id of the node that lives in this folder: made once, kept beside the store.
pub(crate) fn node_id(folder: &Path, surroundings: &Surroundings) -> Result<NodeId, Failure> {
    let path = folder.join("node-id");
    let failed = |why: &str| Failure::new(Exit::Unreachable, format!("{} {why}", path.display()));
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            return text.trim().parse().map_err(|_| failed("holds no node id: remove it to get a new one"));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(&format!("cannot be read: {error}"))),
    }
    let id = NodeId::rising(surroundings.now(), &surroundings.randomness());
    write_whole(&path, &format!("{id}\n")).map_err(|error| failed(&format!("cannot be written: {error}")))?;
    Ok(id)
}

/// The file is there with its whole content, or it is not there. Nobody else writes in the folder: it is ours.
fn write_whole(path: &Path, content: &str) -> std::io::Result<()> {
    let new = path.with_extension("new");
    let mut file = std::fs::File::create(&new)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(new, path)
}
