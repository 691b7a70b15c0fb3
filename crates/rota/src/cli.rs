//! What can be said on the command line: `rota <noun> <verb>`. The verbs of a noun stand beside what they do, in
//! [`crate::commands`].

use std::ffi::OsString;

use clap::{Args, Parser, Subcommand};
use rota_model::domain::Domain;

use crate::arguments;
use crate::commands::{domain, job, job_type, key, log, metric, node, session, store, timer, up, user};
use crate::output::Format;

const SERVE_EXAMPLES: &str = "\
Each node needs a folder of its own, which tells who it is; everything else is in the store. The first node makes the \
tables.

Examples:
  rota serve --store postgres://rota:secret@db.example/rota --data /srv/rota --listen 10.0.0.5:7682
  rota serve --store postgres://rota:secret@db.example/rota --data /srv/rota --roles processor";

const AFTER_HELP: &str = "\
Signing in:
  `rota up` and `rota login` store a key for this user. ROTA_API_KEY goes before what is stored.

Exit codes:
  0 done
  1 the job or the work failed
  2 wrong usage, or input that was refused
  3 not found
  4 conflict
  5 Rota or its store cannot be reached
  6 not signed in, or not allowed";

/// Runs jobs on a fleet of nodes, and keeps the record.
#[derive(Debug, Parser)]
#[command(name = "rota", version, after_help = AFTER_HELP, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) everywhere: Everywhere,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// The command line, or an end with what is wrong with it.
    pub(crate) fn read(arguments: impl Iterator<Item = OsString>) -> Self {
        Self::parse_from(with_expressions_as_values(arguments))
    }
}

/// Whoever writes an expression such as '-5 * * * *' is to hear about its field, not about a flag -5: a space in front of it
/// says that it is a value. What has two hyphens stays a flag, with what clap knows about slips of the pen in those.
fn with_expressions_as_values(arguments: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let mut is_timer = false;
    arguments.map(move |argument| {
        is_timer |= argument == "timer";
        match argument.to_str() {
            Some(text) if is_timer && is_like_an_expression(text) => format!(" {text}").into(),
            _ => argument,
        }
    })
}

fn is_like_an_expression(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.contains([' ', '\t'])
}

