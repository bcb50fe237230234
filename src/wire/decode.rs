//! The only reader of Lines: for verify, recheck and recovery alike.
//!
//! A [`Row`] is one Line in canonical form with its known members located.
//! Rows that are canonical already, as every correct emitter writes them, are
//! recognised by one scan that allocates nothing; any other spelling is
//! rewritten by [`super::canon`] and then scanned. Both ways give the same
//! `Row` or the same fault: the scan accepts a text exactly when its canonical
//! form equals it.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use thiserror::Error;

use super::canon::{self, CanonError, MAX_DEPTH, ValueSpaceError};
use super::digest::{Digest, Line, Meaning};
use super::hex;
use super::json::{self, SyntaxError};

/// Why a row is not a Line at all (SPEC §8.1), in the order in which the
/// verifier looks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RowFault {
    /// The row nests deeper than a verifier follows.
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The row is not UTF-8 from this byte (from 0) on.
    #[error("not JSON: invalid UTF-8 at byte {0}")]
    InvalidUtf8(usize),
    /// The row does not parse.
    #[error("not JSON: {0}")]
    Syntax(SyntaxError),
    /// The row is some other JSON value.
    #[error("not a JSON object")]
    NotObject,
    /// Two members of one object have the same name.
    #[error("duplicate member `{0}`")]
    Duplicate(String),
    /// A value is outside the value space of a Line.
    #[error("outside the canonical value space, so it has no reproducible hash: {0}")]
    ValueSpace(ValueSpaceError),
}

impl RowFault {
    /// Whether the row does not parse as JSON: on the last row of a file this
    /// is a torn write, anywhere else it is a contradiction.
    pub fn is_unparsable(&self) -> bool {
        matches!(self, Self::InvalidUtf8(_) | Self::Syntax(_))
    }
}

/// The top-level members that the format gives a meaning to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Name {
    /// `approval_id`
    ApprovalId,
    /// `call_id`
    CallId,
    /// `confinement`
    Confinement,
    /// `durability`
    Durability,
    /// `follows`
    Follows,
    /// `key_id`
    KeyId,
    /// `line_type`
    LineType,
    /// `policy`
    Policy,
    /// `prev_hash`
    PrevHash,
    /// `prev_session_tail`
    PrevSessionTail,
    /// `public_key`
    PublicKey,
    /// `schema_version`
    SchemaVersion,
    /// `seq`
    Seq,
    /// `signature`
    Signature,
    /// `tool_id`
    ToolId,
}

impl Name {
    const ALL: [(&'static [u8], Self); 15] = [
        (b"approval_id", Self::ApprovalId),
        (b"call_id", Self::CallId),
        (b"confinement", Self::Confinement),
        (b"durability", Self::Durability),
        (b"follows", Self::Follows),
        (b"key_id", Self::KeyId),
        (b"line_type", Self::LineType),
        (b"policy", Self::Policy),
        (b"prev_hash", Self::PrevHash),
        (b"prev_session_tail", Self::PrevSessionTail),
        (b"public_key", Self::PublicKey),
        (b"schema_version", Self::SchemaVersion),
        (b"seq", Self::Seq),
        (b"signature", Self::Signature),
        (b"tool_id", Self::ToolId),
    ];
}

/// One Line in canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    bytes: Cow<'a, [u8]>,
    members: Members,
}

impl<'a> Row<'a> {
    /// Reads one row, given without its newline.
    ///
    /// # Errors
    /// The [`RowFault`] that comes first in the order of their declaration,
    /// but for syntax and depth: whichever is met first.
    pub fn read(row: &'a [u8]) -> Result<Self, RowFault> {
        match Self::read_canonical(row) {
            Some(read) => Ok(read),
            None => Self::read_foreign(row),
        }
    }

    /// Reads a row that is in canonical form already; else `None`.
    #[doc(hidden)]
    pub fn read_canonical(row: &'a [u8]) -> Option<Self> {
        std::str::from_utf8(row).ok()?;
        Some(Self {
            members: scan(row)?,
            bytes: Cow::Borrowed(row),
        })
    }

    /// Reads a row in any spelling, canonical or not.
    #[doc(hidden)]
    pub fn read_foreign(row: &[u8]) -> Result<Self, RowFault> {
        let rewritten = canon::rewrite(row)?;
        if !rewritten.bytes.starts_with(b"{") {
            return Err(RowFault::NotObject);
        }
        if let Some(name) = rewritten.duplicate {
            return Err(RowFault::Duplicate(name));
        }
        if let Some(offence) = rewritten.offence {
            return Err(RowFault::ValueSpace(offence));
        }
        let members = scan(&rewritten.bytes).ok_or(RowFault::NotObject)?;
        Ok(Self {
            members,
            bytes: Cow::Owned(rewritten.bytes),
        })
    }

