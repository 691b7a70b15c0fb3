//! What `rota up` is told: a file, then the environment, then flags, read once into a checked type. An unknown key is
//! an error that names the nearest known one. Commands that work on its folder find it in the same way.

mod handlers;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rota_engine::meter::KEPT;
use rota_handlers::exec::ExecSettings;
use rota_handlers::http::HttpSettings;
use rota_model::keep::Keep;
use rota_model::log::Level;
use rota_model::node::NodeRole;
use rota_store_sqlite::durability::Durability;
use rota_traces::{Endpoint, NoEndpoint};
use serde::Deserialize;

use crate::arguments;
use crate::config::handlers::{EXEC_KEYS, ExecTable, HTTP_KEYS, HttpTable};
use crate::exit::{Exit, Failure};
use crate::stores::StoreAt;

const DEFAULT_FILE: &str = "rota.toml";
const DEFAULT_DATA: &str = "./rota-data";
const DEFAULT_LISTEN: &str = "127.0.0.1:7682";
const DEFAULT_CAPACITY: u32 = 64;
const MAX_CAPACITY: u32 = 10_000;
const DEFAULT_GRACE: Duration = Duration::from_secs(5);
const MAX_GRACE: Duration = Duration::from_secs(60 * 60);
/// What is lost with the power must stay little, and a disk cannot be asked more often than it answers.
const WITHIN: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10);
const KEYS: [&str; 14] = [
    "data",
    "store",
    "roles",
    "listen",
    "name",
    "capacity",
    "node_control",
    "grace",
    "durability",
    "log_level",
    "keep_metrics",
    "http",
    "exec",
    "traces",
];
/// Keys that are tables, with the keys of those.
const TABLES: [(&str, &[&str]); 3] = [("http", &HTTP_KEYS), ("exec", &EXEC_KEYS), ("traces", &["endpoint"])];
/// What the environment may say to any command of this program.
const VARIABLES: [&str; 18] = [
    "ROTA_CONFIG",
    "ROTA_DATA",
    "ROTA_STORE",
    "ROTA_ROLES",
    "ROTA_LISTEN",
    "ROTA_NAME",
    "ROTA_CAPACITY",
    "ROTA_NODE_CONTROL",
    "ROTA_GRACE",
    "ROTA_DURABILITY",
    "ROTA_LOG_LEVEL",
    "ROTA_TRACES_ENDPOINT",
    "ROTA_KEEP_METRICS",
    "ROTA_BOOTSTRAP_KEY",
    "ROTA_URL",
    "ROTA_API_KEY",
    "ROTA_DOMAIN",
    "ROTA_LOG",
];

/// Flags of `rota up`; each may also stand in the environment.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct UpArgs {
    /// Folder for who this node is and for the embedded store; it is made if it is not there [default: ./rota-data]
    #[arg(long, value_name = "DIR", env = "ROTA_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// Address and port to listen on; port 0 takes a free one [default: 127.0.0.1:7682]
    #[arg(long, value_name = "ADDR", env = "ROTA_LISTEN")]
    pub(crate) listen: Option<String>,
    /// Name of this node [default: the name of the machine]
    #[arg(long, value_name = "NAME", env = "ROTA_NAME")]
    pub(crate) name: Option<String>,
    /// How many jobs run at once [default: 64]
    #[arg(long, value_name = "N", env = "ROTA_CAPACITY")]
    pub(crate) capacity: Option<u32>,
    /// Whether administrators may pause and drain this node [default: true]
    #[arg(long, value_name = "true|false", env = "ROTA_NODE_CONTROL")]
    pub(crate) node_control: Option<bool>,
    /// How long running jobs may finish when this node stops or is drained [default: 5s]
    #[arg(long, value_name = "SPAN", env = "ROTA_GRACE")]
    pub(crate) grace: Option<String>,
    /// When what is acknowledged is on disk: `disk` for before, 50ms for that much later at most [default: disk]
    #[arg(long, value_name = "disk|SPAN", env = "ROTA_DURABILITY")]
    pub(crate) durability: Option<String>,
    /// Least level of the lines that are kept: debug, info, warn or error [default: info]
    #[arg(long, value_name = "LEVEL", env = "ROTA_LOG_LEVEL")]
    pub(crate) log_level: Option<String>,
    /// Collector that spans are sent to, by OTLP over HTTP [default: none, and nothing is traced]
    #[arg(long, value_name = "URL", env = "ROTA_TRACES_ENDPOINT")]
    pub(crate) traces_endpoint: Option<String>,
    /// How long metrics are kept: hours or days such as 7d, or forever [default: 7d]
    #[arg(long, value_name = "SPAN|forever", env = "ROTA_KEEP_METRICS")]
    pub(crate) keep_metrics: Option<String>,
    /// File with these settings [default: rota.toml, if it is there]
    #[arg(long, value_name = "FILE", env = "ROTA_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

