//! SHA-256 in hexadecimal: how keys are stored, and how a repeated submission is recognised.

use sha2::{Digest, Sha256};

pub(crate) fn hex_sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}
