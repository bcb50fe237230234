//! The sockets that are open, and the end of them all.

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::ops::Deref;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_linger;
use rustix::pipe::{PipeFlags, pipe_with};

/// Every connection of one [`super::Egress`], and whether it is at an end.
#[derive(Debug)]
pub(super) struct Live {
    is_over: AtomicBool,
    /// Hangs up when it is over, which wakes whoever polls.
    bell: OwnedFd,
    bell_end: Mutex<Option<OwnedFd>>,
    streams: Mutex<Streams>,
}

#[derive(Debug, Default)]
struct Streams {
    next: u64,
    open: HashMap<u64, Arc<TcpStream>>,
}

/// A connection that ends with the [`Live`] it is of.
#[derive(Debug)]
pub(super) struct Held<'a> {
    live: &'a Live,
    number: u64,
    stream: Arc<TcpStream>,
}

/// One of a bounded number.
#[derive(Debug)]
pub(super) struct Slot<'a>(&'a AtomicUsize);

impl Live {
    pub(super) fn new() -> io::Result<Self> {
        let (bell, end) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self {
            is_over: AtomicBool::new(false),
            bell,
            bell_end: Mutex::new(Some(end)),
            streams: Mutex::default(),
        })
    }

    /// Takes a connection in, unless it is over.
    pub(super) fn hold(&self, stream: TcpStream) -> io::Result<Held<'_>> {
        let mut streams = self.streams();
        if self.is_over() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let number = streams.next;
        streams.next += 1;
        let stream = Arc::new(stream);
        streams.open.insert(number, Arc::clone(&stream));
        Ok(Held {
            live: self,
            number,
            stream,
        })
    }

    /// Shuts every connection down and wakes everyone who waits.
    pub(super) fn end(&self) {
        let streams = self.streams();
        self.is_over.store(true, Ordering::SeqCst);
        let mut bell = self.bell_end.lock().unwrap_or_else(PoisonError::into_inner);
        drop(bell.take());
        for stream in streams.open.values() {
            // One that the peer has reset already cannot be shut down.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Waits until one of `sockets` has `events`, the patience is at an end,
    /// or everything is. The places of those that are ready.
    pub(super) fn wait(
        &self,
        sockets: &[BorrowedFd<'_>],
        events: PollFlags,
        patience: Option<Duration>,
    ) -> io::Result<Vec<usize>> {
        let mut polled: Vec<_> = sockets
            .iter()
            .map(|socket| PollFd::from_borrowed_fd(*socket, events))
            .collect();
        polled.push(PollFd::from_borrowed_fd(self.bell.as_fd(), PollFlags::IN));
        // No patience of this module comes near the bound of the type.
        let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
        match poll(&mut polled, patience.as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            ready => ready?,
        };
        let ready = |at: &usize| polled.get(*at).is_some_and(|fd| !fd.revents().is_empty());
        Ok((0..sockets.len()).filter(ready).collect())
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held<'_> {
    /// Closes it so that the other side learns that something went wrong.
    pub(super) fn reset(self) {
        reset_on_close(&self.stream);
    }
}

impl Deref for Held<'_> {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.stream
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.live.streams().open.remove(&self.number);
    }
}

impl<'a> Slot<'a> {
    /// One more, if `taken` is below `bound`.
    pub(super) fn take(taken: &'a AtomicUsize, bound: usize) -> Option<Self> {
        let one_more = |taken| (taken < bound).then_some(taken + 1);
        taken
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more)
            .ok()
            .map(|_| Self(taken))
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A reset instead of an end: what was cut off must not look whole.
pub(super) fn reset_on_close(stream: &TcpStream) {
    // Without it the peer sees an end, which is worse but no harm to us.
    let _ = set_socket_linger(stream, Some(Duration::ZERO));
}
