//! A unique key (`unique-keys`): the one document that two submissions of twins both want to write.
//!
//! It is written before its job, and names it. Whoever finds a key whose job is missing creates that job under the id
//! in the key, and the create decides. The key moves on only when its job was seen outside its scope.

use serde::{Deserialize, Serialize};

use crate::Extra;
use crate::digest::hex_sha256;
use crate::domain::Domain;
use crate::ids::JobId;
use crate::metadata::Metadata;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UniqueKey {
    pub domain: Domain,
    pub key: String,
    /// The job that keeps its twins away.
    pub job_id: JobId,
    /// A requeue of that job is under way, and will lead to this epoch: the job is in scope until it has one as high.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue: Option<u64>,
    pub metadata: Metadata,
    #[serde(flatten)]
    pub extra: Extra,
}

impl UniqueKey {
    /// The id of a key: a digest, since keys may be longer than ids.
    pub fn id(domain: &Domain, key: &str) -> String {
        hex_sha256(&format!("{domain}:{key}"))
    }
}
