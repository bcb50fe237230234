//! A sign of life for long readings.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::ui;
use crate::wire::escape::EscapedPath;

/// Tells how far a reading is, until it is dropped.
pub(super) struct Progress {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Starts telling, if a person is watching and the input is large or of
    /// unknown size.
    pub(super) fn start(read: &Arc<AtomicU64>, length: Option<u64>, name: &Path) -> Self {
        if !ui::watched() || length.is_some_and(|length| length < LARGE_BYTES) {
            return Self { running: None };
        }
        let (stop, stopped) = mpsc::channel();
        let read = Arc::clone(read);
        let name = EscapedPath(name).to_string();
        let teller = thread::spawn(move || {
            let mut told = false;
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let done = read.load(Ordering::Relaxed);
                if length.is_none() && done < LARGE_BYTES {
                    continue;
                }
                let of = length.map_or_else(String::new, |l| format!(" of {}", ui::bytes(l)));
                ui::say(format_args!("\r\x1b[K{name}: {}{of}", ui::bytes(done)));
                told = true;
            }
            if told {
                ui::say("\r\x1b[K");
            }
        });
        Self {
            running: Some((stop, teller)),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, teller)) = self.running.take() {
            drop(stop);
            // It only prints; its end matters, not its result.
            let _ = teller.join();
        }
    }
}

const LARGE_BYTES: u64 = 64 << 20;
const PERIOD: Duration = Duration::from_millis(250);
