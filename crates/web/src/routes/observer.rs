//! The observer about itself.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use crate::app::App;
use crate::problem::Problem;

/// What the observer of this process does.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObserverFigures {
    /// How many streams of events are open here.
    pub listeners: u64,
    /// How many messages about changes reached it since the process began. While nobody listens, it takes none.
    pub messages: u64,
    /// How long a message took from the change to the observer, on average.
    pub latency_ms_mean: f64,
    pub latency_ms_max: u64,
}

/// How many listen, and how soon they hear.
#[utoipa::path(get, path = "/api/v1/observer", tag = "events", security(("api_key" = ["installation"])),
    operation_id = "figures",
    responses((status = 200, description = "The observer of the process that answers", body = ObserverFigures),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn show(State(app): State<Arc<App>>) -> Json<ObserverFigures> {
    let figures = app.observer.figures();
    #[expect(clippy::cast_precision_loss, reason = "a mean is no exact number")]
    let latency_ms_mean = figures.latency_ms_sum as f64 / figures.measured.max(1) as f64;
    Json(ObserverFigures {
        listeners: figures.listeners,
        messages: figures.messages,
        latency_ms_mean,
        latency_ms_max: figures.latency_ms_max,
    })
}
