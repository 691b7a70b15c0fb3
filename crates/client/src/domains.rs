//! Domains: the tenants of the installation.

use rota_model::domain::{Domain, DomainDocument, DomainSettings, NewDomain};

use crate::{Client, Error};

impl Client {
    pub async fn domains(&self) -> Result<Vec<DomainDocument>, Error> {
        self.all(&["api", "v1", "domains"]).await
    }

    /// Makes a domain; status 409 if there is one of that name.
    pub async fn create_domain(
        &self,
        name: &Domain,
        settings: &DomainSettings,
    ) -> Result<DomainDocument, Error> {
        let new = NewDomain::new(name.clone(), settings.clone());
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

    /// Changes some of what can be set of a domain and keeps the rest. If somebody else changes it at the same moment, the change
    /// is made anew on what they left.
    pub async fn change_domain(
        &self,
        name: &Domain,
        change: impl Fn(&mut DomainSettings),
    ) -> Result<DomainDocument, Error> {
        let changed = |domain: &DomainDocument| {
            let mut settings = domain.settings();
            change(&mut settings);
            settings
        };
        self.change(&["api", "v1", "domains", name.as_str()], changed).await
    }
}
