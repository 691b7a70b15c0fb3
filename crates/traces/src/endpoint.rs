//! Where spans are sent: the address of a collector.

use std::fmt;
use std::str::FromStr;

use url::Url;

/// Where OTLP over HTTP takes spans, below the address of a collector.
const PATH: &str = "v1/traces";

/// The address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(Url);

/// Why nothing can be sent to an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoEndpoint(pub(crate) String);

impl Endpoint {
    /// Whether the collector has to prove who it is.
    pub fn is_secure(&self) -> bool {
        self.0.scheme() == "https"
    }

    pub(crate) fn url(&self) -> Url {
        self.0.clone()
    }
}

impl FromStr for Endpoint {
    type Err = NoEndpoint;

    fn from_str(text: &str) -> Result<Self, NoEndpoint> {
        let refused = |why: &str| NoEndpoint(format!("'{text}' {why}, such as http://127.0.0.1:4318"));
        let mut url = Url::parse(text).map_err(|_| refused("is not the address of a collector"))?;
        if !["http", "https"].contains(&url.scheme()) || url.host().is_none() {
            return Err(refused("is not an http or https address"));
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err(refused("must be an address alone, without user, password or query"));
        }
        let path = format!("{}/{PATH}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        Ok(Self(url))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_go_below_the_address() {
        for (text, url) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://collector/otlp/", "http://collector/otlp/v1/traces"),
            ("https://collector", "https://collector/v1/traces"),
        ] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(
                (endpoint.to_string().as_str(), endpoint.is_secure()),
                (url, text.starts_with("https"))
            );
        }
        for text in
            ["", "collector:4318", "ftp://collector", "http://a:b@collector", "http://c/?key=1", "file:///x"]
        {
            assert!(text.parse::<Endpoint>().unwrap_err().to_string().contains("such as http://"), "{text}");
        }
    }
}
