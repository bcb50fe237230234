//! What is printed, and where.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

/// Standard output for results. A reader that has gone away is no error: it
/// has seen enough.
pub(super) struct Out {
    inner: io::BufWriter<io::StdoutLock<'static>>,
    failed: Option<io::Error>,
}

impl Out {
    pub(super) fn new() -> Self {
        Self {
            inner: io::BufWriter::new(io::stdout().lock()),
            failed: None,
        }
    }

    /// Prints one line.
    pub(super) fn line(&mut self, text: impl Display) {
        if self.failed.is_none() {
            self.failed = writeln!(self.inner, "{text}").err();
        }
    }

    /// Prints text as it is.
    pub(super) fn text(&mut self, text: impl Display) {
        if self.failed.is_none() {
            self.failed = write!(self.inner, "{text}").err();
        }
    }

    /// Hands everything over.
    ///
    /// # Errors
    /// When some of it could not be written, unless the reader has gone.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let flushed = self.inner.flush();
        match self.failed.map_or(flushed, Err) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }

    /// Hands everything over, and tells on standard error when some of it could
    /// not be written. Whether all was.
    pub(super) fn end(self) -> bool {
        let finished = self.finish();
        if let Err(why) = &finished {
            error(format_args!("write standard output: {why}"));
        }
        finished.is_ok()
    }
}

/// Tells a failure on standard error.
pub(super) fn error(text: impl Display) {
    say(format_args!("error: {text}\n"));
}

/// Tells on standard error of something that was left out.
pub(super) fn warning(text: impl Display) {
    say(format_args!("warning: {text}\n"));
}

/// Tells an oddity on standard error.
pub(super) fn note(text: impl Display) {
    say(format_args!("note: {text}\n"));
}

/// Tells standard error something, as it is.
pub(super) fn say(text: impl Display) {
    // Nobody is left to hear that nobody listens.
    let _ = write!(io::stderr().lock(), "{text}");
}

/// Whether a person is watching standard error.
pub(super) fn watched() -> bool {
    io::stderr().is_terminal()
}

/// `1 call`, `2 calls`.
pub(super) fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// A number of bytes for a person.
pub(super) fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if n < 1024 {
        return count(n, "byte", "bytes");
    }
    let mut value = n as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}
