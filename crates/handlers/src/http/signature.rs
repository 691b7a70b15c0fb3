//! By which a receiver knows that Rota called: `t=<unix ms>,v1=<hex>`, where the hex is the HMAC-SHA256 of
//! `<unix ms>.<job id>.<epoch>.<body>`. The time lets a receiver refuse what is old.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use rota_model::ids::JobId;
use rota_model::time::UnixMillis;
use sha2::Sha256;
use zeroize::Zeroizing;

/// Shorter ones can be guessed.
const MIN_BYTES: usize = 16;

/// What calls are signed with. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

#[derive(Debug, thiserror::Error)]
#[error("a signing secret has at least {MIN_BYTES} bytes; this one has {0}")]
pub struct WeakSecret(usize);

impl Secret {
    /// From the content of a file: whitespace around it is not part of it.
    pub fn new(content: &[u8]) -> Result<Self, WeakSecret> {
        let content = content.trim_ascii();
        if content.len() < MIN_BYTES {
            return Err(WeakSecret(content.len()));
        }
        Ok(Self(Zeroizing::new(content.to_vec())))
    }

    /// The value of the header.
    pub(super) fn sign(&self, now: UnixMillis, job: JobId, epoch: u64, body: &[u8]) -> Option<String> {
        let time = now.as_u64();
        // A key of any length will do, so this never fails.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(format!("{time}.{job}.{epoch}.").as_bytes());
        mac.update(body);
        let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        Some(format!("t={time},v1={hex}"))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_another_tool_computes() {
        let job: JobId = "0190c8a0-0000-7000-8000-000000000001".parse().unwrap();
        let secret = Secret::new(b"0123456789abcdef\n").unwrap();
        let signature = secret.sign(UnixMillis(1_700_000_000_000), job, 3, b"{\"a\":1}").unwrap();
        assert_eq!(
            signature,
            "t=1700000000000,v1=bb237505858e57b0a0cd088cb12cbd57af3b6dbe9e9249230457a730844840dd"
        );
    }

    #[test]
    fn a_secret_is_neither_weak_nor_shown() {
        assert!(Secret::new(b"  too short      \n").is_err());
        assert_eq!(format!("{:?}", Secret::new(b"0123456789abcdef").unwrap()), "Secret");
    }
}
