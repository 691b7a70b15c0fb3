//! Who may do what. Each route declares what it needs where it is declared itself, as the scope of its `api_key`
//! security; the guard reads the same declarations, so that the OpenAPI document and the guard cannot disagree. What
//! declares nothing is open to nobody.
//!
//! Who has no role in a domain is told that it is not there; who has too small a one is told so.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use rota_model::domain::Domain;
use rota_model::user::{KeyHash, Rights, Role, UserId};
use utoipa::openapi::OpenApi;

use crate::app::App;
use crate::problem::{Kind, Problem};

/// The cookie of a browser that signed in.
pub const SESSION_COOKIE: &str = "rota_session";
/// The name of the security scheme in the declarations.
pub const SCHEME: &str = "api_key";

/// What a route needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: ping, the sign-in, the page's files.
    Nothing,
    /// Any key.
    SignedIn,
    /// A role in the domain of the path.
    InDomain(Role),
    /// To be the user in the path, or to administer the installation.
    Oneself,
    /// Any role in every domain: to look at what belongs to nobody in particular.
    Everywhere,
    /// To administer the installation.
    Installation,
}

impl Need {
    fn from_scope(scope: &str) -> Option<Self> {
        match scope {
            "signed-in" => Some(Need::SignedIn),
            "oneself" => Some(Need::Oneself),
            "everywhere" => Some(Need::Everywhere),
            "installation" => Some(Need::Installation),
            role => role.parse().ok().map(Need::InDomain),
        }
    }
}

/// Who calls, with what rights.
#[derive(Clone, Debug)]
pub struct Caller {
    pub user: UserId,
    /// The key it came with: whatever lasts longer than a request asks again whether it is still good.
    pub key: KeyHash,
    pub rights: Rights,
    /// Whether the key carries less than its user's rights, or ends by itself.
    pub limited: bool,
}

/// What each route needs, by method and path.
#[derive(Debug, Default)]
pub struct Needs(HashMap<(Method, String), Need>);

impl Needs {
    /// Reads the declarations. A route without one is left out, and so open to nobody.
    pub fn of(contract: &OpenApi) -> Self {
        let mut needs = HashMap::new();
        for (path, item) in &contract.paths.paths {
            for (method, operation) in operations(item) {
                if let Some(need) = declared(operation) {
                    needs.insert((method, path.clone()), need);
                }
            }
        }
        Self(needs)
    }

    pub fn get(&self, method: &Method, path: &str) -> Option<Need> {
        let method = if method == Method::HEAD { Method::GET } else { method.clone() };
        self.0.get(&(method, path.to_owned())).copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Method, &str, Need)> {
        self.0.iter().map(|((method, path), need)| (method, path.as_str(), *need))
    }
}

fn operations(item: &utoipa::openapi::PathItem) -> Vec<(Method, &utoipa::openapi::path::Operation)> {
    let all = [
        (Method::GET, &item.get),
        (Method::PUT, &item.put),
        (Method::POST, &item.post),
        (Method::DELETE, &item.delete),
        (Method::PATCH, &item.patch),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_ref()?))).collect()
}

fn declared(operation: &utoipa::openapi::path::Operation) -> Option<Need> {
    let declared = serde_json::to_value(operation.security.as_ref()?.first()?).ok()?;
    if declared.as_object()?.is_empty() {
        return Some(Need::Nothing);
    }
    Need::from_scope(declared.get(SCHEME)?.as_array()?.first()?.as_str()?)
}

/// Stands before every route of the API.
pub async fn guard(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let need = path.as_deref().and_then(|path| app.needs.get(request.method(), path));
    match need {
        None => Err(Problem::new(Kind::FORBIDDEN, "this route is open to nobody")),
        Some(Need::Nothing) => Ok(next.run(request).await),
        Some(need) => {
            let hash = presented_key(&request)?;
            let caller = authenticate(&app, &hash).await?;
            permit(&app, &caller, need, path.as_deref().unwrap_or_default(), request.uri().path()).await?;
            request.extensions_mut().insert(caller);
            Ok(next.run(request).await)
        }
    }
}

