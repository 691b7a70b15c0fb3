//! A real PostgreSQL for tests: a private server below a temporary folder, on a free port of loopback, as a user who is not
//! root. It ends with the test, even if that is killed: a shell holds it, whose input ends with the test. Where a person has
//! a server, `ROTA_TEST_POSTGRES_URL` names it, and that is used instead.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;

/// Where somebody's own server is.
pub const URL: &str = "ROTA_TEST_POSTGRES_URL";

/// Starts the server, and ends it when nobody is there any more who could; then its folder goes too.
const HOLD: &str = r#"
"$1" -D "$2" -k "$2" -p "$3" -c listen_addresses=127.0.0.1 -c fsync="$4" -c max_connections=400 \
    -c full_page_writes="$4" -c log_min_messages=warning >>"$2/log" 2>&1 &
read -r word
if [ "$word" = crash ]; then kill -QUIT $!; else kill -INT $!; fi
wait $!
[ -n "$word" ] || rm -rf "$(dirname "$2")"
"#;

/// An authority of its own, and what it signs.
const MAKE_CERTIFICATES: &str = r#"
umask 077
new="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
openssl req -x509 $new -days 2 -subj "/CN=an authority" -keyout authority.key -out authority.pem
openssl req $new -subj "/CN=a server" -keyout server.key -out server.csr
echo "subjectAltName = IP:127.0.0.1" >names
openssl x509 -req -days 2 -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial -extfile names -out server.crt
chmod 644 authority.pem
"#;

/// A server of one's own, that can be stopped and started again.
pub struct Server {
    folder: TempDir,
    port: u16,
    durable: bool,
    held: Option<Child>,
}

impl Server {
    /// Starts one. What it acknowledges is on disk only if that is asked for: a test that loses no power need not wait.
    pub fn start(durable: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        if let Some((user, group)) = other_user() {
            for path in [folder.path(), &data] {
                chown(path, Some(user), Some(group)).unwrap();
            }
        }
        let mut make = as_other(Command::new(program("initdb")));
        make.args(["--auth=trust", "--username=rota", "--no-sync", "--locale=C", "--encoding=UTF8", "-D"]);
        let made = make.arg(&data).current_dir(folder.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self { folder, port, durable, held: None };
        server.resume();
        server
    }

    /// Starts it again after it was stopped.
    pub fn resume(&mut self) {
        let data = self.folder.path().join("data");
        let mut hold = as_other(Command::new("sh"));
        hold.args(["-c", HOLD, "sh"]).arg(program("postgres")).arg(&data).arg(self.port.to_string());
        hold.arg(if self.durable { "on" } else { "off" }).current_dir(self.folder.path());
        self.held = Some(hold.stdin(Stdio::piped()).spawn().unwrap());
        for _ in 0..600 {
            let mut asks = Command::new(program("pg_isready"));
            asks.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
            if asks.status().unwrap().success() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("PostgreSQL does not start:\n{}", self.log());
    }

    /// Stops it, as an operator would: whoever is connected is cut off.
    pub fn stop(&mut self) {
        self.end("stay\n");
    }

    /// Ends it at once: when it comes back, it has what is in its log of writes and nothing else.
    pub fn crash(&mut self) {
        self.end("crash\n");
    }

    fn end(&mut self, word: &str) {
        let Some(mut held) = self.held.take() else { return };
        if let Some(mut stdin) = held.stdin.take() {
            stdin.write_all(word.as_bytes()).unwrap();
        }
        held.wait().unwrap();
    }

    pub fn url(&self) -> String {
        format!("postgres://rota@127.0.0.1:{}/postgres", self.port)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("data/log")).unwrap_or_default()
    }

    /// An empty place in it.
    pub fn fresh(&self) -> String {
        fresh_in(&self.url())
    }

    /// From now on it offers TLS, with a certificate for 127.0.0.1 alone. Says where that of its authority is.
    pub fn offer_tls(&self) -> PathBuf {
        let (folder, data) = (self.folder.path(), self.folder.path().join("data"));
        let made = Command::new("sh").args(["-ec", MAKE_CERTIFICATES]).current_dir(folder).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        for name in ["server.crt", "server.key"] {
            fs::rename(folder.join(name), data.join(name)).unwrap();
            if let Some((user, group)) = other_user() {
                chown(data.join(name), Some(user), Some(group)).unwrap();
            }
        }
        run_sql(&self.url(), "ALTER SYSTEM SET ssl = on");
        run_sql(&self.url(), "SELECT pg_reload_conf()");
        while run_sql(&self.url(), "SHOW ssl") != "on" {
            std::thread::sleep(Duration::from_millis(20));
        }
        folder.join("authority.pem")
    }

    /// From now on a login needs its password.
    pub fn ask_for_passwords(&self) {
        let rules = self.folder.path().join("data/pg_hba.conf");
        let url = self.url();
        fs::write(rules, "host all all 127.0.0.1/32 scram-sha-256\n").unwrap();
        run_sql(&url, "SELECT pg_reload_conf()");
        // It is told, and reads them a moment later.
        while try_sql(&url, "SELECT 1").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// An empty place in the server that all tests of a process share.
pub fn fresh() -> String {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| std::env::var(URL).is_err().then(|| Server::start(false)));
    match shared {
        Some(server) => server.fresh(),
        None => fresh_in(&std::env::var(URL).unwrap()),
    }
}

/// A schema of its own in a server.
pub fn fresh_in(url: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    run_sql(url, &format!("DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}"));
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}options=-csearch_path%3D{name}")
}

/// Runs statements by `psql`, as an operator would. Says what it printed.
pub fn run_sql(url: &str, sql: &str) -> String {
    try_sql(url, sql).unwrap_or_else(|said| panic!("{sql}: {said}"))
}

/// The same, where it may go wrong: then what was said about it.
pub fn try_sql(url: &str, sql: &str) -> Result<String, String> {
    let psql = Command::new(program("psql"))
        .args([
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "-v",
            "ON_ERROR_STOP=1",
            url,
            "-c",
            sql,
        ])
        .output()
        .unwrap();
    if psql.status.success() {
        return Ok(String::from_utf8(psql.stdout).unwrap().trim().to_owned());
    }
    Err(String::from_utf8_lossy(&psql.stderr).into_owned())
}

/// Hands statements to `psql` one after the other: it goes on when one fails, as it does for whoever asks for nothing else. Says what it
/// complained about.
pub fn pipe_sql(url: &str, sql: &str) -> String {
    let mut psql = Command::new(program("psql"));
    psql.args(["--no-psqlrc", "--quiet", url]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut psql = psql.stderr(Stdio::piped()).spawn().unwrap();
    psql.stdin.take().unwrap().write_all(sql.as_bytes()).unwrap();
    let said = psql.wait_with_output().unwrap().stderr;
    String::from_utf8_lossy(&said).into_owned()
}

/// Debian keeps the programs of a server apart from those on the path.
fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let program = entry.path().join("bin").join(name);
        program.exists().then_some((version, program))
    });
    newest.max().map_or_else(|| Path::new(name).to_owned(), |(_, program)| program)
}

/// PostgreSQL does not run as root: whoever is root takes the user that its package made, or nobody.
fn other_user() -> Option<(u32, u32)> {
    if !rustix::process::getuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut parts = line.split(':').skip(2).map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    };
    Some(ids("postgres").or_else(|| ids("nobody")).unwrap_or((65_534, 65_534)))
}

fn as_other(mut command: Command) -> Command {
    if let Some((user, group)) = other_user() {
        command.uid(user).gid(group);
    }
    command
}
