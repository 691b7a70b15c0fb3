//! Which Rota is meant, and with which key. What is said on the command line or in the environment goes before what
//! is stored.

use rota_client::{Address, Client};
use rota_model::secret::Secret;

use crate::credentials::{self, Credentials};
use crate::exit::{Exit, Failure};

pub(crate) const KEY_VARIABLE: &str = "ROTA_API_KEY";
const DEFAULT_URL: &str = "http://127.0.0.1:7682";

/// A client of the Rota that is meant.
pub(crate) fn open(asked_url: Option<&str>) -> Result<Client, Failure> {
    let given_key = std::env::var(KEY_VARIABLE).ok().filter(|key| !key.is_empty()).map(Secret::new);
    // Whoever says everything does not depend on what is stored.
    let stored = match (asked_url, &given_key) {
        (Some(_), Some(_)) => Credentials::default(),
        _ => credentials::load()?,
    };
    let url = choose_url(asked_url, &stored)?;
    let key = choose_key(&url, given_key.as_ref(), &stored)?;
    Ok(Client::new(&url, key.expose())?)
}

/// The address that is meant, whether or not there is a key for it.
pub(crate) fn url(asked: Option<&str>) -> Result<String, Failure> {
    choose_url(asked, &credentials::load()?)
}

fn choose_url(asked: Option<&str>, stored: &Credentials) -> Result<String, Failure> {
    let address: Address = asked.or(stored.current.as_deref()).unwrap_or(DEFAULT_URL).parse()?;
    Ok(address.to_string())
}

fn choose_key<'a>(
    url: &str,
    given: Option<&'a Secret>,
    stored: &'a Credentials,
) -> Result<&'a Secret, Failure> {
    given.or_else(|| stored.key_of(url)).ok_or_else(|| {
        let message = format!("not signed in at {url}: run `rota login --url {url}`, or set {KEY_VARIABLE}");
        Failure::new(Exit::NotAllowed, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> Credentials {
        let text = "current = \"http://two\"\n[servers.\"http://one\"]\napi_key = \"k1\"\n\
                    [servers.\"http://two\"]\napi_key = \"k2\"\n";
        toml::from_str(text).unwrap()
    }

    fn key_for(asked: Option<&str>, given: Option<&str>) -> Result<String, Failure> {
        let (stored, given) = (stored(), given.map(|key| Secret::new(key.to_owned())));
        let url = choose_url(asked, &stored)?;
        choose_key(&url, given.as_ref(), &stored).map(|key| format!("{url} {}", key.expose()))
    }

    #[test]
    fn the_key_belongs_to_the_address() {
        assert_eq!(key_for(None, None).unwrap(), "http://two k2");
        assert_eq!(key_for(Some("http://one"), None).unwrap(), "http://one k1");
        assert_eq!(key_for(None, Some("mine")).unwrap(), "http://two mine");
        assert_eq!(choose_url(None, &Credentials::default()).unwrap(), DEFAULT_URL);
    }

    #[test]
    fn whoever_has_no_key_is_told_what_to_do() {
        let failure = key_for(Some("http://three"), None).unwrap_err();
        assert_eq!(failure.exit, Exit::NotAllowed);
        let expected =
            "not signed in at http://three: run `rota login --url http://three`, or set ROTA_API_KEY";
        assert_eq!(failure.message, expected);
    }
}
