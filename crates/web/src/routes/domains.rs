//! The tenants.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use rota_model::domain::{DEFAULT_WEIGHT, Domain, DomainDocument, DomainSettings, NewDomain};

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
    let (name, settings) = new.into_parts();
    let taken = || Problem::new(Kind::CONFLICT, format!("there is a domain {name} already"));
    let domain = app.accounts.create_domain(name.clone(), settings).await?.ok_or_else(taken)?;
    Ok((StatusCode::CREATED, Json(domain)))
}

/// A domain.
#[utoipa::path(get, path = "/api/v1/domains/{domain}", tag = "domains", security(("api_key" = ["viewer"])),
    params(("domain" = Domain, Path),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of the document as you know it")),
    responses((status = 200, description = "The domain", body = DomainDocument),
        (status = 304, description = "It is as you know it"),
        (status = "default", description = "Refused", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    PathOf(name): PathOf<Domain>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let domain = app.accounts.domain(&name).await?.ok_or_else(|| Problem::not_found("domain"))?;
    Ok(etag::answer(&headers, domain.version, &domain.document))
}

/// Replaces what can be set of a domain: what is left out goes back to what it is by default.
///
/// Its administrators decide how long things are kept. Its weight is for the administrator of the installation: for everybody else
/// it stays as it is, and naming another is refused.
#[utoipa::path(put, path = "/api/v1/domains/{domain}", tag = "domains", security(("api_key" = ["admin"])),
    params(("domain" = Domain, Path),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the domain as you know it")),
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
    let settings =
        if caller.rights.installation { settings } else { with_weight_of(&before.document, settings)? };
    let after = app.accounts.set_domain(before, settings).await?;
    let after = after.ok_or_else(|| etag::overtaken(&headers, "domain"))?;
    Ok((etag::of(after.version), Json(after.document)))
}

/// What a domain's own administrators ask for, with the weight that is not theirs to set, and that they need not know.
fn with_weight_of(domain: &DomainDocument, asked: DomainSettings) -> Result<DomainSettings, Problem> {
    let weight = domain.weight;
    if asked.weight.is_some_and(|asked| asked != weight.unwrap_or(DEFAULT_WEIGHT)) {
        let detail =
            "a weight is set by the administrator of the installation: leave it out, and it stays as it is";
        return Err(Problem::new(Kind::FORBIDDEN, detail));
    }
    Ok(DomainSettings { weight, ..asked })
}
