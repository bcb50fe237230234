//! What an existing file ends with, read from its end (SPEC §7.1).
//!
//! A Writer flushes what precedes a `close` before it writes one, so a file
//! that ends in a `close` is whole. Any other may have lost pages in a power
//! cut, also pages that lie before ones that it kept; then every row of the
//! last Session is read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use thiserror::Error;

use super::rows::{BadRow, Contradiction, LineKind, LinePlace, RowsBackward, is_blank};
use crate::wire::digest::{self, Digest};

/// Why nothing may be appended to a file.
#[derive(Debug, Error)]
pub(crate) enum TailError {
    /// It could not be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Its last row is not a whole Line.
    #[error("audit file has a torn final line at line {line}; refusing to chain onto it")]
    Torn {
        /// Counted from 1, blank rows too.
        line: u64,
    },
    /// A row of its last Session cannot be read.
    #[error(
        "audit file has an unreadable row at line {line}, in its last session; refusing to chain \
         onto it"
    )]
    Hole {
        /// Counted from 1, blank rows too.
        line: u64,
    },
    /// A row of its last Session is not what an emitter writes there.
    #[error("audit file contradicts itself: line {line} {why}; refusing to chain onto it")]
    Contradiction {
        /// Counted from 1, blank rows too.
        line: u64,
        /// How.
        why: Contradiction,
    },
}

impl TailError {
    /// Whether `aegis recover` makes the file appendable.
    pub(crate) fn is_recoverable(&self) -> bool {
        matches!(self, Self::Torn { .. } | Self::Hole { .. })
    }
}

/// The hash of the last Line of `file`; none when it has no Line.
///
/// # Errors
/// When appending to it would damage the record, or lend it trust.
pub(crate) fn read(file: &File) -> Result<Option<Digest<digest::Line>>, TailError> {
    let length = file.metadata()?.len();
    if length == 0 {
        return Ok(None);
    }
    let mut last = [0];
    file.read_exact_at(&mut last, length - 1)?;
    if last != *b"\n" {
        return Err(TailError::Torn {
            line: line_at(file, length - 1)?,
        });
    }
    read_ended(file, RowsBackward::new(file, length))
}

fn read_ended(
    file: &File,
    mut rows: RowsBackward<'_>,
) -> Result<Option<Digest<digest::Line>>, TailError> {
    let Some((mut offset, mut after)) = line_before(file, &mut rows, true)? else {
        return Ok(None);
    };
    let tail = after.hash;
    if after.kind == LineKind::Close {
        return Ok(Some(tail));
    }
    while after.kind != LineKind::Open {
        let Some((at, line)) = line_before(file, &mut rows, false)? else {
            return Err(contradiction(file, offset, Contradiction::NotOpen));
        };
        after
            .check_after(&line)
            .map_err(|why| contradiction(file, offset, why))?;
        (offset, after) = (at, line);
    }
    after
        .check_first()
        .map_err(|why| contradiction(file, offset, why))?;
    Ok(Some(tail))
}

/// The Line before those that were read, and where it starts. `is_last` when
/// none was read.
fn line_before(
    file: &File,
    rows: &mut RowsBackward<'_>,
    is_last: bool,
) -> Result<Option<(u64, LinePlace)>, TailError> {
    while let Some(row) = rows.next_back()? {
        if is_blank(row.bytes) {
            continue;
        }
        let offset = row.offset;
        return match LinePlace::of(&row) {
            Ok(line) => Ok(Some((offset, line))),
            Err(BadRow::Unreadable | BadRow::Contradiction(Contradiction::NotALine(_)))
                if is_last =>
            {
                let line = line_at(file, offset)?;
                Err(TailError::Torn { line })
            }
            Err(BadRow::Unreadable) => {
                let line = line_at(file, offset)?;
                Err(TailError::Hole { line })
            }
            Err(BadRow::Contradiction(why)) => Err(contradiction(file, offset, why)),
        };
    }
    Ok(None)
}

fn contradiction(file: &File, offset: u64, why: Contradiction) -> TailError {
    match line_at(file, offset) {
        Ok(line) => TailError::Contradiction { line, why },
        Err(error) => TailError::Io(error),
    }
}

/// The number of the row at `offset`. Reads the file up to there, so only an
/// error is worth it.
fn line_at(file: &File, offset: u64) -> io::Result<u64> {
    let mut block = vec![0; COUNT_BYTES];
    let mut at = 0;
    let mut line = 1;
    while at < offset {
        let wanted = (offset - at).min(COUNT_BYTES as u64) as usize;
        let read = file.read_at(&mut block[..wanted], at)?;
        if read == 0 {
            break;
        }
        line += memchr::memchr_iter(b'\n', &block[..read]).count() as u64;
        at += read as u64;
    }
    Ok(line)
}

