//! The `metadata` part that every document of seed 003 carries.

use serde::{Deserialize, Serialize};

use crate::Extra;
use crate::ids::NodeId;
use crate::time::UnixMillis;

/// When a document came to be, when it last changed, and which node did it.
///
/// The seed's schema requires `updatedAt`, its examples write `modifiedAt`: both are read (`updatedAt` wins), the
/// first is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", from = "Wire")]
pub struct Metadata {
    pub created_at: UnixMillis,
    pub updated_at: UnixMillis,
    #[schema(value_type = String, format = "uuid")]
    pub updated_by: NodeId,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

impl Metadata {
    pub fn new(now: UnixMillis, by: NodeId) -> Self {
        Self { created_at: now, updated_at: now, updated_by: by, extra: Extra::new() }
    }

    pub fn touch(&mut self, now: UnixMillis, by: NodeId) {
        self.updated_at = now;
        self.updated_by = by;
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    created_at: UnixMillis,
    updated_at: Option<UnixMillis>,
    modified_at: Option<UnixMillis>,
    updated_by: NodeId,
    #[serde(flatten)]
    extra: Extra,
}

impl From<Wire> for Metadata {
    fn from(wire: Wire) -> Self {
        Self {
            created_at: wire.created_at,
            updated_at: wire.updated_at.or(wire.modified_at).unwrap_or(wire.created_at),
            updated_by: wire.updated_by,
            extra: wire.extra,
        }
    }
}
