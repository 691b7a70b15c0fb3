//! Timers: what a schedule comes to.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use rota_calendar::{Calendar, only_known_fields};
use rota_model::check::Checker;
use rota_model::domain::Domain;
use rota_model::timer::preview::{Preview, PreviewRequest, USUAL_PREVIEW};

use crate::app::App;
use crate::extract::{JsonBody, PathOf};
use crate::problem::Problem;

/// The next instants of a schedule, each in UTC and in local time, with a note where a change of the clocks touched it. Nothing is
/// saved.
///
/// A schedule with `max_executions` is shown as if none had fired yet. What is never due again has no instants, and a note that says
/// so.
#[utoipa::path(post, path = "/api/v1/domains/{domain}/timers/preview", tag = "timers",
    security(("api_key" = ["viewer"])),
    params(("domain" = Domain, Path)),
    request_body = PreviewRequest,
    responses((status = 200, description = "In order; short if the schedule ends", body = Preview),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn preview(
    State(app): State<Arc<App>>,
    PathOf(_domain): PathOf<Domain>,
    JsonBody(request): JsonBody<PreviewRequest>,
) -> Result<Json<Preview>, Problem> {
    let mut check = Checker::new();
    check.absorb(request.check());
    check.absorb(only_known_fields(&request.schedule));
    let calendar = Calendar::of(&request.schedule);
    check.absorb(calendar.as_ref().map(|_| ()).map_err(Clone::clone));
    check.finish()?;
    let from = request.from.unwrap_or_else(|| app.accounts.now());
    let calendar = calendar?;
    let items = calendar.preview(from, request.count.unwrap_or(USUAL_PREVIEW));
    Ok(Json(Preview { items, note: calendar.why_never(from) }))
}
