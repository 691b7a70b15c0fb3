//! Domains: the tenants of the installation.

use rota_model::domain::{Domain, DomainDocument, DomainSettings};
use serde_json::json;

use crate::{Client, Error};

impl Client {
    pub async fn domains(&self) -> Result<Vec<DomainDocument>, Error> {
        self.all(&["api", "v1", "domains"]).await
    }

    /// Makes a domain; status 409 if there is one of that name.
    pub async fn create_domain(&self, name: &Domain, weight: Option<u32>) -> Result<DomainDocument, Error> {
        let new = match weight {
            Some(weight) => json!({"name": name, "weight": weight}),
            None => json!({"name": name}),
        };
        self.post(&["api", "v1", "domains"]).body(&new).document().await
    }

    /// Changes what can be set of a domain.
    pub async fn set_domain(
        &self,
        name: &Domain,
        settings: &DomainSettings,
    ) -> Result<DomainDocument, Error> {
        self.put(&["api", "v1", "domains", name.as_str()]).body(settings).document().await
    }
}
