//! The real program as a child process, with a data folder, a port and a configuration folder of its own. What it logs is
//! kept, and shown when the test fails.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// The administrator's key in tests.
pub const KEY: &str = "rota_test_key_for_the_administrator";
/// How much of the log is shown when a test fails.
const LAST_LINES: usize = 60;

/// The code that a command exited with.
pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// What a command said to its user.
pub fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

/// What a command that succeeded printed.
pub fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", complaint(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A place for one installation: it goes when dropped.
pub struct Home {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Home {
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), folder: tempfile::tempdir().unwrap() }
    }

    /// The same place, with another program from now on.
    #[must_use]
    pub fn with(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = program.into();
        self
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
        self.up_with(&[])
    }

    /// The same, with further flags.
    pub fn up_with(&self, flags: &[&str]) -> Rota {
        let mut command = self.up_command();
        command.args(flags);
        Rota::start(command)
    }

    /// `rota serve` on a free port, as one node of those that share this store.
    pub fn serve(&self, store: &str, flags: &[&str]) -> Rota {
        let mut command = self.command();
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", store, "--data"]).arg(self.data());
        command.args(flags).env("ROTA_BOOTSTRAP_KEY", KEY).stderr(self.open_log());
        Rota::start(command)
    }

    /// The same, where no more than so many files may be open.
    pub fn up_with_few_files(&self, files: u32) -> Rota {
        let limited = self.up_command();
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &files.to_string()]);
        command.arg(limited.get_program()).args(limited.get_args());
        for (name, value) in limited.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(self.path()).stdin(Stdio::null()).stderr(self.open_log());
        Rota::start(command)
    }

    /// `kill -9` of a start after so long, however far it is by then.
    pub fn up_and_kill(&self, after: Duration) {
        let mut child = self.up_command().stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn up_command(&self) -> Command {
        let mut command = self.command();
        command.args(["up", "--listen", "127.0.0.1:0", "--data"]).arg(self.data());
        command.env("ROTA_BOOTSTRAP_KEY", KEY).stderr(self.open_log());
        command
    }

    fn open_log(&self) -> File {
        File::options().create(true).append(true).open(self.log_file()).unwrap()
    }

    /// What was logged here since the first start.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

impl Drop for Home {
    #[expect(clippy::print_stderr, reason = "whoever looks into a failure wants to know")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let first = lines.len().saturating_sub(LAST_LINES);
            eprintln!("The end of the log of {} lines:\n{}", lines.len(), lines[first..].join("\n"));
        }
    }
}

/// A running `rota up`. It is killed when dropped.
pub struct Rota {
    child: Child,
    /// Empty where it listens nowhere.
    pub url: String,
    /// What it printed until it was up.
    pub banner: String,
    /// When it was started.
    pub started_at: Instant,
}

impl Rota {
    pub fn start(mut command: Command) -> Self {
        let started_at = now();
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut banner = String::new();
        while !banner.contains("Ctrl-C stops it.") {
            if lines.read_line(&mut banner).unwrap() == 0 {
                panic!("rota ended with {:?} before it was up: {banner}", child.wait());
            }
        }
        std::thread::spawn(move || lines.read_to_string(&mut String::new()));
        let url = banner.lines().find_map(|line| line.trim().strip_prefix("API")).unwrap_or_default();
        let url = url.trim().trim_end_matches("/api/v1").to_owned();
        Self { child, url, banner, started_at }
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
        self.send(Signal::INT);
        let status = self.child.wait().unwrap();
        (status, began.elapsed())
    }

    /// `kill`, as a supervisor does it.
    pub fn terminate(mut self) -> ExitStatus {
        self.send(Signal::TERM);
        self.child.wait().unwrap()
    }

    /// Stops the process where it stands; on return it stands.
    pub fn freeze(&self) {
        self.send(Signal::STOP);
        let (_, status) = waitpid(Some(self.pid()), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped(), "{status:?}");
    }

    /// Lets it go on.
    pub fn wake(&self) {
        self.send(Signal::CONT);
    }

    fn send(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
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
