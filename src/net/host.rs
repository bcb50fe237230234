//! Hosts: names and addresses, each in one spelling.
//!
//! Programs disagree on what `0x7f.1`, `127.1`, `[::ffff:127.0.0.1]` or
//! `example.com.` mean. A fence that reads one of them otherwise than the
//! program behind it is open, so a host has exactly one accepted spelling and
//! every other is refused with the one to write.
//!
//! Names are folded to lower case. They are compared as the bytes that DNS
//! carries: an internationalised name is written in A-labels (`xn--…`,
//! RFC 5890), because the tables that map U-labels differ between versions.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use thiserror::Error;

/// A host that a connection is meant for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Host {
    /// To be resolved.
    Name(Name),
    /// A literal.
    Address(IpAddr),
}

/// An absolute host name in lower case, without a dot at its end.
///
/// Labels hold letters, digits, `-` and `_`; the underscore is against
/// RFC 1123 but stands in names that people use. The last label is never a
/// number, so no program takes the name for an IPv4 address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name(Arc<str>);

/// A host and the port to reach there, as a request names them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Endpoint {
    /// Where.
    pub(crate) host: Host,
    /// 1 to 65535.
    pub(crate) port: u16,
}

/// What is wrong with a host, and what to write.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum HostFault {
    /// Nothing there.
    #[error("the host is missing; write a name or an address")]
    Missing,
    /// Past [`MAX_NAME_BYTES`].
    #[error("the name has {0} bytes; a host name has at most {MAX_NAME_BYTES}")]
    LongName(usize),
    /// Past [`MAX_LABEL_BYTES`].
    #[error("a label has {0} bytes; a label between two dots has at most {MAX_LABEL_BYTES}")]
    LongLabel(usize),
    /// Two dots, or one in front.
    #[error("a label is empty; write exactly one dot between two labels")]
    EmptyLabel,
    /// Absolute by a dot.
    #[error("the name ends in a dot; every name is absolute here, leave the dot out")]
    TrailingDot,
    /// At either end of a label.
    #[error("a label begins or ends with `-`, which no host name does; correct the name")]
    Hyphen,
    /// An A-label without its rest.
    #[error("a label is `xn--` and nothing more; write the whole A-label")]
    EmptyALabel,
    /// A U-label, or something that looks like ASCII.
    #[error(
        "it is not ASCII; write each label of an internationalised name in its ASCII form (`xn--…`)"
    )]
    NotAscii,
    /// Of no host name.
    #[error(
        "`{}` stands in no host name; use letters, digits, `-`, `_` and `.`",
        .0.escape_default()
    )]
    Character(char),
    /// What `inet_aton` reads as an address.
    #[error("some programs read it as the address {0}; write `{0}` if that is meant")]
    OddIpv4(Ipv4Addr),
    /// What nothing reads as an address today.
    #[error(
        "its last label is a number, so it looks like an IPv4 address and is none; write four decimal numbers from 0 to 255 without leading zeros, or a name"
    )]
    NumberAtEnd,
    /// Without brackets.
    #[error(
        "an IPv6 address stands in brackets, and a port behind them; write it as in `[2001:db8::1]:443`"
    )]
    Unbracketed(Ipv6Addr),
    /// One bracket, or something behind the second.
    #[error("the brackets of the IPv6 address do not match; write `[ADDRESS]`")]
    Brackets,
    /// Not an address in brackets.
    #[error("what stands in brackets is no IPv6 address; write one, as in `[2001:db8::1]`")]
    NotIpv6,
    /// Not as RFC 5952 has it.
    #[error("an IPv6 address has one spelling here (RFC 5952); write `[{0}]`")]
    Ipv6Spelling(Ipv6Addr),
    /// `::ffff:a.b.c.d` and `::a.b.c.d`.
    #[error("it is the IPv4 address {0} in IPv6 form; write `{0}`")]
    Ipv4InIpv6(Ipv4Addr),
    /// `%eth0`.
    #[error(
        "a zone (`%…`) is of one machine only and cannot be granted; use an address without one"
    )]
    Zone,
    /// Useless without a zone.
    #[error(
        "a link-local IPv6 address needs a zone, which cannot be granted; use another address of that host"
    )]
    LinkLocal,
}