    /// The canonical bytes.
    pub fn canonical(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the row was in another spelling than the canonical one.
    pub fn is_foreign(&self) -> bool {
        matches!(self.bytes, Cow::Owned(_))
    }

    /// SHA-256 over the canonical bytes, signature included (SPEC §4).
    pub fn line_hash(&self) -> Digest<Line> {
        Digest::of(&self.bytes)
    }

    /// Appends what a signature on this Line is computed over: the canonical
    /// form without the member `signature` (SPEC §4).
    pub fn push_signing_input(&self, out: &mut Vec<u8>) {
        let (before, after) = match &self.members.signature {
            Some(span) => (&self.bytes[..span.start], &self.bytes[span.end..]),
            None => (&self.bytes[..], &[][..]),
        };
        out.extend_from_slice(before);
        out.extend_from_slice(after);
    }

    /// Whether the Line carries this member, of whatever type.
    pub fn has(&self, name: Name) -> bool {
        self.raw(name).is_some()
    }

    /// The member's value, when it is a string.
    pub fn string(&self, name: Name) -> Option<Cow<'_, str>> {
        let inner = self.raw(name)?.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        let inner = std::str::from_utf8(inner).ok()?;
        Some(if inner.contains('\\') {
            Cow::Owned(json::unescape(inner).collect())
        } else {
            Cow::Borrowed(inner)
        })
    }

    /// The member's value, when it is an integer.
    pub fn integer(&self, name: Name) -> Option<u64> {
        let raw = self.raw(name)?;
        raw.first()?.is_ascii_digit().then(|| canon::integer(raw))?
    }

    /// The member's value, when it is a digest.
    pub fn digest<M: Meaning>(&self, name: Name) -> Option<Digest<M>> {
        Digest::from_hex(&self.string(name)?).ok()
    }

    /// The whole Line as a typed value.
    ///
    /// # Errors
    /// What serde found missing or mistyped.
    pub fn typed<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.bytes)
    }

    /// The member's value as a typed value, when it is there and of that type.
    pub fn member<T: DeserializeOwned>(&self, name: Name) -> Option<T> {
        serde_json::from_slice(self.raw(name)?).ok()
    }

    /// As [`Self::member`], of an object only: serde takes an array for one.
    pub fn object<T: DeserializeOwned>(&self, name: Name) -> Option<T> {
        self.raw(name)?
            .starts_with(b"{")
            .then(|| self.member(name))?
    }

    /// The member's value as it stands in the canonical bytes.
    fn raw(&self, name: Name) -> Option<&[u8]> {
        let span = self.members.values[name as usize]?;
        Some(&self.bytes[span.start..span.end])
    }
}

impl From<CanonError> for RowFault {
    fn from(error: CanonError) -> Self {
        match error {
            CanonError::InvalidUtf8(at) => Self::InvalidUtf8(at),
            CanonError::Syntax(error) => Self::Syntax(error),
            CanonError::TooDeep | CanonError::TooLong => Self::TooDeep,
            CanonError::Duplicate(name) => Self::Duplicate(name),
            CanonError::ValueSpace(offence) => Self::ValueSpace(offence),
            // Only a Rust value can fail so, and a row is a text.
            CanonError::NotSerializable(_) => Self::NotObject,
        }
    }
}

/// Inserts the member `signature` into the canonical form of an object that
/// has none; the other way round of [`Row::push_signing_input`].
pub(crate) fn with_signature(signing_input: &[u8], signature: &[u8; 64]) -> Vec<u8> {
    let mut member = Vec::with_capacity(160);
    member.extend_from_slice(b"\"signature\":\"");
    hex::push(&mut member, signature);
    member.push(b'"');

    let mut at = None;
    let mut scanner = Scanner {
        text: signing_input,
        at: 0,
    };
    scanner.object(1, |name, start, _| {
        if at.is_none() && canon::compare_names(name, b"signature").is_gt() {
            at = Some(start);
        }
    });
    let mut line = Vec::with_capacity(signing_input.len() + member.len() + 2);
    match at {
        Some(at) => {
            line.extend_from_slice(&signing_input[..at]);
            line.extend_from_slice(&member);
            line.push(b',');
            line.extend_from_slice(&signing_input[at..]);
        }
        None => {
            line.extend_from_slice(&signing_input[..signing_input.len() - 1]);
            if line.len() > 1 {
                line.push(b',');
            }
            line.extend_from_slice(&member);
            line.push(b'}');
        }
    }
    line
}

