//! `rota store copy`: everything in one store, to another one of any kind. What is copied and how is said in
//! [`rota_store::copy`]; here the two are opened, and nodes that work on the source are found out.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use rota_store::copy::{CopyError, Copying, Origin, Progress, Stage, alive, check_source};
use rota_store::{Store, StoreError};
use rota_store_postgres::PostgresStore;
use rota_store_sqlite::backup::backup;
use rota_store_sqlite::durability::Durability;
use rota_store_sqlite::holder::{Holder, HolderError};
use rota_store_sqlite::{FILE, SqliteStore};
use sha2::{Digest as _, Sha256};

use super::{copied, with_bar};
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::{self, progress::Bar};
use crate::stores::{NotOpened, StoreAt};

pub(super) const EXAMPLES: &str = "\
The target must be empty. Every document is copied as it is, and then compared, by itself and by counts and checksums. A \
copy that was interrupted goes on when the same command is given again; until it is finished no node starts on the target. \
Stop the nodes of the source first.

Examples:
  rota store copy --from sqlite:./rota-data --to postgres://rota:secret@db.example/rota
  rota store copy --from postgres://rota:secret@db.example/rota --to sqlite:/srv/rota";

/// Where the moment of an embedded store is kept that is copied while it is in use, in its folder.
const MOMENT: &str = "copied-moment";

#[derive(Args, Debug)]
pub(crate) struct CopyArgs {
    /// Store to copy from: sqlite:DIR or postgres://USER:PASSWORD@HOST/DATABASE
    #[arg(long, value_name = "URL")]
    from: String,
    /// Store to copy to, of any kind; it must be empty
    #[arg(long, value_name = "URL")]
    to: String,
    /// Copy although nodes work on the source. Of an embedded store it is one moment; of another, what was written meanwhile
    /// may be missing
    #[arg(long)]
    while_running: bool,
}

pub(super) async fn run(context: &Context, args: CopyArgs) -> Result<(), Failure> {
    let (from, to) = (StoreAt::parse(&args.from)?, StoreAt::parse(&args.to)?);
    if from.identity() == to.identity() {
        return Err(Failure::refused(format!("{from} would be copied to itself: name another store")));
    }
    let source = Source::open(&from, args.while_running).await?;
    // Before a folder or tables are made for nothing.
    check_source(&*source.store).await.map_err(|error| failure(&error, &from, &to))?;
    let target = open_target(&to).await?;
    let copying = Copying {
        source: &*source.store,
        target: &*target,
        origin: Origin { from: whole(&from), mark: mark(&from) },
        run: hex(&context.surroundings.random_bytes::<16>()),
        now: context.now(),
        in_use: source.in_use,
    };
    let mut shown = Shown::default();
    let copied = copying.run(&mut |progress| shown.show(progress)).await;
    drop(shown);
    let copied = copied.map_err(|error| failure(&error, &from, &to))?;
    let view = copied::Copied::new(&from, &to, &copied, source.goes_on);
    context.out.text(&view.text(), &view)?;
    if !copied.is_equal() && !source.in_use {
        return Err(Failure::new(Exit::Failed, view.verdict()));
    }
    if source.goes_on {
        output::warn(&view.what_is_missing());
        return Ok(());
    }
    source.is_still_at_rest(&from).await?;
    context.out.note(&view.what_next(&to));
    Ok(())
}

fn who() -> String {
    format!("rota store copy with process id {}", std::process::id())
}

/// A store that is copied.
struct Source {
    /// Closed before the folder goes that it may stand in.
    store: Arc<dyn Store>,
    /// Whether what is read changes meanwhile.
    in_use: bool,
    /// Whether others go on writing to the store, so that the copy lacks what they write.
    goes_on: bool,
    _moment: Option<Moment>,
}

impl Source {
    /// Opens what is there; nothing is made where nothing is, and a database stays as an older Rota made it.
    async fn open(from: &StoreAt, while_running: bool) -> Result<Self, Failure> {
        let nothing = || Failure::new(Exit::NotFound, format!("there is no Rota in {from}: look at --from"));
        match from {
            StoreAt::Folder(folder) => {
                if !folder.join(FILE).is_file() {
                    return Err(nothing());
                }
                Self::open_folder(folder, while_running).await
            }
            StoreAt::Postgres(url) => {
                let opened = PostgresStore::open_as_it_is(url.as_str()).await?;
                let store: Arc<dyn Store> = Arc::new(opened.ok_or_else(nothing)?);
                let nodes = {
                    let _bar = Bar::begin("Looking for nodes", "");
                    alive::nodes(&*store).await?
                };
                if !nodes.is_empty() && !while_running {
                    return Err(in_use(from, &format!("the nodes {}", nodes.join(", "))));
                }
                let in_use = !nodes.is_empty();
                Ok(Self { store, in_use, goes_on: in_use, _moment: None })
            }
        }
    }

    /// Whoever began meanwhile may have written behind the copy's back.
    async fn is_still_at_rest(&self, from: &StoreAt) -> Result<(), Failure> {
        if self.in_use || matches!(from, StoreAt::Folder(_)) {
            return Ok(());
        }
        let nodes = alive::nodes(&*self.store).await?;
        if nodes.is_empty() {
            return Ok(());
        }
        let message = format!(
            "the nodes {} began on {from} meanwhile, and what they wrote may be missing: stop them, and give the same command \
             again before any node starts on the copy",
            nodes.join(", ")
        );
        Err(Failure::new(Exit::Failed, message))
    }

