//! A copy of the store while it is in use, and back.
//!
//! A backup is one moment of the store: it is read under one snapshot, while others go on writing. It is an ordinary file
//! of Rota, and appears under its name only when it is whole and on disk.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rota_store::StoreError;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::holder::Holder;
use crate::text::companion;
use crate::{FILE, file, text, unavailable};

/// How many pages are copied between two reports of progress.
const STEP: i32 = 2_000;

/// How far a long task has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub done: u64,
    pub of: u64,
}

/// Whoever wants to know how far it is.
pub type Report<'a> = &'a mut dyn FnMut(Progress);

/// Copies the store in a folder to a new file.
pub fn backup(folder: &Path, to: &Path, report: Report<'_>) -> Result<(), StoreError> {
    let what = format!("back up to {}", to.display());
    if to.is_dir() {
        return Err(StoreError::refused(what, "it is a folder; name a file in it"));
    }
    if fs::symlink_metadata(to).is_ok() {
        return Err(StoreError::refused(what, "there is such a file; choose another name"));
    }
    let source = file::open_guest(&folder.join(FILE))?;
    let partial = Partial::beside(to).map_err(|error| StoreError::unavailable(&what, error))?;
    copy(&source, &partial, report, &what)?;
    must_be_whole(
        &file::open_alone(&partial.0, &what)?,
        &what,
        "the store is damaged, see `rota store check`",
    )?;
    // A second name, which fails if somebody else made a file of that name meanwhile.
    match fs::hard_link(&partial.0, to).and_then(|()| sync_folder_of(to)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(StoreError::refused(what, "there is such a file by now; choose another name"))
        }
        put => put.map_err(|error| StoreError::unavailable(what, error)),
    }
}

/// A file that nobody else writes to, until the copy in it is whole. Under this name it is gone with this: half a copy is of
/// no use, and the room may be what was short. Its name is never free in between, or another would take it for its own.
struct Partial(PathBuf);

