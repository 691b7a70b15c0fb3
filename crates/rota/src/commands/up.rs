//! `rota up`: everything in one process, on the embedded store; and `rota serve`: one node of several, on a store that they
//! share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rota_engine::journal::Journal;
use rota_engine::meter::Meter;
use rota_engine::node::{Node, NodeOptions};
use rota_engine::surroundings::Surroundings;
use rota_engine::types::JobTypes;
use rota_handlers::exec::Exec;
use rota_handlers::http::{Http, Trust};
use rota_model::check::Invalid;
use rota_model::ids::NodeId;
use rota_store::{Store, StoreError};
use rota_store_sqlite::holder::{Holder, HolderError};
use rota_traces::{Exporter, Service};
use rota_web::accounts::Accounts;
use rota_web::app::App;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::banner::Kept;
use crate::clock::surroundings;
use crate::config::Config;
pub(crate) use crate::config::{ServeArgs, UpArgs};
use crate::exit::{Exit, Failure};
use crate::first_start::{self, FirstKey};
use crate::program::OwnTypes;
use crate::{banner, credentials, output, stores};

pub(crate) async fn run(args: UpArgs, own_types: OwnTypes) -> Result<(), Failure> {
    log_to_stderr();
    let config = Config::read(args, std::env::vars_os().map(|(name, _)| name))?;
    Box::pin(serve(config, own_types)).await
}

pub(crate) async fn run_shared(args: ServeArgs, own_types: OwnTypes) -> Result<(), Failure> {
    log_to_stderr();
    let config = Config::read_shared(args, std::env::vars_os().map(|(name, _)| name))?;
    Box::pin(serve(config, own_types)).await
}

async fn serve(config: Config, own_types: OwnTypes) -> Result<(), Failure> {
    allow_many_files();
    let surroundings = surroundings()?;
    let types = job_types(&config, &surroundings, own_types)?;
    let listener = if config.is_open() { Some(listen(&config).await?) } else { None };
    let address = listener.as_ref().and_then(|open| open.local_addr().ok()).unwrap_or(config.listen);
    let holder = Holder::take(&config.data, &who(&address, &surroundings))?;
    let opened = stores::open(&config, holder).await?;
    let store = &opened.store;

    let stop = CancellationToken::new();
    let address = display_address(address);
    let started = start(&config, &address, store, &surroundings, types, &stop).await?;
    let code = started.app.sign_in_code.issue(&surroundings);
    let banner = banner::text(&banner::Facts {
        address: &address,
        config: &config,
        code: &code,
        first_key: &started.first_key,
        kept: &started.kept,
    });
    if let Err(failure) = output::print(&banner) {
        tracing::warn!("nobody reads the address of the page: {}", failure.message);
    }

    let parts = TaskTracker::new();
    let desk = Arc::clone(&started.node.desk);
    let node = parts.spawn(started.node.run(stop.clone()));
    let (app, stopped) = (started.app, stop.clone());
    let web = parts.spawn(async move {
        match listener {
            Some(listener) => _ = rota_web::server::serve(listener, app).await,
            None => stopped.cancelled().await,
        }
    });
    parts.close();
    let told = tokio::select! {
        () = told() => true,
        // Neither ends by itself: whatever did, the rest must not go on as if nothing had happened.
        _ = node => false,
        _ = web => false,
    };
    stop.cancel();
    end_at_the_second_signal();
    say_what_is_waited_for(desk.running());
    let in_time = tokio::time::timeout(config.grace + STOP, parts.wait()).await.is_ok();
    if let Some(exporter) = started.exporter {
        exporter.finish(LAST_SPANS).await;
    }
    if told && in_time {
        return Ok(());
    }
    Err(Failure::new(Exit::Unreachable, "Rota did not stop in order; nothing acknowledged is lost"))
}

/// Connections are files too. What a system allows by default is for programs with few of them.
fn allow_many_files() {
    let allowed = getrlimit(Resource::Nofile);
    let most = allowed.maximum.map_or(MANY_FILES, |most| most.min(MANY_FILES));
    if allowed.current.is_some_and(|current| current < most) {
        // Who may not have more does with less.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..allowed });
    }
}

/// How many files are open at once at most.
const MANY_FILES: u64 = 32_768;

/// How long everything together may take to stop, once running jobs had their time to finish.
const STOP: Duration = Duration::from_secs(2);

/// How long sending the last spans may take then.
const LAST_SPANS: Duration = Duration::from_secs(1);

fn say_what_is_waited_for(running: usize) {
    let jobs = match running {
        0 => return,
        1 => "1 running job".to_owned(),
        count => format!("{count} running jobs"),
    };
    output::warn(&format!("waiting for {jobs}; press Ctrl-C again to stop at once"));
}

struct Started {
    node: Node,
    app: Arc<App>,
    first_key: Option<FirstKey>,
    kept: Kept,
    exporter: Option<Exporter>,
}