/// Flags of `rota serve`: those of `rota up`, and what a node of a cluster is told besides.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct ServeArgs {
    /// Store that all nodes share: postgres://USER:PASSWORD@HOST/DATABASE, or sqlite:DIR for one node alone
    #[arg(long, value_name = "URL", env = "ROTA_STORE", hide_env_values = true)]
    pub(crate) store: Option<String>,
    /// What this node does: web, processor, or both with a comma [default: web,processor]
    #[arg(long, value_name = "ROLES", env = "ROTA_ROLES")]
    pub(crate) roles: Option<String>,
    #[command(flatten)]
    pub(crate) node: UpArgs,
}

/// The folder that a command works on by itself, whether or not a Rota is running there.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct FolderArgs {
    /// Folder of the store [default: the one that `rota up` takes, ./rota-data]
    #[arg(long, value_name = "DIR", env = "ROTA_DATA")]
    data: Option<PathBuf>,
    /// File with the settings of `rota up` [default: rota.toml, if it is there]
    #[arg(long, value_name = "FILE", env = "ROTA_CONFIG")]
    config: Option<PathBuf>,
}

impl FolderArgs {
    pub(crate) fn folder(self) -> Result<PathBuf, Failure> {
        match self.data {
            Some(folder) => Ok(folder),
            None => Ok(read_file(self.config.as_deref())?.data.unwrap_or_else(|| DEFAULT_DATA.into())),
        }
    }
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// Where the node keeps who it is and, if it is the embedded one, the store.
    pub(crate) data: PathBuf,
    pub(crate) store: StoreAt,
    pub(crate) roles: Vec<NodeRole>,
    pub(crate) listen: SocketAddr,
    pub(crate) name: String,
    pub(crate) capacity: u32,
    pub(crate) node_control: bool,
    pub(crate) grace: Duration,
    pub(crate) durability: Durability,
    pub(crate) log_level: Level,
    pub(crate) keep_metrics: Keep,
    pub(crate) http: HttpSettings,
    pub(crate) exec: ExecSettings,
    /// Where spans are sent, if anywhere.
    pub(crate) traces: Option<Endpoint>,
}

#[derive(Debug, Default, Deserialize)]
struct File {
    data: Option<PathBuf>,
    store: Option<String>,
    roles: Option<String>,
    listen: Option<String>,
    name: Option<String>,
    capacity: Option<u32>,
    node_control: Option<bool>,
    grace: Option<String>,
    durability: Option<String>,
    log_level: Option<String>,
    keep_metrics: Option<String>,
    #[serde(default)]
    http: HttpTable,
    #[serde(default)]
    exec: ExecTable,
    #[serde(default)]
    traces: TracesTable,
}

#[derive(Debug, Default, Deserialize)]
struct TracesTable {
    endpoint: Option<String>,
}

impl Config {
    /// For `rota up`: everything in one process, in one folder.
    pub(crate) fn read(args: UpArgs, environment: impl Iterator<Item = OsString>) -> Result<Self, Failure> {
        check_variables(environment)?;
        let file = read_file(args.config.as_deref())?;
        if std::env::var_os("ROTA_STORE").is_some() || file.store.is_some() {
            let why = "a store is named, and `rota up` has its own: use `rota serve`, or leave the store out";
            return Err(refused(why.to_owned()));
        }
        Self::of(args, file, None, None)
    }

