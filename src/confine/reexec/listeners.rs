//! Listeners in the namespace of the calling thread, for the parent to answer.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::sockopt::{set_ipv6_v6only, set_socket_reuseaddr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

use crate::confine::order::DNS_PORT;
use crate::confine::start_error::files_cure;

/// All of them, bound.
pub(super) struct Listeners {
    sockets: Vec<OwnedFd>,
}

impl Listeners {
    /// Binds them: the proxy's, one per port, the one for names over TCP,
    /// those for names over UDP.
    ///
    /// # Errors
    /// A text that names the address.
    pub(super) fn bind(
        ports: &[u16],
        proxy_port: u16,
        name_servers: &[IpAddr],
        has_ipv6: bool,
    ) -> Result<Self, String> {
        let proxy = SocketAddr::from((Ipv4Addr::LOCALHOST, proxy_port));
        let proxy = TcpListener::bind(proxy).map_err(|error| not_bound(&proxy, &error))?;
        let mut sockets = vec![OwnedFd::from(proxy)];
        for &port in ports.iter().chain(&[DNS_PORT]) {
            sockets.push(everywhere(port, has_ipv6)?);
        }
        for address in name_addresses(name_servers, has_ipv6) {
            let address = SocketAddr::from((address, DNS_PORT));
            let socket = UdpSocket::bind(address).map_err(|error| not_bound(&address, &error))?;
            sockets.push(socket.into());
        }
        Ok(Self { sockets })
    }

    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.sockets.iter().map(AsFd::as_fd).collect()
    }
}

/// A listener on every address, of both families where there are two.
fn everywhere(port: u16, has_ipv6: bool) -> Result<OwnedFd, String> {
    let any = match has_ipv6 {
        true => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        false => IpAddr::from(Ipv4Addr::UNSPECIFIED),
    };
    let address = SocketAddr::from((any, port));
    listener(&address).map_err(|error| not_bound(&address, &error.into()))
}

/// The standard library has none that takes both families whatever the
/// system's default.
fn listener(address: &SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_reuseaddr(&socket, true)?;
    if address.is_ipv6() {
        set_ipv6_v6only(&socket, false)?;
    }
    bind(&socket, address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Where names are asked for. A server at 0.0.0.0 is reached at 127.0.0.1; a
/// link-local one at no address without an interface that is not here, and a
/// group is not asked.
fn name_addresses(servers: &[IpAddr], has_ipv6: bool) -> Vec<IpAddr> {
    let mut addresses = vec![
        IpAddr::from(Ipv4Addr::LOCALHOST),
        IpAddr::from(Ipv6Addr::LOCALHOST),
    ];
    for server in servers.iter().map(IpAddr::to_canonical) {
        let is_bindable = match server {
            IpAddr::V4(server) => !server.is_broadcast(),
            IpAddr::V6(server) => !server.is_unicast_link_local(),
        };
        let is_one = is_bindable && !server.is_unspecified() && !server.is_multicast();
        if is_one && !addresses.contains(&server) {
            addresses.push(server);
        }
    }
    addresses.retain(|address| has_ipv6 || address.is_ipv4());
    addresses
}

fn not_bound(address: &SocketAddr, error: &io::Error) -> String {
    let cure = files_cure(error);
    format!("cannot listen on {address} inside the confinement: {error}{cure}")
}

/// As the standard library's.
const BACKLOG: i32 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(addresses: &[&str]) -> Vec<IpAddr> {
        addresses.iter().map(|a| a.parse().unwrap()).collect()
    }

    #[test]
    fn names_are_asked_for_at_each_address_that_can_be_stood_in_for() {
        let servers = parsed(&[
            "10.0.0.2",
            "127.0.0.1",
            "10.0.0.2",
            "0.0.0.0",
            "::",
            "fe80::1",
            "224.0.0.251",
            "ff02::fb",
            "255.255.255.255",
            "::ffff:10.0.0.3",
            "2001:db8::1",
        ]);
        let both = parsed(&["127.0.0.1", "::1", "10.0.0.2", "10.0.0.3", "2001:db8::1"]);
        assert_eq!(name_addresses(&servers, true), both);
        let four = parsed(&["127.0.0.1", "10.0.0.2", "10.0.0.3"]);
        assert_eq!(name_addresses(&servers, false), four);
        assert_eq!(name_addresses(&[], false), parsed(&["127.0.0.1"]));
    }
}
