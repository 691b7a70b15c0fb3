//! Domains: the tenants of the installation.

use rota_model::domain::{Domain, DomainDocument, DomainSettings};
use serde::Serialize;

use crate::{Client, Error};

/// How often a change is tried when others change the same domain.
const MAX_TRIES: u32 = 5;

/// A domain to be made.
#[derive(Serialize)]
struct New<'a> {
    name: &'a Domain,
    #[serde(flatten)]
    settings: &'a DomainSettings,
}

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
        let new = New { name, settings };
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
        let parts = ["api", "v1", "domains", name.as_str()];
        let mut tries_left = MAX_TRIES;
        loop {
            let (domain, version): (DomainDocument, _) = self.get(&parts).versioned().await?;
            let mut settings = domain.settings();
            change(&mut settings);
            let call = self.put(&parts).body(&settings);
            let call = match &version {
                Some(version) => call.header("If-Match", version),
                None => call,
            };
            tries_left -= 1;
            match call.document().await {
                Err(error) if matches!(error.status(), Some(409 | 412)) && tries_left > 0 => {}
                answered => return answered,
            }
        }
    }
}
