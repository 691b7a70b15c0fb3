//! HTTP: the API, sign-in and the page. Only this crate knows status codes and headers.
//!
//! - [`app`]: what the routes work with; [`server`]: listening and stopping
//! - [`access`]: what each route needs, declared with the route, and the guard that asks for it
//! - [`accounts`]: people, programs, their keys and domains
//! - [`routes`]: one file per noun; [`contract`]: the OpenAPI document, made from the same declarations
//! - [`problem`]: every error as RFC 9457; [`extract`]: requests, read and checked; [`query`]: their queries; [`plain_words`]: what
//!   does not fit, for people
//! - [`exposition`]: figures as Prometheus reads them
//! - [`page`]: the files of the page

pub mod access;
pub mod accounts;
pub mod app;
pub mod contract;
pub mod exposition;
pub mod extract;
pub mod page;
mod plain_words;
pub mod problem;
mod query;
pub mod routes;
pub mod server;
