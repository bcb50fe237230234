//! The tokens of strict JSON (RFC 8259), for the canonicalizer.
//!
//! Input is valid UTF-8. A lone surrogate escape is refused, as RFC 8785
//! §3.2.2.2 asks. Positions are byte offsets from 0 in the text given.

use thiserror::Error;

/// Why a text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{what} at byte {at}")]
pub struct SyntaxError {
    /// What stands there.
    pub what: &'static str,
    /// Byte offset from 0.
    pub at: usize,
}

/// A number as its grammar has it; which ones a Line may carry is
/// [`super::canon`]'s business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number<'a> {
    /// The characters of the number.
    pub(crate) text: &'a [u8],
    /// Whether it has a minus sign.
    pub(crate) negative: bool,
    /// Whether it has a fraction or an exponent.
    pub(crate) float: bool,
}

/// A cursor over the bytes of one JSON text.
pub(crate) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text: text.as_bytes(),
            at: 0,
        }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The next byte that is not white space, not taken.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.text.get(self.at) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    /// Takes the byte that [`Self::peek`] returned.
    pub(crate) fn take(&mut self) {
        self.at += 1;
    }

    pub(crate) fn fault<T>(&self, what: &'static str) -> Result<T, SyntaxError> {
        Err(SyntaxError { what, at: self.at })
    }

    /// Takes `word` whole.
    pub(crate) fn literal(&mut self, word: &'static [u8]) -> Result<(), SyntaxError> {
        if !self.text[self.at..].starts_with(word) {
            return self.fault("expected a value");
        }
        self.at += word.len();
        Ok(())
    }

    /// Takes a number (RFC 8259 §6).
    pub(crate) fn number(&mut self) -> Result<Number<'a>, SyntaxError> {
        let start = self.at;
        let negative = self.skip_if(|b| b == b'-');
        if self.skip_if(|b| b == b'0') {
            if self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
                return self.fault("leading zero");
            }
        } else {
            self.digits()?;
        }
        let mut float = false;
        if self.skip_if(|b| b == b'.') {
            float = true;
            self.digits()?;
        }
        if self.skip_if(|b| matches!(b, b'e' | b'E')) {
            float = true;
            self.skip_if(|b| matches!(b, b'+' | b'-'));
            self.digits()?;
        }
        Ok(Number {
            text: &self.text[start..self.at],
            negative,
            float,
        })
    }

    /// Takes a string, whose opening quote is next, and appends its canonical
    /// spelling (RFC 8785 §3.2.2.2), quotes included, to `out`.
    pub(crate) fn string(&mut self, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
        self.at += 1;
        out.push(b'"');
        loop {
            let rest = &self.text[self.at..];
            let plain = rest
                .iter()
                .position(|b| matches!(b, b'"' | b'\\' | 0..=0x1f))
                .unwrap_or(rest.len());
            out.extend_from_slice(&rest[..plain]);
            self.at += plain;
            match rest.get(plain) {
                Some(b'"') => {
                    self.at += 1;
                    out.push(b'"');
                    return Ok(());
                }
                Some(b'\\') => self.escape(out)?,
                Some(_) => return self.fault("raw control character in a string"),
                None => return self.fault("unfinished string"),
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let c = match self.text.get(self.at + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(out),
            _ => return self.fault("unknown escape"),
        };
        self.at += 2;
        push_char(out, c);
        Ok(())
    }

    fn unicode_escape(&mut self, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let high = self.unit(self.at)?;
        let (code, length) = match high {
            0xd800..=0xdbff => match self.unit(self.at + 6) {
                Ok(low @ 0xdc00..=0xdfff) => {
                    (0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00)), 12)
                }
                _ => return self.fault("lone surrogate escape"),
            },
            _ => (high, 6),
        };
        // Only a lone low surrogate is left that is not a scalar value.
        let Some(c) = char::from_u32(code) else {
            return self.fault("lone surrogate escape");
        };
        self.at += length;
        push_char(out, c);
        Ok(())
    }

    /// The UTF-16 code unit of the `\uXXXX` at `at`.
    fn unit(&self, at: usize) -> Result<u32, SyntaxError> {
        let unit = self
            .text
            .get(at..at + 6)
            .filter(|escape| escape.starts_with(b"\\u"))
            .and_then(|escape| {
                escape[2..].iter().try_fold(0, |unit, &digit| {
                    Some(unit << 4 | char::from(digit).to_digit(16)?)
                })
            });
        match unit {
            Some(unit) => Ok(unit),
            None => self.fault("unknown escape"),
        }
    }

    fn digits(&mut self) -> Result<(), SyntaxError> {
        if !self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            return self.fault("expected a digit");
        }
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        Ok(())
    }

    fn skip_if(&mut self, test: impl Fn(u8) -> bool) -> bool {
        let found = self.text.get(self.at).copied().is_some_and(test);
        self.at += usize::from(found);
        found
    }
}

/// Appends one character of a string in its canonical spelling.
fn push_char(out: &mut Vec<u8>, c: char) {
    let short = match c {
        '"' => b'"',
        '\\' => b'\\',
        '\u{8}' => b'b',
        '\t' => b't',
        '\n' => b'n',
        '\u{c}' => b'f',
        '\r' => b'r',
        '\0'..='\u{1f}' => {
            out.extend_from_slice(b"\\u00");
            super::hex::push(out, &[c as u8]);
            return;
        }
        c => {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// The characters of a string's canonical spelling (without its quotes),
/// unescaped.
pub(crate) fn unescape(canonical: &str) -> impl Iterator<Item = char> + '_ {
    let mut chars = canonical.chars();
    std::iter::from_fn(move || {
        let c = chars.next()?;
        if c != '\\' {
            return Some(c);
        }
        Some(match chars.next()? {
            'b' => '\u{8}',
            't' => '\t',
            'n' => '\n',
            'f' => '\u{c}',
            'r' => '\r',
            'u' => {
                let code = chars
                    .by_ref()
                    .take(4)
                    .try_fold(0, |code, digit| Some(code << 4 | digit.to_digit(16)?))?;
                char::from_u32(code)?
            }
            literal => literal,
        })
    })
}
