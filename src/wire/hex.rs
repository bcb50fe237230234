//! Lower-case hexadecimal, the only spelling of bytes in a Line (SPEC §2).
//!
//! Upper case is refused and not normalised: one value has one spelling, so
//! that two emitters cannot hash the same digest differently.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// Why a text is not the lower-case hexadecimal of `N` bytes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HexError {
    /// The text has another length.
    #[error("expected {expected} hex characters, got {found}")]
    Length {
        /// How many characters the value takes.
        expected: usize,
        /// How many characters were given.
        found: usize,
    },
    /// The character at this position (from 0) is not one of `0-9a-f`.
    #[error("not a lowercase hex character at position {0}")]
    Character(usize),
}

/// Parses exactly `2 * N` lower-case hexadecimal characters.
///
/// # Errors
/// [`HexError::Length`] counts characters, not bytes, as a person would.
pub fn parse<const N: usize>(text: &str) -> Result<[u8; N], HexError> {
    let found = text.chars().count();
    if found != 2 * N {
        return Err(HexError::Length {
            expected: 2 * N,
            found,
        });
    }
    if let Some(at) = text
        .chars()
        .position(|c| !matches!(c, '0'..='9' | 'a'..='f'))
    {
        return Err(HexError::Character(at));
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = nibble(pair[0]) << 4 | nibble(pair[1]);
    }
    Ok(bytes)
}

/// Appends the lower-case hexadecimal of `bytes` to `out`.
pub fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// Displays bytes as lower-case hexadecimal.
#[derive(Clone, Copy)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.chunks(32) {
            let mut text = Vec::with_capacity(64);
            push(&mut text, chunk);
            f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)?;
        }
        Ok(())
    }
}

/// `N` bytes that a Line carries as lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bytes<const N: usize>(pub [u8; N]);

impl<const N: usize> fmt::Display for Bytes<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl<const N: usize> fmt::Debug for Bytes<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const N: usize> Serialize for Bytes<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Bytes<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).map(Self).map_err(de::Error::custom)
    }
}

/// The value of one digit; callers have checked the character.
fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit - b'a' + 10,
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let bytes: [u8; 32] = std::array::from_fn(|i| i as u8 * 7);
        let text = Hex(&bytes).to_string();
        assert_eq!(parse::<32>(&text), Ok(bytes));
    }

    #[test]
    fn refusals_name_length_or_position() {
        assert_eq!(
            parse::<2>("abc").unwrap_err().to_string(),
            "expected 4 hex characters, got 3"
        );
        assert_eq!(
            parse::<2>("abéd").unwrap_err().to_string(),
            "not a lowercase hex character at position 2"
        );
        assert_eq!(parse::<2>("abcD"), Err(HexError::Character(3)));
        assert_eq!(parse::<2>("ab d"), Err(HexError::Character(2)));
    }
}
