//! The fleet: who is in it, and what is wanted of a node. A node hears of a wish within about a second.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use rota_model::ids::NodeId;
use rota_model::node::NodeState;

use crate::app::App;
use crate::extract::PathOf;
use crate::problem::Problem;
use crate::routes::etag;
use crate::routes::list::List;

/// Every node, by name.
#[utoipa::path(get, path = "/api/v1/nodes", tag = "nodes", security(("api_key" = ["installation"])),
    responses((status = 200, description = "The `state` documents", body = List<NodeState>),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Json<List<NodeState>>, Problem> {
    Ok(Json(List::new(app.fleet.all().await?, None)))
}

/// Lets a node begin nothing new until it is resumed.
///
/// It lasts over restarts of the node. What runs there goes on.
#[utoipa::path(post, path = "/api/v1/nodes/{id}/pause", tag = "nodes", security(("api_key" = ["installation"])),
    params(("id" = uuid::Uuid, Path)),
    responses((status = 200, description = "It is to pause: its `state` document", body = NodeState),
        (status = 403, description = "Its configuration forbids it, or the caller is no administrator",
            body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "It is terminated", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn pause(
    State(app): State<Arc<App>>,
    PathOf(id): PathOf<NodeId>,
) -> Result<impl IntoResponse, Problem> {
    let state = app.fleet.pause(id).await?;
    Ok((etag::of(state.version), Json(state.document)))
}

/// Lets a node work again that was paused or drained.
#[utoipa::path(post, path = "/api/v1/nodes/{id}/resume", tag = "nodes", security(("api_key" = ["installation"])),
    params(("id" = uuid::Uuid, Path)),
    responses((status = 200, description = "It is to work: its `state` document", body = NodeState),
        (status = 403, description = "Its configuration forbids it, or the caller is no administrator",
            body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "It is terminated", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn resume(
    State(app): State<Arc<App>>,
    PathOf(id): PathOf<NodeId>,
) -> Result<impl IntoResponse, Problem> {
    let state = app.fleet.resume(id).await?;
    Ok((etag::of(state.version), Json(state.document)))
}

/// Lets a node begin nothing new, and give back what it does not finish within its grace.
///
/// It ends when the node is resumed or starts again.
#[utoipa::path(post, path = "/api/v1/nodes/{id}/drain", tag = "nodes", security(("api_key" = ["installation"])),
    params(("id" = uuid::Uuid, Path)),
    responses((status = 200, description = "It is to drain: its `state` document", body = NodeState),
        (status = 403, description = "Its configuration forbids it, or the caller is no administrator",
            body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "It is terminated", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn drain(
    State(app): State<Arc<App>>,
    PathOf(id): PathOf<NodeId>,
) -> Result<impl IntoResponse, Problem> {
    let state = app.fleet.drain(id).await?;
    Ok((etag::of(state.version), Json(state.document)))
}
