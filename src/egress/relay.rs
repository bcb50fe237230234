//! Bytes from one connection to another and back.
//!
//! Each direction is one thread that reads and writes, so a side that does not
//! read stops the other from being read: no more than one buffer is held.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::ledger::Flow;
use super::live::reset_on_close;

/// One end of a relay.
pub(super) struct Side<'a> {
    pub(super) stream: &'a TcpStream,
    /// What was read of it before.
    pub(super) ahead: Vec<u8>,
}

/// When a byte last went either way.
#[derive(Debug)]
pub(super) struct Clock {
    begun: Instant,
    last_ms: AtomicU64,
    idle: Duration,
    /// One direction has failed; the other must not look whole.
    is_broken: AtomicBool,
}

/// A connection that may be slow for as long as the other direction is not
/// idle as well.
#[derive(Clone, Copy)]
pub(super) struct Patient<'a> {
    stream: &'a TcpStream,
    clock: &'a Clock,
}

/// Carries both directions until both have ended, one has broken or nothing
/// has moved for `idle`. The end of one direction is passed on alone.
pub(super) fn relay(client: Side<'_>, server: Side<'_>, flow: &Flow, idle: Duration) {
    let clock = Clock::start(idle);
    let (Ok(from), Ok(to)) = (
        Patient::new(client.stream, &clock),
        Patient::new(server.stream, &clock),
    ) else {
        return;
    };
    thread::scope(|scope| {
        let back = spawn(scope, || carry(to, from, server.ahead, &flow.received));
        match back {
            Ok(()) => carry(from, to, client.ahead, &flow.sent),
            Err(_) => break_off(from, to),
        }
    });
}

/// A thread with a stack for its few frames: buffers are on the heap.
pub(super) fn spawn<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    work: impl FnOnce() + Send + 'scope,
) -> io::Result<()> {
    let thread = thread::Builder::new()
        .name("egress".to_owned())
        .stack_size(STACK_BYTES);
    thread.spawn_scoped(scope, work).map(drop)
}

/// Carries one direction to its end.
pub(super) fn carry(
    mut from: Patient<'_>,
    mut to: Patient<'_>,
    ahead: Vec<u8>,
    carried: &AtomicU64,
) {
    let copied = (|| {
        to.write_all(&ahead)?;
        carried.fetch_add(ahead.len() as u64, Ordering::Relaxed);
        drop(ahead);
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let read = from.read(&mut buffer)?;
            let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else {
                return Ok::<(), io::Error>(());
            };
            to.write_all(bytes)?;
            carried.fetch_add(read as u64, Ordering::Relaxed);
        }
    })();
    match copied {
        Ok(()) if from.clock.is_broken.load(Ordering::SeqCst) => {}
        Ok(()) => to.end_of_sending(),
        Err(_) => break_off(from, to),
    }
}

/// Lets both sides know that the rest is lost, and wakes the other direction.
pub(super) fn break_off(from: Patient<'_>, to: Patient<'_>) {
    from.clock.is_broken.store(true, Ordering::SeqCst);
    for side in [from, to] {
        reset_on_close(side.stream);
        // Not the sending half: its orderly end would say that all was sent.
        let _ = side.stream.shutdown(Shutdown::Read);
    }
}

impl Clock {
    pub(super) fn start(idle: Duration) -> Self {
        Self {
            begun: Instant::now(),
            last_ms: AtomicU64::new(0),
            idle,
            is_broken: AtomicBool::new(false),
        }
    }

    fn touch(&self) {
        let now = self.begun.elapsed().as_millis() as u64;
        self.last_ms.store(now, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
        self.begun.elapsed().saturating_sub(last) >= self.idle
    }
}

impl<'a> Patient<'a> {
    pub(super) fn new(stream: &'a TcpStream, clock: &'a Clock) -> io::Result<Self> {
        // One wait is a part of the idle time: the other direction may move
        // meanwhile.
        let tick = (clock.idle / 4).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(tick))?;
        stream.set_write_timeout(Some(tick))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, clock })
    }

    /// Passes an end on.
    pub(super) fn end_of_sending(&self) {
        // What is gone already has no end to learn of.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Ends it altogether, and wakes whoever reads it.
    pub(super) fn stop(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    fn patiently(&self, mut attempt: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
        loop {
            match attempt() {
                Ok(moved) => {
                    self.clock.touch();
                    return Ok(moved);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_late(&error) && !self.clock.is_over() => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut stream = self.stream;
        self.patiently(|| stream.read(buffer))
    }
}

impl Write for Patient<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stream = self.stream;
        self.patiently(|| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a socket's own time limit was met.
pub(super) fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Of each direction.
pub(crate) const BUFFER_BYTES: usize = 64 << 10;

const STACK_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests;
