//! The child's standard error, where it has none of ours: on a terminal its
//! text, without the power to move the cursor or to forge what aegis says.

use std::io::{self, Read, Write};

use crate::wire::escape::is_printable;

/// Copies every byte as it comes, until the input ends.
///
/// # Errors
/// When either side fails.
pub(super) fn copy_verbatim(mut input: impl Read, mut out: impl Write) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => out.write_all(&buffer[..read])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Copies without what could move a cursor, until the input ends.
///
/// # Errors
/// When either side fails.
pub(super) fn copy_escaped(mut input: impl Read, mut out: impl Write) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut held = 0;
    loop {
        let read = match input.read(&mut buffer[held..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let filled = held + read;
        // The start of a character whose rest has not come yet stays.
        let cut = if read == 0 {
            filled
        } else {
            whole_chars(&buffer[..filled])
        };
        out.write_all(escape(&buffer[..cut]).as_bytes())?;
        if read == 0 {
            return Ok(());
        }
        buffer.copy_within(cut..filled, 0);
        held = filled - cut;
    }
}

/// How many bytes stand before a character that is not complete.
fn whole_chars(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // A fault before the end hides nothing behind it but at most three
        // bytes, which are then shown as they are.
        _ => bytes.len(),
    }
}

fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let mut chars = chunk.valid().chars().peekable();
        while let Some(c) = chars.next() {
            let line_end = c == '\r' && chars.peek() == Some(&'\n');
            if line_end || matches!(c, '\n' | '\t') || is_printable(c) {
                text.push(c);
            } else {
                text.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

const BUFFER_BYTES: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else {
                return Ok(0);
            };
            buffer[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    #[test]
    fn text_passes_and_controls_do_not() {
        let input = b"caf\xc3\xa9\tok\r\n\x1b[2Jx\x07\xff\xc2\x9b\n";
        let expected = "café\tok\r\n\\u{1b}[2Jx\\u{7}\\xff\\u{9b}\n";
        let mut out = Vec::new();
        copy_escaped(&input[..], &mut out).unwrap();
        assert_eq!(String::from_utf8_lossy(&out), expected);

        let mut out = Vec::new();
        copy_escaped(Slow("é\u{1b}日本".as_bytes()), &mut out).unwrap();
        assert_eq!(String::from_utf8_lossy(&out), "é\\u{1b}日本");
    }

    #[test]
    fn half_a_character_at_the_end_is_shown() {
        let mut out = Vec::new();
        copy_escaped(&b"a\xe6\x97"[..], &mut out).unwrap();
        assert_eq!(String::from_utf8_lossy(&out), "a\\xe6\\x97");
    }
}