fn presented_key(request: &Request) -> Result<KeyHash, Problem> {
    let headers = request.headers();
    if let Some(key) = bearer(headers) {
        return Ok(KeyHash::of(key));
    }
    if let Some(key) = session(headers) {
        must_come_from_our_page(request)?;
        return Ok(KeyHash::of(key));
    }
    let detail = "send an API key with the header Authorization: Bearer <key>, or sign in at the page";
    Err(Problem::new(Kind::UNAUTHENTICATED, detail))
}

async fn authenticate(app: &App, hash: &KeyHash) -> Result<Caller, Problem> {
    let caller = app.accounts.authenticate(hash).await?;
    caller.ok_or_else(|| {
        Problem::new(
            Kind::UNAUTHENTICATED,
            "this key is not known here: it may have been revoked or has ended",
        )
    })
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
}

/// The key in the session's cookie.
pub fn session(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == SESSION_COOKIE).map(|(_, key)| key)
}

/// A browser sends our cookie along when another site makes it send a request; such a request is refused.
fn must_come_from_our_page(request: &Request) -> Result<(), Problem> {
    let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let (Some(origin), Some(host)) = (text(header::ORIGIN), text(header::HOST)) else { return Ok(()) };
    let from = origin.split_once("://").map_or(origin, |(_, host)| host);
    if from == host {
        return Ok(());
    }
    Err(Problem::new(Kind::FORBIDDEN, "a page of another site may not use this session"))
}

async fn permit(app: &App, caller: &Caller, need: Need, template: &str, path: &str) -> Result<(), Problem> {
    match need {
        Need::Nothing | Need::SignedIn => Ok(()),
        Need::Installation if caller.rights.installation => Ok(()),
        Need::Installation => Err(forbidden("this needs the administrator of the installation")),
        Need::Everywhere if caller.rights.everywhere.is_some() => Ok(()),
        Need::Everywhere => Err(forbidden(
            "this tells of the whole installation: it needs a key of its administrator, which may be limited to a viewer",
        )),
        Need::Oneself => permit_oneself(caller, parameter(template, path, "id")),
        Need::InDomain(role) => {
            let domain = parameter(template, path, "domain").and_then(|name| name.parse::<Domain>().ok());
            permit_in_domain(app, caller, role, domain).await
        }
    }
}

fn permit_oneself(caller: &Caller, id: Option<String>) -> Result<(), Problem> {
    let oneself = id.as_deref() == Some(caller.user.as_str());
    if caller.limited {
        return Err(forbidden(
            "a session, or a key with limits or an end, cannot manage keys: use one without",
        ));
    }
    if oneself || caller.rights.installation { Ok(()) } else { Err(Problem::not_found("user")) }
}

async fn permit_in_domain(
    app: &App,
    caller: &Caller,
    role: Role,
    domain: Option<Domain>,
) -> Result<(), Problem> {
    let Some(domain) = domain else { return Err(Problem::not_found("domain")) };
    match caller.rights.role_in(&domain) {
        Some(_) if !app.accounts.has_domain(&domain).await? => Err(Problem::not_found("domain")),
        Some(held) if held >= role => Ok(()),
        Some(held) => {
            let (needed, held) = (role.as_str(), held.as_str());
            Err(forbidden(&format!("this needs the role {needed} in the domain {domain}; yours is {held}")))
        }
        None => Err(Problem::not_found("domain")),
    }
}

fn forbidden(detail: &str) -> Problem {
    Problem::new(Kind::FORBIDDEN, detail)
}

/// The part of a path that stands where the template says `{name}`.
fn parameter(template: &str, path: &str, name: &str) -> Option<String> {
    let wanted = format!("{{{name}}}");
    let mut parts = template.split('/').zip(path.split('/'));
    let raw = parts.find(|(part, _)| *part == wanted).map(|(_, value)| value)?;
    percent_decode(raw)
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let hex = [rest.next()?, rest.next()?];
        if !hex.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        bytes.push(u8::from_str_radix(std::str::from_utf8(&hex).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}
