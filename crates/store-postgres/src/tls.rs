//! Who is trusted. Where TLS is used, the certificate is checked, its name and its authority: there is no connection that only
//! looks secure. So the modes of other clients that ask for some of this are all `require` here.

use std::sync::Arc;

use rota_store::StoreError;
use tokio_postgres::config::SslMode;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Which authorities are believed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Those that the system believes.
    System,
    /// Those in a file.
    File(String),
}

/// The address as the client library understands it, and what it does not know: `sslrootcert`, and the modes that verify.
pub(crate) fn read(url: &str) -> Result<(String, Trust), StoreError> {
    let Some((before, query)) = url.split_once('?') else { return Ok((url.to_owned(), Trust::System)) };
    let (mut trust, mut kept) = (Trust::System, Vec::new());
    for option in query.split('&') {
        match option.split_once('=') {
            Some(("sslrootcert", "system")) => {}
            Some(("sslrootcert", file)) => trust = Trust::File(decoded(file)?),
            Some(("sslmode", "verify-ca" | "verify-full")) => kept.push("sslmode=require"),
            _ => kept.push(option),
        }
    }
    let sign = if kept.is_empty() { "" } else { "?" };
    Ok((format!("{before}{sign}{}", kept.join("&")), trust))
}

/// A value as it was before it was put into an address.
fn decoded(value: &str) -> Result<String, StoreError> {
    let refused = || StoreError::refused("read the address of the store", "sslrootcert names no file");
    let mut parts = value.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).ok_or_else(refused)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| refused())?);
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8(bytes).ok().filter(|file| !file.is_empty()).ok_or_else(refused)
}

pub(crate) fn client(mode: SslMode, trust: Trust) -> Result<ClientConfig, StoreError> {
    let mut roots = RootCertStore::empty();
    match trust {
        _ if mode == SslMode::Disable => {}
        Trust::System => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Trust::File(file) => {
            roots.add_parsable_certificates(certificates(&file)?);
        }
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| StoreError::unavailable("set up TLS", error))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn certificates(file: &str) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let refused = |why: String| StoreError::refused("read the authority of the store", why);
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = read.map_err(|error| refused(format!("{file} cannot be read: {error}")))?;
    if read.is_empty() { Err(refused(format!("{file} holds no certificate"))) } else { Ok(read) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_verifies_is_required() {
        for (url, kept, trust) in [
            ("postgres://h/d", "postgres://h/d", Trust::System),
            ("postgres://h/d?sslmode=prefer", "postgres://h/d?sslmode=prefer", Trust::System),
            ("postgres://h/d?sslmode=verify-full", "postgres://h/d?sslmode=require", Trust::System),
            ("postgres://h/d?a=b&sslmode=verify-ca", "postgres://h/d?a=b&sslmode=require", Trust::System),
            ("postgres://h/d?sslrootcert=/a%20b.pem", "postgres://h/d", Trust::File("/a b.pem".to_owned())),
            ("postgres://h/d?sslrootcert=system&a=b", "postgres://h/d?a=b", Trust::System),
        ] {
            assert_eq!(read(url).unwrap(), (kept.to_owned(), trust), "{url}");
        }
        for wrong in ["sslrootcert=", "sslrootcert=%", "sslrootcert=%zz", "sslrootcert=%ff"] {
            assert!(read(&format!("postgres://h/d?{wrong}")).is_err(), "{wrong}");
        }
    }
}