impl Partial {
    /// Beside a file that anybody may be about to make.
    fn beside(to: &Path) -> io::Result<Self> {
        for nth in 0_u32.. {
            let path = companion(to, &format!(".partial-{}-{nth}", std::process::id()));
            match Self::make(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made,
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Under a name that is ours alone: what is there was left by one that did not end.
    fn instead_of(path: PathBuf) -> io::Result<Self> {
        remove_if_there(&path)?;
        Self::make(path)
    }

    fn make(path: PathBuf) -> io::Result<Self> {
        file::private().create_new(true).open(&path)?;
        let made = Self(path);
        for end in ["-journal", "-wal", "-shm"] {
            remove_if_there(&companion(&made.0, end))?;
        }
        Ok(made)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        for end in ["-journal", ""] {
            let _ = fs::remove_file(companion(&self.0, end));
        }
    }
}

/// Whether a file can be restored; none of it is changed.
pub fn look_at(backup: &Path) -> Result<(), StoreError> {
    open_backup(backup).map(|_| ())
}

fn must_be_whole(connection: &Connection, what: &str, otherwise: &str) -> Result<(), StoreError> {
    let whole = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    let whole = whole.unwrap_or_else(|error| error.to_string());
    if whole == "ok" { Ok(()) } else { Err(StoreError::refused(what, format!("{otherwise}: {whole}"))) }
}

/// What restoring did with what was there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored {
    /// There was nothing.
    Into(PathBuf),
    /// It was set aside, in this file.
    Instead { kept: PathBuf },
}

/// Puts a backup into a folder that nobody has open. What is there is set aside first, if `replace` allows it. `moment`
/// tells the files set aside apart, such as the date.
pub fn restore(
    folder: &Path,
    _holder: &Holder,
    from: &Path,
    replace: bool,
    moment: &str,
    report: Report<'_>,
) -> Result<Restored, StoreError> {
    let what = format!("restore {}", from.display());
    let failed = |error: io::Error| StoreError::unavailable(&what, error);
    let target = folder.join(FILE);
    let is_there = fs::metadata(&target).is_ok_and(|file| file.len() > 0);
    if is_there && !replace {
        let why = format!("{} holds a store already; say --replace to set it aside", folder.display());
        return Err(StoreError::refused(&what, why));
    }
    let kept = companion(&target, &format!(".before-{moment}"));
    if kept.exists() {
        return Err(StoreError::refused(&what, format!("{} is there already; try again", kept.display())));
    }
    let source = open_backup(from)?;
    let incoming = Partial::instead_of(companion(&target, ".restoring")).map_err(failed)?;
    copy(&source, &incoming, report, &what)?;
    go_on_with_other_versions(&incoming.0).map_err(unavailable(&what))?;
    text::remove(&target).map_err(failed)?;
    set_aside(&target, is_there, &kept).map_err(failed)?;
    fs::rename(&incoming.0, &target).and_then(|()| sync_folder_of(&target)).map_err(failed)?;
    Ok(if is_there { Restored::Instead { kept } } else { Restored::Into(target) })
}

fn open_backup(from: &Path) -> Result<Connection, StoreError> {
    let what = format!("open {}", from.display());
    file::must_be_ours(from, &what)?;
    // Beside a store that was copied or is in use lies a log, and what was written last is only there.
    let source = if companion(from, "-wal").exists() {
        file::open_guest(from)?
    } else {
        file::open_alone(from, &what)?
    };
    must_be_whole(&source, &what, "the backup is damaged")?;
    Ok(source)
}

/// Copies one moment of a store to a file that was made for it, and waits for the disk.
fn copy(source: &Connection, to: &Partial, report: Report<'_>, what: &str) -> Result<(), StoreError> {
    copy_pages(source, &to.0, report).map_err(unavailable(what))?;
    let synced = File::open(&to.0).and_then(|file| file.sync_all());
    synced.map_err(|error| StoreError::unavailable(what, error))
}

fn copy_pages(source: &Connection, to: &Path, report: Report<'_>) -> rusqlite::Result<()> {
    let mut target = Connection::open(to)?;
    // As long as this transaction is open, all steps see the same moment, whoever writes meanwhile.
    let moment = source.unchecked_transaction()?;
    source.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    {
        let backup = Backup::new(source, &mut target)?;
        let mut step = StepResult::More;
        while step != StepResult::Done {
            step = backup.step(STEP)?;
            let progress = backup.progress();
            let count = |pages: i32| u64::from(pages.unsigned_abs());
            let of = count(progress.pagecount);
            report(Progress { done: of.saturating_sub(count(progress.remaining)), of });
        }
    }
    moment.finish()?;
    target.close().map_err(|(_, error)| error)
}

/// The store that was backed up went on, and handed out versions that this one has not seen. Nobody must be able to take
/// one of those for one of this store's.
fn go_on_with_other_versions(file: &Path) -> rusqlite::Result<()> {
    const FAR: i64 = 1 << 40;
    let connection = Connection::open(file)?;
    // By chance too: the same backup may be restored twice.
    connection.execute(
        "INSERT INTO sequences (name, next) VALUES ('versions', ?1 + abs(random() % ?1))
         ON CONFLICT (name) DO UPDATE SET next = next + excluded.next",
        [FAR],
    )?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    connection.close().map_err(|(_, error)| error)
}

/// The old file with all that belongs to it, in one file if it can still be read. Its log goes too, even if the file is
/// gone: beside another file it would be taken for that one's.
fn set_aside(target: &Path, is_there: bool, kept: &Path) -> io::Result<()> {
    if is_there && let Ok(old) = Connection::open(target) {
        let _ = old.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
    if is_there {
        // Both names for a moment, so that there is never none.
        let copied = || fs::copy(target, kept).and_then(|_| File::open(kept)?.sync_all());
        fs::hard_link(target, kept).or_else(|_| copied())?;
    }
    for end in ["-wal", "-shm"] {
        match fs::rename(companion(target, end), companion(kept, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}
