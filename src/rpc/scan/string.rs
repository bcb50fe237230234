//! Strings by the grammar of RFC 8259, §7, without lone surrogate escapes.

use super::Reason;

/// What of a string is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Str {
    Plain,
    /// After a backslash.
    Escape,
    /// After `\u`: the digits still to come, and those read. `high` is the
    /// first half of a surrogate pair, or 0.
    Hex {
        left: u8,
        unit: u16,
        high: u16,
    },
    /// After a high surrogate: the backslash of its other half.
    PairEscape {
        high: u16,
    },
    /// The `u` of that other half.
    PairLetter {
        high: u16,
    },
}

/// What a byte of an escape leads to.
pub(super) enum Step {
    Next(Str),
    /// The escape is complete and stands for this.
    Char(char),
}

impl Str {
    /// Takes one byte of an escape. Must not be called in `Plain`.
    pub(super) fn step(self, byte: u8) -> Result<Step, Reason> {
        match self {
            Self::Plain => Err(Reason::BadEscape),
            Self::Escape => escape(byte),
            Self::Hex { left, unit, high } => hex(left, unit, high, byte),
            Self::PairEscape { high } if byte == b'\\' => Ok(Step::Next(Self::PairLetter { high })),
            Self::PairLetter { high } if byte == b'u' => Ok(Step::Next(Self::digits(high))),
            Self::PairEscape { .. } | Self::PairLetter { .. } => Err(Reason::LoneSurrogate),
        }
    }

    fn digits(high: u16) -> Self {
        Self::Hex {
            left: 4,
            unit: 0,
            high,
        }
    }
}

/// Length of the run that starts `bytes` and holds no quote, no backslash and
/// no control character.
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let marks = marks(u64::from_le_bytes(*word));
        if marks != 0 {
            return index * 8 + (marks.trailing_zeros() / 8) as usize;
        }
    }
    let tail = rest
        .iter()
        .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
    words.len() * 8 + tail.unwrap_or(rest.len())
}

/// Sets the high bit of each byte that ends a run. A borrow can mark a byte
/// above a true one too, so only the lowest mark means something.
fn marks(word: u64) -> u64 {
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let quote = zero(word ^ (ONES * 0x22));
    let backslash = zero(word ^ (ONES * 0x5c));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & (ONES * 0x80)
}

fn escape(byte: u8) -> Result<Step, Reason> {
    let letter = match byte {
        b'"' | b'\\' | b'/' => char::from(byte),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return Ok(Step::Next(Str::digits(0))),
        _ => return Err(Reason::BadEscape),
    };
    Ok(Step::Char(letter))
}

fn hex(left: u8, unit: u16, high: u16, byte: u8) -> Result<Step, Reason> {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        _ => return Err(Reason::BadEscape),
    };
    let unit = unit << 4 | u16::from(digit);
    if left > 1 {
        let left = left - 1;
        return Ok(Step::Next(Str::Hex { left, unit, high }));
    }
    let letter = match (high, unit) {
        (0, 0xd800..=0xdbff) => return Ok(Step::Next(Str::PairEscape { high: unit })),
        (0, _) => u32::from(unit),
        (_, 0xdc00..=0xdfff) => {
            0x10000 + (u32::from(high - 0xd800) << 10) + u32::from(unit - 0xdc00)
        }
        _ => return Err(Reason::LoneSurrogate),
    };
    char::from_u32(letter)
        .map(Step::Char)
        .ok_or(Reason::LoneSurrogate)
}

const ONES: u64 = 0x0101_0101_0101_0101;
