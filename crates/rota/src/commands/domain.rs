//! `rota domain`: the tenants of the installation.

use clap::Subcommand;
use comfy_table::Table;
use rota_client::Page;
use rota_model::domain::{Domain, DomainDocument};
use rota_model::time::UnixMillis;

use super::Context;
use crate::arguments;
use crate::exit::Failure;
use crate::output::table::{self, text};
use crate::output::time::when;

#[derive(Debug, Subcommand)]
pub(crate) enum DomainCommand {
    /// Make a domain
    Create {
        /// Its name: lower case letters, digits and '-'
        #[arg(value_parser = arguments::domain)]
        name: Domain,
    },
    /// List the domains you may enter
    List,
}

pub(crate) async fn run(context: &Context, command: DomainCommand) -> Result<(), Failure> {
    let client = context.client()?;
    let now = context.now();
    match command {
        DomainCommand::Create { name } => {
            let made = client.create_domain(&name).await?;
            context.out.document(&made, |made| domains_table(std::slice::from_ref(made), now))
        }
        DomainCommand::List => {
            let page = Page { items: client.domains().await?, next: None };
            context.out.list(&page, |domains| domains_table(domains, now))
        }
    }
}

fn domains_table(domains: &[DomainDocument], now: UnixMillis) -> Table {
    let rows = domains.iter().map(|domain| [text(&domain.name), text(when(domain.created.into(), now))]);
    table::table(["name", "created"], rows)
}
