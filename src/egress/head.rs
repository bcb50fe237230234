//! The head of a message of HTTP/1 (RFC 9112), read in its strict form.
//!
//! Two programs that disagree on where a message ends can be played against
//! each other (request smuggling). So what RFC 9112 lets a recipient forgive,
//! bare line feeds, folded lines, space before a colon, lengths that are given
//! twice, is refused here, and what goes on is written anew.

use std::collections::HashSet;
use std::str;

use thiserror::Error;

/// Of a request, without its body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// As it was sent: printable ASCII without spaces.
    pub(super) target: String,
    pub(super) version: Version,
    pub(super) fields: Fields,
}

/// Of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) version: Version,
    pub(super) status: u16,
    reason: Vec<u8>,
    pub(super) fields: Fields,
}

/// Of HTTP/1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Http10,
    Http11,
}

/// The lines behind the first, in their order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(Vec<(String, Vec<u8>)>);

/// How a request's body is delimited (RFC 9112 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    None,
    Length(u64),
    Chunked,
}

/// What is wrong with a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum HeadFault {
    #[error("a line does not end in CR LF, or has a control character in it")]
    Line,
    #[error("the first line is not `METHOD TARGET HTTP/1.1`")]
    RequestLine,
    #[error("the first line is not `HTTP/1.1 STATUS`")]
    StatusLine,
    #[error("a header field is folded or has no name")]
    Field,
    #[error("there are more than {MAX_FIELDS} header fields")]
    ManyFields,
    #[error("the length of the body is not said in exactly one way")]
    Framing,
    #[error("there is more than one Host")]
    Host,
}

impl Request {
    /// Reads a whole head, its empty line included.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, HeadFault> {
        let (first, fields) = read(bytes)?;
        let line = str::from_utf8(first).map_err(|_| HeadFault::RequestLine)?;
        let mut words = line.split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(HeadFault::RequestLine);
        };
        let is_method = is_token(method.as_bytes()) && method.len() <= MAX_METHOD_BYTES;
        let is_target = !target.is_empty() && target.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_method || !is_target {
            return Err(HeadFault::RequestLine);
        }
        if fields.all("host").count() > 1 {
            return Err(HeadFault::Host);
        }
        Ok(Self {
            method: method.to_owned(),
            target: target.to_owned(),
            version: Version::parse(version).ok_or(HeadFault::RequestLine)?,
            fields,
        })
    }

    /// How the body is delimited; a request that says it in two ways, or twice,
    /// or by a coding other than `chunked`, is none.
    pub(super) fn framing(&self) -> Result<Framing, HeadFault> {
        let mut codings = self.fields.all("transfer-encoding");
        let mut lengths = self.fields.all("content-length");
        match (codings.next(), lengths.next()) {
            (None, None) => Ok(Framing::None),
            (Some(coding), None)
                if self.version == Version::Http11
                    && coding.eq_ignore_ascii_case(b"chunked")
                    && codings.next().is_none() =>
            {
                Ok(Framing::Chunked)
            }
            (None, Some(length)) if lengths.next().is_none() => read_length(length)
                .map(Framing::Length)
                .ok_or(HeadFault::Framing),
            _ => Err(HeadFault::Framing),
        }
    }
}

impl Response {
    /// Reads a whole head, its empty line included.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, HeadFault> {
        let (first, fields) = read(bytes)?;
        let (version, rest) = first
            .split_at_checked(VERSION_BYTES)
            .ok_or(HeadFault::StatusLine)?;
        let version = str::from_utf8(version).ok().and_then(Version::parse);
        let (status, reason) = match rest {
            [b' ', a, b, c] => ([*a, *b, *c], &[][..]),
            [b' ', a, b, c, b' ', reason @ ..] => ([*a, *b, *c], reason),
            _ => return Err(HeadFault::StatusLine),
        };
        if !status.iter().all(u8::is_ascii_digit) || status[0] == b'0' {
            return Err(HeadFault::StatusLine);
        }
        let digit = |place: usize| u16::from(status[place] - b'0');
        Ok(Self {
            version: version.ok_or(HeadFault::StatusLine)?,
            status: digit(0) * 100 + digit(1) * 10 + digit(2),
            reason: reason.to_owned(),
            fields,
        })
    }

    /// The head as it goes on to a client, whose connection ends behind the
    /// answer if `is_last`.
    pub(super) fn forwarded(&self, is_last: bool) -> Vec<u8> {
        let version = self.version.as_str();
        let mut bytes = format!("{version} {:03} ", self.status).into_bytes();
        bytes.extend_from_slice(&self.reason);
        bytes.extend_from_slice(b"\r\n");
        // How the body ends is for the client to read, as the server said it.
        self.fields.write_end_to_end(&mut bytes, |_| false);
        if is_last {
            bytes.extend_from_slice(b"Connection: close\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    }
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "HTTP/1.0" => Some(Self::Http10),
            "HTTP/1.1" => Some(Self::Http11),
            _ => None,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
        }
    }
}

