//! The observer about itself.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use crate::app::App;
use crate::problem::Problem;
use crate::routes::events::must_observe;

/// What the observer of this process does.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObserverView {
    /// How many streams of events are open here.
    pub listeners: u64,
}

/// How many listen. How many messages reach the observer, and how soon, is among the metrics.
#[utoipa::path(get, path = "/api/v1/observer", tag = "events", security(("api_key" = ["installation"])),
    operation_id = "observer",
    responses((status = 200, description = "The observer of the process that answers", body = ObserverView),
        (status = 404, description = "A node without the role of observer", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn show(State(app): State<Arc<App>>) -> Result<Json<ObserverView>, Problem> {
    must_observe(&app)?;
    Ok(Json(ObserverView { listeners: app.observer.listeners() }))
}
