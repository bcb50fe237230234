//! Entries of `--allow-net`: which hosts may be reached on which ports.
//!
//! `HOST:PORT[,PORT…]`, where the host is a name, an address literal, or
//! `*.NAME` for every name at least one label below NAME and never NAME
//! itself. A wildcard stands in front of at least two labels, so that no entry
//! opens a top-level domain; a domain under which strangers can register
//! (`*.co.uk`, `*.github.io`) is the operator's to judge. Ports are listed one
//! by one: each is a listener, and a range is rarely what a program needs.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use thiserror::Error;

use super::address::{Address, Class};
use super::host::{Host, HostFault, Name, PortFault, read_port, split_port};
use crate::wire::escape::Shortened;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Allow {
    pattern: Pattern,
    /// In ascending order, each once, at least one.
    ports: Vec<u16>,
}

/// Which hosts an entry means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// This one.
    Host(Host),
    /// Every name with at least one label more in front.
    Below(Name),
}

/// Where a connection may be dialled to. Made by [`Allow::target`] only, so
/// whoever holds one holds an address that an entry allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target(SocketAddr);

/// Why an entry does not let an address be dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum TargetFault {
    /// Of a class that needs an entry of its own.
    #[error("{0} is a {1} address; it is reached only by an entry that is this very address")]
    NotPublic(IpAddr, Class),
    /// Public, and of this machine or its network.
    #[error(
        "{0} is an address of this machine or its network; it is reached only by an entry that is this very address"
    )]
    Near(IpAddr),
    /// The entry is another address.
    #[error("{0} is not the address that the entry allows")]
    OtherAddress(IpAddr),
    /// The entry means another host or other ports.
    #[error("the entry does not allow this host and port")]
    NotAllowed,
}

/// An entry that cannot be read.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("{FLAG} `{text}`: {fault}")]
pub(crate) struct AllowError {
    text: Shortened,
    fault: AllowFault,
}

/// What is wrong with an entry, and what to write.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum AllowFault {
    /// Past [`MAX_ENTRY_BYTES`].
    #[error("the entry has {0} bytes, more than {MAX_ENTRY_BYTES}; split it into several")]
    Long(usize),
    /// White space or a control character.
    #[error("there is white space or a control character in it; write HOST:PORT without")]
    Space,
    /// `https://…`.
    #[error("a scheme is not part of a host; {}", Advice(.0))]
    Scheme(Option<Box<Allow>>),
    /// `user@…`.
    #[error("a user is not part of a host; {}", Advice(.0))]
    User(Option<Box<Allow>>),
    /// `…/path`, also of networks.
    #[error(
        "a path, a query or a network mask is not part of a host, and networks cannot be allowed; {}",
        Advice(.0)
    )]
    Path(Option<Box<Allow>>),
    /// Of the host.
    #[error("{0}")]
    Host(#[from] HostFault),
    /// Of one port.
    #[error("{0}")]
    Port(#[from] PortFault),
    /// `8000-8010`.
    #[error("port ranges cannot be allowed; list the ports, as in `:80,443`")]
    Range,
    /// `:*`.
    #[error("there is no entry for every port; list the ports, as in `:80,443`")]
    EveryPort,
    /// Past [`MAX_PORTS`].
    #[error("the entry lists {0} ports, more than {MAX_PORTS}; split it into several")]
    ManyPorts(usize),
    /// `*:443`.
    #[error("there is no entry for every host; name the hosts, or a domain as in `*.example.com`")]
    EveryHost,
    /// `*.com:443`.
    #[error("`*.` stands in front of at least two labels, as in `*.example.com`; name the domain")]
    WildcardTop,
    /// `a*.example.com`, `*.*.example.com`.
    #[error("`*` is one whole label at the start, as in `*.example.com`; write it so")]
    WildcardPlace,
    /// `*.10.0.0.1`.
    #[error("`*.` stands in front of a name, not of an address; list the addresses")]
    WildcardAddress,
    /// `localhost`, and what is below it.
    #[error(
        "`localhost` is a different address to different programs; write `127.0.0.1:PORT` or `[::1]:PORT`"
    )]
    Localhost,
    /// `0.0.0.0`, `[::]`.
    #[error(
        "the unspecified address is no host; write `127.0.0.1:PORT` or `[::1]:PORT` for a service of this machine"
    )]
    Unspecified,
    /// To which TCP does not go.
    #[error("no connection can be made to a {0} address; name one host")]
    NoHost(Class),
}

impl Allow {
    /// Reads an entry.
    pub(crate) fn parse(text: &str) -> Result<Self, AllowError> {
        read(text).map_err(|fault| AllowError {
            text: shown(text),
            fault,
        })
    }

    /// Whether a connection meant for `host` and `port` falls under the entry.
    /// A name never matches an address, nor an address a name.
    pub(crate) fn matches(&self, host: &Host, port: u16) -> bool {
        let matches = match (&self.pattern, host) {
            (Pattern::Host(allowed), host) => allowed == host,
            (Pattern::Below(apex), Host::Name(name)) => name.is_below(apex),
            (Pattern::Below(_), Host::Address(_)) => false,
        };
        matches && self.lists(port)
    }

