//! The canonical form of a Line (SPEC §3): RFC 8785 over a value space
//! without floats, negative numbers, integers from 2^53 and null.
//!
//! RFC 8785 is hard where implementations format floats and where parsers
//! disagree; a Line has neither, so its canonical form is the same everywhere.
//! Two members of one name, lone surrogates and invalid UTF-8 are refused,
//! since two readers could understand such a text differently.

use std::cmp::Ordering;
use std::ops::Range;

use serde::Serialize;
use thiserror::Error;

use super::json::{self, Cursor, Number, SyntaxError};

/// The largest integer of a Line: 2^53 - 1 (SPEC §3.2).
pub const MAX_INTEGER: u64 = (1 << 53) - 1;

/// How deep arrays and objects may nest; `{}` is one level.
pub const MAX_DEPTH: usize = 64;

/// Why a text has no canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CanonError {
    /// The bytes are not UTF-8 from this offset on.
    #[error("invalid UTF-8 at byte {0}")]
    InvalidUtf8(usize),
    /// The text is not JSON.
    #[error("{0}")]
    Syntax(SyntaxError),
    /// The text nests deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The text has 4 GiB or more.
    #[error("longer than 4 GiB")]
    TooLong,
    /// An object has two members of this name, after unescaping.
    #[error("duplicate member `{0}`")]
    Duplicate(String),
    /// A value is outside the value space.
    #[error("{0}")]
    ValueSpace(ValueSpaceError),
    /// A value could not be written as JSON at all.
    #[error("not serializable as JSON: {0}")]
    NotSerializable(String),
}

/// Which value is outside the value space, and where (a path like `$.a[1]`).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ValueSpaceError {
    /// A number with a fraction or an exponent.
    #[error("floating-point value at {path} is outside the JCS value space")]
    Float {
        /// Where.
        path: String,
    },
    /// An integer of 2^53 or more.
    #[error("integer {value} at {path} is at or above 2^53 (max 9007199254740991)")]
    TooLarge {
        /// Its digits, cut when there are very many.
        value: String,
        /// Where.
        path: String,
    },
    /// A number with a minus sign, `-0` included.
    #[error("negative integer at {path} is outside the JCS value space")]
    Negative {
        /// Where.
        path: String,
    },
    /// A null.
    #[error("null at {path}; absent fields must be omitted, never null")]
    Null {
        /// Where.
        path: String,
    },
}

impl ValueSpaceError {
    /// The same with another spelling of its path.
    pub(crate) fn with_path(&self, spell: impl FnOnce(&str) -> String) -> Self {
        let mut spelt = self.clone();
        match &mut spelt {
            Self::Float { path }
            | Self::TooLarge { path, .. }
            | Self::Negative { path }
            | Self::Null { path } => *path = spell(path),
        }
        spelt
    }
}

/// The canonical form of a JSON text of any spelling.
///
/// ```
/// let canonical = aegis::wire::canon::canonicalize(br#"{ "b": 1, "a": "\u0061\/" }"#);
/// assert_eq!(canonical.as_deref(), Ok(&br#"{"a":"a/","b":1}"#[..]));
/// ```
///
/// # Errors
/// The first of these that applies: invalid UTF-8, syntax or depth (whichever
/// is met first), the first duplicate member, the first value outside the
/// value space.
pub fn canonicalize(text: &[u8]) -> Result<Vec<u8>, CanonError> {
    let rewritten = rewrite(text)?;
    match (rewritten.duplicate, rewritten.offence) {
        (Some(name), _) => Err(CanonError::Duplicate(name)),
        (None, Some(offence)) => Err(CanonError::ValueSpace(offence)),
        (None, None) => Ok(rewritten.bytes),
    }
}

/// The canonical form of a value.
///
/// # Errors
/// As [`canonicalize`]; [`CanonError::NotSerializable`] when the value's own
/// `Serialize` fails or a map has keys that are not strings.
pub fn to_canonical(value: &impl Serialize) -> Result<Vec<u8>, CanonError> {
    let text = serde_json::to_vec(value).map_err(|e| CanonError::NotSerializable(e.to_string()))?;
    canonicalize(&text)
}

/// A JSON text rewritten in canonical spelling, with what keeps it from being
/// a canonical form.
pub(crate) struct Rewritten {
    pub(crate) bytes: Vec<u8>,
    pub(crate) duplicate: Option<String>,
    pub(crate) offence: Option<ValueSpaceError>,
}

