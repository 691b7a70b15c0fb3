//! The contract, for programs.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;

static DOCUMENT: LazyLock<String> =
    LazyLock::new(|| crate::contract::document().to_json().unwrap_or_default());

/// The OpenAPI document of this API.
#[utoipa::path(get, path = "/api/v1/openapi.json", tag = "installation",
    operation_id = "contract", security(("api_key" = ["signed-in"])),
    responses((status = 200, description = "The document", content_type = "application/json")))]
pub(crate) async fn show() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str())
}
