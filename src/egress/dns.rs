//! The name server of the network namespace: answers from the entries alone.
//!
//! Nothing that it is asked leaves the machine, so questions carry nothing
//! out. A name that is allowed has the address it is lent; its real addresses
//! are looked up when it is dialled.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::Duration;

use rustix::event::PollFlags;

use super::Shared;
use super::denial::{Cause, Denial};
use super::incoming::{Hurried, Incoming};
use super::live::Held;
use super::names::Standing;
use crate::net::host::HostFault;
use message::{Kind, Query, Rcode, Unanswerable};

mod message;

/// Answers on every socket until everything is over.
pub(super) fn serve_udp(shared: &Shared, sockets: &[UdpSocket]) {
    let polled: Vec<_> = sockets.iter().map(|socket| socket.as_fd()).collect();
    let mut buffer = [0; MAX_UDP_BYTES + 1];
    while !shared.live.is_over() {
        let Ok(ready) = shared.live.wait(&polled, PollFlags::IN, None) else {
            // Out of memory, for a moment.
            let _ = shared.live.wait(&[], PollFlags::IN, Some(PAUSE));
            continue;
        };
        for socket in ready.into_iter().filter_map(|at| sockets.get(at)) {
            // The error of an answer before: nobody waits for it any more.
            let Ok((length, client)) = socket.recv_from(&mut buffer) else {
                continue;
            };
            // One byte more than fits says that the rest was cut off.
            let query = buffer.get(..length).filter(|_| length <= MAX_UDP_BYTES);
            if let Some(answer) = query.and_then(|query| answer(shared, query)) {
                let _ = socket.send_to(&answer, client);
            }
        }
    }
}

/// Answers one client for as long as it asks: messages with their length in
/// front (RFC 1035 §4.2.2, RFC 7766).
pub(super) fn serve_tcp(shared: &Shared, client: &Held<'_>) -> io::Result<()> {
    let limit = shared.judge.limits.head;
    client.set_write_timeout(Some(limit))?;
    let mut ahead = Vec::new();
    loop {
        let mut incoming = Incoming::new(Hurried::new(client, limit), ahead);
        let length = usize::from(u16::from_be_bytes(incoming.array()?));
        if length > MAX_TCP_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut query = vec![0; length];
        incoming.exact(&mut query)?;
        let Some(answer) = answer(shared, &query) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        // It fits into a datagram.
        let mut message = (answer.len() as u16).to_be_bytes().to_vec();
        message.extend_from_slice(&answer);
        (&**client).write_all(&message)?;
        ahead = incoming.into_ahead();
    }
}

/// The answer to a message, if it gets one.
fn answer(shared: &Shared, bytes: &[u8]) -> Option<Vec<u8>> {
    let query = match Query::read(bytes) {
        Ok(query) => query,
        Err(Unanswerable::Dropped) => return None,
        Err(Unanswerable::Refused(answer)) => return Some(answer),
    };
    if let Some(name) = inverse(shared, &query) {
        return Some(match query.kind() {
            Kind::Ptr => query.with_name(&name),
            _ => query.with_code(Rcode::NoError),
        });
    }
    let name = match query.name() {
        Ok(name) => name,
        Err((text, fault)) => {
            deny_text(shared, &text, fault);
            return Some(query.with_code(Rcode::NxDomain));
        }
    };
    let standing = shared.judge.names.look_up(&name);
    Some(match (standing, query.kind()) {
        (Standing::Lent(address), Kind::A) => query.with_ipv4(address),
        (Standing::Localhost, Kind::A) => query.with_ipv4(Ipv4Addr::LOCALHOST),
        (Standing::Localhost, Kind::Aaaa) => query.with_ipv6(Ipv6Addr::LOCALHOST),
        (Standing::Lent(_) | Standing::Localhost, _) => query.with_code(Rcode::NoError),
        (Standing::Full(full), _) => {
            let denial = Denial::of_name(&name, Cause::PoolFull(full));
            shared.judge.ledger.deny(&denial);
            query.with_code(Rcode::ServFail)
        }
        (Standing::NotAllowed, _) => {
            let denial = Denial::of_name(&name, Cause::NotAllowed);
            shared.judge.ledger.deny(&denial);
            query.with_code(Rcode::NxDomain)
        }
    })
}

/// The name of the address that an inverse question is about.
fn inverse(shared: &Shared, query: &Query<'_>) -> Option<String> {
    let address = query.inverse_address()?;
    if address.is_loopback() && !shared.judge.names.owns(address) {
        return Some("localhost".to_owned());
    }
    let name = shared.judge.names.name(address)?;
    Some(name.as_str().to_owned())
}

fn deny_text(shared: &Shared, text: &str, fault: HostFault) {
    shared
        .judge
        .ledger
        .deny(&Denial::of_text(text, None, fault));
}

/// A datagram with EDNS that is not sent in fragments.
const MAX_UDP_BYTES: usize = 1232;

/// A question has at most some hundred bytes, options included.
const MAX_TCP_BYTES: usize = 4096;

/// When the kernel cannot poll.
const PAUSE: Duration = Duration::from_millis(100);
