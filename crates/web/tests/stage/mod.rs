//! The web service on an in-memory store, with people in two domains, called without a network.
#![expect(dead_code, reason = "each test file uses a part of it")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use rota_engine::handler::{Context, Handler, HandlerError};
use rota_engine::journal::Journal;
use rota_engine::meter::Meter;
use rota_engine::node::{Node, NodeOptions};
use rota_engine::surroundings::Surroundings;
use rota_engine::types::JobTypes;
use rota_model::domain::Domain;
use rota_model::ids::NodeId;
use rota_model::log::Level;
use rota_model::node::NodeRole;
use rota_model::user::{NewKey, Role, UserId, UserSettings};
use rota_store::memory::MemoryStore;
use rota_store::{Store, settings};
use rota_testkit::process::KEY;
use rota_testkit::surroundings::surroundings;
use rota_web::accounts::Accounts;
use rota_web::app::App;
use rota_web::server::router;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

pub(crate) struct Stage {
    pub(crate) app: Arc<App>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) router: Router,
    pub(crate) surroundings: Surroundings,
    pub(crate) stop: CancellationToken,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

/// The domains `default` (made at the start), `red` and `blue`.
pub(crate) async fn stage() -> Stage {
    stage_with(true).await
}

/// The same, on a node that may or may not be paused and drained.
pub(crate) async fn stage_with(controllable: bool) -> Stage {
    stage_of(vec![NodeRole::Web, NodeRole::Processor, NodeRole::Observer], controllable).await
}

/// The same, on a node with these roles.
pub(crate) async fn stage_of(roles: Vec<NodeRole>, controllable: bool) -> Stage {
    let (store, surroundings): (Arc<dyn Store>, _) = (Arc::new(MemoryStore::new()), surroundings());
    let settings = settings::open(Arc::clone(&store), surroundings.now().to_date()).await.unwrap();
    let options = NodeOptions {
        id: NodeId::derived(&["n"]),
        name: "n".to_owned(),
        version: "test".to_owned(),
        capacity: 4,
        roles,
        controllable,
        grace: Duration::from_millis(300),
        registry: true,
    };
    let mut types = JobTypes::built_in().unwrap();
    types.add("talk", &json!({}), Arc::new(Talker)).unwrap();
    let measured = surroundings.clone().measured_by(Meter::new());
    let heard = measured.clone().heard_by(Journal::new(options.id, Level::Info, &measured));
    let node = Node::join(Arc::clone(&store), &settings, options, Arc::new(types), heard).await.unwrap();
    let accounts = Accounts::new(&store, surroundings.clone());
    assert!(accounts.bootstrap(KEY).await.unwrap());
    for name in ["red", "blue"] {
        accounts.create_domain(name.parse().unwrap(), Default::default()).await.unwrap().unwrap();
    }
    let stop = CancellationToken::new();
    let app = Arc::new(App::new(&node, accounts, stop.clone()));
    tokio::spawn(node.run(stop.clone()));
    Stage { router: router(Arc::clone(&app)), app, store, surroundings, stop }
}

/// Says its payload's `lines`, each `[level, text]`.
struct Talker;

#[async_trait]
impl Handler for Talker {
    async fn run(&self, job: Context) -> Result<Map<String, Value>, HandlerError> {
        for line in job.payload.get("lines").and_then(Value::as_array).unwrap() {
            job.log(line[0].as_str().unwrap().parse().unwrap(), line[1].as_str().unwrap());
        }
        Ok(Map::new())
    }
}

impl Stage {
    /// A user with one role, and its key.
    pub(crate) async fn user(&self, name: &str, domain: &str, role: Role) -> String {
        let id: UserId = format!("local:{name}").parse().unwrap();
        let domain: Domain = domain.parse().unwrap();
        let settings = UserSettings { domains: [(domain, role)].into(), ..UserSettings::default() };
        self.app.accounts.create_user(id, settings).await.unwrap().unwrap();
        self.key(name, NewKey { name: "a key".to_owned(), ..NewKey::default() }).await
    }

    pub(crate) async fn key(&self, name: &str, new: NewKey) -> String {
        let id: UserId = format!("local:{name}").parse().unwrap();
        self.app.accounts.create_key(&id, new).await.unwrap().unwrap().0
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let streams = parts.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
        let bytes = if streams { Vec::new() } else { body.collect().await.unwrap().to_bytes().to_vec() };
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        Answer { status: parts.status, headers: parts.headers, body }
    }

    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: Option<Value>,
    ) -> Answer {
        let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(path);
        if let Some(key) = key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        let body = match body {
            Some(body) => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                Body::from(body.to_string())
            }
            None => Body::empty(),
        };
        self.send(request.body(body).unwrap()).await
    }

    /// Whatever bytes, under whatever name.
    pub(crate) async fn post_raw(&self, path: &str, kind: Option<&str>, body: impl Into<Body>) -> Answer {
        let mut request = Request::post(path).header(header::AUTHORIZATION, format!("Bearer {KEY}"));
        if let Some(kind) = kind {
            request = request.header(header::CONTENT_TYPE, kind);
        }
        self.send(request.body(body.into()).unwrap()).await
    }

    /// A change that was decided on a version.
    pub(crate) async fn change_on(&self, method: &str, path: &str, version: &str) -> Answer {
        let request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(path);
        let request = request.header(header::AUTHORIZATION, format!("Bearer {KEY}"));
        self.send(request.header(header::IF_MATCH, version).body(Body::empty()).unwrap()).await
    }

    /// What one gets who has a version already.
    pub(crate) async fn get_unless(&self, path: &str, known: &str) -> Answer {
        let request = Request::get(path).header(header::AUTHORIZATION, format!("Bearer {KEY}"));
        self.send(request.header(header::IF_NONE_MATCH, known).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, Some(KEY), None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, Some(KEY), Some(body)).await
    }
}