impl Fields {
    /// The values of every field `name`, which is in lower case.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.0
            .iter()
            .filter(move |(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
    }

    /// Whether a list of tokens has `token`.
    pub(super) fn has_token(&self, name: &str, token: &[u8]) -> bool {
        self.tokens(name).any(|own| own.eq_ignore_ascii_case(token))
    }

    /// Writes those that are meant for whoever is behind the next hop
    /// (RFC 9110 §7.6.1) and that are not `left_out`.
    pub(super) fn write_end_to_end(&self, to: &mut Vec<u8>, left_out: impl Fn(&str) -> bool) {
        let named: HashSet<_> = self
            .tokens("connection")
            .map(<[u8]>::to_ascii_lowercase)
            .collect();
        for (name, value) in &self.0 {
            let lower = name.to_ascii_lowercase();
            let is_of_hop =
                HOP_BY_HOP.contains(&lower.as_str()) || named.contains(lower.as_bytes());
            // A body keeps its end, whatever `Connection` names.
            let is_framing = FRAMING.contains(&lower.as_str());
            if (is_of_hop && !is_framing) || left_out(&lower) {
                continue;
            }
            to.extend_from_slice(name.as_bytes());
            to.extend_from_slice(b": ");
            to.extend_from_slice(value);
            to.extend_from_slice(b"\r\n");
        }
    }

    fn tokens(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.all(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
    }
}

/// The first line and the fields.
fn read(bytes: &[u8]) -> Result<(&[u8], Fields), HeadFault> {
    let mut lines = bytes
        .strip_suffix(END)
        .ok_or(HeadFault::Line)?
        .split(|byte| *byte == b'\n')
        .peekable();
    let first = next_line(&mut lines)?.ok_or(HeadFault::Line)?;
    let mut fields = Vec::new();
    while let Some(line) = next_line(&mut lines)? {
        if fields.len() == MAX_FIELDS {
            return Err(HeadFault::ManyFields);
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.ok_or(HeadFault::Field)?);
        // Neither a folded line nor a space before the colon is a token.
        if !is_token(name) {
            return Err(HeadFault::Field);
        }
        let value = value.get(1..).unwrap_or_default();
        fields.push((
            String::from_utf8_lossy(name).into_owned(),
            value.trim_ascii().to_owned(),
        ));
    }
    Ok((first, Fields(fields)))
}

/// One without its CR; the last has lost it with the end of the head.
fn next_line<'a>(
    lines: &mut std::iter::Peekable<impl Iterator<Item = &'a [u8]>>,
) -> Result<Option<&'a [u8]>, HeadFault> {
    let Some(line) = lines.next() else {
        return Ok(None);
    };
    let line = match lines.peek() {
        Some(_) => line.strip_suffix(b"\r").ok_or(HeadFault::Line)?,
        None => line,
    };
    let is_plain = |byte: &u8| *byte == b'\t' || !byte.is_ascii_control();
    if line.is_empty() || !line.iter().all(is_plain) {
        return Err(HeadFault::Line);
    }
    Ok(Some(line))
}

fn is_token(bytes: &[u8]) -> bool {
    let is_tchar = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(is_tchar)
}

fn read_length(value: &[u8]) -> Option<u64> {
    let is_plain = value.iter().all(u8::is_ascii_digit) && value.len() <= MAX_LENGTH_DIGITS;
    let text = str::from_utf8(value).ok().filter(|_| is_plain)?;
    text.parse().ok()
}

/// Of a head.
pub(super) const END: &[u8] = b"\r\n\r\n";

/// RFC 9110 §7.6.1, and what proxies are told.
const HOP_BY_HOP: [&str; 11] = [
    "connection",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "proxy-features",
    "te",
    "trailer",
    "upgrade",
];

pub(super) const FRAMING: [&str; 2] = ["content-length", "transfer-encoding"];

/// Servers take about a hundred.
pub(super) const MAX_FIELDS: usize = 256;

const MAX_METHOD_BYTES: usize = 32;

/// An exabyte.
const MAX_LENGTH_DIGITS: usize = 18;

const VERSION_BYTES: usize = "HTTP/1.1".len();

#[cfg(test)]
mod tests;
