//! The tenants.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use rota_model::domain::{Domain, DomainDocument};
use serde::{Deserialize, Serialize};

use crate::access::Caller;
use crate::app::App;
use crate::extract::{JsonBody, QueryOf};
use crate::problem::{Kind, Problem};
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
    let taken = || Problem::new(Kind::CONFLICT, format!("there is a domain {} already", new.name));
    let domain = app.accounts.create_domain(new.name.clone()).await?.ok_or_else(taken)?;
    Ok((StatusCode::CREATED, Json(domain)))
}
