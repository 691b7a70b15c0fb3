//! `rota key`: the API keys with which people and programs sign in.

mod recover;

use std::time::Duration;

use clap::{Args, Subcommand};
use comfy_table::{Cell, Table};
use rota_client::{Client, CreatedKey, Page};
use rota_model::domain::Domain;
use rota_model::time::UnixMillis;
use rota_model::user::{KeyInfo, NewKey, Role, UserId};
use serde_json::json;

use super::Context;
use crate::arguments;
use crate::config::FolderArgs;
use crate::exit::Failure;
use crate::output::table::{self, optional, short, text};
use crate::output::time::{age, when};
use crate::stores::StoreAt;

const CREATE_EXAMPLES: &str = "\
The key is printed once and cannot be shown again. With `--output table` it stands alone on the standard output.

Examples:
  rota key create laptop
  rota key create ci --limit-domain default --limit-role operator --expires-in 90d
  ROTA_API_KEY=$(rota key create ci --output table)";

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key and print it, once
    #[command(after_help = CREATE_EXAMPLES)]
    Create(CreateArgs),
    /// List what is known of the keys of a user; never the keys
    List {
        #[command(flatten)]
        of: Owner,
    },
    /// End a key at once
    Revoke {
        /// Id of the key, as `rota key list` shows it
        #[arg(value_name = "KEY_ID")]
        key_id: String,
        #[command(flatten)]
        of: Owner,
    },
    /// Make a new key for the administrator, when the last one is lost: of a stopped Rota, or in a PostgreSQL
    Recover {
        /// Store that the nodes share, as for `rota serve`; they may go on [default: the folder]
        #[arg(long, value_name = "URL", env = "ROTA_STORE", hide_env_values = true)]
        store: Option<String>,
        #[command(flatten)]
        of: FolderArgs,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Owner {
    /// Whose key [default: your own]
    #[arg(long, value_name = "ID", value_parser = arguments::user_id)]
    user: Option<UserId>,
}

#[derive(Args, Debug)]
pub(crate) struct CreateArgs {
    /// What the key is for, so that you recognise it later
    name: String,
    #[command(flatten)]
    of: Owner,
    /// Make it good for this domain alone
    #[arg(long, value_name = "DOMAIN", value_parser = arguments::domain)]
    limit_domain: Option<Domain>,
    /// Make it good for no more than this role
    #[arg(long, value_name = "ROLE", value_parser = arguments::role())]
    limit_role: Option<Role>,
    /// Let it end after this time, such as 30d
    #[arg(long, value_name = "SPAN", value_parser = arguments::span)]
    expires_in: Option<Duration>,
}

pub(crate) async fn run(context: &Context, command: KeyCommand) -> Result<(), Failure> {
    match command {
        KeyCommand::Recover { store: Some(store), .. } => {
            recover::run(context, &StoreAt::parse(&store)?).await
        }
        KeyCommand::Recover { store: None, of } => {
            recover::run(context, &StoreAt::Folder(of.folder()?)).await
        }
        KeyCommand::Create(args) => create(context, &context.client()?, args).await,
        KeyCommand::List { of } => {
            let client = context.client()?;
            let user = of.or_oneself(&client).await?;
            let page = Page { items: client.keys(&user).await?, next: None };
            context.out.list(&page, |keys| keys_table(keys, context.now()))
        }
        KeyCommand::Revoke { key_id, of } => {
            let client = context.client()?;
            let user = of.or_oneself(&client).await?;
            client.revoke_key(&user, &key_id).await?;
            context.out.note(&format!("The key {key_id} of {user} is revoked."));
            Ok(())
        }
    }
}

async fn create(context: &Context, client: &Client, args: CreateArgs) -> Result<(), Failure> {
    let now = context.now();
    let new = NewKey {
        name: args.name,
        domain: args.limit_domain,
        role: args.limit_role,
        expires: args.expires_in.map(|span| now.plus(span).to_date()),
    };
    new.check(now.to_date())?;
    let user = args.of.or_oneself(client).await?;
    let CreatedKey { key, info } = client.create_key(&user, &new).await?;
    context.out.text(key.expose(), &json!({"key": key.expose(), "info": info}))?;
    context.out.note(&format!("This is the key {} of {user}. It is not shown again.", info.id));
    Ok(())
}

impl Owner {
    async fn or_oneself(self, client: &Client) -> Result<UserId, Failure> {
        match self.user {
            Some(user) => Ok(user),
            None => Ok(client.session().await?.user),
        }
    }
}

fn keys_table(keys: &[KeyInfo], now: UnixMillis) -> Table {
    let names = ["id", "name", "begins", "domain", "role", "created", "ends"];
    table::table(names, keys.iter().map(|key| row(key, now)))
}

fn row(key: &KeyInfo, now: UnixMillis) -> [Cell; 7] {
    let name = if key.session { format!("{} (browser)", key.name) } else { key.name.clone() };
    [
        text(&key.id),
        short(&name),
        text(&key.hint),
        optional(key.domain.as_ref()),
        optional(key.role.map(Role::as_str)),
        text(when(key.created.into(), now)),
        optional(key.expires.map(|end| age(end.into(), now))),
    ]
}
