//! DNS messages: one question out, one answer in (RFC 1035 §4).
//!
//! Whoever can send packets to this machine can send answers. One is taken
//! only if its id and its whole question are ours; what it says beyond the
//! question is bounded before it is parsed.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name as DnsName, Packet, ResourceRecord};

use super::MAX_ADDRESSES;
use crate::net::host::Name;

/// Which addresses are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    A,
    Aaaa,
}

/// A question as it is sent.
#[derive(Clone, Debug)]
pub(super) struct Query {
    kind: Kind,
    bytes: Vec<u8>,
}

/// An answer to a [`Query`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// At most [`MAX_ADDRESSES`], each once; none when the name has none of
    /// this kind.
    Addresses(Vec<IpAddr>),
    /// The name does not exist.
    NotFound,
    /// There is more, over TCP.
    Truncated,
    /// With another response code.
    Failed(u8),
    /// It contradicts itself. Says how, after "the answer".
    Unusable(&'static str),
}

/// Bytes that are no answer to this query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stray;

/// A response code by its name.
pub(super) struct Rcode(pub(super) u8);

impl Query {
    /// Asks for `name`, under an id that cannot be guessed.
    pub(super) fn new(name: &Name, kind: Kind) -> Result<Self, getrandom::Error> {
        let [high, low, ..] = getrandom::u32()?.to_be_bytes();
        // The header: recursion desired, one question, nothing else.
        let mut bytes = vec![high, low, RD, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.labels() {
            // A label has at most 63 bytes, by the type.
            bytes.push(label.len() as u8);
            bytes.extend_from_slice(label.as_bytes());
        }
        bytes.push(0);
        bytes.extend_from_slice(&[0, kind.number(), 0, IN]);
        Ok(Self { kind, bytes })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads what came back.
    pub(super) fn read(&self, bytes: &[u8]) -> Result<Reply, Stray> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(Stray)?;
        let [id_high, id_low, flags, codes, questions @ ..] = *header;
        let asked = self.question();
        let question = rest.get(..asked.len()).ok_or(Stray)?;
        let is_ours = [id_high, id_low] == self.bytes[..2]
            && flags & (QR | OPCODE) == QR
            && questions[..2] == [0, 1]
            // Nothing stands before the question that a pointer could point
            // to, so an honest one is spelled out.
            && question.eq_ignore_ascii_case(asked);
        if !is_ours {
            return Err(Stray);
        }
        if flags & TC != 0 {
            return Ok(Reply::Truncated);
        }
        match codes & RCODE {
            NOERROR => {}
            NXDOMAIN => return Ok(Reply::NotFound),
            other => return Ok(Reply::Failed(other)),
        }
        // The parser reserves room for as many records as the header claims.
        let counts = questions[2..].chunks(2);
        let records: usize = counts
            .map(|count| usize::from(count[0]) << 8 | usize::from(count[1]))
            .sum();
        if records > MAX_RECORDS {
            return Ok(Reply::Unusable("has too many records"));
        }
        match Packet::parse(bytes) {
            Ok(packet) => Ok(self.addresses(&packet)),
            Err(_) => Ok(Reply::Unusable("cannot be read")),
        }
    }

    /// Follows the aliases from the name that was asked for to its addresses.
    fn addresses(&self, packet: &Packet<'_>) -> Reply {
        let Some(mut owner) = packet.questions.first().map(|question| &question.qname) else {
            return Reply::Unusable("has no question");
        };
        for _ in 0..=MAX_ALIASES {
            let records = || packet.answers.iter().filter(|record| is_of(record, owner));
            let mut addresses = Vec::new();
            for address in records().filter_map(|record| self.address(record)) {
                if !addresses.contains(&address) && addresses.len() < MAX_ADDRESSES {
                    addresses.push(address);
                }
            }
            let mut aliases = records().filter_map(|record| match &record.rdata {
                RData::CNAME(alias) => Some(&alias.0),
                _ => None,
            });
            owner = match (aliases.next(), aliases.next()) {
                (None, _) => return Reply::Addresses(addresses),
                (Some(alias), None) if addresses.is_empty() => alias,
                _ => return Reply::Unusable("has an alias beside other records of the name"),
            };
        }
        Reply::Unusable("has too many aliases")
    }

    fn address(&self, record: &ResourceRecord<'_>) -> Option<IpAddr> {
        match (&record.rdata, self.kind) {
            (RData::A(a), Kind::A) => Some(Ipv4Addr::from(a.address).into()),
            (RData::AAAA(aaaa), Kind::Aaaa) => Some(Ipv6Addr::from(aaaa.address).into()),
            _ => None,
        }
    }

    fn question(&self) -> &[u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }
}

impl Kind {
    /// Of the record type (RFC 1035 §3.2.2, RFC 3596 §2.1).
    fn number(self) -> u8 {
        match self {
            Self::A => 1,
            Self::Aaaa => 28,
        }
    }
}

/// RFC 1035 §4.1.1, RFC 2136 §2.2.
impl fmt::Display for Rcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("FORMERR"),
            2 => f.write_str("SERVFAIL"),
            4 => f.write_str("NOTIMP"),
            5 => f.write_str("REFUSED"),
            other => write!(f, "response code {other}"),
        }
    }
}

/// A record of the Internet about `owner`. The parser takes the bit of
/// multicast DNS out of the class; such a record is none of this class.
fn is_of(record: &ResourceRecord<'_>, owner: &DnsName<'_>) -> bool {
    record.class == CLASS::IN && !record.cache_flush && record.name == *owner
}

const HEADER_BYTES: usize = 12;

const QR: u8 = 0x80;
const OPCODE: u8 = 0x78;
const TC: u8 = 0x02;
const RD: u8 = 0x01;
const RCODE: u8 = 0x0f;
const NOERROR: u8 = 0;
const NXDOMAIN: u8 = 3;
const IN: u8 = 1;

/// From one name to its addresses.
pub(super) const MAX_ALIASES: usize = 8;

/// In all sections of one answer.
pub(super) const MAX_RECORDS: usize = 256;

#[cfg(test)]
mod tests;
