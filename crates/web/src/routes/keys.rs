//! The keys of a user: made, listed, ended. A key is shown once, when it is made.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use rota_model::user::{KeyInfo, NewKey, UserId};
use serde::Serialize;

use crate::app::App;
use crate::extract::{JsonBody, PathOf};
use crate::problem::Problem;
use crate::routes::list::List;

/// What is known of a user's keys, sessions of browsers among them.
#[utoipa::path(get, path = "/api/v1/users/{id}/keys", tag = "users", operation_id = "list_keys",
    security(("api_key" = ["oneself"])),
    params(("id" = UserId, Path, description = "Such as local:alice")),
    responses((status = 200, description = "The oldest first", body = List<KeyInfo>),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    PathOf(id): PathOf<UserId>,
) -> Result<Json<List<KeyInfo>>, Problem> {
    let user = app.accounts.user(&id).await?.ok_or_else(|| Problem::not_found("user"))?;
    Ok(Json(List::new(user.document.keys, None)))
}

/// A new key: the only time it is seen.
#[derive(Serialize, utoipa::ToSchema)]
pub struct CreatedKey {
    #[schema(example = "rota_…")]
    pub key: String,
    pub info: KeyInfo,
}

/// Makes a key with at most the rights of its user.
#[utoipa::path(post, path = "/api/v1/users/{id}/keys", tag = "users", operation_id = "create_key",
    security(("api_key" = ["oneself"])),
    params(("id" = UserId, Path, description = "Such as local:alice")),
    request_body = NewKey,
    responses((status = 201, description = "The key, shown once", body = CreatedKey),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    PathOf(id): PathOf<UserId>,
    JsonBody(new): JsonBody<NewKey>,
) -> Result<(StatusCode, Json<CreatedKey>), Problem> {
    let made = app.accounts.create_key(&id, new).await?;
    let (key, info) = made.ok_or_else(|| Problem::not_found("user"))?;
    Ok((StatusCode::CREATED, Json(CreatedKey { key, info })))
}

/// Ends a key at once.
#[utoipa::path(delete, path = "/api/v1/users/{id}/keys/{keyId}", tag = "users", operation_id = "revoke_key",
    security(("api_key" = ["oneself"])),
    params(("id" = UserId, Path, description = "Such as local:alice"),
        ("keyId" = String, Path, description = "The id in the list of keys")),
    responses((status = 204, description = "It is good for nothing any more"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    PathOf((id, key_id)): PathOf<(UserId, String)>,
) -> Result<StatusCode, Problem> {
    if app.accounts.revoke_key(&id, &key_id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::not_found("key"))
    }
}
