//! Which programs there are. Without any, the type does not exist.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Programs by the names that jobs call them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecSettings {
    programs: BTreeMap<String, PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum NoProgram {
    #[error("'{0}' is no name for a program: letters, digits, '-', '_' and '.' make one, 64 at most")]
    Name(String),
    #[error("{name}: {} is not an absolute path", path.display())]
    Relative { name: String, path: PathBuf },
    #[error("{name}: {} is not a file", path.display())]
    Missing { name: String, path: PathBuf },
}

impl ExecSettings {
    /// Checked; the files must be there.
    pub fn new(programs: BTreeMap<String, PathBuf>) -> Result<Self, NoProgram> {
        for (name, path) in &programs {
            let (name, path) = (name.clone(), path.clone());
            if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
                return Err(NoProgram::Name(name));
            }
            if !path.is_absolute() {
                return Err(NoProgram::Relative { name, path });
            }
            if !path.is_file() {
                return Err(NoProgram::Missing { name, path });
            }
        }
        Ok(Self { programs })
    }

    pub fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// Where the program of this name is, or which there are.
    pub(super) fn path(&self, name: &str) -> Result<&Path, String> {
        self.programs.get(name).map(PathBuf::as_path).ok_or_else(|| {
            let known = self.programs.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            format!("no program {name:?} is allowed here; allowed are: {known}")
        })
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(name: &str, path: &str) -> Result<ExecSettings, NoProgram> {
        ExecSettings::new(BTreeMap::from([(name.to_owned(), path.into())]))
    }

    #[test]
    fn a_program_is_a_plain_name_and_a_file() {
        assert!(settings("shell-1.0_x", "/bin/sh").is_ok());
        for (name, path) in
            [("", "/bin/sh"), ("a b", "/bin/sh"), ("sh", "bin/sh"), ("sh", "/no/such"), ("sh", "/bin")]
        {
            assert!(settings(name, path).is_err(), "{name} {path}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let why = settings("sh", "/bin/sh").unwrap().path("/bin/sh").unwrap_err();
        assert_eq!(why, "no program \"/bin/sh\" is allowed here; allowed are: sh");
    }
}