    /// The proof that a connection meant for `host` may be dialled to
    /// `address`, which it is or resolved to: the entry allows the host and the
    /// port, and the address is public or the entry is that literal.
    pub(crate) fn target(
        &self,
        host: &Host,
        address: Address,
        port: u16,
    ) -> Result<Target, TargetFault> {
        if !self.matches(host, port) {
            return Err(TargetFault::NotAllowed);
        }
        match host {
            Host::Address(literal) if *literal == address.ip() => {}
            Host::Address(_) => return Err(TargetFault::OtherAddress(address.ip())),
            Host::Name(_) if address.is_public() => {}
            Host::Name(_) => {
                return Err(TargetFault::NotPublic(address.ip(), address.class()));
            }
        }
        Ok(Target(SocketAddr::new(address.ip(), port)))
    }

    pub(crate) fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// In ascending order, at least one.
    pub(crate) fn ports(&self) -> &[u16] {
        &self.ports
    }

    fn lists(&self, port: u16) -> bool {
        self.ports.binary_search(&port).is_ok()
    }
}

/// The entry in its one spelling, which [`Allow::parse`] reads back.
impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pattern.fmt(f)?;
        for (place, port) in self.ports.iter().enumerate() {
            let before = if place == 0 { ':' } else { ',' };
            write!(f, "{before}{port}")?;
        }
        Ok(())
    }
}

/// Without what stands before a host: that may be a login.
fn shown(text: &str) -> Shortened {
    match text.rsplit_once('@') {
        Some((_, host)) => Shortened::of(&format!("…@{host}")),
        None => Shortened::of(text),
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => host.fmt(f),
            Self::Below(apex) => write!(f, "*.{apex}"),
        }
    }
}

impl Target {
    /// What to connect to.
    pub(crate) fn socket_address(self) -> SocketAddr {
        self.0
    }
}

impl AllowError {
    pub(crate) fn fault(&self) -> &AllowFault {
        &self.fault
    }
}

fn read(text: &str) -> Result<Allow, AllowFault> {
    if text.len() > MAX_ENTRY_BYTES {
        return Err(AllowFault::Long(text.len()));
    }
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(AllowFault::Space);
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        return Err(AllowFault::Scheme(meant(rest, default_port(scheme))));
    }
    // Before the user: `@` may stand in a path.
    if let Some(end) = text.find(END_OF_HOST) {
        let (host, _) = text.split_at(end);
        return Err(AllowFault::Path(meant(host, None)));
    }
    if let Some((_, host)) = text.rsplit_once('@') {
        return Err(AllowFault::User(meant(host, None)));
    }
    let (host, ports) = split_port(text);
    Ok(Allow {
        pattern: read_pattern(host)?,
        ports: read_ports(ports.ok_or(PortFault::Missing)?)?,
    })
}

fn read_pattern(text: &str) -> Result<Pattern, AllowFault> {
    if text == "*" {
        return Err(AllowFault::EveryHost);
    }
    if !text.contains('*') {
        return Ok(Pattern::Host(checked(Host::parse(text)?)?));
    }
    let apex = text.strip_prefix("*.").ok_or(AllowFault::WildcardPlace)?;
    if apex.contains('*') {
        return Err(AllowFault::WildcardPlace);
    }
    match checked(Host::parse(apex)?)? {
        Host::Address(_) => Err(AllowFault::WildcardAddress),
        Host::Name(apex) if apex.labels().count() < 2 => Err(AllowFault::WildcardTop),
        Host::Name(apex) => Ok(Pattern::Below(apex)),
    }
}

/// Refuses hosts that no connection can mean.
fn checked(host: Host) -> Result<Host, AllowFault> {
    let class = match &host {
        Host::Name(name) if name.is_localhost() => return Err(AllowFault::Localhost),
        Host::Name(_) => return Ok(host),
        Host::Address(address) => Address::from(*address).class(),
    };
    match class {
        Class::Unspecified => Err(AllowFault::Unspecified),
        Class::Multicast | Class::Broadcast => Err(AllowFault::NoHost(class)),
        _ => Ok(host),
    }
}

fn read_ports(text: &str) -> Result<Vec<u16>, AllowFault> {
    let mut ports = Vec::new();
    for port in text.split(',') {
        ports.push(match port {
            "*" => return Err(AllowFault::EveryPort),
            range if range.contains('-') => return Err(AllowFault::Range),
            port => read_port(port)?,
        });
    }
    ports.sort_unstable();
    ports.dedup();
    if ports.len() > MAX_PORTS {
        return Err(AllowFault::ManyPorts(ports.len()));
    }
    Ok(ports)
}

/// The entry that a text which is no entry seems to mean, if it has one:
/// `rest` is what may hold a user, a host, a port and a path.
fn meant(rest: &str, default_port: Option<u16>) -> Option<Box<Allow>> {
    let (host, _) = rest.split_at(rest.find(END_OF_HOST).unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let entry = match (split_port(host), default_port) {
        ((_, None), Some(port)) => read(&format!("{host}:{port}")),
        _ => read(host),
    };
    entry.ok().map(Box::new)
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        _ => None,
    }
}

/// What to write instead.
struct Advice<'a>(&'a Option<Box<Allow>>);

impl fmt::Display for Advice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(entry) => write!(f, "write `{entry}`"),
            None => f.write_str("write HOST:PORT, as in `example.com:443`"),
        }
    }
}

/// Where the host of a URL ends.
const END_OF_HOST: [char; 4] = ['/', '?', '#', '\\'];

const FLAG: &str = "--allow-net";

/// Of one entry as text: the longest name and [`MAX_PORTS`] ports fit.
pub(crate) const MAX_ENTRY_BYTES: usize = 1024;

/// Of one entry. Each is a listener in the network namespace.
pub(crate) const MAX_PORTS: usize = 64;

#[cfg(test)]
mod tests;
