//! One direction of the relay: frames in, the same bytes out.
//!
//! What a frame has to leave in the record is written before it goes on.
//! Frames that have arrived together share one flush: while that runs, more
//! arrive, so the busier the lane the fewer flushes a frame costs, and none
//! waits for a later one.

use std::io::{self, Read, Write};
use std::mem;

use crate::chain::commit::Mark;
use crate::chain::writer::ChainError;
use crate::rpc::frame::{Frame, FrameError, FrameReader};

/// What becomes of the frames of one direction.
pub(super) trait Station {
    /// What a frame has to have to go on.
    type Pass;

    /// Whether a frame can be recorded without a wait for others to go on.
    fn has_room(&self) -> bool;

    /// Records a frame and says what becomes of it, once what it wrote has
    /// been settled.
    fn record(&mut self, frame: &Frame) -> Result<Recorded<Self::Pass>, Stop>;

    /// Returns once what was recorded is as durable as it has to be, and fails
    /// when nothing may go on any more.
    fn settle(&mut self, due: Due) -> Result<(), ChainError>;

    /// Told when all frames recorded so far went on, or, the reader being
    /// gone, will never do.
    fn went_on(&mut self) -> Result<(), Stop>;

    /// Told once when nobody reads what goes on any more.
    fn reader_gone(&mut self);

    /// Told once when nobody reads what goes back any more.
    fn sender_gone(&mut self);
}

/// A frame that has left in the record what it has to.
pub(super) struct Recorded<P> {
    /// The last Line that it left there.
    pub(super) mark: Option<Mark>,
    /// What becomes of it.
    pub(super) fate: Fate<P>,
}

/// What becomes of a frame.
pub(super) enum Fate<P> {
    /// It goes on, byte for byte.
    Relay(P),
    /// These bytes, a whole line, go on in its stead.
    #[allow(dead_code, reason = "no answer is changed yet")]
    Replace(P, Vec<u8>),
    /// It does not go on, and whoever sent it gets this line.
    Refuse(Vec<u8>),
    /// It does not go on.
    Drop,
}

/// What has to be settled before a batch of frames meets its fate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    /// The last Line of frames that go on.
    pub(super) relayed: Option<Mark>,
    /// The last Line of frames that do not.
    pub(super) refused: Option<Mark>,
}

/// Where frames go, whole.
pub(super) trait Output {
    /// Writes a frame as it came.
    fn relay(&mut self, frame: &Frame) -> io::Result<()>;

    /// Writes a line.
    fn say(&mut self, line: &[u8]) -> io::Result<()>;
}

impl<W: Write> Output for W {
    fn relay(&mut self, frame: &Frame) -> io::Result<()> {
        frame.write_to(self)
    }