/// What is wrong with `HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum EndpointFault {
    /// Of the host.
    #[error("{0}")]
    Host(#[from] HostFault),
    /// Of the port.
    #[error("{0}")]
    Port(#[from] PortFault),
}

/// What is wrong with a port.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum PortFault {
    /// Nothing behind the colon, or no colon.
    #[error("the port is missing; write one behind a colon, as in `:443`")]
    Missing,
    /// Means "any" to a listener and nothing to a client.
    #[error("port 0 cannot be reached; write a port from 1 to 65535")]
    Zero,
    /// Not in its one spelling, or too large.
    #[error("a port is a decimal number from 1 to 65535 without leading zeros; correct it")]
    Number,
}

impl Host {
    /// Reads a host in its one spelling; an IPv6 address stands in brackets.
    pub(crate) fn parse(text: &str) -> Result<Self, HostFault> {
        if text.is_empty() {
            return Err(HostFault::Missing);
        }
        if text.starts_with('[') || text.ends_with(']') {
            return bracketed(text);
        }
        if !text.is_ascii() {
            return Err(HostFault::NotAscii);
        }
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Err(HostFault::Unbracketed(address));
        }
        // The parser of std takes four decimal numbers without leading zeros
        // and nothing else.
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        Name::parse(text).map(Self::Name)
    }

    /// Reads the host of a request: as [`Host::parse`], but one dot at the end
    /// of a name, which clients may send, is dropped.
    pub(crate) fn of_request(text: &str) -> Result<Self, HostFault> {
        match text.strip_suffix('.') {
            Some(name) => Name::parse(name).map(Self::Name),
            None => Self::parse(text),
        }
    }
}

/// What a socket says: an IPv4 address in IPv6 form is the IPv4 address.
impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

