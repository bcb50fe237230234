//! The HTTP proxy of a network that has no other way out.
//!
//! Everything goes through it by CONNECT (RFC 9110 §9.3.6), plain HTTP too.
//! It is given names as they are, so the classes of their addresses are its
//! business and not checked here.

use std::fmt;
use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::str::FromStr;

use thiserror::Error;
use zeroize::Zeroizing;

use super::dial::{DialFault, FaultKind, dial, resolve};
use super::head::{self, Response};
use super::incoming::{Hurried, Incoming};
use super::judge::LOCALHOST;
use super::limits::Limits;
use super::live::{Held, Live};
use crate::net::host::{Endpoint, EndpointFault, Host};
use crate::net::resolve::Resolver;

/// An HTTP proxy, by `http://[user:password@]HOST:PORT`. Never shows who logs
/// in there.
#[derive(Clone)]
pub(crate) struct Upstream {
    endpoint: Endpoint,
    /// Of `Proxy-Authorization` (RFC 7617).
    login: Option<Zeroizing<String>>,
}

/// What is wrong with an upstream proxy. Never holds the text itself, which
/// may have a password in it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum UpstreamFault {
    /// Not `http://`.
    #[error("only proxies by plain HTTP are used; write `http://HOST:PORT`")]
    Scheme,
    /// Something behind the port.
    #[error("a proxy has no path; write `http://HOST:PORT`")]
    Path,
    /// Of host or port.
    #[error("{0}")]
    Endpoint(#[from] EndpointFault),
    /// No colon, a bad escape, a control character.
    #[error(
        "the login is not `USER:PASSWORD`; write one colon between both, and every other `:`, `@`, `/` and `%` in them as `%3A`, `%40`, `%2F` and `%25`"
    )]
    Login,
}

impl FromStr for Upstream {
    type Err = UpstreamFault;

    fn from_str(text: &str) -> Result<Self, UpstreamFault> {
        let rest = strip_scheme(text).ok_or(UpstreamFault::Scheme)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (login, host) = match rest.rsplit_once('@') {
            Some((login, host)) => (Some(login), host),
            None => (None, rest),
        };
        if host.contains(['/', '?', '#']) {
            return Err(UpstreamFault::Path);
        }
        Ok(Self {
            endpoint: Endpoint::of_request(host)?,
            login: login.map(read_login).transpose()?,
        })
    }
}

impl Upstream {
    /// Connects to `meant` through the proxy. Also what was said already by
    /// whoever is behind it.
    pub(super) fn reach<'a>(
        &self,
        live: &'a Live,
        resolver: &Resolver,
        meant: &Endpoint,
        limits: &Limits,
    ) -> Result<(Held<'a>, Vec<u8>), DialFault> {
        let fault = |kind, text: &str| DialFault {
            kind,
            text: format!("{self}: {text}"),
        };
        let addresses = self
            .addresses(live, resolver)
            .map_err(|error| fault(error.kind, &error.text))?;
        let server = dial(live, &addresses, limits.dial).map_err(|error| {
            let error = DialFault::connecting(&self.endpoint, &error);
            fault(error.kind, &error.text)
        })?;
        let io = |error: std::io::Error| match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => {
                fault(FaultKind::Late, "it did not answer in time")
            }
            _ => fault(FaultKind::Other, &error.to_string()),
        };
        server.set_write_timeout(Some(limits.dial)).map_err(io)?;
        (&*server)
            .write_all(self.request(meant).as_bytes())
            .map_err(io)?;
        let mut incoming = Incoming::new(Hurried::new(&server, limits.dial), Vec::new());
        let answer = incoming
            .until(head::END, limits.head_bytes)
            .map_err(io)?
            .and_then(|bytes| Response::parse(&bytes).ok())
            .ok_or_else(|| fault(FaultKind::Other, "its answer is no HTTP"))?;
        let ahead = incoming.into_ahead();
        match answer.status {
            200..=299 => Ok((server, ahead)),
            407 => Err(fault(
                FaultKind::Other,
                "it wants another login (407); correct USER:PASSWORD in its URL",
            )),
            504 => Err(fault(FaultKind::Late, "it answered 504")),
            status => Err(fault(FaultKind::Other, &format!("it answered {status}"))),
        }
    }

    fn request(&self, meant: &Endpoint) -> Zeroizing<String> {
        let mut request = format!("CONNECT {meant} HTTP/1.1\r\nHost: {meant}\r\n");
        if let Some(login) = &self.login {
            request.push_str("Proxy-Authorization: Basic ");
            request.push_str(login);
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        Zeroizing::new(request)
    }

    /// Its own; the operator named it, so they may be of any class.
    fn addresses(&self, live: &Live, resolver: &Resolver) -> Result<Vec<SocketAddr>, DialFault> {
        let addresses = match &self.endpoint.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) if name.is_localhost() => LOCALHOST.to_vec(),
            Host::Name(name) => {
                let found = resolve(live, resolver, name)?;
                found.iter().map(|address| address.ip()).collect()
            }
        };
        let port = self.endpoint.port;
        let with_port = |address| SocketAddr::new(address, port);
        Ok(addresses.into_iter().map(with_port).collect())
    }
}

/// Without the login.
impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "upstream proxy {}", self.endpoint)
    }
}

/// Without the login.
impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("endpoint", &self.endpoint)
            .field("has_login", &self.login.is_some())
            .finish()
    }
}

/// A scheme has no case (RFC 3986 §3.1).
pub(super) fn strip_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some(rest)
}

/// `USER:PASSWORD` with percent-encoding to the credentials of RFC 7617.
fn read_login(text: &str) -> Result<Zeroizing<String>, UpstreamFault> {
    let (user, password) = text.split_once(':').ok_or(UpstreamFault::Login)?;
    if password.contains([':', '@', '/']) || user.is_empty() {
        return Err(UpstreamFault::Login);
    }
    let user = unescape(user)?;
    // The user ends at the first colon.
    if user.contains(&b':') {
        return Err(UpstreamFault::Login);
    }
    let mut plain = Zeroizing::new(Vec::new());
    plain.extend_from_slice(&user);
    plain.push(b':');
    plain.extend_from_slice(&unescape(password)?);
    if plain.iter().any(u8::is_ascii_control) || plain.len() > MAX_LOGIN_BYTES {
        return Err(UpstreamFault::Login);
    }
    Ok(base64(&plain))
}

fn unescape(text: &str) -> Result<Zeroizing<Vec<u8>>, UpstreamFault> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        let byte = match (first, tail) {
            (b'%', [high, low, tail @ ..]) => {
                rest = tail;
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                let value = digit(high).zip(digit(low));
                value.map(|(high, low)| (high << 4 | low) as u8)
            }
            (b'%', _) => None,
            (byte, _) => Some(*byte),
        };
        bytes.push(byte.ok_or(UpstreamFault::Login)?);
    }
    Ok(bytes)
}

/// RFC 4648 §4.
fn base64(bytes: &[u8]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(bytes.len().div_ceil(3) * 4));
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let six = (bits >> (18 - 6 * place)) & 0x3f;
            text.push(if place > three.len() {
                '='
            } else {
                char::from(BASE64[six as usize])
            });
        }
    }
    text
}

const SCHEME: &str = "http://";

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const MAX_LOGIN_BYTES: usize = 1024;

#[cfg(test)]
mod tests;
