//! Secrets, in memory and at rest: the types that keep promise 7, "no secret leaves in clear".
//!
//! A [`Secret`] is clear text. It is wiped when it is dropped, nothing prints it and nothing writes it: it has no
//! `Serialize` and no `Display`, and its `Debug` shows a placeholder. A document holds a [`Sealed`] instead, which is
//! read and written in one form only, `sealed:v1:<base64>`: a clear text that found its way into a document is refused
//! when the document is read.
//!
//! Sealing is XChaCha20-Poly1305. Its nonce of 24 bytes may be drawn at random for every seal without fear of
//! repetition. The place of the secret (`server-configuration/<id>/ssh-key`) is bound in as associated data: a sealed
//! value that somebody copies into another document cannot be opened there.
//!
//! ```compile_fail,E0277
//! fn leaves(value: impl serde::Serialize) {}
//! leaves(rota_model::secret::Secret::new("correct horse".to_owned()));
//! ```

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// The form of a sealed secret; part of what is authenticated.
const PREFIX: &str = "sealed:v1:";
/// The size of a secret, in bytes. A private key with certificates fits.
pub const MAX_SECRET_BYTES: usize = 64 * 1024;
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;

/// A secret in clear text.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(clear: String) -> Self {
        Self(Zeroizing::new(clear))
    }

    /// The clear text, for the one call that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A secret as it is stored: nonce, cipher text and tag.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sealed(Vec<u8>);

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealed(…)")
    }
}

impl From<Sealed> for String {
    fn from(sealed: Sealed) -> Self {
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(sealed.0))
    }
}

impl FromStr for Sealed {
    type Err = SecretFault;

    fn from_str(text: &str) -> Result<Self, SecretFault> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SecretFault::NotSealed)?;
        let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| SecretFault::NotSealed)?;
        if bytes.len() < NONCE_BYTES + TAG_BYTES {
            return Err(SecretFault::NotSealed);
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Sealed {
    type Error = SecretFault;

    fn try_from(text: String) -> Result<Self, SecretFault> {
        // What was refused may be a clear secret: it does not stay in memory.
        Zeroizing::new(text).parse()
    }
}

/// Why a secret could not be sealed, read or opened. No variant holds any part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretFault {
    #[error("a secret has at most {MAX_SECRET_BYTES} bytes")]
    TooLong,
    #[error("a stored secret must be sealed, in the form {PREFIX}<base64>")]
    NotSealed,
    #[error(
        "the secret cannot be opened: it was sealed with another key or for another place, or is damaged"
    )]
    CannotOpen,
}

/// The key of an installation, with which its secrets are sealed.
#[derive(Clone)]
pub struct SealingKey(Zeroizing<[u8; 32]>);

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(…)")
    }
}

impl SealingKey {
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Seals a secret for one place. The nonce is random and used once.
    pub fn seal(&self, secret: &Secret, nonce: [u8; 24], context: &str) -> Result<Sealed, SecretFault> {
        let clear = secret.expose().as_bytes();
        if clear.len() > MAX_SECRET_BYTES {
            return Err(SecretFault::TooLong);
        }
        let payload = Payload { msg: clear, aad: &associated(context) };
        let cipher_text =
            self.cipher().encrypt(&XNonce::from(nonce), payload).map_err(|_| SecretFault::TooLong)?;
        Ok(Sealed([nonce.as_slice(), &cipher_text].concat()))
    }

    /// Opens what was sealed for this place.
    pub fn unseal(&self, sealed: &Sealed, context: &str) -> Result<Secret, SecretFault> {
        let (nonce, cipher_text) =
            sealed.0.split_first_chunk::<NONCE_BYTES>().ok_or(SecretFault::NotSealed)?;
        let payload = Payload { msg: cipher_text, aad: &associated(context) };
        let clear =
            self.cipher().decrypt(&XNonce::from(*nonce), payload).map_err(|_| SecretFault::CannotOpen)?;
        // Sealed from a string under this very key, so it is one again.
        String::from_utf8(clear).map(Secret::new).map_err(|_| SecretFault::CannotOpen)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&(*self.0).into())
    }
}

fn associated(context: &str) -> Vec<u8> {
    [PREFIX, context].concat().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: &str = "server-configuration/1/ssh-key";

    fn key() -> SealingKey {
        SealingKey::new([7; 32])
    }

    fn sealed() -> Sealed {
        key().seal(&Secret::new("correct horse".to_owned()), [9; 24], PLACE).unwrap()
    }

    #[test]
    fn what_was_sealed_opens_only_with_its_key_in_its_place() {
        assert_eq!(key().unseal(&sealed(), PLACE).unwrap().expose(), "correct horse");
        let elsewhere = key().unseal(&sealed(), "server-configuration/2/ssh-key");
        assert_eq!(elsewhere.unwrap_err(), SecretFault::CannotOpen);
        let stranger = SealingKey::new([8; 32]).unseal(&sealed(), PLACE);
        assert_eq!(stranger.unwrap_err(), SecretFault::CannotOpen);
        let mut damaged = sealed();
        *damaged.0.last_mut().unwrap() ^= 1;
        assert_eq!(key().unseal(&damaged, PLACE).unwrap_err(), SecretFault::CannotOpen);
    }

    #[test]
    fn the_stored_form_round_trips_and_hides_the_text() {
        let text = serde_json::to_string(&sealed()).unwrap();
        assert!(text.starts_with("\"sealed:v1:"), "{text}");
        assert!(!text.contains("correct") && !text.contains("horse"), "{text}");
        assert_eq!(serde_json::from_str::<Sealed>(&text).unwrap(), sealed());
    }

    #[test]
    fn clear_text_is_refused_where_a_sealed_secret_belongs_and_not_repeated() {
        for clear in ["hunter2", "sealed:v1:hunter2", "sealed:v1:", "sealed:v2:AAAA", "sealed:v1:AAAA"] {
            let error = serde_json::from_value::<Sealed>(clear.into()).unwrap_err().to_string();
            assert!(error.contains("must be sealed") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn nothing_prints_a_secret() {
        let secret: Secret = serde_json::from_str("\"correct horse\"").unwrap();
        let printed = format!("{secret:?} {:?} {:?}", sealed(), key());
        assert_eq!(printed, "Secret(…) Sealed(…) SealingKey(…)");
    }

    #[test]
    fn a_secret_beyond_the_limit_is_refused() {
        let long = Secret::new("x".repeat(MAX_SECRET_BYTES + 1));
        assert_eq!(key().seal(&long, [0; 24], PLACE), Err(SecretFault::TooLong));
    }
}
