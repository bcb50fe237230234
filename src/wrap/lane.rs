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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::rpc::frame::FrameLimits;

    type Log = Rc<RefCell<Vec<String>>>;

    /// Writes down what it is asked, and fails where it is told to.
    struct Told {
        log: Log,
        room: bool,
        may_go_on: bool,
    }

    impl Told {
        fn log(&self, text: impl Into<String>) {
            self.log.borrow_mut().push(text.into());
        }
    }

    impl Station for Told {
        fn has_room(&self) -> bool {
            self.room
        }

        fn record(&mut self, frame: &Frame) -> Result<Option<Mark>, Stop> {
            let mut bytes = Vec::new();
            frame.write_to(&mut bytes).unwrap();
            let text = String::from_utf8(bytes).unwrap();
            self.log(format!("record {}", text.trim_end()));
            match text.starts_with("bad") {
                true => Err(Stop::Chain(ChainError::OpenCalls(0))),
                false => Ok(None),
            }
        }

        fn settle(&mut self, _: Option<Mark>) -> Result<(), ChainError> {
            self.log("settle");
            match self.may_go_on {
                true => Ok(()),
                false => Err(ChainError::Closed),
            }
        }

        fn went_on(&mut self) -> Result<(), Stop> {
            self.log("went on");
            Ok(())
        }

        fn reader_gone(&mut self) {
            self.log("reader gone");
        }
    }

    struct Out {
        log: Log,
        gone: bool,
    }

    impl Write for Out {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = String::from_utf8_lossy(bytes);
            let text = format!("write {}", text.trim_end());
            self.log.borrow_mut().push(text);
            match self.gone {
                true => Err(io::ErrorKind::BrokenPipe.into()),
                false => Ok(bytes.len()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What happened, one word for one step, and why the lane ended.
    fn run(input: &str, change: impl FnOnce(&mut Told, &mut Out)) -> (String, Stop) {
        let log = Log::default();
        let mut station = Told {
            log: Rc::clone(&log),
            room: true,
            may_go_on: true,
        };
        let mut out = Out {
            log: Rc::clone(&log),
            gone: false,
        };
        change(&mut station, &mut out);
        let limits = FrameLimits {
            max_frame: 8,
            ..FrameLimits::new(std::env::temp_dir())
        };
        let mut frames = FrameReader::new(input.as_bytes(), limits);
        let stop = relay(&mut frames, out, &mut station);
        let log = log.borrow().join(", ");
        (log, stop)
    }

    #[test]
    fn nothing_goes_on_before_all_that_came_with_it_is_settled() {
        let (log, stop) = run("a\nb\nc", |_, _| {});
        let together = "record a, record b, settle, write a, write b, went on";
        // The last one has no line end, so it had not come whole before.
        let last = "record c, settle, write c, went on";
        assert_eq!(log, format!("{together}, {last}"));
        assert!(matches!(stop, Stop::Eof));
    }

    #[test]
    fn without_room_frames_do_not_wait_for_each_other() {
        let (log, _) = run("a\nb\n", |station, _| station.room = false);
        let ends = "settle, write a, went on, record b, settle, write b, went on";
        assert_eq!(log, format!("settle, went on, record a, {ends}"));
    }

    #[test]
    fn what_is_not_settled_never_goes_on() {
        let (log, stop) = run("a\nb\n", |station, _| station.may_go_on = false);
        assert_eq!(log, "record a, record b, settle");
        assert!(matches!(stop, Stop::Ended));
    }

    #[test]
    fn what_was_recorded_goes_on_before_a_failure_ends_the_lane() {
        let recorded = "record a, settle, write a, went on";
        let (log, stop) = run("a\n123456789\n", |_, _| {});
        assert_eq!(log, recorded);
        assert!(matches!(
            stop,
            Stop::Frame(FrameError::TooLarge { limit: 8 })
        ));

        let (log, stop) = run("a\nbad\nb\n", |_, _| {});
        assert_eq!(log, "record a, record bad, settle, write a, went on");
        assert!(matches!(stop, Stop::Chain(_)));
    }

    #[test]
    fn a_reader_that_is_gone_is_told_once_and_recording_goes_on() {
        let (log, stop) = run("a\nb\nc", |_, out| out.gone = true);
        let together = "record a, record b, settle, write a, reader gone, went on";
        assert_eq!(log, format!("{together}, record c, settle, went on"));
        assert!(matches!(stop, Stop::Eof));
    }

    #[test]
    fn a_batch_of_frames_is_bounded() {
        let batches = |frames: usize| {
            let (log, _) = run(&"x\n".repeat(frames), |_, _| {});
            log.matches("settle").count()
        };
        assert_eq!(batches(MAX_BATCH_FRAMES), 1);
        assert_eq!(batches(MAX_BATCH_FRAMES + 1), 2);
    }
}
