//! Domains: the tenants of the installation.

use rota_model::domain::{Domain, DomainDocument};
use serde_json::json;

use crate::{Client, Error};

impl Client {
    pub async fn domains(&self) -> Result<Vec<DomainDocument>, Error> {
        self.all(&["api", "v1", "domains"]).await
    }

    /// Makes a domain; status 409 if there is one of that name.
    pub async fn create_domain(&self, name: &Domain) -> Result<DomainDocument, Error> {
        self.post(&["api", "v1", "domains"]).body(&json!({"name": name})).document().await
    }
}
