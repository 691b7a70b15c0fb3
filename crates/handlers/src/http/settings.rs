//! What the operator allows. The defaults are the safe ones.

use crate::http::addresses::{AllowedHost, Permitted};
use crate::http::signature::Secret;

/// How the type `http` behaves on this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpSettings {
    /// Whether every address may be called, those of this machine and its network too.
    pub allow_private: bool,
    /// What may be called although its address is private.
    pub allow_hosts: Vec<AllowedHost>,
    /// How many redirects are followed.
    pub follow_redirects: u8,
    /// What calls are signed with.
    pub signing_secret: Option<Secret>,
}

impl HttpSettings {
    pub(super) fn permitted(&self) -> Permitted {
        Permitted { private: self.allow_private, hosts: self.allow_hosts.clone() }
    }
}