    fn say(&mut self, line: &[u8]) -> io::Result<()> {
        self.write_all(line)
    }
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

/// Relays to `out` until one side ends. What is refused is answered to `back`.
pub(super) fn relay(
    frames: &mut FrameReader<impl Read>,
    out: impl Output,
    back: impl Output,
    station: &mut impl Station,
) -> Stop {
    let mut lane = Lane {
        out: Some(out),
        back: Some(back),
        batch: Vec::new(),
        batch_bytes: 0,
        due: Due::default(),
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

struct Lane<'a, O, B, S: Station> {
    /// Gone once writing to it failed.
    out: Option<O>,
    /// The same.
    back: Option<B>,
    batch: Vec<(Frame, Fate<S::Pass>)>,
    batch_bytes: u64,
    due: Due,
    station: &'a mut S,
}

impl<O: Output, B: Output, S: Station> Lane<'_, O, B, S> {
    fn take(&mut self, frame: Frame, more: bool) -> Result<(), Stop> {
        if !self.station.has_room() {
            // It may be those that wait here which have to make it.
            self.hand_on()?;
        }
        let Recorded { mark, fate } = match self.station.record(&frame) {
            Ok(recorded) => recorded,
            Err(stop) => return self.hand_on().and(Err(stop)),
        };
        let due = match fate {
            Fate::Relay(_) | Fate::Replace(..) => &mut self.due.relayed,
            Fate::Refuse(_) | Fate::Drop => &mut self.due.refused,
        };
        *due = mark.or(*due);
        self.batch_bytes += frame.len() + fate.bytes();
        self.batch.push((frame, fate));
        if more && self.batch.len() < MAX_BATCH_FRAMES && self.batch_bytes < MAX_BATCH_BYTES {
            return Ok(());
        }
        self.hand_on()
    }

    fn hand_on(&mut self) -> Result<(), Stop> {
        self.station.settle(mem::take(&mut self.due))?;
        for (frame, fate) in self.batch.drain(..) {
            match fate {
                Fate::Relay(_) => {
                    if !reached(&mut self.out, |out| out.relay(&frame)) {
                        self.station.reader_gone();
                    }
                }
                Fate::Replace(_, line) => {
                    if !reached(&mut self.out, |out| out.say(&line)) {
                        self.station.reader_gone();
                    }
                }
                Fate::Refuse(line) => {
                    if !reached(&mut self.back, |back| back.say(&line)) {
                        self.station.sender_gone();
                    }
                }
                Fate::Drop => {}
            }
        }
        self.batch_bytes = 0;
        self.station.went_on()
    }
}

impl<P> Fate<P> {
    /// Bytes that it holds besides the frame.
    fn bytes(&self) -> u64 {
        match self {
            Self::Relay(_) | Self::Drop => 0,
            Self::Replace(_, line) | Self::Refuse(line) => line.len() as u64,
        }
    }
}

/// Writes to a peer that is there, and says whether it still is. One that was
/// gone before is not missed again.
fn reached<O>(peer: &mut Option<O>, write: impl FnOnce(&mut O) -> io::Result<()>) -> bool {
    let Some(out) = peer else {
        return true;
    };
    let written = write(out).is_ok();
    if !written {
        *peer = None;
    }
    written
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
        type Pass = ();

        fn has_room(&self) -> bool {
            self.room
        }

        fn record(&mut self, frame: &Frame) -> Result<Recorded<()>, Stop> {
            let mut bytes = Vec::new();
            frame.write_to(&mut bytes).unwrap();
            let text = String::from_utf8(bytes).unwrap();
            self.log(format!("record {}", text.trim_end()));
            match text.starts_with("bad") {
                true => Err(Stop::Chain(ChainError::OpenCalls(0))),
                false => Ok(Recorded {
                    mark: None,
                    fate: fate(text.trim_end()),
                }),
            }
        }

        fn settle(&mut self, _: Due) -> Result<(), ChainError> {
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

        fn sender_gone(&mut self) {
            self.log("sender gone");
        }
    }

    /// What the frame asks for.
    fn fate(text: &str) -> Fate<()> {
        match text.split_once(' ') {
            Some(("no", why)) => Fate::Refuse(why.into()),
            Some(("as", by)) => Fate::Replace((), by.into()),
            _ if text == "drop" => Fate::Drop,
            _ => Fate::Relay(()),
        }
    }

    struct Out {
        name: &'static str,
        log: Log,
        gone: bool,
    }

    impl Write for Out {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = String::from_utf8_lossy(bytes);
            let text = format!("{} {}", self.name, text.trim_end());
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
        run_both(input, |station, out, _| change(station, out))
    }

    fn run_both(input: &str, change: impl FnOnce(&mut Told, &mut Out, &mut Out)) -> (String, Stop) {
        let log = Log::default();
        let mut station = Told {
            log: Rc::clone(&log),
            room: true,
            may_go_on: true,
        };
        let to = |name| Out {
            name,
            log: Rc::clone(&log),
            gone: false,
        };
        let (mut out, mut back) = (to("write"), to("answer"));
        change(&mut station, &mut out, &mut back);
        let limits = FrameLimits {
            max_frame: 8,
            ..FrameLimits::new(std::env::temp_dir())
        };
        let mut frames = FrameReader::new(input.as_bytes(), limits);
        let stop = relay(&mut frames, out, back, &mut station);
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
    fn what_is_refused_goes_back_once_settled_and_in_its_place() {
        let (log, _) = run("a\nno b\ndrop\nas c\nd\n", |_, _| {});
        let recorded = "record a, record no b, record drop, record as c, record d, settle";
        let fates = "write a, answer b, write c, write d, went on";
        assert_eq!(log, format!("{recorded}, {fates}"));

        let (log, stop) = run("no b\n", |station, _| station.may_go_on = false);
        assert_eq!(log, "record no b, settle");
        assert!(matches!(stop, Stop::Ended));
    }

    #[test]
    fn a_sender_that_is_gone_is_told_once_and_relaying_goes_on() {
        let (log, _) = run_both("no a\nno b\nc\n", |_, _, back| back.gone = true);
        let recorded = "record no a, record no b, record c, settle";
        assert_eq!(
            log,
            format!("{recorded}, answer a, sender gone, write c, went on")
        );
    }

    #[test]
    fn long_refusals_are_not_gathered() {
        let both = Fate::<()>::Refuse(vec![0; 7]).bytes() + Fate::Replace((), vec![0; 5]).bytes();
        assert_eq!(both, 12);
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
