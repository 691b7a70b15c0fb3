//! The tenants.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use rota_model::domain::{Domain, DomainDocument, DomainSettings};
use rota_model::keep::Keep;
use serde::{Deserialize, Serialize};

use crate::access::Caller;
use crate::app::App;
use crate::extract::{JsonBody, PathOf, QueryOf};
use crate::problem::{Kind, Problem};
use crate::routes::etag;
use crate::routes::list::{List, PageQuery};

/// The domains in which the caller has a role.
#[utoipa::path(get, path = "/api/v1/domains", tag = "domains", security(("api_key" = ["signed-in"])),
    params(PageQuery),
    responses((status = 200, description = "By name", body = List<DomainDocument>),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    QueryOf(page): QueryOf<PageQuery>,
) -> Result<Json<List<DomainDocument>>, Problem> {
    let (domains, next) = app.accounts.domains(&caller.rights, page.limit()?, page.cursor()?).await?;
    Ok(Json(List::new(domains, next.as_ref())))
}

/// A domain to be made.
#[derive(Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDomain {
    pub name: Domain,
    /// How large its share of the nodes is, where several domains have work; 1 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000)]
    pub weight: Option<u32>,
    /// How long jobs are kept once they have ended; for ever if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, pattern = "^([1-9][0-9]{0,5}[dh]|forever)$", example = "30d")]
    pub keep_jobs: Option<Keep>,
    /// How long lines of the log about its jobs are kept; 30 days if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, pattern = "^([1-9][0-9]{0,5}[dh]|forever)$", example = "30d")]
    pub keep_logs: Option<Keep>,
}

/// Makes a domain.
#[utoipa::path(post, path = "/api/v1/domains", tag = "domains", security(("api_key" = ["installation"])),
    request_body = NewDomain,
    responses((status = 201, description = "It is there", body = DomainDocument),
        (status = 409, description = "There is one of that name", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    JsonBody(new): JsonBody<NewDomain>,
) -> Result<(StatusCode, Json<DomainDocument>), Problem> {
    let NewDomain { name, weight, keep_jobs, keep_logs } = new;
    let taken = || Problem::new(Kind::CONFLICT, format!("there is a domain {name} already"));
    let settings = DomainSettings { weight, keep_jobs, keep_logs };
    let domain = app.accounts.create_domain(name.clone(), settings).await?.ok_or_else(taken)?;
    Ok((StatusCode::CREATED, Json(domain)))
}

/// A domain.
#[utoipa::path(get, path = "/api/v1/domains/{domain}", tag = "domains", security(("api_key" = ["viewer"])),
    params(("domain" = Domain, Path)),
    responses((status = 200, description = "The domain", body = DomainDocument),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    PathOf(name): PathOf<Domain>,
) -> Result<impl IntoResponse, Problem> {
    let domain = app.accounts.domain(&name).await?.ok_or_else(|| Problem::not_found("domain"))?;
    Ok((etag::of(domain.version), Json(domain.document)))
}

/// Changes a domain. What is left out goes back to what it is by default.
///
/// Its administrators decide how long things are kept; its weight is for the administrator of the installation.
#[utoipa::path(put, path = "/api/v1/domains/{domain}", tag = "domains", security(("api_key" = ["admin"])),
    params(("domain" = Domain, Path)),
    request_body = DomainSettings,
    responses((status = 200, description = "As it is now", body = DomainDocument),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn set(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    PathOf(name): PathOf<Domain>,
    headers: HeaderMap,
    JsonBody(settings): JsonBody<DomainSettings>,
) -> Result<impl IntoResponse, Problem> {
    let before = app.accounts.domain(&name).await?.ok_or_else(|| Problem::not_found("domain"))?;
    etag::must_match(&headers, before.version)?;
    if settings.weight != before.document.weight && !caller.rights.installation {
        let weight = before.document.weight.map_or("left out".to_owned(), |weight| weight.to_string());
        let detail = format!("a weight is set by the administrator of the installation: here it is {weight}");
        return Err(Problem::new(Kind::FORBIDDEN, detail));
    }
    let meanwhile = || Problem::new(Kind::CONFLICT, "the domain was changed at the same moment: look again");
    let after = app.accounts.set_domain(before, settings).await?.ok_or_else(meanwhile)?;
    Ok((etag::of(after.version), Json(after.document)))
}
