//! What may be connected to. By default that is the public internet: an address that leads to this machine, to its network or
//! to a metadata service is refused, in whichever form it is written.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// An exception that the operator made: a host by its name, or a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedHost {
    Name(String),
    Range(IpNet),
}

#[derive(Debug, thiserror::Error)]
#[error(
    "'{0}' is neither the name of a host, such as intranet.example, nor a range of addresses, such as 10.1.0.0/16"
)]
pub struct NoAllowedHost(String);

impl FromStr for AllowedHost {
    type Err = NoAllowedHost;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(range) = text.parse::<IpNet>() {
            return Ok(Self::Range(range.trunc()));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Range(address.into()));
        }
        // What reads as a number is an address to a URL, so it cannot be a name here.
        let name = match url::Host::parse(text) {
            Ok(url::Host::Domain(name)) if !name.contains(['*', '_', '/']) => comparable(&name),
            _ => String::new(),
        };
        if name.is_empty() { Err(NoAllowedHost(text.to_owned())) } else { Ok(Self::Name(name)) }
    }
}

/// A name as it is compared: a dot at its end changes nothing.
fn comparable(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// What is allowed, in one place.
#[derive(Clone, Debug)]
pub(super) struct Permitted {
    pub(super) private: bool,
    pub(super) hosts: Vec<AllowedHost>,
}

impl Permitted {
    /// Whether this address, to which this host led, may be connected to.
    pub(super) fn allows(&self, host: &str, address: IpAddr) -> bool {
        self.private || is_public(address) || self.is_excepted(host, address.to_canonical())
    }

    fn is_excepted(&self, host: &str, address: IpAddr) -> bool {
        self.hosts.iter().any(|allowed| match allowed {
            AllowedHost::Name(name) => *name == comparable(host),
            AllowedHost::Range(range) => range.contains(&address),
        })
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(first: u16, second: u16, third: u16, length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first, second, third, 0, 0, 0, 0, 0), length)
}

/// IPv4 that leads to nobody on the internet.
const CLOSED_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 0, 8),       // this network, and the unspecified address
    v4(10, 0, 0, 0, 8),      // private
    v4(100, 64, 0, 0, 10),   // behind a carrier's translation
    v4(127, 0, 0, 0, 8),     // loopback
    v4(169, 254, 0, 0, 16),  // link-local, and metadata services
    v4(172, 16, 0, 0, 12),   // private
    v4(192, 0, 0, 0, 24),    // protocol assignments
    v4(192, 0, 2, 0, 24),    // documentation
    v4(192, 88, 99, 0, 24),  // 6to4 relays
    v4(192, 168, 0, 0, 16),  // private
    v4(198, 18, 0, 0, 15),   // benchmarks
    v4(198, 51, 100, 0, 24), // documentation
    v4(203, 0, 113, 0, 24),  // documentation
    v4(224, 0, 0, 0, 4),     // multicast
    v4(240, 0, 0, 0, 4),     // reserved, and broadcast
];

/// IPv6 that leads to nobody on the internet, or through a translation that cannot be looked into.
const CLOSED_V6: [Ipv6Net; 8] = [
    v6(0x64, 0xff9b, 1, 48),  // local translation
    v6(0x100, 0, 0, 64),      // discard
    v6(0x2001, 0, 0, 23),     // protocol assignments, Teredo among them
    v6(0x2001, 0xdb8, 0, 32), // documentation
    v6(0xfc00, 0, 0, 7),      // unique local
    v6(0xfe80, 0, 0, 10),     // link-local
    v6(0xfec0, 0, 0, 10),     // site-local
    v6(0xff00, 0, 0, 8),      // multicast
];

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !CLOSED_V4.iter().any(|range| range.contains(&address))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    match inner_v4(address) {
        Some(inner) => is_public_v4(inner),
        None => !CLOSED_V6.iter().any(|range| range.contains(&address)),
    }
}

/// The IPv4 address that an IPv6 address stands for: mapped, compatible (loopback and unspecified look like one), translated
/// (NAT64), or 6to4.
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let of = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff | 0, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(of(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permitted(hosts: &[&str]) -> Permitted {
        Permitted { private: false, hosts: hosts.iter().map(|host| host.parse().unwrap()).collect() }
    }

    fn allows(permitted: &Permitted, host: &str, address: &str) -> bool {
        permitted.allows(host, address.parse().unwrap())
    }

    #[test]
    fn the_internet_is_open() {
        for address in
            ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8"]
        {
            assert!(allows(&permitted(&[]), "example.com", address), "{address}");
        }
    }

    #[test]
    fn what_leads_inside_is_closed() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.8.9.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "239.1.1.1",
            "255.255.255.255",
            "::",
            "::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "::ffff:0:10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:0:1::1",
        ] {
            assert!(!allows(&permitted(&[]), "example.com", address), "{address}");
        }
    }

    #[test]
    fn exceptions_are_names_and_ranges() {
        let some = permitted(&["Intranet.Example.", "10.1.0.0/16", "fd00::/8", "192.168.7.7"]);
        assert!(allows(&some, "intranet.example", "10.9.9.9"));
        assert!(allows(&some, "INTRANET.example.", "127.0.0.1"));
        assert!(!allows(&some, "x.intranet.example", "10.9.9.9"));
        assert!(allows(&some, "elsewhere.example", "10.1.2.3"));
        assert!(allows(&some, "elsewhere.example", "::ffff:10.1.2.3"));
        assert!(allows(&some, "elsewhere.example", "fd00::1") && allows(&some, "x", "192.168.7.7"));
        assert!(!allows(&some, "elsewhere.example", "10.2.0.1") && !allows(&some, "x", "192.168.7.8"));
        assert!(allows(&Permitted { private: true, hosts: Vec::new() }, "x", "127.0.0.1"));
    }

    #[test]
    fn what_is_neither_a_name_nor_a_range_is_refused() {
        for text in [
            "",
            "*",
            "*.example.com",
            "http://example.com",
            "10.0.0.0/33",
            "a b",
            "2130706433.",
            "[::1]",
            ".",
        ] {
            assert!(text.parse::<AllowedHost>().is_err(), "{text}");
        }
    }
}
