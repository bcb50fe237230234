//! Which bytes a document may have: UTF-8 that every reader shows alike.

use super::super::set::Position;
use super::PolicyError;

/// The text of a document.
///
/// # Errors
/// When it is not UTF-8, or has characters that could make it look like
/// another document.
pub(super) fn checked(document: &[u8]) -> Result<&str, PolicyError> {
    if document.starts_with(&[0xff, 0xfe]) || document.starts_with(&[0xfe, 0xff]) {
        return Err(PolicyError::parse(START, UTF_16));
    }
    let text = match std::str::from_utf8(document) {
        Ok(text) => text,
        Err(error) => {
            let at = error.valid_up_to();
            let valid = String::from_utf8_lossy(&document[..at]);
            return Err(PolicyError::parse(
                position(&valid, at),
                format!("invalid UTF-8 at byte {at}; save the file as UTF-8"),
            ));
        }
    };
    if text.starts_with('\u{feff}') {
        return Err(PolicyError::parse(START, BOM));
    }
    match text.char_indices().find(|&(at, c)| is_refused(text, at, c)) {
        None => Ok(text),
        Some((at, c)) => Err(PolicyError::parse(position(text, at), why(c))),
    }
}

fn is_refused(text: &str, at: usize, c: char) -> bool {
    match c {
        '\n' | ' '..='~' => false,
        '\r' => !text[at + 1..].starts_with('\n'),
        c if c.is_ascii() => true,
        c => {
            c.is_control()
                || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
                    | '\u{2066}'..='\u{2069}' | '\u{feff}')
                || u32::from(c) & 0xfffe == 0xfffe
        }
    }
}

fn why(c: char) -> String {
    let code = u32::from(c);
    match c {
        '\0' => "NUL character; save the file as UTF-8 text".to_owned(),
        '\r' => "carriage return without a line feed, which some readers take for the end of a \
                 line and others do not; end lines with a line feed"
            .to_owned(),
        '\t' => "a tab, which some readers take for spaces and others refuse; use spaces, or \
                 write it as `\\t` in double quotes"
            .to_owned(),
        _ => format!(
            "character U+{code:04X}, which does not show or reorders what does; remove it, or \
             write it as `\\u{code:04x}` in double quotes"
        ),
    }
}

/// Where the half of a character is that is written as an escape, in the
/// source of a text in double quotes. Some readers put two halves together and
/// others keep them apart.
pub(super) fn surrogate_escape(source: &str) -> Option<usize> {
    let bytes = source.as_bytes();
    let mut at = 0;
    while let Some(found) = bytes.get(at..)?.iter().position(|byte| *byte == b'\\') {
        at += found;
        let escape = bytes.get(at + 1..)?;
        let hex = match escape.first() {
            Some(b'u') => escape.get(1..3),
            Some(b'U') if escape.get(1..5) == Some(b"0000") => escape.get(5..7),
            _ => None,
        };
        if let Some([b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F']) = hex {
            return Some(at);
        }
        // What is escaped may be a backslash, which begins no other escape.
        at += 2;
    }
    None
}

/// The position of the byte `at`.
pub(super) fn position(text: &str, at: usize) -> Position {
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Position {
        line: 1 + before.bytes().filter(|byte| *byte == b'\n').count() as u64,
        column: 1 + before[line_start..].chars().count() as u64,
    }
}

pub(super) const START: Position = Position { line: 1, column: 1 };

const UTF_16: &str = "the file is UTF-16; save it as UTF-8";

const BOM: &str = "the file begins with a byte-order mark, which other readers take for a part \
                   of the first name; save it as UTF-8 without one";
