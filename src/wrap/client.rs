//! The client's ends, as it may have left them.
//!
//! A client that made its end of a socket or terminal non-blocking made ours
//! so too, if both are one description. That it is not ready is no end then.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};

use super::Shared;

/// What the client writes to.
pub(super) struct Given(pub(super) File);

/// What the client reads from. Each piece taken counts against silence, so
/// that a slow client gets all of a large answer.
pub(super) struct Taken {
    pub(super) client: File,
    pub(super) shared: Arc<Shared>,
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

fn wait(file: &File, until: PollFlags) -> io::Result<()> {
    match poll(&mut [PollFd::new(file, until)], None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Bytes that a client that is alive takes at a time.
const PIECE_BYTES: usize = 64 << 10;