/// What every command takes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Everywhere {
    /// Form of what is printed; ndjson is one document per line [default: table on a terminal, otherwise json]
    #[arg(long, global = true, value_enum, value_name = "FORM")]
    pub(crate) output: Option<Format>,
    /// Domain to work in
    #[arg(long, global = true, env = "ROTA_DOMAIN", hide_env_values = true, default_value = "default",
        value_name = "DOMAIN", value_parser = arguments::domain)]
    pub(crate) domain: Domain,
    /// Address of Rota [default: the one of the last `rota login` or `rota up`]
    #[arg(long, global = true, env = "ROTA_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) url: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start everything in one process, on the embedded store
    Up(up::UpArgs),
    /// Start one node of several, on a store that they share
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(up::ServeArgs),
    /// Submit jobs and follow them
    #[command(subcommand)]
    Job(job::JobCommand),
    /// Define the types of jobs: what their payloads must look like, and their defaults
    #[command(subcommand)]
    Type(job_type::TypeCommand),
    /// See when a schedule is due, before anything is saved
    #[command(subcommand)]
    Timer(timer::TimerCommand),
    /// Read what nodes and handlers said, and listen to them
    #[command(subcommand)]
    Log(log::LogCommand),
    /// Read what nodes measured
    #[command(subcommand)]
    Metric(metric::MetricCommand),
    /// Look at the nodes of the installation, and pause or drain them
    #[command(subcommand)]
    Node(node::NodeCommand),
    /// Make and list domains, the tenants of the installation
    #[command(subcommand)]
    Domain(domain::DomainCommand),
    /// Manage people and programs, and what they may do
    #[command(subcommand)]
    User(user::UserCommand),
    /// Make, list and revoke API keys
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Back up, restore, check and measure the embedded store; copy any store to another
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Store an API key, read from the standard input, for this user
    #[command(after_help = session::LOGIN_EXAMPLES)]
    Login,
    /// Show who you are to Rota, and what you may do
    Whoami,
    /// Show the version of this program, and of the time zone data that is built into it
    Version,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;
    use std::fmt::Write as _;
    use std::path::Path;

    /// The long help of a command and of everything below it.
    fn help_of(command: &mut clap::Command, text: &mut String) {
        let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
        let help = command.render_long_help().to_string();
        let lines: Vec<_> = help.trim_end().lines().map(str::trim_end).collect();
        writeln!(text, "$ {name} --help\n\n{}\n", lines.join("\n")).unwrap();
        for below in command.get_subcommands_mut().filter(|below| below.get_name() != "help") {
            help_of(below, text);
        }
    }

    /// The help must not depend on the environment of whoever runs the tests.
    fn without_values(command: clap::Command) -> clap::Command {
        command.mut_args(|arg| arg.hide_env_values(true)).mut_subcommands(without_values)
    }

    #[test]
    fn the_definitions_are_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn golden_cli_help() {
        let mut command = without_values(Cli::command()).term_width(100);
        command.build();
        let mut help = String::new();
        help_of(&mut command, &mut help);
        let help = help.trim_end().to_owned() + "\n";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/cli-help.txt");
        if std::env::var_os("ROTA_BLESS").is_some() {
            std::fs::write(&path, &help).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(help == golden, "the help changed: look at it, then run `cargo xtask bless`\n\n{help}");
    }

    #[test]
    fn wrong_usage_exits_with_2() {
        for line in [
            "rota job",
            "rota job show no-id",
            "rota job list --status DONE",
            "rota job list --limit 1001",
            "rota job list --all --cursor x",
            "rota job submit",
            "rota job submit wait --timeout 5",
            "rota job submit wait --priority 10",
            "rota job submit wait --run-at soon",
            "rota job submit wait --wait 5s",
            "rota job submit wait --unique-while queued",
            "rota job submit wait --unique k --unique-while ever",
            "rota job submit wait --file jobs.ndjson",
            "rota job submit --file jobs.ndjson --attempts 3",
            "rota job submit --file jobs.ndjson --backoff 5s",
            "rota job submit --file jobs.ndjson --unique k",
            "rota job submit noop --again x",
            "rota job submit noop --retry-for 5s",
            "rota job cancel",
            "rota job requeue no-id",
            "rota job delete 018f0000-0000-7000-8000-000000000001 --all",
            "rota job delete 018f0000-0000-7000-8000-000000000001 --type wait",
            "rota job delete --all --status FAILED",
            "rota job delete --older-than 7d --created-before 1000",
            "rota type put",
            "rota type put t --attempts many",
            "rota log",
            "rota log list --level loud",
            "rota log list --since yesterday",
            "rota log list --limit 0",
            "rota log list --installation --job 018f0000-0000-7000-8000-000000000001",
            "rota log tail --before 1000",
            "rota log tail --since 10m --limit 5",
            "rota metric list --since yesterday",
            "rota metric list --all --limit 5",
            "rota domain set",
            "rota domain set default --keep-jobs 30",
            "rota domain set default --keep-logs 5m",
            "rota timer preview",
            "rota timer preview @daily --count 0",
            "rota timer preview @daily --count 1001",
            "rota timer preview @daily --dst-gap later",
            "rota timer explain",
            "rota node pause",
            "rota node drain n --timeout 5s",
            "rota user set local:alice",
            "rota user create alice",
            "rota store",
            "rota store backup",
            "rota store restore --replace",
            "rota store copy --from sqlite:data",
            "rota store copy --to sqlite:data",
            "rota whoami --domain Default",
        ] {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn statuses_are_read_in_any_case_and_flags_anywhere() {
        let line = "rota --output json job list --status failed --domain other";
        let cli = Cli::try_parse_from(line.split(' ')).unwrap();
        assert_eq!((cli.everywhere.output, cli.everywhere.domain.as_str()), (Some(Format::Json), "other"));
    }
}