pub(crate) fn rewrite(text: &[u8]) -> Result<Rewritten, CanonError> {
    let text = std::str::from_utf8(text).map_err(|e| CanonError::InvalidUtf8(e.valid_up_to()))?;
    if u32::try_from(text.len()).is_err() {
        return Err(CanonError::TooLong);
    }
    let mut rewriter = Rewriter {
        cursor: Cursor::new(text),
        out: Vec::with_capacity(text.len()),
        path: Vec::new(),
        duplicate: None,
        offence: None,
    };
    rewriter.value()?;
    if rewriter.cursor.peek().is_some() {
        rewriter.cursor.fault("trailing characters")?;
    }
    Ok(Rewritten {
        bytes: rewriter.out,
        duplicate: rewriter.duplicate.map(|(_, name)| name),
        offence: rewriter.offence,
    })
}

/// Compares two names by their UTF-16 code units (RFC 8785 §3.2.3), given in
/// canonical spelling without quotes.
pub(crate) fn compare_names(a: &[u8], b: &[u8]) -> Ordering {
    let differ = a.iter().zip(b).position(|(a, b)| a != b);
    let plain = |b: u8| b.is_ascii() && b != b'\\' && b != b'"';
    match differ {
        // Up to here both are equal, so the first difference decides, unless
        // either byte belongs to an escape or to a multi-byte character.
        Some(at) if plain(a[at]) && plain(b[at]) && !in_escape(a, at) => a[at].cmp(&b[at]),
        None if a.len() == b.len() => Ordering::Equal,
        _ => units(a).cmp(units(b)),
    }
}

impl From<SyntaxError> for CanonError {
    fn from(error: SyntaxError) -> Self {
        Self::Syntax(error)
    }
}

struct Rewriter<'a> {
    cursor: Cursor<'a>,
    /// What is rewritten so far. Never longer than what was read.
    out: Vec<u8>,
    path: Vec<Step>,
    /// The second of two equal names: its offset in the input, and the name.
    duplicate: Option<(u32, String)>,
    offence: Option<ValueSpaceError>,
}

enum Step {
    /// Where in `out` the member's name stands, quotes included.
    Member(Range<usize>),
    Element(u64),
}

/// One member of an object under way: ranges of `out`, and where in the input
/// its name stood.
///
/// Offsets of 32 bits, since an object can have millions of members.
struct Member {
    name_start: u32,
    name_end: u32,
    end: u32,
    input: u32,
}

impl Member {
    /// The member from its name to the end of its value.
    fn range(&self) -> Range<usize> {
        self.name_start as usize..self.end as usize
    }

    /// Its name without quotes: the closing one would sort wrongly.
    fn name(&self) -> Range<usize> {
        self.name_start as usize + 1..self.name_end as usize - 1
    }
}

