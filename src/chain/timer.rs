//! The flush that comes without anybody waiting for it.
//!
//! Between two flushes that a Call waits for there may be any length of time,
//! and rows written before it would be lost to a power cut at its end. A
//! thread of its own sees to it that no row waits longer than a bound.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::commit::Commit;

/// Flushes within a delay of the first row that nobody waited for.
pub(crate) struct FlushTimer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl FlushTimer {
    /// A timer without a thread yet.
    pub(crate) fn new(commit: Arc<Commit>, delay: Duration) -> Self {
        Self {
            shared: Arc::new(Shared {
                commit,
                delay,
                state: Mutex::new(State::Idle),
                changed: Condvar::new(),
            }),
            thread: Mutex::default(),
        }
    }

    /// Notes that a row was appended. Starts the thread when there is none;
    /// when it cannot be started, the flush happens here.
    pub(crate) fn row_appended(&self) {
        let mut state = self.shared.lock();
        if !matches!(*state, State::Idle) {
            return;
        }
        *state = State::Due(Instant::now() + self.shared.delay);
        drop(state);
        if self.has_thread() {
            self.shared.changed.notify_one();
        } else {
            self.shared.flush_due();
        }
    }

    /// Ends the thread and waits for a flush that it is in.
    pub(crate) fn stop(&self) {
        *self.shared.lock() = State::Stopped;
        self.shared.changed.notify_one();
        let thread = self.handle().take();
        if let Some(thread) = thread
            // A listener that the thread called may have dropped the Writer.
            && thread.thread().id() != thread::current().id()
        {
            // It only flushes, and a panic there has broken the Writer.
            drop(thread.join());
        }
    }

    fn has_thread(&self) -> bool {
        let mut handle = self.handle();
        if handle.is_none() {
            let shared = Arc::clone(&self.shared);
            *handle = thread::Builder::new()
                .name("aegis-flush".to_owned())
                .spawn(move || shared.run())
                .ok();
        }
        handle.is_some()
    }

    fn handle(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Shared {
    commit: Arc<Commit>,
    delay: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy)]
enum State {
    /// No row since the last flush of this timer.
    Idle,
    /// Rows wait, the first since a delay before this moment.
    Due(Instant),
    Stopped,
}

impl Shared {
    fn run(&self) {
        let mut state = self.lock();
        loop {
            state = match *state {
                State::Stopped => return,
                State::Idle => self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                State::Due(due) => match due.checked_duration_since(Instant::now()) {
                    Some(left) if !left.is_zero() => {
                        self.changed
                            .wait_timeout(state, left)
                            .unwrap_or_else(PoisonError::into_inner)
                            .0
                    }
                    _ => {
                        drop(state);
                        self.flush_due();
                        self.lock()
                    }
                },
            };
        }
    }

    /// Flushes what is appended so far, unless others have.
    fn flush_due(&self) {
        let mut state = self.lock();
        if let State::Due(_) = *state {
            // Before the mark is read, so that a row after it is due anew.
            *state = State::Idle;
        }
        drop(state);
        // A failure has broken the Writer and told who listens.
        drop(self.commit.wait(self.commit.mark()));
    }

    // The state is set in single steps, so a panic leaves it whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
