//! How many jobs of a domain there are, by status and type.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::job::JobStatus;

/// The queue in numbers. What no job has is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobCounts {
    pub total: u64,
    /// How many have each status.
    #[schema(value_type = std::collections::HashMap<String, u64>, example = json!({"QUEUED": 3, "SUCCESSFUL": 39}))]
    pub by_status: BTreeMap<JobStatus, u64>,
    /// How many of each type have each status.
    #[schema(value_type = std::collections::HashMap<String, std::collections::HashMap<String, u64>>,
        example = json!({"wait": {"QUEUED": 3, "SUCCESSFUL": 39}}))]
    pub by_type: BTreeMap<String, BTreeMap<JobStatus, u64>>,
}

impl JobCounts {
    /// Adds jobs of a type with a status.
    pub fn add(&mut self, kind: String, status: JobStatus, count: u64) {
        if count == 0 {
            return;
        }
        self.total += count;
        *self.by_status.entry(status).or_default() += count;
        *self.by_type.entry(kind).or_default().entry(status).or_default() += count;
    }

    /// How many of a type have a status.
    pub fn of(&self, kind: &str, status: JobStatus) -> u64 {
        self.by_type.get(kind).and_then(|by_status| by_status.get(&status)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn totals_follow_from_what_is_added() {
        let mut counts = JobCounts::default();
        counts.add("wait".to_owned(), JobStatus::Queued, 2);
        counts.add("wait".to_owned(), JobStatus::Failed, 1);
        counts.add("http".to_owned(), JobStatus::Queued, 3);
        counts.add("http".to_owned(), JobStatus::Error, 0);
        let expected = json!({
            "total": 6,
            "byStatus": {"QUEUED": 5, "FAILED": 1},
            "byType": {"http": {"QUEUED": 3}, "wait": {"QUEUED": 2, "FAILED": 1}},
        });
        assert_eq!(serde_json::to_value(&counts).unwrap(), expected);
        assert_eq!((counts.of("http", JobStatus::Queued), counts.of("exec", JobStatus::Queued)), (3, 0));
    }
}
