//! What was measured: the buckets of all nodes, and this node's figures for Prometheus.
//!
//! Both tell of the whole installation, so they take a role in every domain: an administrator's key, which may be limited to the
//! role of a viewer.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use rota_model::check::Invalid;
use rota_model::metric::{MAX_METRIC_NAME_CHARS, MetricsBucket};
use rota_model::time::UnixMillis;
use serde::Deserialize;

use crate::app::App;
use crate::exposition::{self, Facts};
use crate::extract::QueryOf;
use crate::problem::Problem;
use crate::routes::list::{self, List};

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct MetricsQuery {
    /// Unix milliseconds; buckets that begin then or later.
    from: Option<i64>,
    /// Unix milliseconds; buckets that begin earlier than this.
    to: Option<i64>,
    /// Only this metric; buckets without it are left out.
    #[param(example = "queueWait", min_length = 1, max_length = 100)]
    name: Option<String>,
    /// How many, 50 if left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

/// What nodes measured, in buckets of five seconds, the oldest first.
///
/// Each bucket holds, by name of the metric and then by id of the node, a value and its units. A node adds its entries within
/// about a second after the bucket is over.
#[utoipa::path(get, path = "/api/v1/metrics", tag = "metrics", security(("api_key" = ["everywhere"])),
    params(MetricsQuery),
    responses((status = 200, description = "The `metrics` documents", body = List<MetricsBucket>),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    QueryOf(query): QueryOf<MetricsQuery>,
) -> Result<Json<List<MetricsBucket>>, Problem> {
    let (limit, after) = (list::limit(query.limit)?, list::cursor(query.cursor.as_deref())?);
    if query.name.as_ref().is_some_and(|name| !(1..=MAX_METRIC_NAME_CHARS).contains(&name.chars().count())) {
        let detail = format!("must have 1 to {MAX_METRIC_NAME_CHARS} characters");
        return Err(Invalid::one("/name", detail).into());
    }
    let from = UnixMillis(query.from.unwrap_or(0));
    let to = query.to.map_or(UnixMillis::MAX, UnixMillis);
    let (buckets, next) = app.board.buckets(from, to, query.name.as_deref(), limit, after).await?;
    Ok(Json(List::new(buckets, next.as_ref())))
}

/// This node's figures, for Prometheus.
///
/// In the text format 0.0.4. What the store has to be asked for is left out while it does not answer.
#[utoipa::path(get, path = "/metrics", tag = "metrics", security(("api_key" = ["everywhere"])),
    responses((status = 200, description = "The figures", body = String, content_type = "text/plain"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn scrape(State(app): State<Arc<App>>) -> impl IntoResponse {
    let standing = app.board.standing().await;
    let standing = standing.inspect_err(|error| tracing::debug!(%error, "figures without the store's")).ok();
    let facts = Facts { version: app.board.version(), began: app.board.began(), standing };
    let text = exposition::text(app.board.reading().as_ref(), &facts);
    ([(header::CONTENT_TYPE, exposition::CONTENT_TYPE)], text)
}
