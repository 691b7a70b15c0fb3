//! `rota domain`: the tenants of the installation.

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};
use comfy_table::Table;
use rota_client::Page;
use rota_model::domain::{Domain, DomainDocument, DomainSettings, MAX_WEIGHT};
use rota_model::keep::Keep;
use rota_model::time::UnixMillis;

use super::Context;
use crate::arguments;
use crate::exit::{Exit, Failure};
use crate::output::table::{self, text};
use crate::output::time::when;

const SET_EXAMPLES: &str = "\
What is older than it is kept goes within about an hour, in slices; jobs that wait or run always stay.

Examples:
  rota domain set default --weight 3
  rota domain set default --keep-jobs 30d --keep-logs 7d
  rota domain set default --keep-jobs forever";

/// What can be set of a domain.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct SettingsArgs {
    /// How large its share of the nodes is, where several domains have work: 1 to 1000
    #[arg(long, value_parser = weight())]
    weight: Option<u32>,
    /// How long jobs are kept once they have ended: hours or days such as 30d, or forever [default: forever]
    #[arg(long, value_name = "SPAN|forever", value_parser = arguments::keep)]
    keep_jobs: Option<Keep>,
    /// How long lines of the log about its jobs are kept [default: 30d]
    #[arg(long, value_name = "SPAN|forever", value_parser = arguments::keep)]
    keep_logs: Option<Keep>,
}

impl SettingsArgs {
    fn apply(self, settings: &mut DomainSettings) {
        settings.weight = self.weight.or(settings.weight);
        settings.keep_jobs = self.keep_jobs.or(settings.keep_jobs);
        settings.keep_logs = self.keep_logs.or(settings.keep_logs);
    }

    fn is_empty(self) -> bool {
        self.weight.is_none() && self.keep_jobs.is_none() && self.keep_logs.is_none()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum DomainCommand {
    /// Make a domain
    Create {
        /// Its name: lower case letters, digits and '-'
        #[arg(value_parser = arguments::domain)]
        name: Domain,
        #[command(flatten)]
        settings: SettingsArgs,
    },
    /// Change a domain; what is not named stays as it is
    #[command(after_help = SET_EXAMPLES, arg_required_else_help = true)]
    Set {
        #[arg(value_parser = arguments::domain)]
        name: Domain,
        #[command(flatten)]
        settings: SettingsArgs,
    },
    /// List the domains you may enter
    List,
}

pub(crate) async fn run(context: &Context, command: DomainCommand) -> Result<(), Failure> {
    let client = context.client()?;
    let now = context.now();
    match command {
        DomainCommand::Create { name, settings } => {
            let mut wanted = DomainSettings::default();
            settings.apply(&mut wanted);
            let made = client.create_domain(&name, &wanted).await?;
            context.out.document(&made, |made| domains_table(std::slice::from_ref(made), now))
        }
        DomainCommand::Set { settings, .. } if settings.is_empty() => {
            let message = "say what to change: --weight, --keep-jobs or --keep-logs";
            Err(Failure::new(Exit::Refused, message))
        }
        DomainCommand::Set { name, settings } => {
            let set = client.change_domain(&name, |current| settings.apply(current)).await?;
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
        [
            text(&domain.name),
            text(domain.weight.unwrap_or(1)),
            text(domain.keep_jobs.unwrap_or(Keep::Forever)),
            domain.keep_logs.map_or_else(|| text("30d"), text),
            text(when(domain.created.into(), now)),
        ]
    });
    table::table(["name", "weight", "keeps jobs", "keeps logs", "created"], rows)
}

fn weight() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=u64::from(MAX_WEIGHT))
}