async fn start(
    config: &Config,
    address: &str,
    store: &Arc<dyn Store>,
    surroundings: &Surroundings,
    types: JobTypes,
    stop: &CancellationToken,
) -> Result<Started, Failure> {
    let settings = rota_store::settings::open(Arc::clone(store), surroundings.now().to_date()).await?;
    let accounts = Accounts::new(store, surroundings.clone());
    // Who serves nobody has no business with users; whoever comes to serve makes the first.
    let (first_key, kept) = if config.is_open() {
        let first = first_start::key(&settings, &accounts, surroundings).await?;
        let kept = keep_key(address, first.as_ref());
        (first, kept)
    } else {
        (None, Kept::Before)
    };
    let id = first_start::node_id(&config.data, surroundings)?;
    let exporter = exporter(config, id).await?;
    let traces = exporter.as_ref().map(Exporter::traces).unwrap_or_default();
    let meter = Meter::keeping(config.keep_metrics);
    let surroundings = surroundings.clone().measured_by(meter).traced_by(traces);
    let journal = Journal::new(id, config.log_level, &surroundings);
    let surroundings = &surroundings.heard_by(journal);
    let options = NodeOptions {
        id,
        name: config.name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        capacity: config.capacity,
        roles: config.roles.clone(),
        controllable: config.node_control,
        grace: config.grace,
        registry: true,
    };
    let node =
        Node::join(Arc::clone(store), &settings, options, Arc::new(types), surroundings.clone()).await?;
    let (first_key, kept) = match first_key {
        Some(first) if !first_start::run(store, &accounts, &node.desk, &first).await? => {
            (None, forget_key(address))
        }
        first_key => (first_key, kept),
    };
    let app = App::new(&node, accounts, stop.clone());
    Ok(Started { node, app: Arc::new(app), first_key, kept, exporter })
}

/// Whoever sends spans on, if a collector is named.
async fn exporter(config: &Config, id: NodeId) -> Result<Option<Exporter>, Failure> {
    let Some(endpoint) = config.traces.clone() else { return Ok(None) };
    let unsafe_there =
        |why| Failure::refused(format!("traces.endpoint: no secure connection to {endpoint}: {why}"));
    let tls =
        if endpoint.is_secure() { Some(Trust::System.config().await.map_err(unsafe_there)?) } else { None };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let service = Service { instance: id.to_string(), node: config.name.clone(), version };
    let started = Exporter::start(endpoint, &service, tls);
    started.map(Some).map_err(|error| Failure::refused(error.to_string()))
}

/// What is run here.
fn job_types(config: &Config, surroundings: &Surroundings, own: OwnTypes) -> Result<JobTypes, Failure> {
    let refused = |invalid: Invalid| Failure::refused(invalid.details());
    let mut types = types_of_rota(config, surroundings).map_err(refused)?;
    own.add_to(&mut types).map_err(refused)?;
    Ok(types)
}

/// Those that come with Rota.
fn types_of_rota(config: &Config, surroundings: &Surroundings) -> Result<JobTypes, Invalid> {
    let mut types = JobTypes::built_in()?;
    let http = Http::new(config.http.clone(), surroundings.clone());
    types.add("http", &Http::payload_schema(), Arc::new(http))?;
    if !config.exec.is_empty() {
        let exec = Exec::new(config.exec.clone());
        types.add("exec", &Exec::payload_schema(), Arc::new(exec))?;
    }
    Ok(types)
}

/// Whoever starts Rota twice in one folder most likely uses one port too: that the folder is in use says more then.
async fn listen(config: &Config) -> Result<TcpListener, Failure> {
    let address = config.listen;
    let error = match TcpListener::bind(address).await {
        Ok(listener) => return Ok(listener),
        Err(error) => error,
    };
    if error.kind() != std::io::ErrorKind::AddrInUse {
        return Err(Failure::new(Exit::Refused, format!("cannot listen on {address}: {error}")));
    }
    if config.data.is_dir() {
        Holder::take(&config.data, "a Rota that could not start")?;
    }
    let message = format!("{address} is in use by another program: stop it, or choose another with --listen");
    Err(Failure::new(Exit::Conflict, message))
}

/// Where a browser on this machine finds us.
fn display_address(mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    format!("http://{address}")
}

fn who(address: &SocketAddr, surroundings: &Surroundings) -> String {
    let since = surroundings.now().to_date();
    format!("Rota with process id {}, listening on {address} since {since:.0}", std::process::id())
}

/// Keeps the key for the command line. A folder that cannot be written is no reason not to start.
fn keep_key(address: &str, first: Option<&FirstKey>) -> Kept {
    let kept = match first {
        Some(first) => credentials::store(address, &first.key).map(Kept::In),
        None => credentials::set_current(address)
            .and_then(|()| credentials::load())
            .map(|known| if known.key_of(address).is_some() { Kept::Before } else { Kept::Nowhere }),
    };
    kept.unwrap_or_else(|error| {
        tracing::warn!("{}", error.message);
        Kept::Nowhere
    })
}

/// Another node was first, and its key is the one that is good.
fn forget_key(address: &str) -> Kept {
    if let Err(error) = credentials::forget(address) {
        tracing::warn!("{}", error.message);
    }
    Kept::Nowhere
}

fn end_at_the_second_signal() {
    tokio::spawn(async {
        told().await;
        std::process::exit(130);
    });
}

/// Until Ctrl-C or a request to terminate.
async fn told() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate());
    let terminated = async {
        match &mut terminate {
            Ok(signal) => signal.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated => {}
    }
}

fn log_to_stderr() {
    use std::io::IsTerminal as _;
    let filter = tracing_subscriber::EnvFilter::try_from_env("ROTA_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let _ = subscriber.with_ansi(colour).with_target(false).try_init();
}

/// A store that is not ours to use is refused input; everything else is a store that cannot be reached.
impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let exit =
            if matches!(error, StoreError::Refused { .. }) { Exit::Refused } else { Exit::Unreachable };
        Failure::new(exit, error.to_string())
    }
}

impl From<HolderError> for Failure {
    fn from(error: HolderError) -> Self {
        match &error {
            HolderError::Held { .. } => Failure::new(
                Exit::Conflict,
                format!("{error}; stop it, or choose another folder with --data"),
            ),
            HolderError::Unwritable { .. } => {
                Failure::new(Exit::Unreachable, format!("{error}; choose another with --data"))
            }
        }
    }
}
