//! One process at a time has the folder open. A lock of the operating system decides, so that a killed process leaves
//! nothing behind; the locked file says who it is, for the one that comes second.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

const FILE: &str = "lock";

/// The lock on a data folder, held until dropped.
#[derive(Debug)]
pub struct Holder {
    _file: File,
}

/// Why a folder could not be held.
#[derive(Debug)]
pub enum HolderError {
    /// Another process has it: what that one wrote about itself.
    Held { folder: PathBuf, by: String },
    /// It cannot be made or written.
    Unwritable { folder: PathBuf, why: io::Error },
}

impl std::fmt::Display for HolderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HolderError::Held { folder, by } => {
                write!(f, "the data folder {} is in use by {by}", folder.display())
            }
            HolderError::Unwritable { folder, why } => {
                write!(f, "the data folder {} cannot be used: {why}", folder.display())
            }
        }
    }
}

impl std::error::Error for HolderError {}

impl Holder {
    /// Takes the folder, making it if it is not there, readable by its owner alone. `who` tells others about us.
    pub fn take(folder: &Path, who: &str) -> Result<Self, HolderError> {
        let unwritable = |why| HolderError::Unwritable { folder: folder.to_owned(), why };
        make_private_folder(folder).map_err(unwritable)?;
        let path = folder.join(FILE);
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = opened.map_err(unwritable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(HolderError::Held { folder: folder.to_owned(), by: read_holder(&mut file) });
            }
            Err(TryLockError::Error(why)) => return Err(unwritable(why)),
        }
        write_holder(&mut file, who).map_err(unwritable)?;
        Ok(Self { _file: file })
    }
}

fn make_private_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    #[cfg(unix)]
    fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

fn read_holder(file: &mut File) -> String {
    let mut who = String::new();
    match file.read_to_string(&mut who) {
        Ok(_) if !who.trim().is_empty() => who.trim().to_owned(),
        _ => "another process".to_owned(),
    }
}

fn write_holder(file: &mut File, who: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(who.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_the_first_is() {
        let folder = tempfile::tempdir().unwrap();
        let first = Holder::take(folder.path(), "Rota with process id 7").unwrap();
        let second = Holder::take(folder.path(), "Rota with process id 8").unwrap_err().to_string();
        assert!(second.contains("is in use by Rota with process id 7"), "{second}");
        drop(first);
        Holder::take(folder.path(), "Rota with process id 8").unwrap();
    }
}
