//! What a kill leaves between two writes: a unique key that names a job which was never made. Whoever comes next makes that job,
//! and is still found again under the name of its own submission.

use rota_model::Extra;
use rota_model::domain::Domain;
use rota_model::ids::{JobId, NodeId};
use rota_model::job::{NewJob, Scope, Unique};
use rota_model::metadata::Metadata;
use rota_model::time::UnixMillis;
use rota_model::unique_key::UniqueKey;
use rota_store::unique_keys::UniqueKeys;
use serde_json::json;

use crate::{client, ended, home, stored};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_finishes_the_half_of_another_is_recorded_once() {
    let home = home();
    home.up().kill();
    let key = UniqueKey {
        domain: Domain::default(),
        key: "invoice".to_owned(),
        job_id: JobId::derived(&["idempotency", "default", "the one that was cut short"]),
        requeue: None,
        metadata: Metadata::new(UnixMillis(1), NodeId::derived(&["a node"])),
        extra: Extra::new(),
    };
    UniqueKeys::new(stored(&home)).create(key).await.unwrap();

    let rota = home.up();
    let client = client(&rota);
    let unique = Some(Unique { key: "invoice".to_owned(), scope: Scope::Unfinished, for_ms: None });
    let job = NewJob { unique, ..NewJob::new("comes next", "noop", json!({})) };
    let submit = async || client.submit_job(&Domain::default(), &job, Some("comes next")).await.unwrap();
    let first = submit().await;
    ended(&client, first.job_id).await;
    assert_eq!(submit().await.job_id, first.job_id, "one submission has two jobs");
}
