//! The body of a request, from a client to a server.
//!
//! It is not held but carried, and where it ends is said anew: chunks go on
//! without extensions and trailers, in sizes of our own.

use std::io::{Read, Write};
use std::str;
use std::sync::atomic::{AtomicU64, Ordering};

use super::head::Framing;
use super::incoming::Incoming;

/// Who failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFault {
    /// It left, or what it sent is no body.
    Client,
    /// It does not take any more.
    Server,
}

/// Carries a body that is delimited as `framing` says.
pub(super) fn send(
    from: &mut Incoming<impl Read>,
    to: &mut impl Write,
    framing: Framing,
    trailer_bytes: usize,
    sent: &AtomicU64,
) -> Result<(), BodyFault> {
    let mut out = Out { to, sent };
    match framing {
        Framing::None => Ok(()),
        Framing::Length(length) => pieces(from, length, |piece| out.write(piece)),
        Framing::Chunked => chunks(from, &mut out, trailer_bytes),
    }
}

struct Out<'a, W> {
    to: &'a mut W,
    sent: &'a AtomicU64,
}

impl<W: Write> Out<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), BodyFault> {
        self.to.write_all(bytes).map_err(|_| BodyFault::Server)?;
        self.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

fn pieces(
    from: &mut Incoming<impl Read>,
    mut left: u64,
    mut take: impl FnMut(&[u8]) -> Result<(), BodyFault>,
) -> Result<(), BodyFault> {
    while left > 0 {
        let bound = usize::try_from(left).unwrap_or(usize::MAX);
        let piece = from.some(bound).map_err(|_| BodyFault::Client)?;
        if piece.is_empty() {
            return Err(BodyFault::Client);
        }
        left -= piece.len() as u64;
        take(piece)?;
    }
    Ok(())
}

/// RFC 9112 §7.1.
fn chunks(
    from: &mut Incoming<impl Read>,
    out: &mut Out<'_, impl Write>,
    trailer_bytes: usize,
) -> Result<(), BodyFault> {
    loop {
        let line = read_line(from, MAX_SIZE_LINE_BYTES)?;
        let size = read_size(&line).ok_or(BodyFault::Client)?;
        if size == 0 {
            break;
        }
        pieces(from, size, |piece| {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            out.write(&chunk)
        })?;
        let end = from.array().map_err(|_| BodyFault::Client)?;
        if end != *b"\r\n" {
            return Err(BodyFault::Client);
        }
    }
    // Trailers are not needed to read a body (RFC 9110 §6.5).
    let mut left = trailer_bytes;
    loop {
        let line = read_line(from, left)?;
        if line == b"\r\n" {
            return out.write(b"0\r\n\r\n");
        }
        left -= line.len();
    }
}

fn read_line(from: &mut Incoming<impl Read>, bound: usize) -> Result<Vec<u8>, BodyFault> {
    let line = from.until(b"\r\n", bound).map_err(|_| BodyFault::Client)?;
    line.ok_or(BodyFault::Client)
}

fn read_size(line: &[u8]) -> Option<u64> {
    let line = line.strip_suffix(b"\r\n")?;
    if line
        .iter()
        .any(|byte| byte.is_ascii_control() && *byte != b'\t')
    {
        return None;
    }
    let digits = line.split(|byte| *byte == b';').next()?;
    let is_plain = digits.len() <= MAX_SIZE_DIGITS && digits.iter().all(u8::is_ascii_hexdigit);
    let text = str::from_utf8(digits).ok().filter(|_| is_plain)?;
    u64::from_str_radix(text, 16).ok()
}

/// Of a chunk's size and its extensions.
pub(super) const MAX_SIZE_LINE_BYTES: usize = 1024;

const MAX_SIZE_DIGITS: usize = 15;

#[cfg(test)]
mod tests;
