//! Timers: what a schedule comes to.

use rota_model::domain::Domain;
use rota_model::timer::preview::{Occurrence, PreviewRequest};
use serde::Deserialize;

use crate::{Client, Error};

#[derive(Deserialize)]
struct Occurrences {
    items: Vec<Occurrence>,
}

impl Client {
    /// The next instants of a schedule. Nothing is saved.
    pub async fn preview_schedule(
        &self,
        domain: &Domain,
        request: &PreviewRequest,
    ) -> Result<Vec<Occurrence>, Error> {
        let call = self.post(&["api", "v1", "domains", domain.as_str(), "timers", "preview"]);
        let found: Occurrences = call.body(request).document().await?;
        Ok(found.items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responder::{Answer, answer};
    use rota_model::timer::Schedule;
    use serde_json::json;

    #[tokio::test]
    async fn a_schedule_is_sent_and_its_instants_come_back() {
        let one = json!({"at": "2026-10-25T00:30:00Z", "local": "2026-10-25T02:30:00+02:00", "zone": "Europe/Berlin"});
        let (url, asked) = answer(vec![Answer::json(200, json!({"items": [one]}).to_string())]).await;
        let request = PreviewRequest { schedule: Schedule::new("30 2 * * *"), from: None, count: Some(1) };
        let client = Client::new(&url, "rota_key").unwrap();
        let found = client.preview_schedule(&Domain::default(), &request).await.unwrap();
        assert_eq!((found[0].local.as_str(), &found[0].note), ("2026-10-25T02:30:00+02:00", &None));
        let asked = asked.await.unwrap().remove(0);
        assert!(asked.starts_with("POST /api/v1/domains/default/timers/preview HTTP"), "{asked}");
        assert!(asked.contains(r#""cron":"30 2 * * *""#) && !asked.contains("from"), "{asked}");
    }
}
