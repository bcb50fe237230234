//! Reading a Chain in chunks and examining them on several threads.
//!
//! One thread cuts the input at newlines, others examine what they get, and
//! the caller's walks over the results in file order. How many threads there
//! are and where the chunks end changes nothing but speed. At most
//! [`AHEAD`] chunks per thread are under way, so memory is bounded by those
//! and by the longest row that is followed.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::MAX_ROW_BYTES;
use super::examine::{Examined, KeyRing, examine};

/// Where the bytes come from. Owned, since a thread that waits for a pipe
/// must not keep a verdict that is already certain from being told.
pub(super) type Input = Box<dyn Read + Send>;

/// Examines all of `input` and hands the rows of each chunk to `walk`, in file
/// order, until it breaks.
pub(super) fn drive(
    input: Input,
    chunk_bytes: usize,
    threads: usize,
    ring: &Arc<KeyRing>,
    progress: Arc<AtomicU64>,
    mut walk: impl FnMut(Vec<Examined>) -> io::Result<ControlFlow<()>>,
) -> io::Result<()> {
    let mut chunks = Chunks::new(input, chunk_bytes, progress);
    let Some(first) = chunks.next()? else {
        return Ok(());
    };
    if threads > 1 && !chunks.ended {
        return drive_threads(first, chunks, threads, ring, walk);
    }
    let mut next = Some(first);
    while let Some(chunk) = next {
        if walk(examine(&chunk, ring))?.is_break() {
            return Ok(());
        }
        next = chunks.next()?;
    }
    Ok(())
}

fn drive_threads(
    first: Vec<u8>,
    mut chunks: Chunks,
    threads: usize,
    ring: &Arc<KeyRing>,
    mut walk: impl FnMut(Vec<Examined>) -> io::Result<ControlFlow<()>>,
) -> io::Result<()> {
    let (work, to_do) = mpsc::sync_channel::<Numbered<Vec<u8>>>(threads);
    let (results, done) = mpsc::sync_channel(threads);
    // Taken by the reader for each chunk, given back by the walk: whoever is
    // ahead waits here, and learns here that the walk is over.
    let (permit, permits) = mpsc::sync_channel::<()>(threads * AHEAD);

    let to_do = Arc::new(Mutex::new(to_do));
    for _ in 0..threads {
        let (to_do, results, ring) = (Arc::clone(&to_do), results.clone(), Arc::clone(ring));
        thread::Builder::new().spawn(move || work_on(&to_do, &results, &ring))?;
    }
    drop((to_do, results));
    thread::Builder::new().spawn(move || {
        let mut next = Ok(Some(first));
        for index in 0.. {
            let last = !matches!(next, Ok(Some(_)));
            if permit.send(()).is_err() || work.send((index, next)).is_err() || last {
                return;
            }
            next = chunks.next();
        }
    })?;

    let mut early = BTreeMap::new();
    let mut expected = 0;
    for (index, rows) in done {
        early.insert(index, rows);
        while let Some(rows) = early.remove(&expected) {
            let Some(rows) = rows? else { return Ok(()) };
            if walk(rows)?.is_break() {
                return Ok(());
            }
            expected += 1;
            // The reader may be gone, having read everything.
            let _ = permits.try_recv();
        }
    }
    // Only a thread that died leaves the input without its end.
    Err(io::Error::other("a thread of the verifier ended early"))
}

/// The content of the chunk of this number; none behind the last one.
type Numbered<T> = (u64, io::Result<Option<T>>);

/// What a worker does until there is nothing more, or nobody to tell.
fn work_on(
    to_do: &Mutex<Receiver<Numbered<Vec<u8>>>>,
    results: &SyncSender<Numbered<Vec<Examined>>>,
    ring: &KeyRing,
) {
    loop {
        let next = to_do.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((index, chunk)) = next else { return };
        let rows = chunk.map(|chunk| chunk.map(|chunk| examine(&chunk, ring)));
        if results.send((index, rows)).is_err() {
            return;
        }
    }
}

/// Cuts an input into chunks that end with a newline or with the input.
struct Chunks {
    input: Input,
    chunk_bytes: usize,
    /// The start of a row whose end is not read yet.
    rest: Vec<u8>,
    ended: bool,
    /// What ended the input, once what was read before is handed out.
    failed: Option<io::Error>,
    progress: Arc<AtomicU64>,
}

impl Chunks {
    fn new(input: Input, chunk_bytes: usize, progress: Arc<AtomicU64>) -> Self {
        Self {
            input,
            chunk_bytes: chunk_bytes.max(1),
            rest: Vec::new(),
            ended: false,
            failed: None,
            progress,
        }
    }

    /// The next chunk. A row that is longer than [`MAX_ROW_BYTES`] ends the
    /// input: its start is all that is handed out of it. Where reading fails,
    /// the whole rows before come first, so that a contradiction in one of
    /// them is told whatever the size of the chunks.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut chunk = std::mem::take(&mut self.rest);
        // No newline stands before this offset.
        let mut searched = chunk.len();
        while !self.ended {
            self.read(&mut chunk);
            let newline = memchr::memrchr(b'\n', &chunk[searched..]);
            let end = newline.map(|at| searched + at + 1);
            if let Some(error) = self.failed.take() {
                let Some(end) = end else { return Err(error) };
                self.failed = Some(error);
                chunk.truncate(end);
                break;
            }
            if self.ended {
                break;
            }
            if let Some(end) = end {
                self.rest = chunk[end..].to_vec();
                chunk.truncate(end);
                break;
            }
            searched = chunk.len();
            self.ended = searched > MAX_ROW_BYTES;
        }
        Ok(if chunk.is_empty() { None } else { Some(chunk) })
    }

    /// Reads on, and notes when that was the last.
    fn read(&mut self, chunk: &mut Vec<u8>) {
        let before = chunk.len();
        let wanted = self.chunk_bytes.saturating_sub(before).max(MIN_READ_BYTES);
        // At once, and no more than it takes: a vector that grows as it is
        // filled moves what it holds.
        chunk.reserve_exact(wanted + PROBE_BYTES);
        let read = self.input.by_ref().take(wanted as u64).read_to_end(chunk);
        // What was read before an error is there.
        let grown = chunk.len() - before;
        self.progress.fetch_add(grown as u64, Ordering::Relaxed);
        self.ended = grown < wanted;
        self.failed = read.err();
    }
}

/// Chunks under way for each thread.
const AHEAD: usize = 3;

/// `read_to_end` wants room for a last look.
const PROBE_BYTES: usize = 32;

/// What is read at least at a time when a row is longer than a chunk.
const MIN_READ_BYTES: usize = 64 << 10;
