//! The inventory: the devices whose configurations are kept (`network-elements`, which seed 001 implies).
//!
//! An element names its credentials and does not hold them: the reference is resolved where a connection is made.

use serde::{Deserialize, Serialize};

use super::MAX_LABEL_CHARS;
use super::schedule::BackupSchedule;
use crate::Extra;
use crate::check::{Checker, Invalid, MAX_NAME_CHARS};
use crate::domain::Domain;

/// The length of the id of an element, in characters.
pub const MAX_NE_ID_CHARS: usize = 128;
/// The length of a host name or address, in characters: what DNS allows.
pub const MAX_ADDRESS_CHARS: usize = 253;

/// A stored element; its id is its `neId`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkElement {
    #[schema(example = "router-1")]
    pub ne_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A host name, or an address of IPv4 or IPv6.
    pub address: String,
    /// The port of its management; that of the transport if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    pub vendor: String,
    pub model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The name of its credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

impl NetworkElement {
    /// Whether a run of this schedule takes the element in.
    pub fn belongs_to(&self, schedule: &BackupSchedule) -> bool {
        let matches =
            |wanted: &Option<String>, own: &str| wanted.as_deref().is_none_or(|wanted| wanted == own);
        self.domain == schedule.domain
            && matches(&schedule.vendor, &self.vendor)
            && matches(&schedule.model, &self.model)
    }

    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check_ne_id(&mut check, &self.ne_id);
        check.optional_line("/name", self.name.as_deref(), 1..=MAX_NAME_CHARS);
        check.line("/address", &self.address, 1..=MAX_ADDRESS_CHARS);
        let legal = |c: char| c.is_ascii_alphanumeric() || ".:-_%".contains(c);
        check.spelled("/address", &self.address, legal, "a host name or an address, without user or port");
        if self.port == Some(0) {
            check.refuse("/port", "must be from 1 to 65535; it is 0");
        }
        check.line("/vendor", &self.vendor, 1..=MAX_LABEL_CHARS);
        check.line("/model", &self.model, 1..=MAX_LABEL_CHARS);
        check.optional_line("/group", self.group.as_deref(), 1..=MAX_LABEL_CHARS);
        check.optional_line("/credentialsRef", self.credentials_ref.as_deref(), 1..=MAX_NAME_CHARS);
        check.extra("", &self.extra);
        check.finish()
    }
}

/// An id stands in paths of files and of URLs.
pub(super) fn check_ne_id(check: &mut Checker, ne_id: &str) {
    check.line("/neId", ne_id, 1..=MAX_NE_ID_CHARS);
    let legal = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    check.spelled("/neId", ne_id, legal, "letters, digits, '.', '_', ':' and '-'");
    if ne_id.starts_with('.') {
        check.refuse("/neId", "must not begin with '.'");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn element(ne_id: &str, address: &str) -> NetworkElement {
        let document = json!({"neId": ne_id, "address": address, "vendor": "acme", "model": "r1"});
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn an_id_is_safe_in_a_path() {
        assert_eq!(element("router-1", "2001:db8::1").check(), Ok(()));
        for bad in ["", "..", "a/b", "a b", "ä"] {
            assert!(element(bad, "h").check().is_err(), "{bad}");
        }
        assert!(element("r", "root@host").check().is_err());
    }

    #[test]
    fn a_schedule_takes_in_what_matches_in_its_own_domain() {
        let mut schedule: BackupSchedule = serde_json::from_value(json!({
            "scheduleId": crate::ids::ScheduleId::derived(&["s"]), "scheduleName": "s", "serverName": "f",
            "vendor": "acme", "frequency": "ONCE", "createdTime": 1, "lastModifiedTime": 1
        }))
        .unwrap();
        let mut element = element("r", "h");
        assert!(element.belongs_to(&schedule));
        schedule.model = Some("r2".to_owned());
        assert!(!element.belongs_to(&schedule));
        schedule.model = None;
        element.domain = Some(Domain::default());
        assert!(!element.belongs_to(&schedule));
    }
}
