//! `rota store`: what an operator does with the folder of the embedded store, or with the database in its place. It needs no
//! running Rota, and apart from restoring and copying it minds none. What is told about it stands in [`view`]; [`mod@copy`] moves
//! everything to another store.

mod copied;
mod copy;
mod view;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use rota_store::StoreError;
use rota_store_sqlite::backup::{Progress, Restored, backup, look_at, restore};
use rota_store_sqlite::check::check;
use rota_store_sqlite::holder::Holder;
use rota_store_sqlite::stats::stats;

use super::Context;
use crate::config::FolderArgs;
use crate::exit::{Exit, Failure};
use crate::output::progress::Bar;

const BACKUP_EXAMPLES: &str = "\
The backup is one moment of the store: everything acknowledged before the command began is in it. Rota may go on \
running and writing meanwhile.

Examples:
  rota store backup nightly.db
  rota store backup /backups/rota-$(date +%F).db --data /srv/rota";

const RESTORE_EXAMPLES: &str = "\
Rota must be stopped. The folder is made if it is not there. What is restored is the moment of the backup: jobs that \
were unfinished then run again, and keys that were revoked since are good again.

Examples:
  rota store restore nightly.db --data /srv/rota-2
  rota store restore nightly.db --replace";

const CHECK_EXAMPLES: &str = "\
Every page, index and document is read. Rota may go on running meanwhile.

Example:
  rota store check --data /srv/rota";

const STATS_EXAMPLES: &str = "\
Examples:
  rota store stats
  rota store stats --data /srv/rota --output json";

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Copy the store to a file, while Rota runs or not
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup {
        /// File to make; it must not be there yet
        file: PathBuf,
        #[command(flatten)]
        of: FolderArgs,
    },
    /// Copy everything to another store of any kind, and compare the two; exit with 1 if they differ
    #[command(after_help = copy::EXAMPLES)]
    Copy(copy::CopyArgs),
    /// Put a backup into the folder of a stopped Rota, or into a new folder
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(RestoreArgs),
    /// Look whether the store holds together, while Rota runs or not; exit with 1 if it does not
    #[command(after_help = CHECK_EXAMPLES)]
    Check {
        #[command(flatten)]
        of: FolderArgs,
    },
    /// Print the statements that make the tables in PostgreSQL, or the roles that may use them
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema(SchemaArgs),
    /// Show how large the store is and what takes the room
    #[command(after_help = STATS_EXAMPLES)]
    Stats {
        #[command(flatten)]
        of: FolderArgs,
    },
}

const SCHEMA_EXAMPLES: &str = "\
A node makes the tables itself when it starts, if its login may. Where it may not, somebody who may runs these, and makes \
its login a member of the roles for what it does: web, processor, or both.

Examples:
  rota store schema | psql postgres://owner@db.example/rota
  rota store schema --upgrade | psql postgres://owner@db.example/rota
  rota store schema --grants | psql postgres://owner@db.example/rota
  psql postgres://owner@db.example/rota -c 'GRANT rota_web TO alice'";

#[derive(Args, Debug)]
pub(crate) struct SchemaArgs {
    /// Those that bring the tables of an older Rota up to date; its nodes may go on running, and wait while indexes are built
    #[arg(long, conflicts_with = "grants")]
    upgrade: bool,
    /// Those that make a role for each kind of process, and grant it what it needs
    #[arg(long)]
    grants: bool,
    /// What the names of the roles begin with, where several Rotas share a server
    #[arg(long, value_name = "NAME", default_value = "rota", requires = "grants", value_parser = role_prefix)]
    prefix: String,
}

/// A name that needs no quotes, and leaves room for what comes behind it.
fn role_prefix(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let begins = text.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if begins && text.len() <= 40 && !text.starts_with("pg_") && text.bytes().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err("it is made of a-z, 0-9 and _, at most 40 of them, and begins neither with a digit nor with pg_"
        .to_owned())
}

#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    /// Backup to restore
    file: PathBuf,
    /// Set the store aside that is in the folder, and put the backup in its place
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    of: FolderArgs,
}

