//! Lists come in pages: `{"items": […], "next": "<cursor>"}`, without `next` on the last one.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Client, Error};

/// How many items a page holds at most.
const MAX_LIMIT: &str = "1000";

/// One page of a list. It may be short and still have a next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Client {
    /// Every item of a list that people keep short.
    pub(crate) async fn all<T: DeserializeOwned>(&self, parts: &[&str]) -> Result<Vec<T>, Error> {
        let mut items = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let query = [("limit", Some(MAX_LIMIT)), ("cursor", cursor.as_deref())];
            let page: Page<T> = self.get(parts).query(&query).document().await?;
            items.extend(page.items);
            if page.next.is_none() {
                return Ok(items);
            }
            if page.next == cursor {
                let why = "a page of a list leads to itself".to_owned();
                return Err(Error::Unreadable { url: self.url(), why });
            }
            cursor = page.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responder::{Answer, answer};

    const FIRST: &str = r#"{"items": [{"name": "a", "created": "2026-01-01T00:00:00Z"}], "next": "a b&c"}"#;
    const LAST: &str = r#"{"items": [{"name": "b", "created": "2026-01-01T00:00:00Z"}]}"#;

    #[tokio::test]
    async fn pages_are_followed_to_the_last() {
        let (url, asked) = answer(vec![Answer::json(200, FIRST), Answer::json(200, LAST)]).await;
        let domains = Client::new(&url, "rota_key").unwrap().domains().await.unwrap();
        let names: Vec<_> = domains.iter().map(|domain| domain.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let asked = asked.await.unwrap();
        assert!(asked[0].starts_with("GET /api/v1/domains?limit=1000 HTTP/1.1\r\n"), "{}", asked[0]);
        assert!(asked[0].contains("authorization: Bearer rota_key\r\n"), "{}", asked[0]);
        assert!(asked[1].starts_with("GET /api/v1/domains?limit=1000&cursor=a+b%26c HTTP"), "{}", asked[1]);
    }

    #[tokio::test]
    async fn a_page_that_leads_to_itself_ends_the_list() {
        let (url, _) = answer(vec![Answer::json(200, FIRST), Answer::json(200, FIRST)]).await;
        let error = Client::new(&url, "rota_key").unwrap().domains().await.unwrap_err();
        assert!(matches!(error, Error::Unreadable { .. }), "{error}");
    }
}
