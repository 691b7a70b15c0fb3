//! Where Rota is and who asks. The methods that follow the routes stand in the files named after them.

use std::fmt;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;

use crate::address::Address;
use crate::call::Call;
use crate::error::{Error, causes};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A client of one Rota, with one key.
#[derive(Clone)]
pub struct Client {
    address: Address,
    http: reqwest::Client,
}

/// The key is not shown.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("address", &self.address.to_string()).finish_non_exhaustive()
    }
}

impl Client {
    /// A client of the Rota at this address that signs in with this API key. Nothing is sent yet.
    pub fn new(url: &str, key: &str) -> Result<Self, Error> {
        let address: Address = url.parse()?;
        // A redirect is not followed: the key is meant for this address alone.
        let mut builder = reqwest::Client::builder()
            .default_headers(HeaderMap::from_iter([(AUTHORIZATION, bearer(key)?)]))
            .user_agent(concat!("rota/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT);
        if address.is_loopback() {
            builder = builder.no_proxy();
        }
        let http = builder
            .build()
            .map_err(|error| Error::Unreachable { url: address.to_string(), why: causes(&error) })?;
        Ok(Self { address, http })
    }

    /// The address as it is spelled everywhere.
    pub fn url(&self) -> String {
        self.address.to_string()
    }

    /// Whether Rota answers there at all; needs no valid key.
    pub async fn ping(&self) -> Result<(), Error> {
        let answer = self.get(&["api", "ping"]).text().await?;
        if answer.trim() == "pong" {
            return Ok(());
        }
        Err(Error::Unreadable { url: self.url(), why: "it did not answer `pong`".to_owned() })
    }

    pub(crate) fn get(&self, parts: &[&str]) -> Call<'_> {
        self.call(reqwest::Method::GET, parts)
    }

    pub(crate) fn post(&self, parts: &[&str]) -> Call<'_> {
        self.call(reqwest::Method::POST, parts)
    }

    pub(crate) fn put(&self, parts: &[&str]) -> Call<'_> {
        self.call(reqwest::Method::PUT, parts)
    }

    pub(crate) fn delete(&self, parts: &[&str]) -> Call<'_> {
        self.call(reqwest::Method::DELETE, parts)
    }

    fn call(&self, method: reqwest::Method, parts: &[&str]) -> Call<'_> {
        Call::new(&self.address, self.http.request(method, self.address.below(parts))).to(parts)
    }
}

fn bearer(key: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
        .map_err(|_| Error::Unsendable { what: "the API key" })?;
    value.set_sensitive(true);
    Ok(value)
}
