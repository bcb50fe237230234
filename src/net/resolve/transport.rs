//! One question to one server, by UDP and, where that is not enough, TCP.
//!
//! Each question has a socket of its own. It is connected, so the kernel drops
//! what comes from other addresses, and its port is the kernel's random
//! choice; with the random id of the query a blind forger has to guess about
//! 2^30 combinations while the question is open (RFC 5452).

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use thiserror::Error;

use super::message::{Query, Reply};

/// Why a server gave no answer.
#[derive(Debug, Error)]
pub(crate) enum AskFault {
    /// It cannot be reached.
    #[error("the name server {server} cannot be asked: {error}")]
    Io {
        /// Which.
        server: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// In time.
    #[error("the name server {0} did not answer in time")]
    Silent(SocketAddr),
    /// Over TCP, past [`MAX_TCP_BYTES`], or something else than was asked.
    #[error("the name server {0} sent something that is no answer")]
    NoAnswer(SocketAddr),
    /// No id.
    #[error("no random bytes from the system: {0}")]
    Random(getrandom::Error),
}

/// Asks, and waits at most about `wait` for each of UDP and TCP together.
pub(super) fn ask(
    server: SocketAddr,
    query: &Query,
    wait: Duration,
    tcp_only: bool,
) -> Result<Reply, AskFault> {
    let deadline = Instant::now() + wait;
    let fault = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => AskFault::Silent(server),
        io::ErrorKind::InvalidData => AskFault::NoAnswer(server),
        _ => AskFault::Io { server, error },
    };
    if !tcp_only {
        let reply = ask_by_udp(server, query, deadline).map_err(fault)?;
        if let Some(reply) = reply.filter(|reply| *reply != Reply::Truncated) {
            return Ok(reply);
        }
    }
    ask_by_tcp(server, query, deadline).map_err(fault)
}

/// `None` when so many strays came that somebody seems to be guessing: TCP
/// cannot be guessed into.
fn ask_by_udp(server: SocketAddr, query: &Query, deadline: Instant) -> io::Result<Option<Reply>> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    socket.send(query.bytes())?;
    let mut buffer = [0; MAX_UDP_BYTES + 1];
    for _ in 0..=MAX_STRAYS {
        socket.set_read_timeout(Some(left(deadline)?))?;
        let length = match socket.recv(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            received => received?,
        };
        // One byte more than fits says that the rest was cut off.
        if length <= MAX_UDP_BYTES
            && let Some(bytes) = buffer.get(..length)
            && let Ok(reply) = query.read(bytes)
        {
            return Ok(Some(reply));
        }
    }
    Ok(None)
}

/// A message has its length in front (RFC 1035 §4.2.2).
fn ask_by_tcp(server: SocketAddr, query: &Query, deadline: Instant) -> io::Result<Reply> {
    let mut stream = TcpStream::connect_timeout(&server, left(deadline)?)?;
    // A query has at most 12 + 255 + 4 bytes.
    let mut message = (query.bytes().len() as u16).to_be_bytes().to_vec();
    message.extend_from_slice(query.bytes());
    stream.set_write_timeout(Some(left(deadline)?))?;
    stream.write_all(&message)?;
    let mut length = [0; 2];
    read_all(&mut stream, &mut length, deadline)?;
    let length = usize::from(u16::from_be_bytes(length));
    if length > MAX_TCP_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length];
    read_all(&mut stream, &mut bytes, deadline)?;
    let reply = query.read(&bytes);
    reply.map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Fills `buffer` before the deadline, however slowly the bytes drip.
fn read_all(stream: &mut TcpStream, mut buffer: &mut [u8], deadline: Instant) -> io::Result<()> {
    while !buffer.is_empty() {
        stream.set_read_timeout(Some(left(deadline)?))?;
        match stream.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => buffer = buffer.get_mut(read..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(left)
}

/// Without EDNS a server sends at most 512 (RFC 1035 §4.2.1). Somewhat more is
/// forgiven, but nothing that could have been sent in fragments.
const MAX_UDP_BYTES: usize = 1232;

/// 256 records of 64 bytes: more than is ever used.
const MAX_TCP_BYTES: usize = 16 << 10;

/// Datagrams from the server's address that are no answer.
const MAX_STRAYS: usize = 16;