/// How much of a file is read at once to count its rows.
const COUNT_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::testing::{session, without_last};
    use super::*;

    fn read_bytes(bytes: &[u8]) -> Result<Option<String>, String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let whole = read(&file)
            .map(|tail| tail.map(|hash| hash.to_string()))
            .map_err(|error| error.to_string());
        if bytes.ends_with(b"\n") {
            for block in [1, 7, 512] {
                let rows = RowsBackward::new(&file, bytes.len() as u64).with_blocks(block);
                let again = read_ended(&file, rows)
                    .map(|tail| tail.map(|hash| hash.to_string()))
                    .map_err(|error| error.to_string());
                assert_eq!(again, whole, "blocks of {block}");
            }
        }
        whole
    }

    fn hash_of_last(rows: &[u8]) -> Option<String> {
        let rows = rows.strip_suffix(b"\n").unwrap();
        let last = rows.rsplit(|&b| b == b'\n').next().unwrap();
        Some(Digest::<digest::Line>::of(last).to_string())
    }

    fn torn(line: u64) -> Result<Option<String>, String> {
        Err(format!(
            "audit file has a torn final line at line {line}; refusing to chain onto it"
        ))
    }

    #[test]
    fn nothing_and_blank_rows_count_as_empty() {
        for bytes in [&b""[..], b"\n", b"\n \t\r\n\n"] {
            assert_eq!(read_bytes(bytes), Ok(None));
        }
        assert_eq!(read_bytes(b"\n "), torn(2));
    }

    #[test]
    fn the_tail_of_closed_and_open_sessions() {
        let first = session(3, None);
        assert_eq!(read_bytes(&first), Ok(hash_of_last(&first)));
        let mut both = without_last(&first, 1).to_vec();
        assert_eq!(read_bytes(&both), Ok(hash_of_last(&both)));
        let tail = Digest::from_hex(&hash_of_last(&both).unwrap()).unwrap();
        both.extend_from_slice(without_last(&session(2, Some(tail)), 2));
        assert_eq!(read_bytes(&both), Ok(hash_of_last(&both)));
        let blank = [&both[..], b"\n\n"].concat();
        assert_eq!(read_bytes(&blank), Ok(hash_of_last(&both)));
    }

    #[test]
    fn rows_of_another_spelling_have_the_hash_of_their_canonical_form() {
        let rows = session(1, None);
        let text = String::from_utf8(rows.clone()).unwrap();
        let spaced = text.replace("\",\"", "\" , \"").replace('\n', "\r\n");
        assert_eq!(read_bytes(spaced.as_bytes()), Ok(hash_of_last(&rows)));
    }

    /// SPEC [SESS-6].
    #[test]
    fn a_file_cut_anywhere_is_read_right_or_refused() {
        let rows = session(2, None);
        for end in 1..rows.len() {
            let cut = &rows[..end];
            let expected = if cut.ends_with(b"\n") {
                Ok(hash_of_last(cut))
            } else {
                torn(1 + cut.iter().filter(|&&b| b == b'\n').count() as u64)
            };
            assert_eq!(read_bytes(cut), expected, "cut at {end}");
        }
    }

    /// SPEC [SESS-6].
    #[test]
    fn bytes_that_are_no_text_are_a_torn_line() {
        let rows = session(1, None);
        for tail in [
            &b"\xff\n"[..],
            b"{\"a\":\"\xc3",
            b"\0\0\0\n",
            b"{\"a\":1.5}\n",
        ] {
            assert_eq!(read_bytes(&[&rows[..], tail].concat()), torn(5));
        }
    }

    /// SPEC [SESS-6].
    #[test]
    fn a_hole_in_the_last_session_is_found() {
        let rows = session(8, None);
        let open = without_last(&rows, 1);
        let mut bytes = open.to_vec();
        bytes[1_000..5_096].fill(0);
        let error = read_bytes(&bytes).unwrap_err();
        assert!(
            error.starts_with("audit file has an unreadable row at line 3, in its last session"),
            "{error}"
        );
        // The flush of a close covers everything before it.
        bytes.extend_from_slice(&rows[open.len()..]);
        assert_eq!(read_bytes(&bytes), Ok(hash_of_last(&rows)));
    }

    #[test]
    fn a_session_that_contradicts_itself_is_refused() {
        let rows = session(2, None);
        let open = without_last(&rows, 1);
        let lines: Vec<_> = open.split_inclusive(|&b| b == b'\n').collect();
        let but = |skipped: usize| {
            let mut lines = lines.clone();
            lines.remove(skipped);
            read_bytes(&lines.concat()).unwrap_err()
        };
        assert_eq!(
            but(2),
            "audit file contradicts itself: line 3 does not chain to the line before it; refusing \
             to chain onto it"
        );
        assert_eq!(
            but(0),
            "audit file contradicts itself: line 1 is not the open line that a chain begins with; \
             refusing to chain onto it"
        );
        assert_eq!(
            read_bytes(b"{\"phase\":\"intent\"}\n").unwrap_err(),
            "audit file contradicts itself: line 1 carries no line_type; refusing to chain onto it"
        );
    }
}
