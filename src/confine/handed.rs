//! The sockets that a helper hands over.

use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::net::SocketType;
use rustix::net::sockopt::{socket_acceptconn, socket_type};

use super::order::{DNS_PORT, MAX_NAME_SERVERS};
use super::start_error::StartError;

/// Sockets in the helper's network namespace, that this process answers.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// On 127.0.0.1, for the proxy.
    pub(crate) proxy: TcpListener,
    /// One per allowed port, in their order, of both families where the
    /// kernel has both.
    pub(crate) direct: Vec<TcpListener>,
    /// For names over TCP.
    pub(crate) dns_tcp: TcpListener,
    /// For names over UDP, one per address.
    pub(crate) dns_udp: Vec<UdpSocket>,
}

/// Takes them in the order in which they were ordered, each for what it is.
///
/// # Errors
/// When one is something else.
pub(super) fn take(
    descriptors: Vec<OwnedFd>,
    ports: &[u16],
    proxy_port: u16,
) -> Result<Sockets, StartError> {
    let mut descriptors = descriptors.into_iter();
    let mut listener = |port| {
        let descriptor = descriptors.next().ok_or(StartError::Protocol)?;
        tcp(descriptor, port).ok_or(StartError::Protocol)
    };
    let proxy = listener(proxy_port)?;
    let direct: Result<_, _> = ports.iter().map(|&port| listener(port)).collect();
    let direct = direct?;
    let dns_tcp = listener(DNS_PORT)?;
    let dns_udp: Option<Vec<_>> = descriptors.map(udp).collect();
    let dns_udp = dns_udp.ok_or(StartError::Protocol)?;
    match dns_udp.len() {
        1..=MAX_NAME_SOCKETS => Ok(Sockets {
            proxy,
            direct,
            dns_tcp,
            dns_udp,
        }),
        _ => Err(StartError::Protocol),
    }
}

fn tcp(descriptor: OwnedFd, port: u16) -> Option<TcpListener> {
    let is_listener = socket_type(&descriptor) == Ok(SocketType::STREAM)
        && socket_acceptconn(&descriptor) == Ok(true);
    let listener = is_listener.then(|| TcpListener::from(descriptor))?;
    (listener.local_addr().ok()?.port() == port).then_some(listener)
}

fn udp(descriptor: OwnedFd) -> Option<UdpSocket> {
    let is_datagram = socket_type(&descriptor) == Ok(SocketType::DGRAM);
    let socket = is_datagram.then(|| UdpSocket::from(descriptor))?;
    (socket.local_addr().ok()?.port() == DNS_PORT).then_some(socket)
}

/// Those that are ordered, 127.0.0.1 and ::1.
const MAX_NAME_SOCKETS: usize = MAX_NAME_SERVERS + 2;
