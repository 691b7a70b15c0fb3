//! What a person sees when Rota has started.

use std::path::PathBuf;

use rota_store_sqlite::durability::Durability;

use crate::config::Config;
use crate::first_start::FirstKey;
use crate::output::time;
use crate::stores::StoreAt;

pub(crate) struct Facts<'a> {
    pub(crate) address: &'a str,
    pub(crate) config: &'a Config,
    pub(crate) code: &'a str,
    pub(crate) first_key: &'a Option<FirstKey>,
    pub(crate) kept: &'a Kept,
}

/// Where the command line finds a key for this address.
pub(crate) enum Kept {
    /// It was put there just now.
    In(PathBuf),
    /// It is there from before.
    Before,
    Nowhere,
}

pub(crate) fn text(facts: &Facts<'_>) -> String {
    let Facts { address, config, code, first_key, kept } = facts;
    let mut lines = vec![format!("Rota {} is up.", env!("CARGO_PKG_VERSION")), String::new()];
    if config.is_open() {
        lines.extend([
            format!("  page   {address}/#signin={code}"),
            "         (this address signs a browser in, once)".to_owned(),
            format!("  API    {address}/api/v1"),
        ]);
    }
    lines.push(format!("  data   {}", config.data.display()));
    if config.store != StoreAt::Folder(config.data.clone()) {
        lines.push(format!("  store  {}", config.store));
    }
    match (first_key, kept) {
        (Some(first), kept) => lines.extend(key_lines(first, kept)),
        (None, Kept::Nowhere) => {
            let recover = match config.store {
                StoreAt::Folder(_) => "`rota key recover`",
                StoreAt::Postgres(_) => "`rota key recover --store URL`",
            };
            lines.push(format!("  key    none is kept for the command line: `rota login`, or {recover}"));
        }
        (None, _) => {}
    }
    if config.is_open() && !config.listen.ip().is_loopback() {
        lines.push(format!("  note   {} is open to the network, and not encrypted", config.listen));
    }
    if let Durability::Within(span) = config.durability {
        let span = time::span(span);
        lines.push(format!(
            "  note   what is acknowledged is on disk within {span}: a loss of power may take it"
        ));
    }
    lines.push(String::new());
    if config.is_open() {
        lines.push("Try:  rota job submit wait --payload '{\"millis\": 200}' --wait".to_owned());
    }
    lines.push("Ctrl-C stops it.".to_owned());
    lines.join("\n")
}

fn key_lines(first: &FirstKey, kept: &Kept) -> Vec<String> {
    let mut lines = Vec::new();
    if first.given {
        lines.push("  key    the one in ROTA_BOOTSTRAP_KEY".to_owned());
    } else {
        lines.push(format!("  key    {}", first.key));
        lines.push("         (the administrator's API key; it is not shown again)".to_owned());
    }
    if let Kept::In(path) = kept {
        lines.push(format!("         (kept for the command line in {})", path.display()));
    }
    lines
}
