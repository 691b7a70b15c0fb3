//! `rota user`: people and programs, and what they may do.

use clap::{Args, Subcommand};
use comfy_table::{Cell, Table};
use rota_client::{Client, Page};
use rota_model::domain::Domain;
use rota_model::time::UnixMillis;
use rota_model::user::{Role, UserId, UserSettings, UserView};

use super::Context;
use crate::arguments;
use crate::exit::Failure;
use crate::output::table::{self, optional, short, text};
use crate::output::time::when;

const CREATE_EXAMPLES: &str = "\
A new user has no key yet: `rota key create NAME --user ID` makes one.

Example:
  rota user create local:alice --grant default=operator --email alice@example.org";

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Make a user
    #[command(after_help = CREATE_EXAMPLES)]
    Create(CreateArgs),
    /// List the users
    List,
    /// Show a user
    Show {
        #[command(flatten)]
        who: Who,
    },
    /// Change what a user may do; what is not named stays as it is
    Set(SetArgs),
    /// Delete a user with all keys
    Delete {
        #[command(flatten)]
        who: Who,
        /// Do it; without this nothing is deleted
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Who {
    /// Id of the user, such as local:alice
    #[arg(value_parser = arguments::user_id)]
    id: UserId,
}

#[derive(Args, Debug)]
pub(crate) struct CreateArgs {
    #[command(flatten)]
    who: Who,
    /// Role in a domain: viewer, operator or admin; may be repeated
    #[arg(long = "grant", value_name = "DOMAIN=ROLE", value_parser = arguments::grant)]
    grants: Vec<(Domain, Role)>,
    /// Let the user administer the whole installation
    #[arg(long)]
    installation_admin: bool,
    /// Name to show
    #[arg(long)]
    name: Option<String>,
    /// Address for mail
    #[arg(long)]
    email: Option<String>,
}

#[derive(Args, Debug)]
#[command(
    override_usage = "rota user set [OPTIONS] <ID>",
    group(clap::ArgGroup::new("change").required(true).multiple(true))
)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    who: Who,
    /// Role in a domain, given or changed; may be repeated
    #[arg(long = "grant", value_name = "DOMAIN=ROLE", value_parser = arguments::grant, group = "change")]
    grants: Vec<(Domain, Role)>,
    /// Take away the role in a domain; may be repeated
    #[arg(long = "revoke", value_name = "DOMAIN", value_parser = arguments::domain, group = "change")]
    revokes: Vec<Domain>,
    /// Whether the user administers the whole installation
    #[arg(long, value_name = "true|false", group = "change")]
    installation_admin: Option<bool>,
    /// Name to show; empty for none
    #[arg(long, group = "change")]
    name: Option<String>,
    /// Address for mail; empty for none
    #[arg(long, group = "change")]
    email: Option<String>,
}

pub(crate) async fn run(context: &Context, command: UserCommand) -> Result<(), Failure> {
    let client = context.client()?;
    let show = |user: &UserView| context.out.document(user, |user| user_listing(user, context.now()));
    match command {
        UserCommand::Create(args) => show(&create(&client, args).await?),
        UserCommand::Show { who } => show(&client.user(&who.id).await?),
        UserCommand::Set(args) => show(&client.change_user(&args.who.id, |user| args.apply(user)).await?),
        UserCommand::List => {
            let page = Page { items: client.users().await?, next: None };
            context.out.list(&page, users_table)
        }
        UserCommand::Delete { who: Who { id }, yes } => delete(context, &client, &id, yes).await,
    }
}

async fn create(client: &Client, args: CreateArgs) -> Result<UserView, Failure> {
    let settings = UserSettings {
        domains: args.grants.into_iter().collect(),
        installation_admin: args.installation_admin,
        display_name: args.name,
        email: args.email,
    };
    settings.check()?;
    Ok(client.create_user(&args.who.id, &settings).await?)
}

impl SetArgs {
    fn apply(&self, user: &mut UserSettings) {
        user.domains.retain(|domain, _| !self.revokes.contains(domain));
        user.domains.extend(self.grants.iter().cloned());
        user.installation_admin = self.installation_admin.unwrap_or(user.installation_admin);
        for (asked, field) in [(&self.name, &mut user.display_name), (&self.email, &mut user.email)] {
            if let Some(asked) = asked {
                *field = Some(asked.clone()).filter(|text| !text.is_empty());
            }
        }
    }
}

async fn delete(context: &Context, client: &Client, id: &UserId, yes: bool) -> Result<(), Failure> {
    if !yes {
        let message = format!("this deletes {id} with all keys: add --yes if that is what you want");
        return Err(Failure::refused(message));
    }
    client.delete_user(id).await?;
    context.out.note(&format!("The user {id} is deleted."));
    Ok(())
}

fn users_table(users: &[UserView]) -> Table {
    table::table(["id", "name", "email", "installation", "domains"], users.iter().map(row))
}

fn row(user: &UserView) -> [Cell; 5] {
    [
        text(&user.id),
        short(user.display_name.as_deref().unwrap_or("-")),
        short(user.email.as_deref().unwrap_or("-")),
        text(if user.installation_admin { "admin" } else { "-" }),
        short(&grants(user, ", ")),
    ]
}

fn user_listing(user: &UserView, now: UnixMillis) -> Table {
    table::listing([
        ("id", text(&user.id)),
        ("name", optional(user.display_name.as_ref())),
        ("email", optional(user.email.as_ref())),
        ("installation", text(if user.installation_admin { "admin" } else { "-" })),
        ("domains", text(grants(user, "\n"))),
        ("created", optional(user.created.map(|at| when(at.into(), now)))),
    ])
}

fn grants(user: &UserView, separator: &str) -> String {
    let grants: Vec<_> =
        user.domains.iter().map(|(domain, role)| format!("{domain}={}", role.as_str())).collect();
    if grants.is_empty() { "-".to_owned() } else { grants.join(separator) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    fn set(line: &str) -> SetArgs {
        let line = format!("rota user set local:alice {line}");
        match Cli::try_parse_from(line.split(' ')).unwrap().command {
            Command::User(UserCommand::Set(args)) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_not_named_stays_as_it_is() {
        let mut user = UserSettings {
            domains: [("one", Role::Viewer), ("two", Role::Admin)]
                .map(|(d, r)| (d.parse().unwrap(), r))
                .into(),
            installation_admin: true,
            display_name: Some("Alice".to_owned()),
            email: Some("alice@example.org".to_owned()),
        };
        set("--grant one=operator --grant three=viewer --revoke two --email=").apply(&mut user);
        let granted: Vec<_> = user.domains.iter().map(|(d, r)| format!("{d}={}", r.as_str())).collect();
        assert_eq!(granted, ["one=operator", "three=viewer"]);
        assert_eq!((user.installation_admin, user.email.as_deref()), (true, None));
        assert_eq!(user.display_name.as_deref(), Some("Alice"));
        set("--installation-admin false").apply(&mut user);
        assert!(!user.installation_admin);
    }
}