pub(crate) async fn run(context: &Context, command: StoreCommand) -> Result<(), Failure> {
    match command {
        StoreCommand::Backup { file, of } => back_up(context, of.folder()?, file).await,
        StoreCommand::Copy(args) => Box::pin(copy::run(context, args)).await,
        StoreCommand::Restore(args) => put_back(context, args).await,
        StoreCommand::Check { of } => look_through(context, of.folder()?).await,
        StoreCommand::Stats { of } => measure(context, of.folder()?).await,
        StoreCommand::Schema(args) => crate::output::print(statements(&args).trim_end()),
    }
}

fn statements(args: &SchemaArgs) -> String {
    match args {
        SchemaArgs { grants: true, prefix, .. } => rota_store_postgres::grants(prefix),
        SchemaArgs { upgrade: true, .. } => rota_store_postgres::upgrade(),
        _ => rota_store_postgres::schema(),
    }
}

/// There must be a store in the folder.
pub(super) fn must_be_in(folder: &Path) -> Result<(), Failure> {
    let file = folder.join(rota_store_sqlite::FILE);
    match std::fs::metadata(&file) {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            let message =
                format!("there is no Rota in the folder {}; --data names another", folder.display());
            Err(Failure::new(Exit::NotFound, message))
        }
        Err(error) => {
            Err(Failure::new(Exit::Unreachable, format!("{} cannot be read: {error}", file.display())))
        }
    }
}

async fn back_up(context: &Context, folder: PathBuf, file: PathBuf) -> Result<(), Failure> {
    must_be_in(&folder)?;
    let place = file.parent().filter(|place| !place.as_os_str().is_empty());
    if let Some(place) = place.filter(|place| !place.is_dir()) {
        return Err(Failure::refused(format!("the folder {} is not there: make it first", place.display())));
    }
    let (from, to) = (folder.clone(), file.clone());
    with_bar("Backing up", "pages", move |report| backup(&from, &to, report)).await?;
    let made = view::Backup::new(&folder, &file);
    context.out.document(&made, view::Backup::listing)?;
    context.out.note(&made.how_to_restore());
    Ok(())
}

async fn put_back(context: &Context, args: RestoreArgs) -> Result<(), Failure> {
    let RestoreArgs { file, replace, of } = args;
    let folder = of.folder()?;
    // Before a folder is made for nothing.
    if !file.is_file() {
        return Err(Failure::refused(format!("there is no backup {}", file.display())));
    }
    let looked_at = file.clone();
    blocking(move || look_at(&looked_at)).await?;
    let holder =
        Holder::take(&folder, &format!("rota store restore with process id {}", std::process::id()))?;
    let moment = context.now().to_date().strftime("%Y%m%dT%H%M%SZ").to_string();
    let (from, into) = (file.clone(), folder.clone());
    let restored = with_bar("Restoring", "pages", move |report| {
        restore(&into, &holder, &from, replace, &moment, report)
    });
    let kept = match restored.await? {
        Restored::Into(_) => None,
        Restored::Instead { kept } => Some(kept),
    };
    let restored = view::Restore::new(&folder, &file, kept.as_deref());
    context.out.document(&restored, view::Restore::listing)?;
    context.out.note(&restored.what_next());
    Ok(())
}

async fn look_through(context: &Context, folder: PathBuf) -> Result<(), Failure> {
    must_be_in(&folder)?;
    let looked_at = folder.clone();
    let findings = with_bar("Checking", "documents", move |report| check(&looked_at, report)).await?;
    let check = view::Check::new(&folder, findings);
    context.out.text(&check.text(), &check)?;
    check.verdict().map_or(Ok(()), |sentence| Err(Failure::new(Exit::Failed, sentence)))
}

async fn measure(context: &Context, folder: PathBuf) -> Result<(), Failure> {
    must_be_in(&folder)?;
    let measured = folder.clone();
    let stats = blocking(move || stats(&measured)).await?;
    let stats = view::Stats::new(&folder, &stats);
    context.out.text(&stats.text(), &stats)
}

/// Does long work with a bar, which is gone when this returns.
async fn with_bar<T: Send + 'static>(
    name: &'static str,
    unit: &'static str,
    work: impl FnOnce(&mut dyn FnMut(Progress)) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Failure> {
    let bar = Bar::begin(name, unit);
    blocking(move || work(&mut |progress: Progress| bar.at(progress.done, progress.of))).await
}

/// Reads and writes files where nobody else is kept waiting.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|error| Failure::new(Exit::Failed, format!("the work broke off: {error}")))??)
}
