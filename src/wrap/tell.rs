//! Says things on standard error without ever waiting for its reader.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Tells them in their order, by a thread that is there only meanwhile.
#[derive(Clone, Default)]
pub(super) struct Teller(Arc<Mutex<Told>>);

#[derive(Default)]
struct Told {
    waiting: VecDeque<String>,
    is_telling: bool,
}

impl Teller {
    /// Has `text` told, in a line of its own. It is lost when too much is
    /// waiting to be read, or there can be no thread.
    pub(super) fn tell(&self, text: &str) {
        let mut told = self.lock();
        if told.waiting.len() < MAX_WAITING {
            told.waiting.push_back(format!("aegis wrap: {text}\n"));
        }
        if !told.is_telling {
            let teller = self.clone();
            told.is_telling = thread::Builder::new().spawn(move || teller.run()).is_ok();
        }
    }

    fn run(&self) {
        while let Some(line) = self.next() {
            // Nobody is left to be told of a failure.
            let _ = io::stderr().write_all(line.as_bytes());
        }
    }

    fn next(&self) -> Option<String> {
        let mut told = self.lock();
        let line = told.waiting.pop_front();
        told.is_telling = line.is_some();
        line
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lines that may wait for the reader of standard error.
const MAX_WAITING: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_waits_than_may() {
        let teller = Teller::default();
        // As if its reader did not read.
        teller.lock().is_telling = true;
        for n in 0..MAX_WAITING + 1 {
            teller.tell(&n.to_string());
        }
        let waiting = teller.lock().waiting.clone();
        assert_eq!(waiting.len(), MAX_WAITING);
        assert_eq!(waiting[0], "aegis wrap: 0\n");
        assert_eq!(waiting[MAX_WAITING - 1], "aegis wrap: 15\n");
    }
}
