//! Connections to the outside.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::sockopt::socket_error;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with};

use super::live::{Held, Live};
use crate::net::address::Address;
use crate::net::host::{Endpoint, Name};
use crate::net::resolve::Resolver;

/// Why nothing came of a connection that was let through.
#[derive(Debug)]
pub(super) struct DialFault {
    pub(super) kind: FaultKind,
    /// One line, without text of the child's but the host.
    pub(super) text: String,
}

/// What a client is told in its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// The name has no address, or the network no way.
    Unreachable,
    /// There is nobody at the port.
    Refused,
    /// Not in time.
    Late,
    /// Anything else.
    Other,
}

/// Connects to the first of `addresses` that answers. Each gets its share of
/// the time, so one that is silent does not take that of the next.
pub(super) fn dial<'a>(
    live: &'a Live,
    addresses: &[SocketAddr],
    limit: Duration,
) -> io::Result<Held<'a>> {
    let deadline = Instant::now() + limit;
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for (tried, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        match dial_one(live, *address, share) {
            Ok(stream) => return live.hold(stream),
            Err(error) => last = error,
        }
        if live.is_over() {
            break;
        }
    }
    Err(last)
}

/// Like `TcpStream::connect_timeout`, but it ends when everything does.
fn dial_one(live: &Live, address: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    match connect(&socket, &address) {
        Ok(()) => {}
        Err(rustix::io::Errno::INPROGRESS) => wait_for(live, &socket, limit)?,
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn wait_for(live: &Live, socket: &impl AsFd, limit: Duration) -> io::Result<()> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let ready = live.wait(&[socket.as_fd()], PollFlags::OUT, Some(left))?;
        if live.is_over() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if !ready.is_empty() {
            return Ok(socket_error(socket)??);
        }
    }
}

/// The addresses of `name`. The resolver cannot be interrupted, so it works in
/// a thread that is left to end by itself when everything ends before.
pub(super) fn resolve(
    live: &Live,
    resolver: &Resolver,
    name: &Name,
) -> Result<Vec<Address>, DialFault> {
    let (sender, receiver) = mpsc::channel();
    let (resolver, name) = (resolver.clone(), name.clone());
    let thread = thread::Builder::new().name("egress-resolve".to_owned());
    let spawned = thread.spawn(move || {
        // Nobody may be waiting any more.
        let _ = sender.send(resolver.resolve(&name));
    });
    spawned.map_err(|error| DialFault {
        kind: FaultKind::Other,
        text: format!("no thread to resolve on: {error}"),
    })?;
    let unreachable = |text: String| DialFault {
        kind: FaultKind::Unreachable,
        text,
    };
    loop {
        match receiver.recv_timeout(LOOK_UP) {
            Ok(found) => return found.map_err(|error| unreachable(error.to_string())),
            Err(RecvTimeoutError::Timeout) if !live.is_over() => {}
            Err(_) => return Err(unreachable("it could not be resolved".to_owned())),
        }
    }
}

impl DialFault {
    /// Of connecting to `endpoint`.
    pub(super) fn connecting(endpoint: &Endpoint, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::ConnectionRefused => FaultKind::Refused,
            io::ErrorKind::TimedOut => FaultKind::Late,
            io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::AddrNotAvailable => FaultKind::Unreachable,
            _ => FaultKind::Other,
        };
        let text = match kind {
            FaultKind::Late => format!("{endpoint} did not answer in time"),
            _ => format!("{endpoint} cannot be reached: {error}"),
        };
        Self { kind, text }
    }
}

impl fmt::Display for DialFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// How often whoever waits for the resolver looks whether everything is over.
const LOOK_UP: Duration = Duration::from_millis(50);
