//! A command as a value: shown to the person in the words in which they could type it, then run at the root.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of the workspace. Cargo says at run time where this crate lies; what was compiled in may be the place
/// of another checkout that shares its target folder with this one.
pub(crate) fn root() -> PathBuf {
    let here =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.parent().map_or_else(|| here.clone(), Path::to_owned)
}

#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    program: String,
    args: Vec<String>,
    env: Vec<(&'static str, &'static str)>,
}

impl Invocation {
    pub(crate) fn new<A: Into<String>>(
        program: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self { program: program.into(), args: Vec::new(), env: Vec::new() }.args(args)
    }

    pub(crate) fn cargo<A: Into<String>>(args: impl IntoIterator<Item = A>) -> Self {
        Self::new("cargo", args)
    }

    pub(crate) fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env.push((name, value));
        self
    }

    /// Shows the command, runs it with this terminal as its own, and says whether it succeeded.
    pub(crate) fn run(&self) -> bool {
        println!("$ {self}");
        self.succeeds(&mut self.command())
    }

    /// The same for a command whose output is meant for a program: stdout is all its own.
    pub(crate) fn run_with_clean_stdout(&self) -> bool {
        eprintln!("$ {self}");
        self.succeeds(&mut self.command())
    }

    /// Whether the command is there and works. Shows nothing.
    pub(crate) fn works(&self) -> bool {
        let status = self.command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    /// What the command prints; its complaint if it fails.
    pub(crate) fn output(&self) -> Result<String, String> {
        let output = self.command().output().map_err(|error| self.cannot_start(&error))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(format!("`{self}` failed:\n{}", String::from_utf8_lossy(&output.stderr).trim_end()))
    }

    fn succeeds(&self, command: &mut Command) -> bool {
        match command.status() {
            Ok(status) => status.success(),
            Err(error) => {
                eprintln!("{}", self.cannot_start(&error));
                false
            }
        }
    }

    fn cannot_start(&self, error: &std::io::Error) -> String {
        format!("`{}` cannot be started: {error}", self.program)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.executable());
        command.args(&self.args).envs(self.env.iter().copied()).current_dir(root());
        command
    }

    /// Cargo tells its children which cargo it is, so that a chosen toolchain (`cargo +beta xtask test`) is kept.
    fn executable(&self) -> OsString {
        let outer_cargo = if self.program == "cargo" { env::var_os("CARGO") } else { None };
        outer_cargo.unwrap_or_else(|| self.program.clone().into())
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            write!(f, "{name}={} ", quoted(value))?;
        }
        f.write_str(&self.program)?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_shown_as_a_person_would_type_it() {
        let doc = Invocation::cargo(["doc", "it's"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(doc.to_string(), r"RUSTDOCFLAGS='-D warnings' cargo doc 'it'\''s'");
    }

    #[test]
    fn tells_success_from_failure_and_absence() {
        assert!(Invocation::cargo(["--version"]).works());
        assert!(!Invocation::cargo(["no-such-command"]).works());
        assert!(!Invocation::new("no-such-program", ["--version"]).works());
        assert!(!Invocation::new("no-such-program", ["--version"]).run());
    }

    #[test]
    fn output_carries_the_complaint() {
        assert!(Invocation::cargo(["--version"]).output().unwrap().starts_with("cargo "));
        let complaint = Invocation::cargo(["no-such-command"]).output().unwrap_err();
        assert!(complaint.starts_with("`cargo no-such-command` failed:"), "{complaint}");
    }
}
