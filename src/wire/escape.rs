//! Attacker-chosen text made safe to print.
//!
//! Names, reasons and paths in a record come from whoever wrote it. Printed
//! raw they could move the cursor, forge a verdict line or reorder the text
//! around them. [`Escaped`] prints them on one line, unambiguously, cut at
//! [`MAX_CHARS`].

use std::fmt::{self, Write};
use std::io;
use std::path::Path;

/// How many characters of one text are printed before it is cut.
pub const MAX_CHARS: usize = 512;

/// Displays text with everything that could mislead a terminal or its reader
/// written as `\u{…}`, and `\` as `\\`.
#[derive(Clone, Copy)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars();
        for c in chars.by_ref().take(MAX_CHARS) {
            match c {
                '\\' => f.write_str("\\\\")?,
                c if misleads(c) => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        write_rest(f, chars.count() as u64)
    }
}

/// A text of which no more is kept than is ever printed. Displays as
/// [`Escaped`] displays the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shortened {
    pub(crate) head: String,
    pub(crate) more_chars: u64,
}

impl Shortened {
    /// Keeps the first [`MAX_CHARS`] characters.
    pub fn of(text: &str) -> Self {
        let end = text
            .char_indices()
            .nth(MAX_CHARS)
            .map_or(text.len(), |(at, _)| at);
        Self {
            head: text[..end].to_owned(),
            more_chars: text[end..].chars().count() as u64,
        }
    }
}

impl fmt::Display for Shortened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Escaped(&self.head).fmt(f)?;
        write_rest(f, self.more_chars)
    }
}

fn write_rest(f: &mut fmt::Formatter<'_>, more_chars: u64) -> fmt::Result {
    match more_chars {
        0 => Ok(()),
        more => write!(f, "… ({more} more characters)"),
    }
}

/// Displays a path as [`Escaped`] displays text, each byte that is not UTF-8
/// as `\xhh`.
#[derive(Clone, Copy)]
pub struct EscapedPath<'a>(pub &'a Path);

impl fmt::Display for EscapedPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.as_os_str().as_encoded_bytes().utf8_chunks() {
            Escaped(chunk.valid()).fmt(f)?;
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Whether a character shows as itself and nothing else.
#[cfg(feature = "record")]
pub(crate) fn is_printable(c: char) -> bool {
    !misleads(c)
}

/// Controls, line and paragraph separators, bidirectional controls, invisible
/// characters and non-characters.
fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
        || u32::from(c) & 0xfffe == 0xfffe
}

/// The system's words for why no temporary file or directory was made. The
/// crate `tempfile` adds a name that nobody knows, in quotes and escapes of its
/// own.
pub(crate) fn without_path(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((cause, _)) => io::Error::new(error.kind(), cause.to_owned()),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_name_is_not_shown() {
        let error = tempfile::tempfile_in("/nowhere/\u{1b}").unwrap_err();
        assert_eq!(without_path(error).to_string(), NOT_FOUND);
        let error = tempfile::tempdir_in("/nowhere/\u{1b}").unwrap_err();
        assert!(error.to_string().contains(" at path "), "{error}");
        assert_eq!(without_path(error).to_string(), NOT_FOUND);
    }

    const NOT_FOUND: &str = "No such file or directory (os error 2)";

    #[test]
    fn plain_text_stays() {
        assert_eq!(
            Escaped("write_file/ü 日本").to_string(),
            "write_file/ü 日本"
        );
    }

    #[test]
    fn what_moves_a_cursor_or_hides_is_spelt_out() {
        assert_eq!(
            Escaped("a\u{1b}[2K\r\nVerified\u{202e}\u{9b}\u{7f}\\").to_string(),
            "a\\u{1b}[2K\\u{d}\\u{a}Verified\\u{202e}\\u{9b}\\u{7f}\\\\"
        );
        assert_eq!(
            Escaped("\u{e0041}\u{feff}").to_string(),
            "\\u{e0041}\\u{feff}"
        );
    }

    #[test]
    #[cfg(unix)]
    fn a_path_need_not_be_text() {
        use std::os::unix::ffi::OsStrExt as _;
        let path = Path::new(std::ffi::OsStr::from_bytes(b"a/\xff\n\xc3\xa9"));
        assert_eq!(EscapedPath(path).to_string(), "a/\\xff\\u{a}é");
    }

    /// SPEC [CLI-8].
    #[test]
    fn cut_at_the_bound_and_not_before() {
        let at = "x".repeat(MAX_CHARS);
        assert_eq!(Escaped(&at).to_string(), at);
        let past = format!("{at}yz");
        assert_eq!(
            Escaped(&past).to_string(),
            format!("{at}… (2 more characters)")
        );
        for text in [&at, &past, &"é\u{1b}".repeat(400)] {
            assert_eq!(Shortened::of(text).to_string(), Escaped(text).to_string());
        }
    }
}
