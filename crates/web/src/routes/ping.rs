//! Whether somebody is there, and whether all is well behind them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use rota_model::node::NodeRole;
use serde::Serialize;

use crate::app::App;
use crate::problem::Problem;

/// Says `pong`.
#[utoipa::path(get, path = "/api/ping", tag = "installation", security(()),
    responses((status = 200, description = "The process answers", body = String, content_type = "text/plain")))]
pub(crate) async fn ping() -> &'static str {
    "pong"
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Health {
    Okay,
    PartialSuccess,
    Error,
}

/// What was looked at, and how it is.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Check {
    #[schema(example = "store")]
    name: &'static str,
    status: Health,
    /// What to do about it, where it is not okay.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'static str>,
}

impl Check {
    fn new(name: &'static str, fault: Option<(Health, &'static str)>) -> Self {
        let status = fault.map_or(Health::Okay, |(health, _)| health);
        Self { name, status, detail: fault.map(|(_, detail)| detail) }
    }
}

#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct DeepPing {
    /// That of the worst check.
    status: Health,
    checks: Vec<Check>,
}

/// Says whether the store answers and jobs are run.
#[utoipa::path(get, path = "/api/deep_ping", tag = "installation", security(("api_key" = ["signed-in"])),
    responses((status = 200, description = "It works, at least in part", body = DeepPing),
        (status = 503, description = "It does not; a problem, if not even the key can be looked up",
            content((DeepPing = "application/json"), (Problem = "application/problem+json"))),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn deep_ping(State(app): State<Arc<App>>) -> (StatusCode, Json<DeepPing>) {
    let nodes = app.fleet.all().await;
    let away = "the store does not answer: see the log of this node, and whether its disk is full";
    let nobody = "no node runs jobs: they are accepted, and wait; see the list of nodes";
    let works = |nodes: &[_]| {
        nodes.iter().any(|node: &rota_model::node::NodeState| node.takes_part(NodeRole::Processor))
    };
    let checks = vec![
        Check::new("store", nodes.is_err().then_some((Health::Error, away))),
        Check::new(
            "processors",
            match &nodes {
                Ok(nodes) if !works(nodes) => Some((Health::PartialSuccess, nobody)),
                Ok(_) => None,
                Err(_) => Some((Health::Error, away)),
            },
        ),
    ];
    let status = checks.iter().map(|check| check.status).max().unwrap_or(Health::Okay);
    let code = if status == Health::Error { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    (code, Json(DeepPing { status, checks }))
}
