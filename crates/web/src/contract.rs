//! The contract: every route of the API, and the OpenAPI document made from the same declarations.

use std::sync::Arc;

use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::{SCHEME, SESSION_COOKIE};
use crate::app::App;
use crate::routes::{
    domains, events, job_types, jobs, keys, logs, metrics, nodes, observer, openapi, ping, session, timers,
    users,
};

/// Every route of the API.
pub fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(head())
        .routes(routes!(ping::ping))
        .routes(routes!(ping::deep_ping))
        .routes(routes!(session::show, session::sign_in, session::sign_out))
        .routes(routes!(jobs::list, jobs::submit))
        .routes(routes!(jobs::batch::submit_batch))
        .routes(routes!(jobs::changes::delete_matching))
        .routes(routes!(jobs::looks::counts))
        .routes(routes!(jobs::show, jobs::changes::delete))
        .routes(routes!(jobs::changes::cancel))
        .routes(routes!(jobs::changes::requeue))
        .routes(routes!(jobs::looks::waiting))
        .routes(routes!(job_types::list))
        .routes(routes!(job_types::show, job_types::set, job_types::delete))
        .routes(routes!(timers::preview))
        .routes(routes!(events::of_domain))
        .routes(routes!(events::of_installation))
        .routes(routes!(observer::show))
        .routes(routes!(logs::of_domain))
        .routes(routes!(logs::of_installation))
        .routes(routes!(metrics::list))
        .routes(routes!(metrics::scrape))
        .routes(routes!(nodes::list))
        .routes(routes!(nodes::pause))
        .routes(routes!(nodes::resume))
        .routes(routes!(nodes::drain))
        .routes(routes!(domains::list, domains::create))
        .routes(routes!(domains::show, domains::set))
        .routes(routes!(users::list, users::create))
        .routes(routes!(users::show, users::set, users::delete))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::revoke))
        .routes(routes!(openapi::show))
}

/// The OpenAPI document.
pub fn document() -> OpenApi {
    let (_, mut document) = routes().split_for_parts();
    for item in document.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch];
        for operation in operations.into_iter().flatten() {
            operation.security = operation.security.take().map(or_by_session);
            operation.operation_id = name(operation);
        }
    }
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(SCHEME, SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    let cookie = SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new(SESSION_COOKIE)));
    components.add_security_scheme("session", cookie);
    document
}

/// Handlers of different nouns have the same verbs; for the contract they need names of their own.
fn name(operation: &Operation) -> Option<String> {
    let noun = operation.tags.as_ref()?.first()?;
    Some(format!("{noun}_{}", operation.operation_id.as_ref()?))
}

/// What a key may do, the session of a browser may do too.
fn or_by_session(declared: Vec<SecurityRequirement>) -> Vec<SecurityRequirement> {
    let scopes = declared.first().and_then(|first| {
        let scopes = serde_json::to_value(first).ok()?.get(SCHEME)?.clone();
        serde_json::from_value::<Vec<String>>(scopes).ok()
    });
    let by_session = scopes.map(|scopes| SecurityRequirement::new("session", scopes));
    declared.into_iter().chain(by_session).collect()
}

fn head() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Rota")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Who does what, when and where, and how it went. Errors are RFC 9457 problems."));
    OpenApiBuilder::new().info(info.build()).build()
}