    /// For `rota serve`.
    pub(crate) fn read_shared(
        args: ServeArgs,
        environment: impl Iterator<Item = OsString>,
    ) -> Result<Self, Failure> {
        check_variables(environment)?;
        let mut file = read_file(args.node.config.as_deref())?;
        let (store, roles) = (args.store.or(file.store.take()), args.roles.or(file.roles.take()));
        let unnamed = "name the store that the nodes share: --store postgres://USER:PASSWORD@HOST/DATABASE";
        let store = StoreAt::parse(&store.ok_or_else(|| refused(unnamed.to_owned()))?)?;
        let roles = roles.map(|roles| parse_roles(&roles)).transpose()?;
        Self::of(args.node, file, Some(store), roles)
    }

    fn of(
        args: UpArgs,
        file: File,
        store: Option<StoreAt>,
        roles: Option<Vec<NodeRole>>,
    ) -> Result<Self, Failure> {
        let listen = args.listen.or(file.listen).unwrap_or_else(|| DEFAULT_LISTEN.to_owned());
        let data = args.data.or(file.data).unwrap_or_else(|| DEFAULT_DATA.into());
        let config = Self {
            store: store.unwrap_or_else(|| StoreAt::Folder(data.clone())),
            roles: roles.unwrap_or_else(|| vec![NodeRole::Web, NodeRole::Processor, NodeRole::Observer]),
            data,
            listen: listen.parse().map_err(|_| {
                refused(format!(
                    "'{listen}' is not an address and port to listen on, such as {DEFAULT_LISTEN}"
                ))
            })?,
            name: args.name.or(file.name).unwrap_or_else(machine_name),
            capacity: args.capacity.or(file.capacity).unwrap_or(DEFAULT_CAPACITY),
            node_control: args.node_control.or(file.node_control).unwrap_or(true),
            grace: args.grace.or(file.grace).map_or(Ok(DEFAULT_GRACE), |text| grace(&text))?,
            durability: args
                .durability
                .or(file.durability)
                .map_or(Ok(Durability::OnDisk), |text| durability(&text))?,
            log_level: args.log_level.or(file.log_level).map_or(Ok(Level::Info), |text| level(&text))?,
            keep_metrics: args.keep_metrics.or(file.keep_metrics).map_or(Ok(KEPT), |text| keep(&text))?,
            http: file.http.settings().map_err(refused)?,
            exec: file.exec.settings().map_err(refused)?,
            traces: endpoint(args.traces_endpoint.or(file.traces.endpoint))?,
        };
        config.check()?;
        Ok(config)
    }

    /// Whether the node answers requests.
    pub(crate) fn is_open(&self) -> bool {
        self.roles.contains(&NodeRole::Web)
    }

    fn check(&self) -> Result<(), Failure> {
        if !(1..=MAX_CAPACITY).contains(&self.capacity) {
            return Err(refused(format!(
                "capacity must be from 1 to {MAX_CAPACITY}; it is {}",
                self.capacity
            )));
        }
        if matches!(self.store, StoreAt::Postgres(_)) && self.durability != Durability::OnDisk {
            return Err(refused(
                "durability is for the embedded store: in PostgreSQL what is acknowledged is always on disk"
                    .to_owned(),
            ));
        }
        let mut check = rota_model::check::Checker::new();
        check.line("name", &self.name, 1..=rota_model::check::MAX_NAME_CHARS);
        check.finish().map_err(|invalid| refused(invalid.to_string()))
    }
}

/// The observer is the role behind the page, and comes with it.
fn parse_roles(text: &str) -> Result<Vec<NodeRole>, Failure> {
    let mut roles = Vec::new();
    for name in text.split(',').map(str::trim) {
        match name {
            "web" => roles.extend([NodeRole::Web, NodeRole::Observer]),
            "processor" => roles.push(NodeRole::Processor),
            _ => {
                return Err(refused(format!("roles are web and processor, divided by commas; not '{name}'")));
            }
        }
    }
    roles.sort_unstable();
    roles.dedup();
    Ok(roles)
}

