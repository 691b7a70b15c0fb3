//! Who is served where (seed 002): services, the nodes that serve them, and the users assigned to those.
//!
//! The seed names its fields in prose; here they are spelled in snake case. Its Users are called assignments, since
//! seed 000 has users of its own. Dates are Unix milliseconds, as `generation` is one by nature.
//!
//! A node is full, downed or backed off by what its document says; which one is picked is decided elsewhere.

use serde::{Deserialize, Serialize};

use crate::Extra;
use crate::check::{Checker, Invalid};
use crate::ids::AssignmentId;
use crate::time::UnixMillis;

/// The length of the name of a service, in characters.
pub const MAX_SERVICE_CHARS: usize = 60;
/// The length of an endpoint pattern, in characters.
pub const MAX_PATTERN_CHARS: usize = 500;
/// The length of the address of a node, in characters.
pub const MAX_NODE_CHARS: usize = 255;
/// The length of an e-mail address, in characters.
pub const MAX_EMAIL_CHARS: usize = 254;
/// The length of a client state, in characters: a hash of 16 bytes in hexadecimal.
pub const MAX_CLIENT_STATE_CHARS: usize = 32;
/// How many slots a node may have.
pub const MAX_CAPACITY: u32 = 1_000_000_000;
/// What may stand in braces in an endpoint pattern.
pub const PLACEHOLDERS: [&str; 3] = ["node", "service", "uid"];

/// A service and the pattern of its endpoints; its id is its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Service {
    /// `{app_name}-{app_version}`.
    #[schema(example = "sync-1.5")]
    pub service: String,
    #[schema(example = "{node}/1.5/{uid}")]
    pub pattern: String,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// A node that serves a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PlacementNode {
    pub service: String,
    #[schema(example = "https://eu-1.example.org")]
    pub node: String,
    /// Slots that may be handed out now: a share of the capacity, and more as it runs out.
    #[serde(default)]
    pub available: u32,
    /// Users assigned to it.
    #[serde(default)]
    pub current_load: u32,
    pub capacity: u32,
    /// Keeps its users and gets no new ones.
    #[serde(default)]
    pub downed: bool,
    /// Like downed, and clients are told to slow down.
    #[serde(default)]
    pub backoff: bool,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// A user of a service on its node. A user who reset a password has several, of which one is not replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Assignment {
    #[schema(value_type = String, format = "uuid")]
    pub uid: AssignmentId,
    pub service: String,
    pub email: String,
    pub node: String,
    /// The newest issue of the user's certificate that was seen; it only grows.
    #[serde(default)]
    pub generation: u64,
    /// Hash of the key that the user's data is encrypted with.
    #[serde(default)]
    pub client_state: String,
    pub created_at: UnixMillis,
    /// When another took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_at: Option<UnixMillis>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

impl Service {
    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check_service(&mut check, &self.service);
        check.line("/pattern", &self.pattern, 1..=MAX_PATTERN_CHARS);
        if !is_pattern(&self.pattern) {
            let allowed = PLACEHOLDERS.join("}, {");
            check.refuse(
                "/pattern",
                format!("must hold only the placeholders {{{allowed}}}, in closed braces"),
            );
        }
        check.extra("", &self.extra);
        check.finish()
    }
}

impl PlacementNode {
    /// `{service}:{node}`. No service contains a colon, so the first one divides.
    pub fn id(&self) -> String {
        format!("{}:{}", self.service, self.node)
    }

    /// Whether new users may be sent here.
    pub fn takes_users(&self) -> bool {
        !self.downed && !self.backoff && self.available > 0
    }

    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check_service(&mut check, &self.service);
        check_node(&mut check, &self.node);
        check.range("/capacity", self.capacity, 0..=MAX_CAPACITY);
        check.range("/available", self.available, 0..=self.capacity);
        check.extra("", &self.extra);
        check.finish()
    }
}

impl Assignment {
    pub fn check(&self) -> Result<(), Invalid> {
        let mut check = Checker::new();
        check_service(&mut check, &self.service);
        check.line("/email", &self.email, 3..=MAX_EMAIL_CHARS);
        if !self.email.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty()) {
            check.refuse("/email", "must be an address such as alice@example.org");
        }
        check_node(&mut check, &self.node);
        check.range("/generation", self.generation, 0..=i64::MAX.unsigned_abs());
        check.line("/client_state", &self.client_state, 0..=MAX_CLIENT_STATE_CHARS);
        let legal = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        check.spelled("/client_state", &self.client_state, legal, "letters, digits, '.', '_' and '-'");
        check.instant("/created_at", self.created_at);
        check.extra("", &self.extra);
        check.finish()
    }
}

fn check_service(check: &mut Checker, name: &str) {
    check.line("/service", name, 3..=MAX_SERVICE_CHARS);
    let legal = |part: &str, others: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
    };
    // The name of an application may contain a hyphen, its version may not.
    let parts = name.rsplit_once('-');
    if !parts.is_some_and(|(app, version)| legal(app, "-_.") && legal(version, "_.")) {
        check.refuse("/service", "must be {app_name}-{app_version}, such as sync-1.5");
    }
}

fn check_node(check: &mut Checker, node: &str) {
    check.line("/node", node, 1..=MAX_NODE_CHARS);
    let host = node.strip_prefix("https://").or_else(|| node.strip_prefix("http://"));
    if host.is_none_or(str::is_empty) || node.contains(' ') {
        check.refuse("/node", "must be an address that begins with https:// or http://");
    }
}

fn is_pattern(pattern: &str) -> bool {
    let mut parts = pattern.split('{');
    let text_before = parts.next().unwrap_or_default();
    let known = |part: &str| {
        part.split_once('}').is_some_and(|(name, text)| PLACEHOLDERS.contains(&name) && !text.contains('}'))
    };
    !text_before.contains('}') && parts.all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(service: &str, pattern: &str) -> Service {
        Service { service: service.to_owned(), pattern: pattern.to_owned(), extra: Extra::new() }
    }

    #[test]
    fn a_service_has_a_name_and_a_version() {
        for good in ["sync-1.5", "my-app-2", "a_b.c-v1_0"] {
            assert_eq!(service(good, "{node}/1.5/{uid}").check(), Ok(()), "{good}");
        }
        for bad in ["sync", "-1.5", "sync-", "sync 1-5", "sync:x-1", "x"] {
            assert!(service(bad, "{node}").check().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_pattern_holds_known_placeholders() {
        assert!(is_pattern("https://x/{service}/{node}{uid}") && is_pattern(""));
        for bad in ["{user}", "{node", "node}", "{{node}}", "{node}}"] {
            assert!(!is_pattern(bad), "{bad}");
        }
    }

    #[test]
    fn nodes_and_users_stay_within_their_limits() {
        let mut node: PlacementNode = serde_json::from_value(serde_json::json!({
            "service": "sync-1.5", "node": "https://eu-1", "capacity": 10, "available": 3
        }))
        .unwrap();
        assert_eq!((node.check(), node.takes_users()), (Ok(()), true));
        node.backoff = true;
        assert!(!node.takes_users());
        node.available = 11;
        node.node = "ftp://x".to_owned();
        assert_eq!(node.check().unwrap_err().0.len(), 2);
        let user: Assignment = serde_json::from_value(serde_json::json!({
            "uid": AssignmentId::derived(&["u"]), "service": "sync-1.5", "email": "alice", "node": "https://eu-1",
            "client_state": "a b", "created_at": 1
        }))
        .unwrap();
        assert_eq!(user.check().unwrap_err().0.len(), 2);
    }
}
