//! Where the rows of a Chain go.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A place that keeps rows in the order in which they were appended.
///
/// A Writer is the only one that appends to its sink. It calls [`append`] from
/// one thread at a time and never again after an error of either method: a
/// row that follows one that may be missing would say that the Chain is whole.
///
/// [`append`]: Sink::append
pub(crate) trait Sink: Send + Sync {
    /// Whether rows outlive the process. A Durable sink is refused together
    /// with the development key, since what it keeps would prove nothing.
    fn retention(&self) -> Retention;

    /// Appends one row, `\n` included, behind all earlier ones.
    ///
    /// When it returns, every other process can read the row: from then on it
    /// survives the end of this one, but not yet a power cut.
    ///
    /// # Errors
    /// When the row is not there whole. No part of it should be left then.
    fn append(&self, row: &[u8]) -> io::Result<()>;

    /// Makes every row durable whose `append` returned before this call.
    ///
    /// Called from any thread, also while another one appends.
    ///
    /// # Errors
    /// When any of those rows may not be durable. A later success must not be
    /// taken to cover them, so it is not tried again.
    fn flush(&self) -> io::Result<()>;
}

impl<S: Sink + ?Sized> Sink for Arc<S> {
    fn retention(&self) -> Retention {
        (**self).retention()
    }

    fn append(&self, row: &[u8]) -> io::Result<()> {
        (**self).append(row)
    }

    fn flush(&self) -> io::Result<()> {
        (**self).flush()
    }
}

/// How long a sink keeps its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retention {
    /// Beyond the end of the process.
    Durable,
    /// As long as the process at most.
    Volatile,
}

/// A sink in memory. Clones share its rows.
#[derive(Clone, Debug)]
pub(crate) struct MemorySink {
    rows: Arc<Mutex<Vec<u8>>>,
    max_bytes: usize,
}

impl MemorySink {
    /// An empty sink that takes up to [`MAX_MEMORY_BYTES`].
    pub(crate) fn new() -> Self {
        Self::bounded(MAX_MEMORY_BYTES)
    }

    /// An empty sink that takes up to `max_bytes`.
    pub(crate) fn bounded(max_bytes: usize) -> Self {
        Self {
            rows: Arc::default(),
            max_bytes,
        }
    }

    /// A copy of every row so far, as a file would hold them.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.lock().clone()
    }

    /// How many bytes the rows so far have.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    // Rows are appended whole or not at all, so a panic elsewhere left them so.
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemorySink {
    fn default() -> Self {
        Self::new()
    }
}

impl Sink for MemorySink {
    fn retention(&self) -> Retention {
        Retention::Volatile
    }

    fn append(&self, row: &[u8]) -> io::Result<()> {
        let mut rows = self.lock();
        if row.len() > self.max_bytes - rows.len() {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                format!(
                    "the record in memory is at its limit of {} bytes; record to a file instead",
                    self.max_bytes
                ),
            ));
        }
        rows.extend_from_slice(row);
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

/// How many bytes a record in memory may have.
pub(crate) const MAX_MEMORY_BYTES: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_shared_by_clones() {
        let sink = MemorySink::bounded(4);
        let view = sink.clone();
        sink.append(b"ab\n").unwrap();
        sink.append(b"\n").unwrap();
        let error = sink.append(b"\n").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(view.bytes(), b"ab\n\n");
        assert_eq!(view.retention(), Retention::Volatile);
    }
}
