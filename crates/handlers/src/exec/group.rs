//! The process group that a program runs in, and its end.
//!
//! ```text
//! node ── lifeline (a pipe) ──▶ watcher, leader of the group
//!   └──── output, exit status ── program, in the same group ── whatever it starts
//! ```
//!
//! The watcher is a shell that waits for the end of the pipe. While the node lives, it holds the other end; when it dies, however
//! that happens, the system closes it, and the watcher kills its group and itself. The watcher comes first: a program can only
//! begin in a group that is watched. As nobody has waited for the watcher, its id stands for this group and no other.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use rota_engine::handler::{Context, HandlerError};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::exec::payload::Order;

const SHELL: &str = "/bin/sh";
/// Asking the group to end is not for the watcher, who has to see to it that it does.
const WATCH: &str = "trap '' TERM INT HUP QUIT; read -r line; kill -KILL 0";
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
const LANG: &str = "C.UTF-8";

/// A group. It ends when this is dropped, at once and as a whole.
pub(super) struct Group {
    id: Pid,
    /// Kept for the pipe to it, and so that its id stays taken.
    _watcher: Child,
    folder: Option<TempDir>,
}

impl Group {
    /// With nothing in it but its watcher, and an empty folder.
    pub(super) fn new() -> Result<Self, HandlerError> {
        let failed = |what: &str, error| HandlerError::Failed(format!("{what} cannot be made: {error}"));
        let mut watcher = Command::new(SHELL);
        watcher.args(["-c", WATCH]).env_clear().current_dir("/").process_group(0);
        watcher.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let watcher = watcher.spawn().map_err(|error| failed("a process group", error))?;
        let id = watcher.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let id = id.ok_or_else(|| HandlerError::Failed("a process group cannot be made".to_owned()))?;
        let mut group = Self { id, _watcher: watcher, folder: None };
        let mut folder = tempfile::Builder::new();
        folder.prefix("rota-exec-").permissions(Permissions::from_mode(0o700));
        group.folder = Some(folder.tempdir().map_err(|error| failed("a folder to run in", error))?);
        Ok(group)
    }

    /// Starts the program in it.
    pub(super) fn start(&self, order: &Order, job: &Context) -> Result<Child, HandlerError> {
        let mut program = Command::new(&order.program);
        program.args(&order.args).env_clear();
        program.env("PATH", PATH).env("LANG", LANG);
        program.envs(job.traceparent.map(|place| ("TRACEPARENT", place.to_string())));
        program.envs(order.env.iter().map(|(name, value)| (name, value)));
        program.env("ROTA_JOB_ID", job.job_id.to_string());
        program.env("ROTA_EPOCH", job.epoch.to_string()).env("ROTA_ATTEMPT", job.attempt.to_string());
        program.process_group(self.id.as_raw_pid());
        if let Some(folder) = &self.folder {
            program.current_dir(folder.path());
        }
        program.stdin(if order.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        program.stdout(Stdio::piped()).stderr(Stdio::piped());
        program.spawn().map_err(|error| not_started(order, &error))
    }

    /// Asks everybody in it to end.
    pub(super) fn terminate(&self) {
        self.send(Signal::TERM);
    }

    /// Ends it.
    pub(super) fn kill(&self) {
        self.send(Signal::KILL);
    }

    fn send(&self, signal: Signal) {
        // A group that is gone already is what was wanted.
        let _ = kill_process_group(self.id, signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        let folder = self.folder.take();
        // What a program left there may be much, and a handler must not block.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(move || folder.map(remove));
        }
    }
}

/// An empty one goes even where no file can be opened any more, to look into it.
fn remove(folder: TempDir) {
    if std::fs::remove_dir(folder.path()).is_err() {
        drop(folder);
    }
}

/// A machine that has too much to do may have less another time.
fn not_started(order: &Order, error: &std::io::Error) -> HandlerError {
    use std::io::ErrorKind::{OutOfMemory, ResourceBusy, WouldBlock};
    let why = format!("{} ({}) cannot be started: {error}", order.name, order.program.display());
    let too_many_files = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    match error.kind() {
        OutOfMemory | ResourceBusy | WouldBlock => HandlerError::Failed(why),
        _ if error.raw_os_error().is_some_and(|code| too_many_files.contains(&code)) => {
            HandlerError::Failed(why)
        }
        _ => HandlerError::Fatal(why),
    }
}
