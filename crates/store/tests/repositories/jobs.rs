//! Jobs as people look at them: by words, in totals, and gone when they are deleted.

use std::collections::BTreeMap;

use rota_model::ids::JobId;
use rota_model::job::{Job, JobStatus};
use rota_model::time::UnixMillis;
use rota_store::jobs::{JobFilter, Jobs};
use rota_store::repository::{Created, Saved};
use serde_json::json;

use super::{domain, new, node, store};

pub(super) fn job(domain: &str, name: &str, status: &str, error: &str) -> Job {
    let document = json!({
        "jobName": name, "jobId": JobId::derived(&[domain, name]), "jobNumber": 1, "domain": domain,
        "status": status, "input": {"type": "noop", "payload": {}}, "result": {"error": error},
        "metadata": {"createdAt": 1, "updatedAt": 1, "updatedBy": node("a")},
    });
    serde_json::from_value(document).unwrap()
}

#[tokio::test]
async fn jobs_are_found_by_words_and_counted_by_status() {
    let jobs = Jobs::new(store());
    for job in [
        job("red", "nightly report", "FAILED", "disk full"),
        job("red", "weekly report", "FAILED", "no route to host"),
        job("red", "nightly backup", "QUEUED", ""),
        job("blue", "nightly report", "QUEUED", ""),
    ] {
        new(jobs.create(job).await.unwrap());
    }
    for (text, found) in
        [("REPORT night*", vec!["nightly report"]), ("route", vec!["weekly report"]), ("full host", vec![])]
    {
        let filter = JobFilter { text: Some(text.to_owned()), ..JobFilter::default() };
        let (page, _) = jobs.list(&domain("red"), &filter, 10, None).await.unwrap();
        let names: Vec<_> = page.iter().map(|job| job.job_name.as_str()).collect();
        assert_eq!(names, found, "{text}");
    }
    let red = BTreeMap::from([(JobStatus::Queued, 1), (JobStatus::Failed, 2)]);
    assert_eq!(jobs.totals(Some(&domain("red"))).await.unwrap(), red);
    let all = BTreeMap::from([(JobStatus::Queued, 2), (JobStatus::Failed, 2)]);
    assert_eq!(jobs.totals(None).await.unwrap(), all);
}

#[tokio::test]
async fn a_deleted_job_is_not_there_and_does_not_come_back() {
    let jobs = Jobs::new(store());
    let made = new(jobs.create(job("red", "a", "QUEUED", "")).await.unwrap());
    let after = Job { status: JobStatus::Failed, ..made.document.clone() };
    assert!(matches!(jobs.save(&made, &after).await.unwrap(), Saved::Applied(_)));
    assert_eq!(jobs.delete(&made, UnixMillis(5)).await.unwrap(), Saved::Overtaken);
    let made = jobs.get_any(after.job_id).await.unwrap().unwrap();
    assert!(matches!(jobs.delete(&made, UnixMillis(5)).await.unwrap(), Saved::Applied(_)));
    assert_eq!(jobs.get_any(after.job_id).await.unwrap(), None);
    assert_eq!(jobs.totals(None).await.unwrap(), BTreeMap::new());
    assert!(matches!(jobs.create(after).await.unwrap(), Created::Exists(_)));
}
