//! A tenant: its name, and the document of the collection `domains`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Extra;
use crate::check::{Checker, Invalid};
use crate::keep::Keep;

/// The name of a tenant. It becomes part of the names of collections (`timers-{domain}`), so it must be a legal name
/// of an index: lower case letters, digits and `-`, at most 63, beginning with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^[a-z0-9][a-z0-9-]{0,62}$", example = "default")]
pub struct Domain(String);

impl Domain {
    /// The domain that the first start makes.
    #[expect(clippy::should_implement_trait, reason = "`Default` would hide which domain is meant")]
    pub fn default() -> Self {
        Self("default".to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Domain {
    type Err = Invalid;

    fn from_str(name: &str) -> Result<Self, Invalid> {
        let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        let legal = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if starts_well && legal && name.len() <= 63 {
            return Ok(Self(name.to_owned()));
        }
        Err(Invalid::one(
            "/domain",
            "must have 1 to 63 lower case letters, digits or '-' and begin with a letter or digit",
        ))
    }
}

/// Whoever reads it out of a document knows where it stands there.
impl TryFrom<String> for Domain {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse().map_err(|invalid: Invalid| invalid.details())
    }
}

impl From<Domain> for String {
    fn from(domain: Domain) -> Self {
        domain.0
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The weight of a domain that has none of its own.
pub const DEFAULT_WEIGHT: u32 = 1;
/// The largest weight of a domain.
pub const MAX_WEIGHT: u32 = 1_000;

/// What can be set of a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DomainSettings {
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

impl DomainSettings {
    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        if let Some(weight) = self.weight {
            check.range("/weight", weight, 1..=MAX_WEIGHT);
        }
        check.finish()
    }
}

/// A tenant to be made. The settings are spelled out: flattened ones would let unknown names pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
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

impl NewDomain {
    pub fn new(name: Domain, settings: DomainSettings) -> Self {
        let DomainSettings { weight, keep_jobs, keep_logs } = settings;
        Self { name, weight, keep_jobs, keep_logs }
    }

    pub fn into_parts(self) -> (Domain, DomainSettings) {
        let Self { name, weight, keep_jobs, keep_logs } = self;
        (name, DomainSettings { weight, keep_jobs, keep_logs })
    }
}

/// The document of a tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DomainDocument {
    pub name: Domain,
    #[schema(value_type = String, format = "date-time")]
    pub created: jiff::Timestamp,
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
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

impl DomainDocument {
    pub fn new(name: Domain, created: jiff::Timestamp, settings: DomainSettings) -> Self {
        let bare =
            Self { name, created, weight: None, keep_jobs: None, keep_logs: None, extra: Extra::new() };
        bare.with(settings)
    }

    /// The same tenant with other settings: what is left out of them goes back to what it is by default.
    #[must_use]
    pub fn with(self, settings: DomainSettings) -> Self {
        let DomainSettings { weight, keep_jobs, keep_logs } = settings;
        Self { weight, keep_jobs, keep_logs, ..self }
    }

    pub fn settings(&self) -> DomainSettings {
        let Self { weight, keep_jobs, keep_logs, .. } = *self;
        DomainSettings { weight, keep_jobs, keep_logs }
    }
}
