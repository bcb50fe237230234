//! Which addresses are of this machine, or next to it, although they are
//! public.
//!
//! Whoever owns a name can point it at the public address of the very machine
//! that a confined program runs on, or of another in its network: services that
//! no firewall shows to the Internet listen there. No table of blocks knows
//! these addresses; the machine's own routes do.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use rustix::io::Errno;

/// Whether `address` is one of this machine, or in the same IPv6 subnet as the
/// address that it would be reached from. Of IPv4 the size of a subnet cannot
/// be told from an address, so there only the machine itself is known.
///
/// Nothing is sent. What cannot be reached is not near, and what cannot be
/// found out is.
pub(crate) fn is_near(address: IpAddr) -> bool {
    is_own(address) || is_beside_source(address)
}

/// Whether this machine has the address: none but its own can be bound.
fn is_own(address: IpAddr) -> bool {
    if binds_any(address) {
        return false;
    }
    UdpSocket::bind((address, 0)).map_or_else(|error| !is_foreign(&error), |_| true)
}

/// Whether the machine is set to bind addresses that it does not have (ip(7)).
fn binds_any(address: IpAddr) -> bool {
    let family = if address.is_ipv4() { "ipv4" } else { "ipv6" };
    fs::read_to_string(format!("/proc/sys/net/{family}/ip_nonlocal_bind"))
        .is_ok_and(|setting| setting.trim() != "0")
}

/// Whether the machine says that it has no such address, or none of its kind.
fn is_foreign(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT))
}

fn is_beside_source(address: IpAddr) -> bool {
    let any = match address {
        IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    let socket = match UdpSocket::bind((any, 0)) {
        Ok(socket) => socket,
        Err(error) => return !is_foreign(&error),
    };
    // Without a way there it is not near.
    let source = socket
        .connect((address, ANY_PORT))
        .and_then(|()| socket.local_addr());
    source.is_ok_and(|source| is_beside(source.ip(), address))
}

fn is_beside(source: IpAddr, address: IpAddr) -> bool {
    match (source, address) {
        (IpAddr::V6(source), IpAddr::V6(address)) => {
            let subnet = |address: Ipv6Addr| u128::from(address) >> SUBNET_BITS;
            subnet(source) == subnet(address)
        }
        (source, address) => source == address,
    }
}

/// Nothing goes there.
const ANY_PORT: u16 = 9;

/// Of an interface (RFC 4291 §2.5.1).
const SUBNET_BITS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_near_and_what_has_no_route_is_not() {
        assert!(is_near([127, 0, 0, 1].into()));
        // Of examples: nobody has it.
        assert!(!is_near([192, 0, 2, 1].into()));
        assert!(!is_near("2001:db8::1".parse().unwrap()));
    }

    /// All of 127.0.0.0/8 is this machine's, and is reached from 127.0.0.1.
    #[test]
    fn an_address_that_is_reached_from_another_of_this_machine_is_its_own() {
        let second = IpAddr::from([127, 9, 8, 7]);
        assert!(is_own(second) || binds_any(second));
        assert!(!is_beside("127.0.0.1".parse().unwrap(), second));
    }

    #[test]
    fn what_cannot_be_found_out_is_near() {
        for (errno, expected) in [
            (Errno::ADDRNOTAVAIL, true),
            (Errno::AFNOSUPPORT, true),
            (Errno::MFILE, false),
            (Errno::PERM, false),
        ] {
            assert_eq!(is_foreign(&errno.into()), expected, "{errno}");
        }
    }

    #[test]
    fn beside_is_the_same_address_or_the_same_subnet() {
        for (source, address, expected) in [
            ("8.8.8.8", "8.8.8.8", true),
            ("8.8.8.8", "8.8.8.9", false),
            ("2a00::1:0:0:0:1", "2a00::1:ffff:ffff:ffff:ffff", true),
            ("2a00::1:0:0:0:1", "2a00::2:0:0:0:1", false),
            ("8.8.8.8", "2a00::1", false),
        ] {
            let [source, address] = [source, address].map(|text| text.parse().unwrap());
            assert_eq!(is_beside(source, address), expected, "{source} {address}");
        }
    }
}
