//! The client's ends, as it may have left them.
//!
//! A client that made its end of a socket or terminal non-blocking made ours
//! so too, if both are one description. That it is not ready is no end then.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};

use super::Shared;
use super::lane::Output;
use crate::rpc::frame::Frame;

/// What the client writes to.
pub(super) struct Given(pub(super) File);

/// What the client reads from: the server's answers, and refusals between
/// them.
///
/// While the client takes nothing, both lanes wait here, which is what a
/// client gets that does not read. The end of the session does not: the thread
/// that sees to it never takes this lock, and no lane holds another one while
/// it writes.
#[derive(Clone)]
pub(super) struct ToClient(Arc<Mutex<Taken>>);

/// Each piece taken counts against silence, so that a slow client gets all of
/// a large answer.
struct Taken {
    client: File,
    shared: Arc<Shared>,
    /// The server's last words had no newline.
    line_is_open: bool,
}

impl ToClient {
    pub(super) fn new(client: File, shared: &Arc<Shared>) -> Self {
        Self(Arc::new(Mutex::new(Taken {
            client,
            shared: Arc::clone(shared),
            line_is_open: false,
        })))
    }

    fn whole(&self, write: impl FnOnce(&mut Taken) -> io::Result<()>) -> io::Result<()> {
        write(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Output for ToClient {
    fn relay(&mut self, frame: &Frame) -> io::Result<()> {
        self.whole(|taken| {
            taken.line_is_open = !frame.is_terminated();
            frame.write_to(taken)
        })
    }

    fn say(&mut self, line: &[u8]) -> io::Result<()> {
        self.whole(|taken| {
            if taken.line_is_open {
                taken.write_all(b"\n")?;
                taken.line_is_open = false;
            }
            taken.write_all(line)
        })
    }
}

impl Read for Given {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(&self.0, PollFlags::IN)?;
                }
                read => return read,
            }
        }
    }
}

impl Write for Taken {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
        loop {
            match self.client.write(piece) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(&self.client, PollFlags::OUT)?;
                }
                written => {
                    self.shared.child_spoke();
                    return written;
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns once the client has closed the pipe that it writes to, or has ended,
/// however much of what it wrote was not read yet. Of a socket that it has shut
/// for writing only, that is seen where all was read.
pub(super) fn wait_for_hang_up(input: &File) -> io::Result<()> {
    loop {
        // No event is asked for; this one is told all the same.
        let mut end = [PollFd::new(input, PollFlags::empty())];
        match poll(&mut end, None) {
            Ok(_) if end[0].revents().contains(PollFlags::HUP) => return Ok(()),
            Ok(_) if end[0].revents().is_empty() => {}
            // It cannot be polled, or has failed, which reading it tells.
            Ok(_) => return Err(io::ErrorKind::InvalidInput.into()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn wait(file: &File, until: PollFlags) -> io::Result<()> {
    match poll(&mut [PollFd::new(file, until)], None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Bytes that a client that is alive takes at a time.
const PIECE_BYTES: usize = 64 << 10;
