//! The real program as a child process, with a data folder, a port and a configuration folder of its own.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The administrator's key in tests.
pub const KEY: &str = "rota_test_key_for_the_administrator";

/// A place for one installation: it goes when dropped.
pub struct Home {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Home {
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The program with nothing of the caller's environment that it would listen to.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ROTA_")) {
            command.env_remove(name);
        }
        command.env("XDG_CONFIG_HOME", self.folder.path().join("config")).env("NO_COLOR", "1");
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    /// `rota up` on a free port; returns when it answers.
    pub fn up(&self) -> Rota {
        let mut command = self.command();
        command
            .args(["up", "--listen", "127.0.0.1:0", "--data"])
            .arg(self.data())
            .env("ROTA_BOOTSTRAP_KEY", KEY);
        Rota::start(command)
    }
}

/// A running `rota up`. It is killed when dropped.
pub struct Rota {
    child: Child,
    pub url: String,
    /// What it printed until it was up.
    pub banner: String,
}

impl Rota {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut banner = String::new();
        while !banner.contains("Ctrl-C stops it.") {
            if lines.read_line(&mut banner).unwrap() == 0 {
                panic!("rota ended with {:?} before it was up: {banner}", child.wait());
            }
        }
        std::thread::spawn(move || lines.read_to_string(&mut String::new()));
        let url = banner.lines().find_map(|line| line.trim().strip_prefix("API")).expect("an address");
        let url = url.trim().trim_end_matches("/api/v1").to_owned();
        Self { child, url, banner }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// What Ctrl-C does. Returns how it ended and how long that took.
    pub fn interrupt(mut self) -> (ExitStatus, Duration) {
        let began = now();
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let status = self.child.wait().unwrap();
        (status, began.elapsed())
    }
}

#[expect(clippy::disallowed_methods, reason = "the real program runs in real time")]
fn now() -> Instant {
    Instant::now()
}

impl Drop for Rota {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
