//! The rows of a file, in both directions, in bounded memory.

use std::fs::File;
use std::io::{self, BufRead};
use std::os::unix::fs::FileExt as _;

use thiserror::Error;

use crate::wire::decode::{Name, Row, RowFault};
use crate::wire::digest::{self, Digest};

/// The rows of a stream, first to last.
pub(super) struct RowsForward<R> {
    input: R,
    row: Vec<u8>,
    offset: u64,
    max_bytes: usize,
}

/// One row of a file, without its newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawRow<'a> {
    /// Where it starts in the file.
    pub(super) offset: u64,
    /// Its bytes; only the first ones when it is too long.
    pub(super) bytes: &'a [u8],
    /// Whether it is longer than a row may be.
    pub(super) too_long: bool,
    /// Whether its newline is there.
    pub(super) ended: bool,
}

impl<R: BufRead> RowsForward<R> {
    /// The rows of `input`, which stands at the start of its file.
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            row: Vec::new(),
            offset: 0,
            max_bytes: MAX_ROW_BYTES,
        }
    }

    /// Where the next row starts in the file.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn next(&mut self) -> io::Result<Option<RawRow<'_>>> {
        self.row.clear();
        let offset = self.offset;
        let mut too_long = false;
        let ended = loop {
            let chunk = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                chunk => chunk?,
            };
            if chunk.is_empty() {
                break false;
            }
            let end = memchr::memchr(b'\n', chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            let room = self.max_bytes - self.row.len();
            too_long |= part.len() > room;
            self.row.extend_from_slice(&part[..part.len().min(room)]);
            let taken = part.len() + usize::from(end.is_some());
            self.input.consume(taken);
            self.offset += taken as u64;
            if end.is_some() {
                break true;
            }
        };
        Ok((self.offset > offset).then_some(RawRow {
            offset,
            bytes: &self.row,
            too_long,
            ended,
        }))
    }
}

/// The rows of a file, last to first.
pub(super) struct RowsBackward<'a> {
    file: &'a File,
    /// A piece of the file up to the row that was returned last.
    piece: Vec<u8>,
    /// Where `piece` starts in the file.
    offset: u64,
    /// How much of `piece` is before that row.
    end: usize,
    block_bytes: usize,
}

impl<'a> RowsBackward<'a> {
    /// The rows of `file` up to `length`, which is behind a newline.
    pub(super) fn new(file: &'a File, length: u64) -> Self {
        Self {
            file,
            piece: Vec::new(),
            offset: length,
            end: 0,
            block_bytes: BLOCK_BYTES,
        }
    }

    /// The rows of `file` up to `length`, with the last one of which a newline
    /// is missing.
    pub(super) fn unended(file: &'a File, length: u64) -> Self {
        Self {
            piece: b"\n".to_vec(),
            end: 1,
            ..Self::new(file, length)
        }
    }

    /// The same, reading `block_bytes` at a time.
    #[cfg(test)]
    pub(super) fn with_blocks(self, block_bytes: usize) -> Self {
        Self {
            block_bytes,
            ..self
        }
    }

    pub(super) fn next_back(&mut self) -> io::Result<Option<RawRow<'_>>> {
        loop {
            let before = self.end.saturating_sub(1);
            match memchr::memrchr(b'\n', &self.piece[..before]) {
                Some(newline) => return Ok(Some(self.take(newline + 1))),
                None if before > MAX_ROW_BYTES => return Ok(Some(self.take(0))),
                None if self.offset > 0 => self.read_more()?,
                None if self.end == 0 => return Ok(None),
                None => return Ok(Some(self.take(0))),
            }
        }
    }

    fn take(&mut self, start: usize) -> RawRow<'_> {
        let bytes = &self.piece[start..self.end - 1];
        self.end = start;
        RawRow {
            offset: self.offset + start as u64,
            bytes,
            too_long: bytes.len() > MAX_ROW_BYTES,
            ended: true,
        }
    }

    /// Puts the block before it in front of what is left of the piece: as much
    /// again as is there, so that a long row is not copied once a block.
    fn read_more(&mut self) -> io::Result<()> {
        let wanted = self.block_bytes.max(self.end) as u64;
        // At most `wanted`, which was a usize.
        let more = wanted.min(self.offset) as usize;
        let mut piece = vec![0; more + self.end];
        self.file
            .read_exact_at(&mut piece[..more], self.offset - more as u64)?;
        piece[more..].copy_from_slice(&self.piece[..self.end]);
        self.offset -= more as u64;
        self.end = piece.len();
        self.piece = piece;
        Ok(())
    }
}

/// Whether a row holds nothing at all (SPEC §8.2).
pub(super) fn is_blank(row: &[u8]) -> bool {
    row.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r'))
}

/// What decides whether one Line may stand behind another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LinePlace {
    pub(super) kind: LineKind,
    pub(super) hash: Digest<digest::Line>,
    seq: u64,
    prev_hash: Digest<digest::Line>,
    prev_session_tail: Option<Digest<digest::Line>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    Open,
    Intent,
    Outcome,
    Close,
    /// Another one of this version.
    Other,
    /// Of a newer emitter.
    Unknown,
}

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BadRow {
    /// It cannot be read: a write that stopped, or a hole.
    Unreadable,
    /// It can be read and says what no emitter writes there.
    Contradiction(Contradiction),
}

