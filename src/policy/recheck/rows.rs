//! The rows of a record, one at a time.

use std::io::{self, BufRead};

use super::MAX_ROW_BYTES;

/// The rows of a stream, first to last.
pub(super) struct Rows<R> {
    input: R,
    row: Vec<u8>,
    /// How many were handed out, blank ones among them.
    number: u64,
}

/// A row that was read.
pub(super) enum RawRow<'a> {
    /// Its bytes without the newline.
    Whole(&'a [u8]),
    /// It is longer than a row may be; where it ends is not known.
    TooLong,
}

impl<R: BufRead> Rows<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            row: Vec::new(),
            number: 0,
        }
    }

    /// The next row, with its number from 1. None comes behind one that is too
    /// long: an endless device would never let go.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, RawRow<'_>)>> {
        self.row.clear();
        loop {
            let chunk = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                chunk => chunk?,
            };
            let end = memchr::memchr(b'\n', chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            if part.len() > MAX_ROW_BYTES - self.row.len() {
                self.number += 1;
                return Ok(Some((self.number, RawRow::TooLong)));
            }
            self.row.extend_from_slice(part);
            let is_over = chunk.is_empty();
            let taken = part.len() + usize::from(end.is_some());
            self.input.consume(taken);
            if end.is_some() || is_over && !self.row.is_empty() {
                self.number += 1;
                return Ok(Some((self.number, RawRow::Whole(&self.row))));
            }
            if is_over {
                return Ok(None);
            }
        }
    }
}

/// Whether a row holds nothing at all (SPEC §1).
pub(super) fn is_blank(row: &[u8]) -> bool {
    row.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r'))
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn rows(bytes: &[u8], chunk: usize) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut rows = Rows::new(BufReader::with_capacity(chunk, bytes));
        let mut read = Vec::new();
        while let Some((number, row)) = rows.next().unwrap() {
            let RawRow::Whole(row) = row else {
                read.push((number, None));
                break;
            };
            read.push((number, Some(row.to_vec())));
        }
        read
    }

    #[test]
    fn the_last_row_may_lack_its_end() {
        for chunk in [1, 2, 3, 100] {
            let whole = |row: &[u8]| Some(row.to_vec());
            assert_eq!(rows(b"", chunk), []);
            assert_eq!(
                rows(b"a\n\nbc", chunk),
                [(1, whole(b"a")), (2, whole(b"")), (3, whole(b"bc"))]
            );
            assert_eq!(rows(b"bc\n", chunk), [(1, whole(b"bc"))]);
        }
    }

    #[test]
    fn a_row_at_the_bound_is_read_and_one_past_it_is_not() {
        let mut record = vec![b'a'; MAX_ROW_BYTES];
        record.extend(b"\nb\n");
        let read = rows(&record, 64 << 10);
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].1.as_ref().map(Vec::len), Some(MAX_ROW_BYTES));
        record.insert(0, b'a');
        assert_eq!(rows(&record, 64 << 10), [(1, None)]);
    }
}
