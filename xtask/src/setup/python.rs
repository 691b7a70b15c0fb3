//! What tests take from PyPI: an environment of its own below the target folder, with every version pinned. The list that was
//! installed lies beside it, so that a set-up which finds the same list has nothing to do.

use std::fs;
use std::path::{Path, PathBuf};

use super::apt;
use crate::invocation::{Invocation, root};

/// Leaves out the tests that need it.
pub(crate) const WITHOUT: &str = "ROTA_TEST_WITHOUT_PYTHON";
/// Where tests look for it, below the target folder.
const FOLDER: &str = "python";
const REQUIREMENTS: &str = "xtask/requirements.txt";

/// Says whether everything is there in the end.
pub(super) fn provide() -> bool {
    if std::env::var_os(WITHOUT).is_some() {
        println!("{WITHOUT} is set: nothing is taken from PyPI");
        return true;
    }
    match environment() {
        Ok(()) => true,
        Err(why) => {
            eprintln!("{why}\n{WITHOUT}=1 leaves out the tests that need it");
            false
        }
    }
}

fn environment() -> Result<(), String> {
    let wanted = fs::read_to_string(root().join(REQUIREMENTS)).map_err(|error| error.to_string())?;
    let folder = target()?.join(FOLDER);
    if is_there(&folder, &wanted) {
        println!("what {REQUIREMENTS} asks for is there");
        return Ok(());
    }
    make(&folder)?;
    let pip = folder.join("bin/pip").display().to_string();
    let quietly = ["install", "--quiet", "--disable-pip-version-check", "--requirement", REQUIREMENTS];
    if !Invocation::new(pip, quietly).run() {
        return Err(format!("what {REQUIREMENTS} asks for could not be installed"));
    }
    fs::write(installed(&folder), wanted).map_err(|error| error.to_string())
}

/// The list of what was installed; written last, so that half an installation is not taken for a whole one.
fn installed(folder: &Path) -> PathBuf {
    folder.join("installed.txt")
}

fn is_there(folder: &Path, wanted: &str) -> bool {
    fs::read_to_string(installed(folder)).is_ok_and(|list| list == wanted)
        // Its interpreter is that of the system, and may have gone since.
        && Invocation::new(folder.join("bin/python").display().to_string(), ["--version"]).works()
}

/// An empty environment. Debian has the module that makes one in a package of its own.
fn make(folder: &Path) -> Result<(), String> {
    let folder = folder.display().to_string();
    let empty = Invocation::new("python3", ["-m", "venv", "--clear", &folder]);
    if Invocation::new("python3", ["-c", "import ensurepip, venv"]).works() && empty.run() {
        return Ok(());
    }
    if apt::install(&["python3", "python3-venv"]) && empty.run() {
        return Ok(());
    }
    Err("python3 is missing or cannot make environments: install it (on Debian, as root: python3-venv)"
        .to_owned())
}

fn target() -> Result<PathBuf, String> {
    let metadata = Invocation::cargo(["metadata", "--no-deps", "--format-version", "1"]).output()?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let folder = metadata.get("target_directory").and_then(serde_json::Value::as_str);
    folder.map(PathBuf::from).ok_or_else(|| "cargo does not say where the target folder is".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_an_installation_and_that_of_another_list_are_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_there(folder.path(), "a==1\n"));
        fs::create_dir(folder.path().join("bin")).unwrap();
        std::os::unix::fs::symlink("/bin/true", folder.path().join("bin/python")).unwrap();
        assert!(!is_there(folder.path(), "a==1\n"));
        fs::write(installed(folder.path()), "a==1\n").unwrap();
        assert!(is_there(folder.path(), "a==1\n") && !is_there(folder.path(), "a==2\n"));
    }

    #[test]
    fn every_version_is_pinned() {
        let list = fs::read_to_string(root().join(REQUIREMENTS)).unwrap();
        let mut asked = list.lines().filter(|line| !line.starts_with('#'));
        assert!(list.contains("\nschemathesis==") && asked.all(|line| line.contains("==")), "{list}");
    }
}
