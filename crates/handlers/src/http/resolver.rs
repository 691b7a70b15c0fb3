//! From the host of a URL to addresses, and nothing but those that may be connected to.

use std::io;
use std::net::{IpAddr, SocketAddr};

use async_trait::async_trait;
use url::{Host, Url};

use crate::http::CallError;
use crate::http::addresses::Permitted;
use crate::http::payload::shown;

/// Knows the addresses of names.
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// As the system is set up.
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// Where this URL may be called: at one of these, at least one.
pub(super) async fn addresses(
    url: &Url,
    resolver: &dyn Resolver,
    permitted: &Permitted,
) -> Result<Vec<SocketAddr>, CallError> {
    let broken = |why: String| CallError::Broken(format!("{}: {why}", shown(url)));
    let host = url.host().ok_or_else(|| CallError::Refused(format!("{} names no host", shown(url))))?;
    let found = match &host {
        Host::Ipv4(address) => vec![IpAddr::V4(*address)],
        Host::Ipv6(address) => vec![IpAddr::V6(*address)],
        Host::Domain(name) => {
            let found = resolver.resolve(name).await;
            found.map_err(|error| broken(format!("the name {name} has no address: {error}")))?
        }
    };
    let Some(first) = found.first().copied() else {
        return Err(broken(format!("the name {host} has no address")));
    };
    let port = url.port_or_known_default().unwrap_or(80);
    let name = host.to_string();
    let open: Vec<_> = found.into_iter().filter(|address| permitted.allows(&name, *address)).collect();
    if open.is_empty() {
        return Err(CallError::Refused(closed(&name, first)));
    }
    Ok(open.into_iter().map(|address| SocketAddr::new(address, port)).collect())
}

fn closed(host: &str, address: IpAddr) -> String {
    format!(
        "{host} is not called: its address {address} is private, local or reserved. Whoever runs this node can allow it \
         with allow_hosts or allow_private under [http]"
    )
}
