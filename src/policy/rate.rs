//! Fixed windows that count Calls (SPEC §6.5).

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::Request;
use super::set::{Action, Rate, Rule, Set};
use crate::wire::digest::{Digest, Hasher, Text};

/// The windows that are open.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    open: HashMap<Key, Window>,
    /// The same by when they close, so that a closed one is found at once.
    closing: BTreeSet<(Duration, Key)>,
    /// How many belong to rules that name no tool.
    unnamed: usize,
    /// The latest time that a Call came.
    now: Duration,
}

/// A rule, a tool and a scope: a hash over each with its length before it, so
/// that no two are alike and none is long.
type Key = Digest<Text>;

#[derive(Clone, Copy, Debug)]
struct Window {
    opened: Duration,
    per_seconds: u64,
    admitted: u32,
    /// The id of its rule.
    rule: Digest<Text>,
    /// Whether the rule named the tool when the window opened.
    names_tool: bool,
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
        let now = now.max(self.now);
        self.now = now;
        // Each Call opens one window at most, so this keeps pace.
        self.forget_closed(now, FORGOTTEN_PER_CALL);
        let key = key(rule, request);
        if let Some(mut window) = self.open.get(&key).copied() {
            // A rule that was changed meanwhile applies to the window as it is.
            window.per_seconds = rate.per_seconds;
            if now < window.closes() {
                if window.admitted >= rate.max {
                    return None;
                }
                window.admitted += 1;
                self.put(key, window);
                return Some(Charge(key));
            }
            self.forget(key);
        }
        let names_tool = rule.tool.is_some();
        if self.is_full(names_tool) {
            self.forget_closed(now, usize::MAX);
            // Forgetting one that is open would let more through than may.
            if self.is_full(names_tool) {
                return None;
            }
        }
        let window = Window {
            opened: now,
            per_seconds: rate.per_seconds,
            admitted: 1,
            rule: Digest::of(rule.id.as_bytes()),
            names_tool,
        };
        self.put(key, window);
        Some(Charge(key))
    }

    /// Undoes an admission: the Call does not go on after all. A window that
    /// it alone had opened was never open.
    pub(crate) fn give_back(&mut self, charge: Charge) {
        let Some(window) = self.open.get_mut(&charge.0) else {
            return;
        };
        window.admitted = window.admitted.saturating_sub(1);
        if window.admitted == 0 {
            self.forget(charge.0);
        }
    }

    /// Makes open windows as long as the rules of `set` say, by the ids of the
    /// rules. Those that were closed when the last Call came stay closed.
    pub(crate) fn adopt(&mut self, set: &Set) {
        self.forget_closed(self.now, usize::MAX);
        if self.open.is_empty() {
            return;
        }
        let lengths: HashMap<Digest<Text>, u64> = set
            .rules()
            .iter()
            .filter_map(|rule| match rule.action {
                Action::RateLimit(rate) => Some((Digest::of(rule.id.as_bytes()), rate.per_seconds)),
                _ => None,
            })
            .collect();
        let open = &mut self.open;
        self.closing.clear();
        for (key, window) in open {
            if let Some(per_seconds) = lengths.get(&window.rule) {
                window.per_seconds = *per_seconds;
            }
            self.closing.insert((window.closes(), *key));
        }
    }

    fn is_full(&self, names_tool: bool) -> bool {
        self.open.len() >= MAX_WINDOWS || (!names_tool && self.unnamed >= MAX_UNNAMED)
    }

    /// Forgets windows that are closed, `most` at most.
    fn forget_closed(&mut self, now: Duration, most: usize) {
        for _ in 0..most {
            match self.closing.first() {
                Some((closes, key)) if *closes <= now => self.forget(*key),
                _ => return,
            }
        }
    }

    fn put(&mut self, key: Key, window: Window) {
        let before = self.open.insert(key, window);
        match before {
            Some(before) if before.closes() == window.closes() => return,
            Some(before) => {
                self.closing.remove(&(before.closes(), key));
            }
            None => self.unnamed += usize::from(!window.names_tool),
        }
        self.closing.insert((window.closes(), key));
    }

    fn forget(&mut self, key: Key) {
        if let Some(window) = self.open.remove(&key) {
            self.closing.remove(&(window.closes(), key));
            self.unnamed -= usize::from(!window.names_tool);
        }
    }
}

impl Window {
    /// From when on it is closed. One as long as time stays open.
    fn closes(&self) -> Duration {
        self.opened
            .saturating_add(Duration::from_secs(self.per_seconds))
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

/// How many of them rules may have that name no tool. A caller opens one of
/// these with each name that it invents, and must not use up those of rules
/// that do name a tool.
pub(crate) const MAX_UNNAMED: usize = MAX_WINDOWS / 2;

const FORGOTTEN_PER_CALL: usize = 2;

#[cfg(test)]
mod tests;
