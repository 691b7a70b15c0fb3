//! What each command does, one file per noun, and what they all work with. [`paging`] is what lists have in common.

pub(crate) mod domain;
pub(crate) mod job;
pub(crate) mod job_type;
pub(crate) mod key;
pub(crate) mod log;
pub(crate) mod metric;
pub(crate) mod node;
pub(crate) mod paging;
pub(crate) mod session;
pub(crate) mod store;
pub(crate) mod timer;
pub(crate) mod up;
pub(crate) mod user;

use rota_client::Client;
use rota_engine::surroundings::Surroundings;
use rota_model::domain::Domain;
use rota_model::time::UnixMillis;

use crate::cli::{Cli, Command, Everywhere};
use crate::exit::Failure;
use crate::output::Printer;
use crate::program::OwnTypes;
use crate::{clock, connection};

/// What the flags that stand everywhere come to.
pub(crate) struct Context {
    domain: Domain,
    url: Option<String>,
    out: Printer,
    surroundings: Surroundings,
}

impl Context {
    fn new(everywhere: Everywhere) -> Result<Self, Failure> {
        Ok(Self {
            domain: everywhere.domain,
            url: everywhere.url.filter(|url| !url.is_empty()),
            out: Printer::new(everywhere.output),
            surroundings: clock::surroundings()?,
        })
    }

    fn client(&self) -> Result<Client, Failure> {
        connection::open(self.url.as_deref())
    }

    fn now(&self) -> UnixMillis {
        self.surroundings.now()
    }
}

pub(crate) async fn run(cli: Cli, own_types: OwnTypes) -> Result<(), Failure> {
    let command = match cli.command {
        Command::Up(args) => return up::run(args, own_types).await,
        Command::Serve(args) => return up::run_shared(args, own_types).await,
        command => command,
    };
    let context = Context::new(cli.everywhere)?;
    match command {
        Command::Up(_) | Command::Serve(_) => Ok(()),
        Command::Job(command) => job::run(&context, command).await,
        Command::Type(command) => job_type::run(&context, command).await,
        Command::Timer(command) => timer::run(&context, command),
        Command::Log(command) => log::run(&context, command).await,
        Command::Metric(command) => metric::run(&context, command).await,
        Command::Node(command) => node::run(&context, &command).await,
        Command::Domain(command) => domain::run(&context, command).await,
        Command::User(command) => user::run(&context, command).await,
        Command::Key(command) => key::run(&context, command).await,
        Command::Store(command) => store::run(&context, command).await,
        Command::Login => session::login(&context).await,
        Command::Whoami => session::whoami(&context).await,
        Command::Version => session::version(&context),
    }
}