fn grace(text: &str) -> Result<Duration, Failure> {
    let span = arguments::span(text).ok().filter(|span| *span <= MAX_GRACE);
    span.ok_or_else(|| refused(format!("grace must be a span from 0s to 1h, such as 5s; it is '{text}'")))
}

fn durability(text: &str) -> Result<Durability, Failure> {
    if text == "disk" {
        return Ok(Durability::OnDisk);
    }
    let span = arguments::span(text).ok().filter(|span| WITHIN.contains(span));
    span.map(Durability::Within).ok_or_else(|| {
        refused(format!("durability must be disk, or a span from 1ms to 10s such as 50ms; it is '{text}'"))
    })
}

/// An empty one switches off what the file says.
fn endpoint(text: Option<String>) -> Result<Option<Endpoint>, Failure> {
    let text = text.filter(|text| !text.is_empty());
    let parsed = text.map(|text| text.parse()).transpose();
    parsed.map_err(|error: NoEndpoint| refused(format!("traces.endpoint: {error}")))
}

fn level(text: &str) -> Result<Level, Failure> {
    let refused =
        |_| refused(format!("log_level must be one of debug, info, warn and error; it is '{text}'"));
    arguments::named_level(text).map_err(refused)
}

fn keep(text: &str) -> Result<Keep, Failure> {
    let refused = |why| refused(format!("keep_metrics {why}; it is '{text}'"));
    arguments::keep(text).map_err(refused)
}

fn read_file(named: Option<&Path>) -> Result<File, Failure> {
    let path = named.unwrap_or(Path::new(DEFAULT_FILE));
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
            return Ok(File::default());
        }
        Err(error) => return Err(refused(format!("{} cannot be read: {error}", path.display()))),
    };
    parse_file(&text).map_err(|why| refused(format!("{}: {why}", path.display())))
}

fn parse_file(text: &str) -> Result<File, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.message().to_owned())?;
    check_keys(&table, "", &KEYS)?;
    for (name, known) in TABLES {
        match table.get(name) {
            None => {}
            Some(toml::Value::Table(inner)) => check_keys(inner, &format!("{name}."), known)?,
            Some(_) => return Err(format!("'{name}' is a table: its settings stand below a line [{name}]")),
        }
    }
    table.try_into().map_err(|error: toml::de::Error| error.message().to_owned())
}

