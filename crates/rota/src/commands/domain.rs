//! `rota domain`: the tenants of the installation.

use clap::Subcommand;
use clap::builder::RangedU64ValueParser;
use comfy_table::Table;
use rota_client::Page;
use rota_model::domain::{Domain, DomainDocument, DomainSettings, MAX_WEIGHT};
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
        /// How large its share of the nodes is, where several domains have work: 1 to 1000
        #[arg(long, value_parser = weight())]
        weight: Option<u32>,
    },
    /// Change a domain
    Set {
        #[arg(value_parser = arguments::domain)]
        name: Domain,
        /// How large its share of the nodes is, where several domains have work: 1 to 1000
        #[arg(long, value_parser = weight())]
        weight: u32,
    },
    /// List the domains you may enter
    List,
}

pub(crate) async fn run(context: &Context, command: DomainCommand) -> Result<(), Failure> {
    let client = context.client()?;
    let now = context.now();
    match command {
        DomainCommand::Create { name, weight } => {
            let made = client.create_domain(&name, weight).await?;
            context.out.document(&made, |made| domains_table(std::slice::from_ref(made), now))
        }
        DomainCommand::Set { name, weight } => {
            let set = client.set_domain(&name, &DomainSettings { weight: Some(weight) }).await?;
            context.out.document(&set, |set| domains_table(std::slice::from_ref(set), now))
        }
        DomainCommand::List => {
            let page = Page { items: client.domains().await?, next: None };
            context.out.list(&page, |domains| domains_table(domains, now))
        }
    }
}

fn domains_table(domains: &[DomainDocument], now: UnixMillis) -> Table {
    let rows = domains.iter().map(|domain| {
        [text(&domain.name), text(domain.weight.unwrap_or(1)), text(when(domain.created.into(), now))]
    });
    table::table(["name", "weight", "created"], rows)
}

fn weight() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=u64::from(MAX_WEIGHT))
}
