//! People and programs.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use rota_model::user::{NewUser, UserId, UserSettings, UserView};

use crate::access::Caller;
use crate::app::App;
use crate::extract::{JsonBody, PathOf, QueryOf};
use crate::problem::{Kind, Problem};
use crate::routes::etag;
use crate::routes::list::{List, PageQuery};

/// Every user, by id.
#[utoipa::path(get, path = "/api/v1/users", tag = "users", security(("api_key" = ["installation"])),
    params(PageQuery),
    responses((status = 200, description = "By id", body = List<UserView>),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    QueryOf(page): QueryOf<PageQuery>,
) -> Result<Json<List<UserView>>, Problem> {
    let (users, next) = app.accounts.users(page.limit()?, page.cursor()?).await?;
    let views = users.into_iter().map(|user| user.document.into()).collect();
    Ok(Json(List::new(views, next.as_ref())))
}

/// Makes a user. It has no key yet.
#[utoipa::path(post, path = "/api/v1/users", tag = "users", security(("api_key" = ["installation"])),
    request_body = NewUser,
    responses((status = 201, description = "It is there", body = UserView),
        (status = 409, description = "There is one of that id", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    JsonBody(new): JsonBody<NewUser>,
) -> Result<(StatusCode, Json<UserView>), Problem> {
    let (id, settings) = new.into_parts();
    let taken = Problem::new(Kind::CONFLICT, format!("there is a user {id} already"));
    let user = app.accounts.create_user(id, settings).await?.ok_or(taken)?;
    Ok((StatusCode::CREATED, Json(user.into())))
}

/// One user.
#[utoipa::path(get, path = "/api/v1/users/{id}", tag = "users", security(("api_key" = ["installation"])),
    params(("id" = UserId, Path, description = "Such as local:alice"),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of the document as you know it")),
    responses((status = 200, description = "The user", body = UserView),
        (status = 304, description = "It is as you know it"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    PathOf(id): PathOf<UserId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let user = app.accounts.user(&id).await?.ok_or_else(|| Problem::not_found("user"))?;
    Ok(etag::answer(&headers, user.version, &UserView::from(user.document)))
}

/// Sets what a user may do. Whoever administers the installation cannot take that away from themselves.
#[utoipa::path(put, path = "/api/v1/users/{id}", tag = "users", security(("api_key" = ["installation"])),
    params(("id" = UserId, Path, description = "Such as local:alice")),
    request_body = UserSettings,
    responses((status = 200, description = "As it is now", body = UserView),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn set(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    PathOf(id): PathOf<UserId>,
    headers: HeaderMap,
    JsonBody(settings): JsonBody<UserSettings>,
) -> Result<impl IntoResponse, Problem> {
    let before = app.accounts.user(&id).await?.ok_or_else(|| Problem::not_found("user"))?;
    etag::must_match(&headers, before.version)?;
    if id == caller.user && !settings.installation_admin {
        return Err(keeps_itself());
    }
    let after = app.accounts.set_user(&id, settings).await?.ok_or_else(|| Problem::not_found("user"))?;
    Ok((etag::of(after.version), Json(UserView::from(after.document))))
}

/// Removes a user with all its keys.
#[utoipa::path(delete, path = "/api/v1/users/{id}", tag = "users", security(("api_key" = ["installation"])),
    params(("id" = UserId, Path, description = "Such as local:alice")),
    responses((status = 204, description = "It is gone"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    PathOf(id): PathOf<UserId>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    if id == caller.user {
        return Err(keeps_itself());
    }
    let user = app.accounts.user(&id).await?.ok_or_else(|| Problem::not_found("user"))?;
    etag::must_match(&headers, user.version)?;
    if app.accounts.delete_user(&user).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(etag::overtaken(&headers, "user"))
}

fn keeps_itself() -> Problem {
    Problem::new(Kind::CONFLICT, "an administrator cannot lock itself out: let another administrator do it")
}
