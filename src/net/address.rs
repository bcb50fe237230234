//! What kind of network an address belongs to.
//!
//! A name that an operator allowed may resolve to an address inside: by
//! mistake, or because whoever owns the name wants a confined program to reach
//! the machine's own services (DNS rebinding). So only [`Class::Public`]
//! addresses are dialled for a name, and any other needs an entry that is that
//! literal. What no table knows is not public.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address and its class. An IPv4 address in IPv6 form is held as IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    ip: IpAddr,
    class: Class,
}

/// What an address is for, by the special-purpose registries of IANA
/// (RFC 6890 and its successors) and the multicast registries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// Of the Internet.
    Public,
    /// `0.0.0.0`, `::`: a client that dials it reaches its own machine.
    Unspecified,
    /// This machine.
    Loopback,
    /// This link.
    LinkLocal,
    /// RFC 1918.
    Private,
    /// RFC 4193, and the site-local addresses before it.
    UniqueLocal,
    /// Behind a carrier's NAT (RFC 6598).
    Shared,
    /// Many receivers.
    Multicast,
    /// Everyone on the link.
    Broadcast,
    /// Of examples.
    Documentation,
    /// Of test beds (RFC 2544, RFC 5180).
    Benchmarking,
    /// Where a cloud hands out credentials.
    Metadata,
    /// For protocols, for later, or unknown.
    Reserved,
}

impl Address {
    pub(crate) fn ip(&self) -> IpAddr {
        self.ip
    }

    pub(crate) fn class(&self) -> Class {
        self.class
    }

    /// Whether a name may lead to it.
    pub(crate) fn is_public(&self) -> bool {
        self.class == Class::Public
    }
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        let ip = ip.to_canonical();
        let class = match ip {
            IpAddr::V4(ip) => class_of_ipv4(ip),
            IpAddr::V6(ip) => class_of_ipv6(ip),
        };
        Self { ip, class }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ip.fmt(f)
    }
}

/// As an adjective before "address".
impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "public",
            Self::Unspecified => "unspecified",
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::Private => "private",
            Self::UniqueLocal => "unique local",
            Self::Shared => "carrier NAT",
            Self::Multicast => "multicast",
            Self::Broadcast => "broadcast",
            Self::Documentation => "documentation",
            Self::Benchmarking => "benchmarking",
            Self::Metadata => "cloud metadata",
            Self::Reserved => "reserved",
        })
    }
}

fn class_of_ipv4(ip: Ipv4Addr) -> Class {
    IPV4.iter()
        .find(|(block, prefix, _)| {
            let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
            u32::from(ip) & mask == u32::from(*block)
        })
        .map_or(Class::Public, |(_, _, class)| *class)
}

/// The class of its block, unless an IPv4 address that it leads to is worse.
fn class_of_ipv6(ip: Ipv6Addr) -> Class {
    let embedded = embedded(ip).into_iter().flatten().map(class_of_ipv4);
    let mut inside = embedded.filter(|class| *class != Class::Public);
    let block = || {
        IPV6.iter()
            .find(|(block, prefix, _)| {
                let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
                u128::from(ip) & mask == u128::from(*block)
            })
            .map_or(Class::Reserved, |(_, _, class)| *class)
    };
    inside.next().unwrap_or_else(block)
}

