//! DNS messages as the name server sees them: a question in, an answer out
//! (RFC 1035 §4, RFC 6891).
//!
//! Read by hand: of a query only the question and the presence of EDNS matter,
//! and the question has to go back byte for byte, the case of its letters too,
//! by which clients know a forged answer.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::net::host::{HostFault, Name};

/// One question that can be answered.
#[derive(Debug)]
pub(super) struct Query<'a> {
    id: [u8; 2],
    /// Whether recursion is desired, as a bit of the header.
    flags: u8,
    /// Name, type and class as they came.
    question: &'a [u8],
    labels: Vec<&'a [u8]>,
    kind: Kind,
    has_edns: bool,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    A,
    Aaaa,
    Ptr,
    Other,
}

/// A message that is no question for us.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unanswerable {
    /// It gets no answer.
    Dropped,
    /// It gets this one.
    Refused(Vec<u8>),
}

/// RFC 1035 §4.1.1, RFC 6891 §9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rcode {
    NoError,
    FormErr,
    ServFail,
    NxDomain,
    NotImp,
    Refused,
    BadVers,
}

impl<'a> Query<'a> {
    /// Reads a message. Answers, and what is too short for a header, are
    /// dropped, so that two name servers cannot be set upon each other.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Unanswerable> {
        let (header, rest) = bytes
            .split_first_chunk::<HEADER_BYTES>()
            .ok_or(Unanswerable::Dropped)?;
        let [high, low, flags, _, counts @ ..] = header;
        if flags & QR != 0 {
            return Err(Unanswerable::Dropped);
        }
        let mut query = Self {
            id: [*high, *low],
            flags: flags & (OPCODE | RD),
            question: &[],
            labels: Vec::new(),
            kind: Kind::Other,
            has_edns: false,
        };
        let refused = |query: &Self, rcode| Err(Unanswerable::Refused(query.with_code(rcode)));
        if flags & OPCODE != 0 {
            return refused(&query, Rcode::NotImp);
        }
        let Some((question, rest)) = split_record(rest, QUESTION_END_BYTES) else {
            return refused(&query, Rcode::FormErr);
        };
        // One question, no answers, no authorities.
        let [0, 1, 0, 0, 0, 0, additional_high, additional] = counts else {
            return refused(&query, Rcode::FormErr);
        };
        if flags & TC != 0 || *additional_high != 0 || *additional > MAX_ADDITIONAL {
            return refused(&query, Rcode::FormErr);
        }
        query.question = question.whole;
        query.labels = question.labels;
        let [kind_high, kind, class_high, class] = *question.end else {
            return refused(&query, Rcode::FormErr);
        };
        query.kind = Kind::of(u16::from_be_bytes([kind_high, kind]));
        match read_edns(rest, *additional) {
            Some(Edns::None) => {}
            Some(Edns::Version(version)) => {
                query.has_edns = true;
                if version != 0 {
                    return refused(&query, Rcode::BadVers);
                }
            }
            None => return refused(&query, Rcode::FormErr),
        }
        if [class_high, class] != [0, IN] {
            return refused(&query, Rcode::Refused);
        }
        Ok(query)
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// The name that is asked for, or its text and why it is none.
    pub(super) fn name(&self) -> Result<Name, (String, HostFault)> {
        Name::of_labels(self.labels.iter().copied()).map_err(|fault| {
            let labels = self
                .labels
                .iter()
                .map(|label| String::from_utf8_lossy(label));
            let text = labels.collect::<Vec<_>>().join(".");
            (
                if text.is_empty() {
                    ".".to_owned()
                } else {
                    text
                },
                fault,
            )
        })
    }

    /// The IPv4 address that an inverse question is about (RFC 1035 §3.5).
    pub(super) fn inverse_address(&self) -> Option<Ipv4Addr> {
        let [d, c, b, a, in_addr, arpa] = *self.labels.as_slice() else {
            return None;
        };
        if !in_addr.eq_ignore_ascii_case(b"in-addr") || !arpa.eq_ignore_ascii_case(b"arpa") {
            return None;
        }
        let text = [a, b, c, d].map(|label| str::from_utf8(label).unwrap_or_default());
        text.join(".").parse().ok()
    }

    pub(super) fn with_ipv4(&self, address: Ipv4Addr) -> Vec<u8> {
        self.with_record(TYPE_A, &address.octets())
    }

    pub(super) fn with_ipv6(&self, address: Ipv6Addr) -> Vec<u8> {
        self.with_record(TYPE_AAAA, &address.octets())
    }

    /// `name` comes from a [`Name`], so its labels fit.
    pub(super) fn with_name(&self, name: &str) -> Vec<u8> {
        let mut data = Vec::new();
        for label in name.split('.') {
            data.push(label.len() as u8);
            data.extend_from_slice(label.as_bytes());
        }
        data.push(0);
        self.with_record(TYPE_PTR, &data)
    }

    pub(super) fn with_code(&self, rcode: Rcode) -> Vec<u8> {
        self.build(rcode, &[])
    }

