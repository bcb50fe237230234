//! Records sorted outside of memory.
//!
//! Two questions about a Chain need to remember something of every Line: has
//! this approval been decided before, and which intents have no outcome. An
//! honest file keeps both small; a hostile one can make them as large as
//! itself. Then they are kept as sorted runs in an unlinked temporary file, so
//! that the answer stays exact and memory bounded.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::wire::escape::{MAX_CHARS, Shortened, without_path};

/// Something that was met in the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Record {
    /// What it is about: a SHA-256, so that equal keys mean equal things.
    pub(super) key: [u8; 32],
    /// Which of all records it is, in file order.
    pub(super) order: u64,
    /// Three numbers of the caller's.
    pub(super) tags: [u64; 3],
    /// A name to print.
    pub(super) name: Shortened,
}

/// Records going in, in any order.
pub(super) struct Spill {
    buffer: Vec<Record>,
    buffered_bytes: usize,
    limit_bytes: usize,
    file: Option<File>,
    runs: Vec<Run>,
}

impl Spill {
    /// Keeps about `limit_bytes` in memory.
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self {
            buffer: Vec::new(),
            buffered_bytes: 0,
            limit_bytes,
            file: None,
            runs: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, record: Record) -> io::Result<()> {
        self.buffered_bytes += size_of::<Record>() + record.name.head.len();
        self.buffer.push(record);
        if self.buffered_bytes >= self.limit_bytes {
            self.write_run()?;
        }
        Ok(())
    }

    /// All records, by key and then by order.
    pub(super) fn sorted(mut self) -> io::Result<Sorted> {
        self.write_run()?;
        let mut sorted = Sorted {
            file: self.file,
            runs: self.runs,
            heads: BinaryHeap::new(),
        };
        for run in 0..sorted.runs.len() {
            sorted.advance(run)?;
        }
        Ok(sorted)
    }

    fn write_run(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.buffer.sort_unstable();
        let file = match &mut self.file {
            Some(file) => file,
            None => self
                .file
                .insert(tempfile::tempfile().map_err(without_path)?),
        };
        let start = file.seek(SeekFrom::End(0))?;
        let mut out = Vec::with_capacity(BLOCK_BYTES + MAX_RECORD_BYTES);
        let mut end = start;
        for record in self.buffer.drain(..) {
            record.encode(&mut out);
            if out.len() >= BLOCK_BYTES {
                file.write_all(&out)?;
                end += out.len() as u64;
                out.clear();
            }
        }
        file.write_all(&out)?;
        end += out.len() as u64;
        self.runs.push(Run {
            at: start,
            end,
            block: Vec::new(),
            used: 0,
        });
        self.buffered_bytes = 0;
        Ok(())
    }
}

/// Records coming out, sorted.
pub(super) struct Sorted {
    file: Option<File>,
    runs: Vec<Run>,
    /// The next record of each run that has one.
    heads: BinaryHeap<Reverse<(Record, usize)>>,
}

/// A sorted stretch of the temporary file, read block by block.
struct Run {
    at: u64,
    end: u64,
    block: Vec<u8>,
    used: usize,
}

impl Sorted {
    pub(super) fn next(&mut self) -> io::Result<Option<Record>> {
        let Some(Reverse((record, run))) = self.heads.pop() else {
            return Ok(None);
        };
        self.advance(run)?;
        Ok(Some(record))
    }

    /// Puts the next record of a run, if there is one, among the heads.
    fn advance(&mut self, index: usize) -> io::Result<()> {
        let run = &mut self.runs[index];
        if let Some(file) = &mut self.file
            && run.block.len() - run.used < MAX_RECORD_BYTES
            && run.at < run.end
        {
            run.block.drain(..run.used);
            run.used = 0;
            let length = (run.end - run.at).min(BLOCK_BYTES as u64);
            file.seek(SeekFrom::Start(run.at))?;
            let read = file.take(length).read_to_end(&mut run.block)?;
            if read as u64 != length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            run.at += length;
        }
        if let Some((record, length)) = Record::decode(&run.block[run.used..]) {
            run.used += length;
            self.heads.push(Reverse((record, index)));
        }
        Ok(())
    }
}

impl Record {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key);
        out.extend_from_slice(&self.order.to_le_bytes());
        for tag in self.tags {
            out.extend_from_slice(&tag.to_le_bytes());
        }
        out.extend_from_slice(&self.name.more_chars.to_le_bytes());
        out.extend_from_slice(&(self.name.head.len() as u64).to_le_bytes());
        out.extend_from_slice(self.name.head.as_bytes());
    }

    /// The record at the start of `bytes`, and how long it is there.
    fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let (key, rest) = bytes.split_first_chunk::<32>()?;
        let (numbers, rest) = rest.split_first_chunk::<48>()?;
        let mut numbers = numbers.chunks_exact(8).map(|n| {
            n.iter()
                .rev()
                .fold(0u64, |value, &byte| value << 8 | u64::from(byte))
        });
        let mut number = || numbers.next().unwrap_or_default();
        let order = number();
        let tags = [number(), number(), number()];
        let more_chars = number();
        let length = usize::try_from(number()).ok()?;
        let head = std::str::from_utf8(rest.get(..length)?).ok()?.to_owned();
        let record = Self {
            key: *key,
            order,
            tags,
            name: Shortened { head, more_chars },
        };
        Some((record, NUMBERS_BYTES + length))
    }
}

/// A record without its name.
const NUMBERS_BYTES: usize = 32 + 6 * 8;

/// A character has at most four bytes.
const MAX_RECORD_BYTES: usize = NUMBERS_BYTES + 4 * MAX_CHARS;

/// Read and written at a time; a merge holds one block of every run.
const BLOCK_BYTES: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::digest::{Digest, Text};

    fn record(i: u64) -> Record {
        let key = *Digest::<Text>::of(&(i % 700).to_le_bytes()).as_bytes();
        Record {
            key,
            order: i,
            tags: [i, i * 3, u64::MAX - i],
            name: Shortened::of(&"é".repeat((i % 600) as usize)),
        }
    }

    #[test]
    fn what_went_in_comes_out_in_order_whatever_fits_in_memory() {
        let mut expected: Vec<_> = (0..3000).map(record).collect();
        expected.sort_unstable();
        for limit in [1, 50_000, usize::MAX] {
            let mut spill = Spill::new(limit);
            for i in (0..3000).rev() {
                spill.push(record(i)).expect("temporary file");
            }
            let mut sorted = spill.sorted().expect("temporary file");
            let mut out = Vec::new();
            while let Some(record) = sorted.next().expect("temporary file") {
                out.push(record);
            }
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn nothing_in_nothing_out() {
        let mut sorted = Spill::new(1).sorted().expect("no file needed");
        assert_eq!(sorted.next().expect("no file needed"), None);
    }
}
