//! Where a Rota is, in one spelling per place, so that what is stored under an address is found again.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;

use crate::Error;

/// An address such as `http://127.0.0.1:7682`, without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(Url);

impl Address {
    /// The address of something below this one; each part is escaped where it must be.
    pub(crate) fn below(&self, parts: &[&str]) -> Url {
        let mut url = self.0.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        url
    }

    /// Whether it is this very machine, which no proxy leads to.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default();
        let number = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host == "localhost" || number.is_ok_and(|ip| ip.is_loopback())
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        // A refused address is not repeated where it may hold a password.
        let refuse = |why| Err(Error::Address { why });
        let Ok(url) = Url::parse(text) else {
            return refuse("it must be an address such as http://127.0.0.1:7682");
        };
        if url.scheme() == "https" {
            return refuse("https is not supported yet: use http, or a tunnel that ends on this machine");
        }
        if url.scheme() != "http" || url.host_str().is_none() {
            return refuse("it must begin with http:// and name a host, such as http://127.0.0.1:7682");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("it must not hold a user name or password: Rota is entered with an API key");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return refuse("it must not have a part behind ? or #");
        }
        Ok(Self(url))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse().unwrap()
    }

    #[test]
    fn one_place_has_one_spelling() {
        for text in ["http://rota.example:80", "http://rota.example/", "HTTP://Rota.Example"] {
            assert_eq!(address(text).to_string(), "http://rota.example", "{text}");
        }
        assert_eq!(address("http://rota.example/fleet/").to_string(), "http://rota.example/fleet");
    }

    #[test]
    fn parts_are_escaped_and_a_path_in_front_is_kept() {
        let user = ["api", "v1", "users", "oidc:a?b#c/d%é"];
        assert_eq!(
            address("http://h/fleet").below(&user).as_str(),
            "http://h/fleet/api/v1/users/oidc:a%3Fb%23c%2Fd%25%C3%A9"
        );
        assert_eq!(address("http://h:1").below(&["api", "ping"]).as_str(), "http://h:1/api/ping");
    }

    #[test]
    fn what_is_no_address_is_refused_without_being_repeated() {
        let bad =
            ["", "rota.example:7682", "ftp://h", "https://h", "http://me:hunter2@h", "http://h/?hunter2"];
        for text in bad {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn this_machine_is_recognised() {
        assert!(
            ["http://127.0.0.1:7682", "http://localhost", "http://[::1]:1"]
                .map(address)
                .iter()
                .all(Address::is_loopback)
        );
        assert!(!address("http://10.0.0.1").is_loopback());
    }
}