/// What a readable row contradicts. No interrupted write leaves that.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Contradiction {
    /// It is JSON, but no Line.
    #[error("{0}")]
    NotALine(RowFault),
    /// It lacks a member that every Line has.
    #[error("carries no {0}")]
    Lacks(&'static str),
    /// Something else than an `open` Line comes first.
    #[error("is not the open line that a chain begins with")]
    NotOpen,
    /// It links to another Line than the one before it.
    #[error("does not chain to the line before it")]
    Link,
    /// It claims another place than the one after the Line before it.
    #[error("has seq {found}, but {expected} comes next")]
    Seq {
        /// What comes next.
        expected: u64,
        /// What it claims.
        found: u64,
    },
    /// It opens a Session that follows another one than the one before it.
    #[error("opens a session that does not follow the one before it")]
    Boundary,
    /// Its Session was closed.
    #[error("follows the close of its session")]
    AfterClose,
}

impl LinePlace {
    /// The place that a row claims.
    pub(super) fn of(row: &RawRow<'_>) -> Result<Self, BadRow> {
        if row.too_long {
            return Err(BadRow::Unreadable);
        }
        let row = Row::read(row.bytes).map_err(|fault| match fault {
            fault if fault.is_unparsable() => BadRow::Unreadable,
            fault => BadRow::Contradiction(Contradiction::NotALine(fault)),
        })?;
        Self::of_line(&row).map_err(BadRow::Contradiction)
    }

    fn of_line(row: &Row<'_>) -> Result<Self, Contradiction> {
        let line_type = row
            .string(Name::LineType)
            .ok_or(Contradiction::Lacks("line_type"))?;
        Ok(Self {
            kind: match &*line_type {
                "open" => LineKind::Open,
                "intent" => LineKind::Intent,
                "outcome" => LineKind::Outcome,
                "close" => LineKind::Close,
                "decision" | "checkpoint" => LineKind::Other,
                _ => LineKind::Unknown,
            },
            seq: row.integer(Name::Seq).ok_or(Contradiction::Lacks("seq"))?,
            prev_hash: row
                .digest(Name::PrevHash)
                .ok_or(Contradiction::Lacks("prev_hash"))?,
            prev_session_tail: row.digest(Name::PrevSessionTail),
            hash: row.line_hash(),
        })
    }

    /// Checks the first Line of a file or Session.
    pub(super) fn check_first(&self) -> Result<(), Contradiction> {
        if self.kind != LineKind::Open {
            return Err(Contradiction::NotOpen);
        }
        if self.seq != 0 {
            return Err(Contradiction::Seq {
                expected: 0,
                found: self.seq,
            });
        }
        if self.prev_hash != Digest::GENESIS {
            return Err(Contradiction::Link);
        }
        Ok(())
    }

    /// Checks that this Line may stand right behind `before`.
    pub(super) fn check_after(&self, before: &Self) -> Result<(), Contradiction> {
        if self.kind == LineKind::Open {
            self.check_first()?;
            return match self.prev_session_tail {
                Some(tail) if tail == before.hash => Ok(()),
                _ => Err(Contradiction::Boundary),
            };
        }
        if self.prev_hash != before.hash {
            return Err(Contradiction::Link);
        }
        let expected = before.seq.saturating_add(1);
        if self.seq != expected {
            return Err(Contradiction::Seq {
                expected,
                found: self.seq,
            });
        }
        if before.kind == LineKind::Close && self.kind != LineKind::Unknown {
            return Err(Contradiction::AfterClose);
        }
        Ok(())
    }
}

/// How long a row may be (SPEC §8.6).
pub(super) const MAX_ROW_BYTES: usize = 16 << 20;

/// How much of a file is read at once, from its end.
const BLOCK_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn both_directions_see_the_same_rows_at_any_block_size() {
        let text = b"\n\nfirst\n \na row that is longer than most blocks\n\nx\n";
        let mut forward = RowsForward::new(&text[..]);
        let mut rows = Vec::new();
        while let Some(row) = forward.next().unwrap() {
            assert!(row.ended && !row.too_long);
            rows.push((row.offset, row.bytes.to_vec()));
        }
        assert_eq!(rows.len(), 7);
        rows.reverse();
        let file = file(text);
        for block in 1..=text.len() + 1 {
            let mut backward = RowsBackward::new(&file, text.len() as u64).with_blocks(block);
            let mut found = Vec::new();
            while let Some(row) = backward.next_back().unwrap() {
                found.push((row.offset, row.bytes.to_vec()));
            }
            assert_eq!(found, rows, "blocks of {block}");
        }
    }

    #[test]
    fn a_last_row_without_newline_is_told() {
        let mut rows = RowsForward::new(&b"a\nb"[..]);
        assert!(rows.next().unwrap().unwrap().ended);
        let last = rows.next().unwrap().unwrap();
        assert_eq!((last.bytes, last.offset, last.ended), (&b"b"[..], 2, false));
        assert_eq!(rows.next().unwrap(), None);
    }

    #[test]
    fn a_row_is_bounded_at_the_bound_and_not_before() {
        let mut text = vec![b'x'; MAX_ROW_BYTES];
        text.extend_from_slice(b"\ny\n");
        let mut longer = vec![b'x'];
        longer.extend_from_slice(&text);
        for (text, too_long) in [(text, false), (longer, true)] {
            let mut rows = RowsForward::new(&text[..]);
            let row = rows.next().unwrap().unwrap();
            assert_eq!((row.too_long, row.bytes.len()), (too_long, MAX_ROW_BYTES));
            assert_eq!(rows.next().unwrap().unwrap().bytes, b"y");
            let file = file(&text);
            let mut rows = RowsBackward::new(&file, text.len() as u64);
            assert_eq!(rows.next_back().unwrap().unwrap().bytes, b"y");
            assert_eq!(rows.next_back().unwrap().unwrap().too_long, too_long);
        }
    }
}
