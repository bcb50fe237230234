//! Fixed windows that count Calls (SPEC §6.4).

use std::collections::HashMap;
use std::time::Duration;

use super::Request;
use super::set::{Rate, Rule};
use crate::wire::digest::{Digest, Hasher, Text};

/// The windows that are open.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    open: HashMap<Key, Window>,
    /// How many may be open before the closed ones are looked for.
    sweep_at: usize,
}

/// A rule, a tool and a scope: a hash over each with its length before it, so
/// that no two are alike and none is long.
type Key = Digest<Text>;

#[derive(Clone, Copy, Debug)]
struct Window {
    opened: Duration,
    per_seconds: u64,
    admitted: u32,
}

/// A window in which a Call was counted, for [`Windows::give_back`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge(Key);

impl Windows {
    /// Counts a Call at `now`, on a clock that only goes forward, or says that
    /// it is one too many.
    pub(crate) fn admit(
        &mut self,
        rule: &Rule,
        rate: Rate,
        request: &Request<'_>,
        now: Duration,
    ) -> Option<Charge> {
        let key = key(rule, request);
        if self.open.len() >= self.sweep_at {
            self.sweep(now);
        }
        let is_full = self.open.len() >= MAX_WINDOWS;
        let window = match self.open.get_mut(&key) {
            Some(window) => window,
            // Forgetting one that is open would let more through than may.
            None if is_full => return None,
            None => self.open.entry(key).or_insert(Window::at(now, rate)),
        };
        // A rule that was changed meanwhile applies to the window as it is.
        window.per_seconds = rate.per_seconds;
        if window.is_closed(now) {
            *window = Window::at(now, rate);
        }
        if window.admitted >= rate.max {
            return None;
        }
        window.admitted += 1;
        Some(Charge(key))
    }

    /// Undoes an admission: the Call does not go on after all.
    pub(crate) fn give_back(&mut self, charge: Charge) {
        if let Some(window) = self.open.get_mut(&charge.0) {
            window.admitted = window.admitted.saturating_sub(1);
        }
    }

    fn sweep(&mut self, now: Duration) {
        self.open.retain(|_, window| !window.is_closed(now));
        self.sweep_at = (self.open.len() * 2).clamp(MIN_SWEEP, MAX_WINDOWS);
    }
}

impl Window {
    fn at(opened: Duration, rate: Rate) -> Self {
        Self {
            opened,
            per_seconds: rate.per_seconds,
            admitted: 0,
        }
    }

    fn is_closed(&self, now: Duration) -> bool {
        now.saturating_sub(self.opened) >= Duration::from_secs(self.per_seconds)
    }
}

fn key(rule: &Rule, request: &Request<'_>) -> Key {
    let mut hasher = Hasher::new();
    for part in [Some(rule.id.as_str()), Some(request.tool), request.session] {
        let length = part.map_or(u64::MAX, |part| part.len() as u64);
        hasher.update(&length.to_le_bytes());
        hasher.update(part.unwrap_or_default().as_bytes());
    }
    hasher.finish()
}

/// Windows that may be open. A Call that would need one more is refused.
pub(crate) const MAX_WINDOWS: usize = 1 << 16;

const MIN_SWEEP: usize = 64;