fn check_keys(table: &toml::Table, before: &str, known: &[&'static str]) -> Result<(), String> {
    let Some(unknown) = table.keys().find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
    let meant = nearest(unknown, known);
    Err(format!("unknown key '{before}{unknown}'; did you mean '{before}{meant}'?"))
}

fn check_variables(environment: impl Iterator<Item = OsString>) -> Result<(), Failure> {
    for name in environment.filter_map(|name| name.into_string().ok()) {
        if name.starts_with("ROTA_") && !VARIABLES.contains(&name.as_str()) {
            let known = nearest(&name, &VARIABLES);
            return Err(refused(format!("unknown setting {name} in the environment; did you mean {known}?")));
        }
    }
    Ok(())
}

fn nearest(word: &str, known: &[&'static str]) -> &'static str {
    known
        .iter()
        .copied()
        .min_by_key(|candidate| strsim::damerau_levenshtein(word, candidate))
        .unwrap_or_default()
}

fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "rota".to_owned() } else { name.to_owned() }
}

fn refused(message: String) -> Failure {
    Failure::new(Exit::Refused, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: UpArgs) -> Result<Config, Failure> {
        Config::read(args, std::iter::empty())
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rota.toml");
        std::fs::write(&path, "listen = \"127.0.0.1:9\"\ncapacity = 3\n").unwrap();
        let args = UpArgs { config: Some(path), capacity: Some(4), ..UpArgs::default() };
        let config = read(args).unwrap();
        assert_eq!((config.listen.port(), config.capacity), (9, 4));
        assert_eq!(config.data, PathBuf::from(DEFAULT_DATA));
    }

    #[test]
    fn a_command_finds_the_folder_where_rota_up_would() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rota.toml");
        std::fs::write(&path, "data = \"elsewhere\"\n").unwrap();
        let found = |data: Option<&str>, config: Option<&Path>| {
            let args = FolderArgs { data: data.map(Into::into), config: config.map(Into::into) };
            args.folder().unwrap()
        };
        assert_eq!(found(None, None), PathBuf::from(DEFAULT_DATA));
        assert_eq!(found(None, Some(&path)), PathBuf::from("elsewhere"));
        assert_eq!(found(Some("here"), Some(Path::new("no/such/file.toml"))), PathBuf::from("here"));
    }

    #[test]
    fn an_unknown_key_names_the_nearest() {
        assert_eq!(parse_file("lisen = \"x\"").unwrap_err(), "unknown key 'lisen'; did you mean 'listen'?");
        let unknown = parse_file("[http]\nallow_privat = true").unwrap_err();
        assert_eq!(unknown, "unknown key 'http.allow_privat'; did you mean 'http.allow_private'?");
        let unknown = check_variables(["ROTA_LISTN".into()].into_iter()).unwrap_err();
        assert!(unknown.message.contains("did you mean ROTA_LISTEN?"), "{}", unknown.message);
    }

    /// Who asks for what a store does not do is told so, and does not rely on it.
    #[test]
    fn what_is_acknowledged_later_is_for_the_embedded_store() {
        let serve = |store: &str, durability: &str| {
            let node = UpArgs { durability: Some(durability.to_owned()), ..UpArgs::default() };
            let args = ServeArgs { store: Some(store.to_owned()), node, ..ServeArgs::default() };
            Config::read_shared(args, std::iter::empty())
        };
        let refused = serve("postgres://rota@db/rota", "50ms").unwrap_err();
        assert!(refused.message.contains("durability is for the embedded store"), "{}", refused.message);
        assert!(serve("postgres://rota@db/rota", "disk").is_ok());
        assert!(serve("sqlite:./data", "50ms").is_ok());
    }

    #[test]
    fn how_a_node_lives_and_ends_can_be_said() {
        let config = read(UpArgs::default()).unwrap();
        assert_eq!((config.node_control, config.grace), (true, Duration::from_secs(5)));
        assert_eq!((config.durability, config.log_level), (Durability::OnDisk, Level::Info));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rota.toml");
        std::fs::write(
            &path,
            "node_control = false\ngrace = \"0s\"\ndurability = \"50ms\"\nlog_level = \"WARN\"\n",
        )
        .unwrap();
        let config = read(UpArgs { config: Some(path), ..UpArgs::default() }).unwrap();
        assert_eq!((config.node_control, config.grace), (false, Duration::ZERO));
        assert_eq!(config.durability, Durability::Within(Duration::from_millis(50)));
        assert_eq!(config.log_level, Level::Warn);
        assert_eq!(config.keep_metrics.to_string(), "7d");
        for (text, good) in [("12h", true), ("forever", true), ("7", false), ("5m", false), ("0d", false)] {
            let args = UpArgs { keep_metrics: Some(text.to_owned()), ..UpArgs::default() };
            assert_eq!(read(args).is_ok(), good, "{text}");
        }
        for text in ["", "5", "2h", "long"] {
            assert!(read(UpArgs { grace: Some(text.to_owned()), ..UpArgs::default() }).is_err(), "{text}");
        }
        for text in ["", "0ms", "11s", "disc"] {
            assert!(
                read(UpArgs { durability: Some(text.to_owned()), ..UpArgs::default() }).is_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(read(UpArgs { listen: Some("everywhere".to_owned()), ..UpArgs::default() }).is_err());
        assert!(read(UpArgs { capacity: Some(0), ..UpArgs::default() }).is_err());
        assert!(read(UpArgs { config: Some("no/such/file.toml".into()), ..UpArgs::default() }).is_err());
    }
}
