//! The one way to stdout: whole frames, one at a time.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use serde_json::Value;

use super::running::locked;

/// Writes frames under one lock, counts answers, and ends the session.
pub(super) struct Output {
    sink: Mutex<Sink>,
    /// Senders that wait for the lock. The flood lets them go first, since a
    /// mutex is not fair.
    waiting: AtomicUsize,
    ended: AtomicBool,
    ending: mpsc::Sender<u8>,
}

struct Sink {
    writer: Box<dyn Write + Send>,
    answers_left: Option<u64>,
    muted: bool,
}

/// Whether a frame counts for `--exit-after`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    Answer,
    Other,
}

impl Output {
    pub(super) fn new(
        writer: Box<dyn Write + Send>,
        exit_after: Option<u64>,
        ending: mpsc::Sender<u8>,
    ) -> Arc<Self> {
        Arc::new(Self {
            sink: Mutex::new(Sink {
                writer,
                answers_left: exit_after,
                muted: false,
            }),
            waiting: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            ending,
        })
    }

    /// Writes `message` as one frame.
    pub(super) fn send(&self, message: &Value, frame: Frame) {
        self.send_bytes(&line(message), frame);
    }

    /// Writes `bytes`, its line end included, in one piece.
    pub(super) fn send_bytes(&self, bytes: &[u8], frame: Frame) {
        self.send_pieces(&[bytes], frame);
    }

    /// Writes the pieces one by one, with nothing of others between them.
    pub(super) fn send_pieces(&self, pieces: &[&[u8]], frame: Frame) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut sink = locked(&self.sink);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        self.write(&mut sink, pieces, frame, None);
    }

    /// Writes `bytes` as the last bytes of the session, then ends it.
    pub(super) fn send_last(&self, bytes: &[u8], code: u8) {
        let mut sink = locked(&self.sink);
        self.write(&mut sink, &[bytes], Frame::Answer, Some(code));
    }

    /// Writes `bytes` when no other sender waits. False once the session has
    /// ended.
    pub(super) fn flood(&self, bytes: &[u8]) -> bool {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            thread::yield_now();
        } else {
            let mut sink = locked(&self.sink);
            self.write(&mut sink, &[bytes], Frame::Other, None);
        }
        !self.has_ended()
    }

    /// Drops every frame from now on.
    pub(super) fn mute(&self) {
        locked(&self.sink).muted = true;
    }

    /// Ends the session with `code`, without waiting for a write that is
    /// stuck. The first end counts.
    pub(super) fn end(&self, code: u8) {
        if !self.ended.swap(true, Ordering::SeqCst) {
            // The receiver waits for exactly this, or has had its end.
            let _ = self.ending.send(code);
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    fn write(&self, sink: &mut Sink, pieces: &[&[u8]], frame: Frame, last: Option<u8>) {
        if self.has_ended() || sink.muted {
            return;
        }
        for piece in pieces {
            let written = sink.writer.write_all(piece);
            if written.and_then(|()| sink.writer.flush()).is_err() {
                return self.end(OUTPUT_CLOSED);
            }
        }
        if frame == Frame::Answer
            && let Some(left) = &mut sink.answers_left
        {
            *left -= 1;
            if *left == 0 {
                return self.end(0);
            }
        }
        if let Some(code) = last {
            self.end(code);
        }
    }
}

/// The frame of `message`: compact JSON and a line end.
pub(super) fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Collects the answers to one batch. They go out as one array when the last
/// request of the batch has been answered or dropped, none if there are none.
pub(super) struct Batch {
    out: Arc<Output>,
    answers: Mutex<Vec<Value>>,
}

impl Batch {
    pub(super) fn new(out: Arc<Output>) -> Arc<Self> {
        Arc::new(Self {
            out,
            answers: Mutex::default(),
        })
    }

    pub(super) fn push(&self, answer: Value) {
        locked(&self.answers).push(answer);
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let answers = std::mem::take(&mut *locked(&self.answers));
        if !answers.is_empty() {
            self.out.send(&Value::Array(answers), Frame::Answer);
        }
    }
}

const OUTPUT_CLOSED: u8 = 1;
