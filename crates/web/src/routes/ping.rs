//! Whether somebody is there.

/// Says `pong`.
#[utoipa::path(get, path = "/api/ping", tag = "installation", security(()),
    responses((status = 200, description = "The process answers", body = String, content_type = "text/plain")))]
pub(crate) async fn ping() -> &'static str {
    "pong"
}