/// Where the known members stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Members {
    values: [Option<Span>; Name::ALL.len()],
    /// The member `signature` with one of the commas beside it.
    signature: Option<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
}

/// Locates the known members of a text that is the canonical form of an
/// object; `None` for any other text, which must be valid UTF-8.
fn scan(text: &[u8]) -> Option<Members> {
    let mut members = Members::default();
    let mut scanner = Scanner { text, at: 0 };
    if text.first() != Some(&b'{') {
        return None;
    }
    // Both the members and the known names come in order.
    let mut known = Name::ALL.iter().peekable();
    scanner.object(1, |name, member, end| {
        let value = Span {
            start: member + name.len() + 3,
            end,
        };
        while known.next_if(|(known, _)| *known < name).is_some() {}
        let Some((_, known)) = known.next_if(|(known, _)| *known == name) else {
            return;
        };
        members.values[*known as usize] = Some(value);
        if *known == Name::Signature {
            // Never the first member of a Line, which begins with something
            // before `s`; but a foreign row may hold no other.
            members.signature = Some(match (text[member - 1], text.get(end)) {
                (b',', _) => Span {
                    start: member - 1,
                    end,
                },
                (_, Some(b',')) => Span {
                    start: member,
                    end: end + 1,
                },
                _ => Span { start: member, end },
            });
        }
    })?;
    (scanner.at == text.len()).then_some(members)
}

/// A scan that stops at the first byte that no canonical form has there.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    /// Scans an object at nesting `depth` (from 1), telling of each member its
    /// name without quotes, where it starts and where its value ends.
    fn object(&mut self, depth: usize, mut tell: impl FnMut(&'a [u8], usize, usize)) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.at += 1;
        if self.next_is(b'}') {
            return Some(());
        }
        let mut last: Option<&[u8]> = None;
        loop {
            let start = self.at;
            let name = self.string()?;
            if last.is_some_and(|last| !canon::compare_names(last, name).is_lt()) {
                return None;
            }
            last = Some(name);
            self.expect(b':')?;
            self.value(depth)?;
            tell(name, start, self.at);
            if self.next_is(b'}') {
                return Some(());
            }
            self.expect(b',')?;
        }
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.at += 1;
        if self.next_is(b']') {
            return Some(());
        }
        loop {
            self.value(depth)?;
            if self.next_is(b']') {
                return Some(());
            }
            self.expect(b',')?;
        }
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.text.get(self.at)? {
            b'"' => self.string().map(drop),
            b'0'..=b'9' => self.integer(),
            b'{' => self.object(depth + 1, |_, _, _| ()),
            b'[' => self.array(depth + 1),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            _ => None,
        }
    }

    /// Scans a string and returns what stands between its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let start = self.at;
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.iter().position(|&b| !PLAIN[usize::from(b)])?;
            match self.text[self.at] {
                b'"' => {
                    self.at += 1;
                    return Some(&self.text[start..self.at - 1]);
                }
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    /// Scans an escape that has no shorter spelling (RFC 8785 §3.2.2.2).
    fn escape(&mut self) -> Option<()> {
        let short = *self.text.get(self.at + 1)?;
        if matches!(short, b'"' | b'\\' | b'b' | b't' | b'n' | b'f' | b'r') {
            self.at += 2;
            return Some(());
        }
        let code = self
            .text
            .get(self.at + 1..self.at + 6)?
            .strip_prefix(b"u00")?;
        let canonical = match code {
            [b'0', low] => matches!(low, b'0'..=b'7' | b'b' | b'e' | b'f'),
            [b'1', low] => matches!(low, b'0'..=b'9' | b'a'..=b'f'),
            _ => false,
        };
        self.at += 6;
        canonical.then_some(())
    }

    fn integer(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|b| !b.is_ascii_digit())?;
        self.at += length;
        let digits = &rest[..length];
        if length > 1 && digits[0] == b'0' {
            return None;
        }
        canon::integer(digits).map(drop)
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let found = self.text[self.at..].starts_with(word);
        self.at += word.len();
        found.then_some(())
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.next_is(byte).then_some(())
    }

    fn next_is(&mut self, byte: u8) -> bool {
        let found = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }
}

/// The bytes that stand for themselves in a canonical string.
const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut byte = 0;
    while byte < 0x20 {
        plain[byte] = false;
        byte += 1;
    }
    plain[b'"' as usize] = false;
    plain[b'\\' as usize] = false;
    plain
};

#[cfg(test)]
mod tests;
