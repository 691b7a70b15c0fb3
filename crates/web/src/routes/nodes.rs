//! The fleet.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use rota_model::node::NodeState;

use crate::app::App;
use crate::problem::Problem;
use crate::routes::list::List;

/// Every node, by name.
#[utoipa::path(get, path = "/api/v1/nodes", tag = "nodes", security(("api_key" = ["installation"])),
    responses((status = 200, description = "The `state` documents", body = List<NodeState>),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Json<List<NodeState>>, Problem> {
    Ok(Json(List::new(app.fleet.all().await?, None)))
}
