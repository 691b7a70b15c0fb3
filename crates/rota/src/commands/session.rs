//! `rota login`, `rota whoami`, `rota version`: who asks whom.

use std::io::{self, IsTerminal as _};

use comfy_table::Table;
use rota_client::Client;
use rota_model::secret::Secret;
use rota_model::user::Session;
use rota_model::user::check_given_key;
use serde_json::json;

use super::Context;
use crate::exit::Failure;
use crate::output::table::{self, text};
use crate::{connection, credentials, output};

pub(crate) const LOGIN_EXAMPLES: &str = "\
Examples:
  rota login --url http://rota.example:7682
  rota login < key.txt";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Stores a key once Rota has said whose it is.
pub(crate) async fn login(context: &Context) -> Result<(), Failure> {
    let url = connection::url(context.url.as_deref())?;
    let key = read_key(&url)?;
    let client = Client::new(&url, key.expose())?;
    let session = client.session().await?;
    let path = credentials::store(&url, key.expose())?;
    let kept = format!("Signed in at {url} as {}; the key is kept in {}.", session.user, path.display());
    context.out.note(&kept);
    context.out.document(&session, |session| session_listing(session, &url))
}

pub(crate) async fn whoami(context: &Context) -> Result<(), Failure> {
    let client = context.client()?;
    let session = client.session().await?;
    context.out.document(&session, |session| session_listing(session, &client.url()))
}

pub(crate) fn version(context: &Context) -> Result<(), Failure> {
    let zones = rota_calendar::zone::data_version();
    let text = format!("rota {VERSION}, time zone data {zones}");
    context.out.text(&text, &json!({"version": VERSION, "zoneDataVersion": zones}))
}

/// From a terminal without showing it, otherwise the first line.
fn read_key(url: &str) -> Result<Secret, Failure> {
    let cannot = |error: io::Error| Failure::refused(format!("the key cannot be read: {error}"));
    let key = if io::stdin().is_terminal() {
        output::prompt(&format!("API key for {url}: "));
        rpassword::read_password().map_err(cannot)?
    } else {
        first_line(io::stdin().lock()).map_err(cannot)?
    };
    let key = Secret::new(key.trim().to_owned());
    check_given_key(key.expose())?;
    Ok(key)
}

fn first_line(mut input: impl io::BufRead) -> io::Result<String> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    Ok(line)
}

fn session_listing(session: &Session, url: &str) -> Table {
    let domains: Vec<_> =
        session.domains.iter().map(|domain| format!("{} ({})", domain.name, domain.role.as_str())).collect();
    let mut rows = vec![("user", text(&session.user)), ("at", text(url))];
    if session.installation_admin {
        rows.push(("role", text("administrator of the installation")));
    }
    rows.push(("domains", text(if domains.is_empty() { "-".to_owned() } else { domains.join("\n") })));
    table::listing(rows)
}
