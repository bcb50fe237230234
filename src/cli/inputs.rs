//! What verify and recheck have in common: which inputs there are, in which
//! order they are read, and what is said of them besides the results.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::UsageError;
use super::args::PathArg;
use super::progress::Progress;
use super::ui::{self, count};
use crate::input::{Directory, Source};
use crate::wire::escape::EscapedPath;

/// The inputs of `verb`, in the byte order of their names.
pub(super) fn sources(paths: Vec<PathArg>, verb: &str) -> Result<Vec<Source>, UsageError> {
    let mut sources: Vec<_> = paths.into_iter().map(|p| Source::of(p.0)).collect();
    if sources.is_empty() {
        return Err(UsageError(format!("{verb} requires <PATH>")));
    }
    if sources.iter().filter(|s| **s == Source::Stdin).count() > 1 {
        return Err(UsageError(
            "standard input (-) can be read only once".to_owned(),
        ));
    }
    sources.sort_by(|a, b| bytes(a.name()).cmp(bytes(b.name())));
    Ok(sources)
}

/// Tells what of a directory is not read.
pub(super) fn note_others(directory: &Directory) {
    if directory.others > 0 {
        ui::note(format_args!(
            "{}: {} not read: only regular files named *.aarl are",
            EscapedPath(&directory.path),
            count(directory.others as u64, "entry", "entries")
        ));
    }
}

/// Has `walk` read a source, and tells meanwhile how far it is.
///
/// # Errors
/// When the source cannot be opened, or what `walk` says.
pub(super) fn read<T>(
    source: &Source,
    progress: &Arc<AtomicU64>,
    walk: impl FnOnce(Box<dyn Read + Send>) -> io::Result<T>,
) -> io::Result<T> {
    progress.store(0, Ordering::Relaxed);
    let opened = source.open()?;
    let telling = Progress::start(progress, opened.length, source.name());
    let walked = walk(opened.reader)?;
    drop(telling);
    if opened.shortened.load(Ordering::Relaxed) {
        ui::note(format_args!(
            "{}: became shorter while it was read; the verdict is on what was read",
            EscapedPath(source.name())
        ));
    }
    Ok(walked)
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}