    fn with_record(&self, kind: u8, data: &[u8]) -> Vec<u8> {
        let mut record = POINTER_TO_QUESTION.to_vec();
        record.extend_from_slice(&[0, kind, 0, IN]);
        record.extend_from_slice(&TTL_S.to_be_bytes());
        record.extend_from_slice(&(data.len() as u16).to_be_bytes());
        record.extend_from_slice(data);
        self.build(Rcode::NoError, &record)
    }

    /// At most 512 bytes, which every client takes over UDP (RFC 1035 §2.3.4):
    /// an answer is never cut. An inverse question is short, and to any other
    /// the answer is an address at most.
    fn build(&self, rcode: Rcode, record: &[u8]) -> Vec<u8> {
        let code = rcode.number();
        let one_if = |condition: bool| u8::from(condition);
        let mut bytes = self.id.to_vec();
        bytes.extend_from_slice(&[QR | self.flags, RA | (code & RCODE)]);
        bytes.extend_from_slice(&[0, one_if(!self.question.is_empty())]);
        bytes.extend_from_slice(&[0, one_if(!record.is_empty())]);
        bytes.extend_from_slice(&[0, 0, 0, one_if(self.has_edns)]);
        bytes.extend_from_slice(self.question);
        bytes.extend_from_slice(record);
        if self.has_edns {
            let [high, low] = UDP_BYTES.to_be_bytes();
            // The root, OPT, our size, the upper bits of the code, version 0.
            let edns = [0, 0, TYPE_OPT, high, low, code >> 4, 0, 0, 0, 0, 0];
            bytes.extend_from_slice(&edns);
        }
        bytes
    }
}

impl Kind {
    fn of(number: u16) -> Self {
        match u8::try_from(number) {
            Ok(TYPE_A) => Self::A,
            Ok(TYPE_AAAA) => Self::Aaaa,
            Ok(TYPE_PTR) => Self::Ptr,
            _ => Self::Other,
        }
    }
}

impl Rcode {
    fn number(self) -> u8 {
        match self {
            Self::NoError => 0,
            Self::FormErr => 1,
            Self::ServFail => 2,
            Self::NxDomain => 3,
            Self::NotImp => 4,
            Self::Refused => 5,
            Self::BadVers => 16,
        }
    }
}

/// A name and what follows it.
struct Record<'a> {
    whole: &'a [u8],
    labels: Vec<&'a [u8]>,
    end: &'a [u8],
}

enum Edns {
    None,
    Version(u8),
}

/// Parts a name and `end_bytes` behind it from the rest. A name in a query has
/// nothing before it that it could point to, so it is spelled out.
fn split_record(bytes: &[u8], end_bytes: usize) -> Option<(Record<'_>, &[u8])> {
    let mut labels = Vec::new();
    let mut at = 0;
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        if length > MAX_LABEL_BYTES {
            return None;
        }
        labels.push(bytes.get(at..at + length)?);
        at += length;
    }
    if at > MAX_NAME_BYTES {
        return None;
    }
    let (whole, rest) = bytes.split_at_checked(at + end_bytes)?;
    let end = whole.get(at..)?;
    Some((Record { whole, labels, end }, rest))
}

/// Reads the additional records, to their last byte.
fn read_edns(mut rest: &[u8], records: u8) -> Option<Edns> {
    let mut edns = Edns::None;
    for _ in 0..records {
        let (record, behind) = split_record(rest, RECORD_END_BYTES)?;
        let [kind_high, kind, _, _, _, version, _, _, length @ ..] = record.end else {
            return None;
        };
        let length = u16::from_be_bytes(length.try_into().ok()?);
        (_, rest) = behind.split_at_checked(usize::from(length))?;
        if [*kind_high, *kind] != [0, TYPE_OPT] {
            continue;
        }
        if !record.labels.is_empty() || matches!(edns, Edns::Version(_)) {
            return None;
        }
        edns = Edns::Version(*version);
    }
    rest.is_empty().then_some(edns)
}

const HEADER_BYTES: usize = 12;

/// Type and class.
const QUESTION_END_BYTES: usize = 4;

/// Type, class, time to live and the length of the data.
const RECORD_END_BYTES: usize = 10;

const QR: u8 = 0x80;
const OPCODE: u8 = 0x78;
const TC: u8 = 0x02;
const RD: u8 = 0x01;
const RA: u8 = 0x80;
const RCODE: u8 = 0x0f;
const IN: u8 = 1;

const TYPE_A: u8 = 1;
const TYPE_PTR: u8 = 12;
const TYPE_AAAA: u8 = 28;
const TYPE_OPT: u8 = 41;

/// To the question's name, right behind the header.
const POINTER_TO_QUESTION: [u8; 2] = [0xc0, HEADER_BYTES as u8];

/// An address is lent for good; a short time shows who asks again.
const TTL_S: u32 = 60;

/// What we take over UDP.
const UDP_BYTES: u16 = 1232;

/// OPT, and what clients may put beside it.
const MAX_ADDITIONAL: u8 = 4;

/// RFC 1035 §2.3.4.
const MAX_LABEL_BYTES: usize = 63;

/// RFC 1035 §2.3.4, lengths and the root included.
const MAX_NAME_BYTES: usize = 255;

#[cfg(test)]
mod tests;
