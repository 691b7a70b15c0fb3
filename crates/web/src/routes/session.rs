//! Signing a browser in and out. A session is a key of the user that ends by itself; the cookie holds it, out of reach
//! of scripts and of other sites.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use rota_model::Extra;
use rota_model::user::{DomainRole, KeyHash, Rights, Session, UserId};
use serde::Deserialize;

use crate::access::{Caller, SESSION_COOKIE, session};
use crate::accounts::SESSION;
use crate::app::App;
use crate::extract::JsonBody;
use crate::problem::{Kind, Problem};

/// What a browser signs in with.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// A key of the user.
    pub api_key: Option<String>,
    /// The code in the address that `rota up` prints; good once.
    pub code: Option<String>,
}

/// Who am I?
#[utoipa::path(get, path = "/api/v1/session", tag = "session", security(("api_key" = ["signed-in"])),
    responses((status = 200, description = "The holder of the key", body = Session),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Session>, Problem> {
    Ok(Json(describe(&app, caller.user, &caller.rights).await?))
}

/// Signs a browser in.
#[utoipa::path(post, path = "/api/v1/session", tag = "session", security(()),
    request_body = SignIn,
    responses((status = 200, description = "Signed in; the cookie is set", body = Session),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn sign_in(
    State(app): State<Arc<App>>,
    JsonBody(with): JsonBody<SignIn>,
) -> Result<impl IntoResponse, Problem> {
    let refused = |detail: &str| Problem::new(Kind::UNAUTHENTICATED, detail);
    let (user, from) = match (with.api_key, with.code) {
        (Some(key), None) => {
            let caller = app.accounts.authenticate(&KeyHash::of(&key)).await?;
            let caller =
                caller.ok_or_else(|| refused("this key is not known here: it may have been revoked"))?;
            let from = app.accounts.key_info(&caller.user, caller.key.key_id()).await?;
            let from = from.ok_or_else(|| refused("this key was revoked"))?;
            if from.session {
                let detail = "a session cannot make another: sign in with an API key";
                return Err(Problem::new(Kind::FORBIDDEN, detail));
            }
            (caller.user, Some(from))
        }
        (None, Some(code)) if app.sign_in_code.redeem(&code) => (UserId::first_administrator(), None),
        (None, Some(_)) => {
            return Err(refused(
                "this address was used before or is too old: sign in with an API key, or restart Rota",
            ));
        }
        _ => return Err(Problem::new(Kind::INVALID, "send either api_key or code")),
    };
    let key = app.accounts.create_session(&user, from.as_ref()).await?;
    let key = key.ok_or_else(|| refused("the user of this key is gone"))?;
    let caller = app.accounts.authenticate(&KeyHash::of(&key)).await?;
    let caller = caller.ok_or_else(|| refused("the user of this key is gone"))?;
    let who = describe(&app, caller.user, &caller.rights).await?;
    Ok((cookie(&key, SESSION.as_secs()), Json(who)))
}

/// Signs out: the session's key ends at once.
#[utoipa::path(delete, path = "/api/v1/session", tag = "session", security(("api_key" = ["signed-in"])),
    responses((status = 204, description = "Signed out"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn sign_out(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Problem> {
    if session(&headers).is_some_and(|key| KeyHash::of(key) == caller.key) {
        app.accounts.revoke_key(&caller.user, caller.key.key_id()).await?;
    }
    Ok((StatusCode::NO_CONTENT, cookie("", 0)))
}

fn cookie(key: &str, seconds: u64) -> [(HeaderName, String); 1] {
    let attributes = "Path=/; HttpOnly; Secure; SameSite=Strict";
    [(header::SET_COOKIE, format!("{SESSION_COOKIE}={key}; Max-Age={seconds}; {attributes}"))]
}

async fn describe(app: &App, user: UserId, rights: &Rights) -> Result<Session, Problem> {
    let (mut domains, mut after) = (Vec::new(), None);
    loop {
        let (page, next) = app.accounts.domains(rights, 1_000, after).await?;
        let with_role = page.into_iter().filter_map(|domain| {
            let role = rights.role_in(&domain.name)?;
            Some(DomainRole { name: domain.name, role })
        });
        domains.extend(with_role);
        if next.is_none() {
            return Ok(Session {
                user,
                installation_admin: rights.installation,
                domains,
                extra: Extra::new(),
            });
        }
        after = next;
    }
}
