//! When a row counts as kept: one stream of flushes for many waiters.
//!
//! A flush covers the rows that were appended before it *started*. One that
//! was already running when a row was written proves nothing about that row,
//! so its writer waits for the next. Whoever finds no flush running leads one,
//! for everybody; flushes never overlap, because a journalling file system
//! would only queue them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::broken::{Broken, Fault, Step};
use super::sink::Sink;

/// A position in a Writer's rows: how many had been appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark(u64);

/// The stream of flushes of one sink.
pub(crate) struct Commit {
    sink: Arc<dyn Sink>,
    fault: Arc<Fault>,
    appended: AtomicU64,
    stream: Mutex<Stream>,
    ended: Condvar,
}

#[derive(Default)]
struct Stream {
    /// Rows that a flush has covered.
    flushed: u64,
    running: bool,
}

impl Commit {
    pub(crate) fn new(sink: Arc<dyn Sink>, fault: Arc<Fault>) -> Self {
        Self {
            sink,
            fault,
            appended: AtomicU64::new(0),
            stream: Mutex::default(),
            ended: Condvar::new(),
        }
    }

    /// Notes that `append` returned for one more row.
    pub(crate) fn appended(&self) -> Mark {
        Mark(self.appended.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// The last row appended so far.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.appended.load(Ordering::SeqCst))
    }

    /// Returns once a flush that started after `mark` was appended has
    /// returned; leads it when no other thread does.
    ///
    /// # Errors
    /// When a flush failed or the Writer was broken otherwise, unless `mark`
    /// was covered before.
    pub(crate) fn wait(&self, mark: Mark) -> Result<(), Broken> {
        let mut stream = self.lock();
        while stream.flushed < mark.0 {
            self.fault.check()?;
            if stream.running {
                stream = self
                    .ended
                    .wait(stream)
                    .unwrap_or_else(PoisonError::into_inner);
            } else {
                stream.running = true;
                drop(stream);
                self.lead();
                stream = self.lock();
            }
        }
        Ok(())
    }

    /// Runs one flush, with `running` set.
    fn lead(&self) {
        let mut turn = Turn {
            commit: self,
            // Read before the flush starts: rows appended from now on may or
            // may not be covered.
            covers: self.mark(),
            outcome: Err(Broken::panicked(Step::Flush)),
        };
        turn.outcome = self
            .sink
            .flush()
            .map_err(|error| Broken::new(Step::Flush, &error));
    }

    // What the lock guards is set in single steps, so a panic leaves it whole.
    fn lock(&self) -> MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One flush under way. Ends it on a panic too, or waiters would wait forever.
struct Turn<'a> {
    commit: &'a Commit,
    covers: Mark,
    outcome: Result<(), Broken>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let failed = match &self.outcome {
            Ok(()) => None,
            Err(broken) => Some(self.commit.fault.set(broken.clone())),
        };
        let mut stream = self.commit.lock();
        stream.running = false;
        if failed.is_none() {
            stream.flushed = self.covers.0;
        }
        drop(stream);
        self.commit.ended.notify_all();
        if failed.is_some() {
            self.commit.fault.tell();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::super::testing::GateSink;
    use super::*;

    fn commit(sink: &GateSink) -> Arc<Commit> {
        Arc::new(Commit::new(Arc::new(sink.clone()), Arc::default()))
    }

    /// SPEC [DUR-2].
    #[test]
    fn a_flush_that_was_running_already_does_not_count() {
        let sink = GateSink::default();
        let commit = &commit(&sink);
        sink.shut();
        thread::scope(|scope| {
            let first = commit.appended();
            let leader = scope.spawn(move || commit.wait(first));
            sink.wait_started(1);

            let second = commit.appended();
            let (sender, done) = mpsc::channel();
            let late = Arc::clone(commit);
            scope.spawn(move || sender.send(late.wait(second)).unwrap());
            sink.let_go();
            leader.join().unwrap().unwrap();
            // Whatever the late waiter did meanwhile, it needs a flush of its
            // own, and that one has not returned.
            sink.wait_started(2);
            assert_eq!(done.try_recv(), Err(mpsc::TryRecvError::Empty));
            sink.let_go();
            done.recv().unwrap().unwrap();
        });
        assert_eq!(sink.started(), 2);
    }

    #[test]
    fn one_flush_serves_every_row_before_it() {
        let sink = GateSink::default();
        let commit = &commit(&sink);
        sink.shut();
        thread::scope(|scope| {
            let first = commit.appended();
            scope.spawn(move || commit.wait(first));
            sink.wait_started(1);
            let marks: Vec<_> = (0..16).map(|_| commit.appended()).collect();
            let waiters: Vec<_> = marks
                .iter()
                .map(|&mark| scope.spawn(move || commit.wait(mark)).thread().id())
                .collect();
            assert_eq!(waiters.len(), 16);
            sink.let_go();
            sink.let_go();
        });
        assert_eq!(sink.started(), 2);
        assert_eq!(commit.wait(commit.mark()), Ok(()));
        assert_eq!(sink.started(), 2);
    }

    struct Panics;

    impl Sink for Panics {
        fn retention(&self) -> super::super::sink::Retention {
            super::super::sink::Retention::Volatile
        }

        fn append(&self, _: &[u8]) -> std::io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> std::io::Result<()> {
            panic!("flush")
        }
    }

    #[test]
    fn a_panic_in_a_flush_breaks_the_writer_and_frees_the_waiters() {
        let commit = Commit::new(Arc::new(Panics), Arc::default());
        let mark = commit.appended();
        thread::scope(|scope| {
            assert!(scope.spawn(|| commit.wait(mark)).join().is_err());
        });
        assert_eq!(
            commit.wait(mark).unwrap_err().to_string(),
            "audit flush failed: a thread panicked in the middle of it; nothing more will be \
             recorded"
        );
    }
}