/// The IPv4 addresses that packets to `ip` may be carried to, where a
/// translation or a tunnel writes them into the address. A translator with a
/// prefix of its network's own (RFC 6052 §2.2) looks like any IPv6 host and
/// is not seen.
fn embedded(ip: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let of = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match ip.segments() {
        // `::` and `::1` have classes of their own.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => [None, None],
        // Compatible (RFC 4291 §2.5.5.1), translated (RFC 2765 §2.1) and
        // NAT64 with the well-known prefix (RFC 6052 §2.1).
        [0, 0, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => [of(high, low), None],
        // 6to4 (RFC 3056 §2).
        [0x2002, high, low, ..] => [of(high, low), None],
        // Teredo: the server, and the client with its bits turned over
        // (RFC 4380 §4).
        [0x2001, 0, high, low, _, _, client_high, client_low] => {
            [of(high, low), of(!client_high, !client_low)]
        }
        // ISATAP (RFC 5214 §6.1).
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => [of(high, low), None],
        _ => [None, None],
    }
}

const fn v6(segments: [u16; 8]) -> Ipv6Addr {
    let [a, b, c, d, e, f, g, h] = segments;
    Ipv6Addr::new(a, b, c, d, e, f, g, h)
}

/// First match decides; what none holds is public. From the "IANA IPv4
/// Special-Purpose Address Registry" (RFC 6890, RFC 8190) and the multicast
/// registry (RFC 5771); metadata addresses from the clouds' manuals. Blocks
/// that the registry calls globally reachable and that are the anycast
/// addresses of one's own network's translator (192.0.0.9, 192.0.0.10) stay
/// reserved.
const IPV4: [(Ipv4Addr, u32, Class); 21] = [
    // AWS, Azure, Google and others; AWS ECS; Alibaba; Azure's host.
    (Ipv4Addr::new(169, 254, 169, 254), 32, Class::Metadata),
    (Ipv4Addr::new(169, 254, 170, 2), 32, Class::Metadata),
    (Ipv4Addr::new(100, 100, 100, 200), 32, Class::Metadata),
    (Ipv4Addr::new(168, 63, 129, 16), 32, Class::Metadata),
    (Ipv4Addr::new(0, 0, 0, 0), 32, Class::Unspecified),
    // "This network" (RFC 791).
    (Ipv4Addr::new(0, 0, 0, 0), 8, Class::Reserved),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Class::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Class::Shared),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Class::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Class::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Class::Private),
    // Protocol assignments (RFC 6890 §2.1).
    (Ipv4Addr::new(192, 0, 0, 0), 24, Class::Reserved),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Class::Documentation),
    // The relays of 6to4 (RFC 7526).
    (Ipv4Addr::new(192, 88, 99, 0), 24, Class::Reserved),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Class::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Class::Benchmarking),
    (Ipv4Addr::new(198, 51, 100, 0), 24, Class::Documentation),
    (Ipv4Addr::new(203, 0, 113, 0), 24, Class::Documentation),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Class::Multicast),
    (Ipv4Addr::new(255, 255, 255, 255), 32, Class::Broadcast),
    (Ipv4Addr::new(240, 0, 0, 0), 4, Class::Reserved),
];

/// First match decides; what none holds is reserved. From the "IANA IPv6
/// Special-Purpose Address Registry" and the "Internet Protocol Version 6
/// Address Space" (RFC 4291 §2.4): only 2000::/3 is in use as global unicast.
const IPV6: [(Ipv6Addr, u32, Class); 20] = [
    // AWS and Google.
    (
        v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]),
        128,
        Class::Metadata,
    ),
    (
        v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]),
        128,
        Class::Metadata,
    ),
    (v6([0; 8]), 128, Class::Unspecified),
    (v6([0, 0, 0, 0, 0, 0, 0, 1]), 128, Class::Loopback),
    // NAT64 (RFC 6052): as good as what it leads to. The prefix for local use
    // (RFC 8215) hides that, so it stays reserved.
    (v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0]), 96, Class::Public),
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0]), 48, Class::Reserved),
    // Discard (RFC 6666) and dummy (RFC 9780) prefixes.
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0]), 63, Class::Reserved),
    // Teredo (RFC 4380): as good as what it leads to.
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0]), 32, Class::Public),
    (v6([0x2001, 2, 0, 0, 0, 0, 0, 0]), 48, Class::Benchmarking),
    // AMT (RFC 7450) and AS112 (RFC 7535).
    (v6([0x2001, 3, 0, 0, 0, 0, 0, 0]), 32, Class::Public),
    (v6([0x2001, 4, 0x112, 0, 0, 0, 0, 0]), 48, Class::Public),
    // The rest of the protocol assignments (RFC 2928): anycast addresses of
    // one's own network, identifiers that are not routed (ORCHID, DRIP).
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0]), 23, Class::Reserved),
    (
        v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0]),
        32,
        Class::Documentation,
    ),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0]), 20, Class::Documentation),
    // Everything else of global unicast, 6to4 (RFC 3056) among it.
    (v6([0x2000, 0, 0, 0, 0, 0, 0, 0]), 3, Class::Public),
    // Segment identifiers (RFC 9602).
    (v6([0x5f00, 0, 0, 0, 0, 0, 0, 0]), 16, Class::Reserved),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0]), 7, Class::UniqueLocal),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0]), 10, Class::LinkLocal),
    // Site-local, deprecated (RFC 3879).
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0]), 10, Class::UniqueLocal),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0]), 8, Class::Multicast),
];

#[cfg(test)]
mod tests;
