//! What a peer says before its bytes are only carried: bounded and in time.

use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use memchr::memmem;

use super::relay::is_late;

/// A source, and what was read of it and not used.
pub(super) struct Incoming<R> {
    source: R,
    buffer: Vec<u8>,
    used: usize,
}

/// A connection that has to be done before a moment, however slowly its bytes
/// drip.
pub(super) struct Hurried<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl<R: Read> Incoming<R> {
    pub(super) fn new(source: R, ahead: Vec<u8>) -> Self {
        Self {
            source,
            buffer: ahead,
            used: 0,
        }
    }

    /// What was read and not used.
    pub(super) fn into_ahead(mut self) -> Vec<u8> {
        self.buffer.drain(..self.used);
        self.buffer
    }

    /// The next byte, which stays.
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.unused().is_empty() {
            self.fill()?;
        }
        Ok(self.unused().first().copied())
    }

    pub(super) fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.exact(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn exact(&mut self, mut bytes: &mut [u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let some = self.some(bytes.len())?;
            if some.is_empty() {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let (filled, rest) = bytes.split_at_mut(some.len());
            filled.copy_from_slice(some);
            bytes = rest;
        }
        Ok(())
    }

    /// Some bytes, at most `bound`; none at the end.
    pub(super) fn some(&mut self, bound: usize) -> io::Result<&[u8]> {
        if self.unused().is_empty() {
            self.fill()?;
        }
        let from = self.used;
        self.used += self.unused().len().min(bound);
        Ok(self.buffer.get(from..self.used).unwrap_or_default())
    }

    /// Everything up to and with `end`, or nothing if it does not come within
    /// `bound` bytes.
    pub(super) fn until(&mut self, end: &[u8], bound: usize) -> io::Result<Option<Vec<u8>>> {
        let mut searched = 0;
        loop {
            let unused = self.unused();
            let from = searched.min(unused.len());
            let found = memmem::find(unused.get(from..).unwrap_or_default(), end);
            if let Some(at) = found.map(|at| from + at + end.len()) {
                if at > bound {
                    return Ok(None);
                }
                let bytes = unused.get(..at).unwrap_or_default().to_vec();
                self.used += at;
                return Ok(Some(bytes));
            }
            if unused.len() >= bound {
                return Ok(None);
            }
            searched = unused.len().saturating_sub(end.len() - 1);
            if self.fill()? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// How many bytes there are that nobody used.
    pub(super) fn len(&self) -> usize {
        self.unused().len()
    }

    fn unused(&self) -> &[u8] {
        self.buffer.get(self.used..).unwrap_or_default()
    }

    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let filled = self.buffer.len();
        self.buffer.resize(filled + FILL_BYTES, 0);
        let read = self
            .source
            .read(self.buffer.get_mut(filled..).unwrap_or_default());
        self.buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
        read
    }
}

impl<'a> Hurried<'a> {
    pub(super) fn new(stream: &'a TcpStream, limit: Duration) -> Self {
        Self {
            stream,
            deadline: Instant::now() + limit,
        }
    }
}

impl Read for Hurried<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let late = || io::Error::from(ErrorKind::TimedOut);
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(late());
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_late(&error) => return Err(late()),
                read => return read,
            }
        }
    }
}

/// Read at once.
const FILL_BYTES: usize = 8 << 10;