/// An IPv6 address stands in brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl Name {
    /// Reads a name and folds it to lower case.
    pub(crate) fn parse(text: &str) -> Result<Self, HostFault> {
        if text.is_empty() {
            return Err(HostFault::Missing);
        }
        if !text.is_ascii() {
            return Err(HostFault::NotAscii);
        }
        let (relative, dot) = match text.strip_suffix('.') {
            Some(relative) => (relative, true),
            None => (text, false),
        };
        let last = relative.rsplit('.').next().unwrap_or_default();
        if is_number(last) {
            return Err(inet_aton(relative).map_or(HostFault::NumberAtEnd, HostFault::OddIpv4));
        }
        for label in relative.split('.') {
            check_label(label)?;
        }
        if dot {
            return Err(HostFault::TrailingDot);
        }
        if text.len() > MAX_NAME_BYTES {
            return Err(HostFault::LongName(text.len()));
        }
        Ok(Self(text.to_ascii_lowercase().into()))
    }

    /// Reads a name of a DNS message: its labels from the first to the last,
    /// without the root.
    pub(crate) fn of_labels<'a>(labels: impl Iterator<Item = &'a [u8]>) -> Result<Self, HostFault> {
        let mut text = String::new();
        for label in labels {
            let label = str::from_utf8(label).map_err(|_| HostFault::NotAscii)?;
            // A dot inside a label would otherwise become one between two.
            check_label(label)?;
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(label);
        }
        Self::parse(&text)
    }

    /// Whether it has at least one label below `apex`.
    pub(crate) fn is_below(&self, apex: &Self) -> bool {
        let above = self.0.strip_suffix(apex.as_str());
        above.is_some_and(|rest| rest.ends_with('.'))
    }

    /// Whether it names this machine wherever it is asked (RFC 6761 §6.3).
    pub(crate) fn is_localhost(&self) -> bool {
        self.labels().next_back() == Some("localhost")
    }

    /// From the first to the last; at least one.
    pub(crate) fn labels(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Endpoint {
    /// Reads the `HOST:PORT` of a request.
    pub(crate) fn of_request(text: &str) -> Result<Self, EndpointFault> {
        let (host, port) = split_port(text);
        Ok(Self {
            host: Host::of_request(host)?,
            port: read_port(port.ok_or(PortFault::Missing)?)?,
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Parts a host from what follows the colon behind it.
pub(super) fn split_port(text: &str) -> (&str, Option<&str>) {
    // An address without brackets has no port, whatever its last part is.
    if text.parse::<Ipv6Addr>().is_ok() {
        return (text, None);
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    }
}

/// Reads a port in its one spelling.
pub(super) fn read_port(text: &str) -> Result<u16, PortFault> {
    if text.is_empty() {
        return Err(PortFault::Missing);
    }
    let port: u16 = text.parse().map_err(|_| PortFault::Number)?;
    match port {
        _ if !text.bytes().all(|byte| byte.is_ascii_digit()) => Err(PortFault::Number),
        0 => Err(PortFault::Zero),
        _ if text.starts_with('0') => Err(PortFault::Number),
        _ => Ok(port),
    }
}

fn bracketed(text: &str) -> Result<Host, HostFault> {
    let inside = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .ok_or(HostFault::Brackets)?;
    if inside.contains('%') {
        return Err(HostFault::Zone);
    }
    let address: Ipv6Addr = inside.parse().map_err(|_| HostFault::NotIpv6)?;
    if let Some(embedded) = ipv4_form(address) {
        return Err(HostFault::Ipv4InIpv6(embedded));
    }
    if address.is_unicast_link_local() {
        return Err(HostFault::LinkLocal);
    }
    if address.to_string() != inside {
        return Err(HostFault::Ipv6Spelling(address));
    }
    Ok(Host::Address(address.into()))
}

/// The address of an IPv4-mapped or IPv4-compatible one (RFC 4291 §2.5.5).
fn ipv4_form(address: Ipv6Addr) -> Option<Ipv4Addr> {
    if address.is_unspecified() || address.is_loopback() {
        return None;
    }
    address.to_ipv4()
}

fn check_label(label: &str) -> Result<(), HostFault> {
    let stranger = |c: &char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_');
    if let Some(c) = label.chars().find(stranger) {
        return Err(if c.is_ascii() {
            HostFault::Character(c)
        } else {
            HostFault::NotAscii
        });
    }
    match label.len() {
        0 => return Err(HostFault::EmptyLabel),
        1..=MAX_LABEL_BYTES => {}
        bytes => return Err(HostFault::LongLabel(bytes)),
    }
    if label.eq_ignore_ascii_case(A_LABEL) {
        return Err(HostFault::EmptyALabel);
    }
    if label.starts_with('-') || label.ends_with('-') {
        return Err(HostFault::Hyphen);
    }
    Ok(())
}

/// Whether a program could read it as the last part of an IPv4 address: the
/// "ends in a number" rule of the URL standard.
fn is_number(label: &str) -> bool {
    match hexadecimal(label) {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// What `inet_aton` makes of it: one to four numbers, decimal, octal or
/// hexadecimal, of which the last fills what is left of 32 bits. Only to say
/// what a refused text would have meant.
fn inet_aton(text: &str) -> Option<Ipv4Addr> {
    let parts = text.split('.').map(number).collect::<Option<Vec<_>>>()?;
    let (last, front) = parts.split_last()?;
    if front.len() > 3 || front.iter().any(|part| *part > 0xff) {
        return None;
    }
    let bits = 8 * (4 - front.len() as u32);
    if last.checked_shr(bits).unwrap_or(0) != 0 {
        return None;
    }
    let high = front.iter().fold(0, |high, part| high << 8 | part);
    let address = high.checked_shl(bits).unwrap_or(0) | last;
    u32::try_from(address).ok().map(Ipv4Addr::from)
}

fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match hexadecimal(text) {
        Some("") => return Some(0),
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.then(|| u64::from_str_radix(digits, radix).ok())?
}

fn hexadecimal(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

/// Of a name as text, without the dot at its end: 255 in a DNS message
/// (RFC 1035 §2.3.4) less the first length and the root.
pub(crate) const MAX_NAME_BYTES: usize = 253;

/// Of one label (RFC 1035 §2.3.4).
pub(crate) const MAX_LABEL_BYTES: usize = 63;

const A_LABEL: &str = "xn--";

#[cfg(test)]
mod tests;