    async fn open_folder(folder: &Path, while_running: bool) -> Result<Self, Failure> {
        match Holder::take(folder, &who()) {
            Ok(holder) => {
                let store = Arc::new(SqliteStore::open(folder, holder)?);
                Ok(Self { store, in_use: false, goes_on: false, _moment: None })
            }
            Err(HolderError::Held { by, .. }) if !while_running => {
                Err(in_use(&StoreAt::Folder(folder.to_owned()), &by))
            }
            Err(HolderError::Held { .. }) => {
                let (moment, store) = Moment::of(folder).await?;
                Ok(Self { store: Arc::new(store), in_use: false, goes_on: true, _moment: Some(moment) })
            }
            Err(error) => Err(Failure::new(Exit::Unreachable, error.to_string())),
        }
    }
}

fn in_use(from: &StoreAt, by: &str) -> Failure {
    let message = format!(
        "{from} is in use by {by}; stop that first, so that nothing is missing, or copy all the same with --while-running"
    );
    Failure::new(Exit::Conflict, message)
}

/// One moment of an embedded store that goes on, in a folder that is gone with this. What one that was killed left there is
/// removed by the next.
struct Moment(PathBuf);

impl Moment {
    async fn of(folder: &Path) -> Result<(Self, SqliteStore), Failure> {
        let place = folder.join(MOMENT);
        let taken = Holder::take(&place, &who());
        let holder = taken.map_err(|error| Failure::new(Exit::Conflict, error.to_string()))?;
        let moment = Self(place.clone());
        clear(&place).map_err(|error| StoreError::unavailable("make room for the moment", error))?;
        let (folder, file) = (folder.to_owned(), place.join(FILE));
        with_bar("Backing up", "pages", move |report| backup(&folder, &file, report)).await?;
        Ok((moment, SqliteStore::open(&place, holder)?))
    }
}

/// All but the lock, which is ours.
fn clear(place: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(place)? {
        let entry = entry?;
        if entry.file_name() != "lock" {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

impl Drop for Moment {
    fn drop(&mut self) {
        // What stays is removed by the next copy.
        let _ = fs::remove_dir_all(&self.0);
    }
}

async fn open_target(to: &StoreAt) -> Result<Arc<dyn Store>, Failure> {
    let opened = to.open(&who(), Durability::OnDisk).await;
    opened.map_err(|error| match error {
        NotOpened::Folder(error @ HolderError::Held { .. }) => {
            Failure::new(Exit::Conflict, format!("{error}; name another folder with --to"))
        }
        NotOpened::Folder(error) => Failure::new(Exit::Unreachable, error.to_string()),
        NotOpened::Store(error) => error.into(),
    })
}

/// A name that means the same wherever it is read.
fn whole(from: &StoreAt) -> String {
    match from {
        StoreAt::Folder(_) => from.identity(),
        StoreAt::Postgres(_) => from.to_string(),
    }
}

/// What the target knows the source by. A digest: whoever reads the target need not know where the source is.
fn mark(from: &StoreAt) -> String {
    hex(&Sha256::digest(from.identity()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One bar for each stage.
#[derive(Default)]
struct Shown(Option<(Stage, Bar)>);

impl Shown {
    fn show(&mut self, progress: Progress) {
        let Progress { stage, done, of } = progress;
        if self.0.as_ref().is_none_or(|(shown, _)| *shown != stage) {
            let work = match stage {
                Stage::Filling => "Copying",
                Stage::Comparing => "Comparing",
            };
            // The one before goes first.
            self.0 = None;
            self.0 = Some((stage, Bar::begin(work, "documents")));
        }
        if let Some((_, bar)) = &self.0 {
            bar.at(done, of);
        }
    }
}

fn failure(error: &CopyError, from: &StoreAt, to: &StoreAt) -> Failure {
    let (exit, message) = match error {
        CopyError::Store(error) if error.is_passing() => {
            (Exit::Unreachable, format!("{error}; give the same command again to go on with the copy"))
        }
        CopyError::Store(error) => return error.clone().into(),
        CopyError::Damaged(_) => (
            Exit::Failed,
            format!(
                "{from} cannot be copied: {error}. Nothing is left out of a copy: restore a backup of it, or take that document \
                 away there, then give the same command again"
            ),
        ),
        CopyError::NoSource => (Exit::NotFound, format!("there is no Rota in {from}: {error}")),
        CopyError::HalfSource { .. } => (Exit::Conflict, format!("{from} cannot be copied: {error}")),
        CopyError::NotEmpty(_) => (
            Exit::Conflict,
            format!("{to} cannot be copied to: {error}; name an empty folder, database or schema"),
        ),
        CopyError::OtherCopy { .. } => (
            Exit::Conflict,
            format!("{to} cannot be copied to: {error}; go on with that one, or name an empty store"),
        ),
        CopyError::Overtaken => (Exit::Conflict, format!("{to} is not copied to any more: {error}")),
    };
    Failure::new(exit, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_in_the_target_holds_no_password() {
        let from = StoreAt::parse("postgres://rota:secret@db.example/rota?password=secret").unwrap();
        assert_eq!(whole(&from), "postgres://rota:***@db.example/rota");
        assert_eq!(mark(&from).len(), 64);
        let other = StoreAt::parse("postgres://rota:changed@db.example/rota").unwrap();
        assert_eq!(mark(&from), mark(&other));
    }
}
