//! What happens once in the life of an installation: the first domain, the first administrator and its key, and a
//! first job to look at.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use rota_engine::desk::JobDesk;
use rota_engine::surroundings::Surroundings;
use rota_model::domain::Domain;
use rota_model::ids::NodeId;
use rota_model::job::NewJob;
use rota_model::user::{KEY_PREFIX, check_given_key};
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

/// Makes the first administrator, unless there is one. The key is stored only as its hash.
pub(crate) async fn administrator(
    accounts: &Accounts,
    surroundings: &Surroundings,
) -> Result<Option<FirstKey>, Failure> {
    if accounts.has_users().await? {
        return Ok(None);
    }
    let first = match std::env::var(KEY_VARIABLE) {
        Ok(key) => FirstKey { key, given: true },
        Err(_) => FirstKey { key: new_key(surroundings), given: false },
    };
    if let Err(invalid) = check_given_key(&first.key) {
        let why: Vec<String> = invalid.0.into_iter().map(|fault| fault.detail).collect();
        return Err(Failure::new(Exit::Refused, format!("{KEY_VARIABLE} is refused: {}", why.join("; "))));
    }
    Ok(accounts.bootstrap(&first.key).await?.then_some(first))
}

fn new_key(surroundings: &Surroundings) -> String {
    let bytes = surroundings.random_bytes::<32>();
    bytes.iter().fold(KEY_PREFIX.to_owned(), |key, byte| key + &format!("{byte:02x}"))
}

/// Something to see in the page and in the list from the first minute on.
pub(crate) async fn job(desk: &JobDesk) -> Result<(), Failure> {
    let first = NewJob::new("first job", "wait", json!({"millis": 500}));
    let key = Some("first job".to_owned());
    let submitted = desk.submit(&Domain::default(), first, key).await;
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

/// The file is there with its whole content, or it is not there.
fn write_whole(path: &Path, content: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map(|_| ()).map_err(|error| error.error)
}