impl Rewriter<'_> {
    fn value(&mut self) -> Result<(), CanonError> {
        match self.cursor.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => Ok(self.cursor.string(&mut self.out)?),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => {
                self.literal(b"null")?;
                self.note(|path| ValueSpaceError::Null { path });
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => {
                let number = self.cursor.number()?;
                self.out.extend_from_slice(number.text);
                self.check(number);
                Ok(())
            }
            Some(_) => Ok(self.cursor.fault("expected a value")?),
            None => Ok(self.cursor.fault("unexpected end")?),
        }
    }

    fn literal(&mut self, word: &'static [u8]) -> Result<(), CanonError> {
        self.cursor.literal(word)?;
        self.out.extend_from_slice(word);
        Ok(())
    }

    fn array(&mut self) -> Result<(), CanonError> {
        self.descend(Step::Element(0))?;
        self.out.push(b'[');
        if self.cursor.peek() == Some(b']') {
            self.cursor.take();
        } else {
            loop {
                self.value()?;
                match self.cursor.peek() {
                    Some(b',') => self.out.push(b','),
                    Some(b']') => break self.cursor.take(),
                    _ => self.cursor.fault("expected `,` or `]`")?,
                }
                self.cursor.take();
                if let Some(Step::Element(index)) = self.path.last_mut() {
                    *index += 1;
                }
            }
        }
        self.out.push(b']');
        self.path.pop();
        Ok(())
    }

    fn object(&mut self) -> Result<(), CanonError> {
        self.descend(Step::Element(0))?;
        self.out.push(b'{');
        let start = self.out.len();
        let mut members: Vec<Member> = Vec::new();
        if self.cursor.peek() == Some(b'}') {
            self.cursor.take();
        } else {
            loop {
                members.push(self.member()?);
                match self.cursor.peek() {
                    Some(b',') => self.out.push(b','),
                    Some(b'}') => break self.cursor.take(),
                    _ => self.cursor.fault("expected `,` or `}`")?,
                }
                self.cursor.take();
            }
        }
        self.sort(start, members);
        self.out.push(b'}');
        self.path.pop();
        Ok(())
    }

    fn member(&mut self) -> Result<Member, CanonError> {
        if self.cursor.peek() != Some(b'"') {
            self.cursor.fault("expected a member name")?;
        }
        let input = self.cursor.at();
        let start = self.out.len();
        self.cursor.string(&mut self.out)?;
        let name = start..self.out.len();
        if self.cursor.peek() != Some(b':') {
            self.cursor.fault("expected `:`")?;
        }
        self.cursor.take();
        self.out.push(b':');
        if let Some(step) = self.path.last_mut() {
            *step = Step::Member(name.clone());
        }
        self.value()?;
        Ok(Member {
            name_start: offset(name.start),
            name_end: offset(name.end),
            end: offset(self.out.len()),
            input: offset(input),
        })
    }

    /// Puts the members that stand in `out` from `start` on, separated by
    /// commas, in the order of their names, and notes two of one name.
    fn sort(&mut self, start: usize, mut members: Vec<Member>) {
        let out = &self.out;
        let name = |m: &Member| &out[m.name()];
        if members.is_sorted_by(|a, b| compare_names(name(a), name(b)).is_lt()) {
            return;
        }
        // Stable: of equal names the first stays first.
        members.sort_by(|a, b| compare_names(name(a), name(b)));
        let first = members
            .windows(2)
            .filter(|pair| name(&pair[0]) == name(&pair[1]))
            .map(|pair| &pair[1])
            .min_by_key(|second| second.input);
        if let Some(second) = first
            && self
                .duplicate
                .as_ref()
                .is_none_or(|(at, _)| second.input < *at)
        {
            self.duplicate = Some((second.input, unescaped(name(second))));
        }
        let mut sorted = Vec::with_capacity(out.len() - start);
        for (i, member) in members.iter().enumerate() {
            if i > 0 {
                sorted.push(b',');
            }
            sorted.extend_from_slice(&out[member.range()]);
        }
        self.out.truncate(start);
        self.out.extend_from_slice(&sorted);
    }

    fn descend(&mut self, step: Step) -> Result<(), CanonError> {
        if self.path.len() == MAX_DEPTH {
            return Err(CanonError::TooDeep);
        }
        self.cursor.take();
        self.path.push(step);
        Ok(())
    }

    fn check(&mut self, number: Number<'_>) {
        if number.float {
            self.note(|path| ValueSpaceError::Float { path });
        } else if number.negative {
            self.note(|path| ValueSpaceError::Negative { path });
        } else if integer(number.text).is_none() {
            let mut value = String::from_utf8_lossy(number.text).into_owned();
            if value.len() > MAX_DIGITS_SHOWN {
                value.truncate(MAX_DIGITS_SHOWN);
                value.push('…');
            }
            self.note(|path| ValueSpaceError::TooLarge { value, path });
        }
    }

    fn note(&mut self, offence: impl FnOnce(String) -> ValueSpaceError) {
        if self.offence.is_none() {
            self.offence = Some(offence(self.path()));
        }
    }

    fn path(&self) -> String {
        let mut path = String::from("$");
        for step in &self.path {
            match step {
                Step::Member(name) => {
                    path.push('.');
                    path.push_str(&unescaped(&self.out[name.start + 1..name.end - 1]));
                }
                Step::Element(index) => path.push_str(&format!("[{index}]")),
            }
        }
        path
    }
}

/// An offset in a text that was found to have less than 4 GiB. What is written
/// is never longer than what was read.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The value of a run of digits that is at most [`MAX_INTEGER`].
pub(crate) fn integer(digits: &[u8]) -> Option<u64> {
    if digits.len() > 16 {
        return None;
    }
    let value = digits
        .iter()
        .fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
    (value <= MAX_INTEGER).then_some(value)
}

fn unescaped(canonical: &[u8]) -> String {
    json::unescape(&String::from_utf8_lossy(canonical)).collect()
}

fn units(canonical: &[u8]) -> impl Iterator<Item = u16> + '_ {
    // The bytes come from UTF-8 text cut at quotes, so they are UTF-8.
    json::unescape(std::str::from_utf8(canonical).unwrap_or_default()).flat_map(|c| {
        let mut buffer = [0; 2];
        let length = c.encode_utf16(&mut buffer).len();
        buffer.into_iter().take(length)
    })
}

/// Whether the byte at `at` may be part of an escape: a backslash stands in
/// the five bytes before it.
fn in_escape(name: &[u8], at: usize) -> bool {
    name[at.saturating_sub(5)..at].contains(&b'\\')
}

const MAX_DIGITS_SHOWN: usize = 40;

#[cfg(test)]
mod tests;
