//! One direction of the relay: frames in, the same bytes out.
//!
//! What a frame has to leave in the record is written before it goes on.
//! Frames that have arrived together share one flush: while that runs, more
//! arrive, so the busier the lane the fewer flushes a frame costs, and none
//! waits for a later one.

use std::io::{self, Read, Write};

use crate::chain::commit::Mark;
use crate::chain::writer::ChainError;
use crate::rpc::frame::{Frame, FrameError, FrameReader};

/// What becomes of the frames of one direction.
pub(super) trait Station {
    /// Whether a frame can be recorded without a wait for others to go on.
    fn has_room(&self) -> bool;

    /// Records a frame; what it wrote is to be settled before the frame goes
    /// on.
    fn record(&mut self, frame: &Frame) -> Result<Option<Mark>, Stop>;

    /// Returns once what was recorded up to `mark` is as durable as it has to
    /// be, and fails when nothing may go on any more.
    fn settle(&mut self, mark: Option<Mark>) -> Result<(), ChainError>;

    /// Told when all frames recorded so far went on, or, the reader being
    /// gone, will never do.
    fn went_on(&mut self) -> Result<(), Stop>;

    /// Told once when nobody reads what goes on any more.
    fn reader_gone(&mut self);
}

/// Why a lane ended.
#[derive(Debug)]
pub(super) enum Stop {
    /// Its input did.
    Eof,
    /// The session ended before.
    Ended,
    /// No further frame can be read.
    Frame(FrameError),
    /// A spooled frame could not be read back.
    Spool(io::Error),
    /// Something could not be recorded.
    Chain(ChainError),
}

impl From<ChainError> for Stop {
    fn from(error: ChainError) -> Self {
        match error {
            ChainError::Closed => Self::Ended,
            other => Self::Chain(other),
        }
    }
}

/// Relays until one side ends.
pub(super) fn relay(
    frames: &mut FrameReader<impl Read>,
    out: impl Write,
    station: &mut impl Station,
) -> Stop {
    let mut lane = Lane {
        out: Some(out),
        batch: Vec::new(),
        batch_bytes: 0,
        mark: None,
        station,
    };
    loop {
        let next = match frames.next_frame() {
            Ok(Some(frame)) => lane.take(frame, frames.has_frame()),
            Ok(None) => Err(Stop::Eof),
            // A peer whose end broke has ended.
            Err(FrameError::Read(_)) => lane.hand_on().and(Err(Stop::Eof)),
            Err(error) => lane.hand_on().and(Err(Stop::Frame(error))),
        };
        if let Err(stop) = next {
            return stop;
        }
    }
}

struct Lane<'a, W, S> {
    /// Gone once writing to it failed.
    out: Option<W>,
    batch: Vec<Frame>,
    batch_bytes: u64,
    mark: Option<Mark>,
    station: &'a mut S,
}

impl<W: Write, S: Station> Lane<'_, W, S> {
    fn take(&mut self, frame: Frame, more: bool) -> Result<(), Stop> {
        if !self.station.has_room() {
            // It may be those that wait here which have to make it.
            self.hand_on()?;
        }
        match self.station.record(&frame) {
            Ok(mark) => self.mark = mark.or(self.mark),
            Err(stop) => return self.hand_on().and(Err(stop)),
        }
        self.batch_bytes += frame.len();
        self.batch.push(frame);
        if more && self.batch.len() < MAX_BATCH_FRAMES && self.batch_bytes < MAX_BATCH_BYTES {
            return Ok(());
        }
        self.hand_on()
    }

    fn hand_on(&mut self) -> Result<(), Stop> {
        self.station.settle(self.mark.take())?;
        for frame in self.batch.drain(..) {
            if let Some(out) = &mut self.out
                && frame.write_to(out).is_err()
            {
                self.out = None;
                self.station.reader_gone();
            }
        }
        self.batch_bytes = 0;
        self.station.went_on()
    }
}

/// Frames that share a flush.
const MAX_BATCH_FRAMES: usize = 256;

/// Bytes after which no further frame is waited for.
const MAX_BATCH_BYTES: u64 = 1 << 20;
