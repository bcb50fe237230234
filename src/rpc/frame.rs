//! Cutting a stream into newline-delimited frames without altering a byte.
//!
//! A frame is what stands before `\n`; a `\r` before it belongs to the frame,
//! an empty line is a frame, and so is a last line that no `\n` ended. What
//! [`Frame::write_to`] writes for all frames of a stream is that stream.

use std::fs::File;
use std::io::{self, Read, Write};
use std::mem;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::wire::escape::{EscapedPath, without_path};

/// How large a frame may be, and where it is kept.
#[derive(Debug, Clone)]
pub(crate) struct FrameLimits {
    /// Bytes of one frame that are held in memory; a longer one is spooled.
    pub(crate) in_memory: u64,
    /// Bytes of the longest frame that is read at all.
    pub(crate) max_frame: u64,
    /// Directory of the spool files. They are unlinked from the start.
    pub(crate) spool_dir: PathBuf,
}

impl FrameLimits {
    /// The default limits, spooling into `spool_dir`.
    pub(crate) fn new(spool_dir: PathBuf) -> Self {
        Self {
            in_memory: IN_MEMORY,
            max_frame: MAX_FRAME,
            spool_dir,
        }
    }
}

/// Why no further frame can be cut from a stream.
#[derive(Debug, Error)]
pub(crate) enum FrameError {
    /// A frame went past [`FrameLimits::max_frame`].
    #[error(
        "a frame is longer than {limit} bytes; raise --max-frame if the peer is to be trusted with more"
    )]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The stream could not be read.
    #[error("could not read a frame: {0}")]
    Read(#[source] io::Error),
    /// A long frame could not be put into a spool file.
    #[error("could not spool a long frame in {}: {source}", EscapedPath(dir))]
    Spool {
        /// The directory that was to hold the spool file.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An earlier call failed inside a frame, so the next boundary is unknown.
    #[error("no frame can be read after one that failed")]
    Lost,
}

/// Cuts frames from `R`. Holds one read buffer, and at most one frame up to
/// [`FrameLimits::in_memory`], whatever the peer sends.
pub(crate) struct FrameReader<R> {
    source: R,
    buffer: Box<[u8]>,
    unread: Range<usize>,
    limits: FrameLimits,
    lost: bool,
}

impl<R: Read> FrameReader<R> {
    pub(crate) fn new(source: R, limits: FrameLimits) -> Self {
        Self {
            source,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            unread: 0..0,
            limits,
            lost: false,
        }
    }

    /// The next frame, or `None` at the end of the stream.
    ///
    /// # Errors
    /// [`FrameError`]; after one, every further call gives
    /// [`FrameError::Lost`]. The rest of a broken frame must never be taken
    /// for a frame of its own.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if self.lost {
            return Err(FrameError::Lost);
        }
        let frame = self.cut();
        self.lost = frame.is_err();
        frame
    }

    /// Whether the next frame has been read already, so that it will come
    /// without a wait.
    pub(crate) fn has_frame(&self) -> bool {
        memchr::memchr(b'\n', &self.buffer[self.unread.clone()]).is_some()
    }

    fn cut(&mut self) -> Result<Option<Frame>, FrameError> {
        let mut draft = Draft::default();
        loop {
            if self.unread.is_empty() && self.fill()? == 0 {
                return Ok((draft.len > 0).then(|| draft.end(false)));
            }
            let unread = &self.buffer[self.unread.clone()];
            let newline = memchr::memchr(b'\n', unread);
            let piece = &unread[..newline.unwrap_or(unread.len())];
            self.unread.start += piece.len() + usize::from(newline.is_some());
            draft.append(piece, newline.is_some(), &self.limits)?;
            if newline.is_some() {
                return Ok(Some(draft.end(true)));
            }
        }
    }

    fn fill(&mut self) -> Result<usize, FrameError> {
        loop {
            match self.source.read(&mut self.buffer) {
                Ok(count) => {
                    self.unread = 0..count;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FrameError::Read(error)),
            }
        }
    }
}

/// One frame, with the bytes it had on the wire.
#[derive(Debug)]
pub(crate) struct Frame {
    body: Body,
    /// Bytes before `\n`.
    len: u64,
    terminated: bool,
}

#[derive(Debug)]
enum Body {
    /// The frame, and its `\n` if it had one, so that relaying it is one write.
    Memory(Vec<u8>),
    /// The frame without `\n`.
    Spooled(File),
}

impl Frame {
    /// Writes the frame as it came, with `\n` only if one ended it.
    ///
    /// # Errors
    /// Of `out`, or of the spool file.
    pub(crate) fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        match &self.body {
            Body::Memory(bytes) => out.write_all(bytes),
            Body::Spooled(_) => {
                self.pieces(|piece| out.write_all(piece))?;
                match self.terminated {
                    true => out.write_all(b"\n"),
                    false => Ok(()),
                }
            }
        }
    }

    /// Gives the bytes before `\n` to `sink`, in order and in pieces: for a
    /// digest, or for a scan.
    ///
    /// # Errors
    /// Of the spool file only.
    pub(crate) fn hash_into(&self, sink: &mut impl FnMut(&[u8])) -> io::Result<()> {
        self.pieces(|piece| {
            sink(piece);
            Ok(())
        })
    }

    /// Copies the bytes at `span`, for instance those of an id that is echoed.
    ///
    /// # Errors
    /// Of the spool file; `UnexpectedEof` for a span beyond the frame.
    pub(crate) fn copy_span(&self, span: Range<u64>) -> io::Result<Vec<u8>> {
        let beyond = || io::Error::from(io::ErrorKind::UnexpectedEof);
        if span.start > span.end || span.end > self.len {
            return Err(beyond());
        }
        let start = usize::try_from(span.start).map_err(|_| beyond())?;
        let end = usize::try_from(span.end).map_err(|_| beyond())?;
        match &self.body {
            Body::Memory(bytes) => Ok(bytes[start..end].to_vec()),
            Body::Spooled(file) => {
                let mut copy = vec![0; end - start];
                file.read_exact_at(&mut copy, span.start)?;
                Ok(copy)
            }
        }
    }

    /// The bytes before `\n`, unless they are in a spool file.
    pub(crate) fn in_memory(&self) -> Option<&[u8]> {
        match &self.body {
            Body::Memory(bytes) => Some(&bytes[..bytes.len() - usize::from(self.terminated)]),
            Body::Spooled(_) => None,
        }
    }

    /// Reads the bytes before `\n` from the start.
    pub(crate) fn reader(&self) -> FrameBytes<'_> {
        FrameBytes { frame: self, at: 0 }
    }

    fn pieces(&self, mut sink: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let file = match &self.body {
            Body::Memory(_) => return self.in_memory().map_or(Ok(()), sink),
            Body::Spooled(file) => file,
        };
        let mut buffer = vec![0; BUFFER];
        let mut at = 0;
        while at < self.len {
            let want = usize::try_from(self.len - at).map_or(BUFFER, |rest| rest.min(BUFFER));
            file.read_exact_at(&mut buffer[..want], at)?;
            sink(&buffer[..want])?;
            at += want as u64;
        }
        Ok(())
    }

    /// Bytes before `\n`.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Whether a `\n` followed.
    pub(crate) fn is_terminated(&self) -> bool {
        self.terminated
    }

    /// Whether the frame is in a spool file instead of in memory.
    #[cfg(test)]
    pub(crate) fn is_spooled(&self) -> bool {
        matches!(self.body, Body::Spooled(_))
    }
}

/// The bytes of a frame, from the start.
pub(crate) struct FrameBytes<'a> {
    frame: &'a Frame,
    at: u64,
}

impl Read for FrameBytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(self.frame.len - self.at).unwrap_or(usize::MAX);
        let want = rest.min(buffer.len());
        match &self.frame.body {
            Body::Memory(bytes) => {
                let at = usize::try_from(self.at).unwrap_or(usize::MAX);
                buffer[..want].copy_from_slice(&bytes[at..at + want]);
            }
            Body::Spooled(file) => file.read_exact_at(&mut buffer[..want], self.at)?,
        }
        self.at += want as u64;
        Ok(want)
    }
}

/// A frame of which the end has not been seen.
#[derive(Default)]
struct Draft {
    memory: Vec<u8>,
    spool: Option<File>,
    len: u64,
}

impl Draft {
    fn append(&mut self, piece: &[u8], last: bool, limits: &FrameLimits) -> Result<(), FrameError> {
        self.len += piece.len() as u64;
        if self.len > limits.max_frame {
            return Err(FrameError::TooLarge {
                limit: limits.max_frame,
            });
        }
        if self.len <= limits.in_memory {
            self.reserve(piece.len(), last, limits);
            self.memory.extend_from_slice(piece);
            return Ok(());
        }
        self.spool(piece, &limits.spool_dir)
            .map_err(|source| FrameError::Spool {
                dir: limits.spool_dir.clone(),
                source,
            })
    }

    /// Exact when this piece is the last, so that the usual frame costs one
    /// allocation of its own size; else doubling, but not past the limit.
    fn reserve(&mut self, more: usize, last: bool, limits: &FrameLimits) {
        let needed = self.memory.len() + more + 1;
        if needed <= self.memory.capacity() {
            return;
        }
        let most =
            usize::try_from(limits.in_memory).map_or(usize::MAX, |most| most.saturating_add(1));
        let target = match last {
            true => needed,
            false => needed.max(self.memory.capacity().saturating_mul(2).min(most)),
        };
        self.memory.reserve_exact(target - self.memory.len());
    }

    fn spool(&mut self, piece: &[u8], dir: &Path) -> io::Result<()> {
        let file = match &mut self.spool {
            Some(file) => file,
            none => {
                let file = none.insert(tempfile::tempfile_in(dir).map_err(without_path)?);
                file.write_all(&mem::take(&mut self.memory))?;
                file
            }
        };
        file.write_all(piece)
    }

    fn end(mut self, terminated: bool) -> Frame {
        let body = match self.spool {
            Some(file) => Body::Spooled(file),
            None => {
                if terminated {
                    self.memory.push(b'\n');
                }
                Body::Memory(self.memory)
            }
        };
        Frame {
            body,
            len: self.len,
            terminated,
        }
    }
}

const BUFFER: usize = 64 * 1024;
const IN_MEMORY: u64 = 8 * 1024 * 1024;
const MAX_FRAME: u64 = 1024 * 1024 * 1024;

#[cfg(test)]
mod tests;
