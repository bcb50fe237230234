//! Which Segments of an audit directory are followed already.
//!
//! The Segments themselves say it, in their `open` Lines. The index remembers
//! what they said, so that a start reads only those that came since. It
//! decides nothing but which Segments a start looks at: it is checked by its
//! digest, thrown away when in doubt, and no verdict depends on it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::str;

use super::dir::Locked;
use crate::wire::digest::{Digest, Text};

/// What is known of the Segments of a directory, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    states: BTreeMap<String, State>,
    /// Its bytes, as they were loaded or saved.
    kept: Vec<u8>,
    /// Whether it says something else than these.
    has_news: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Another one follows it.
    Followed,
    /// Another one follows it, and what it follows itself is not known yet.
    Claimed,
    /// Nothing is known to follow it.
    Unfollowed,
    /// It had no `open` Line or no end when it was looked at.
    Foreign,
}

impl Index {
    /// The directory's index; empty when it has none that can be used.
    pub(super) fn load(locked: &Locked<'_>) -> Self {
        Self::default().reload(locked)
    }

    /// The directory's index as it is now: this one, if nobody kept another
    /// since it was loaded and saved.
    pub(super) fn reload(self, locked: &Locked<'_>) -> Self {
        let mut bytes = Vec::new();
        let read = locked
            .open_regular(INDEX_NAME)
            .and_then(|file| file.take(MAX_INDEX_BYTES + 1).read_to_end(&mut bytes));
        match read {
            Ok(_) if bytes == self.kept && !self.has_news => self,
            Ok(length) if length as u64 <= MAX_INDEX_BYTES => Self::parse(bytes),
            _ => Self::default(),
        }
    }

    /// Keeps the index. One that could not be kept, or is torn by the end of
    /// this process, costs the next start a look at every Segment.
    pub(super) fn save(&mut self, locked: &Locked<'_>) {
        if !self.has_news {
            return;
        }
        self.kept = self.to_bytes();
        self.has_news = false;
        let _ = locked.open_own(INDEX_NAME).and_then(|mut file| {
            file.write_all(&self.kept)?;
            file.set_len(self.kept.len() as u64)
        });
    }

    /// Takes over which `segments` there are (sorted), looking by `read` into
    /// those that are new, for the names that they follow. Whether it could
    /// look into all of them.
    pub(super) fn bring_up_to(
        &mut self,
        segments: &[String],
        read: impl Fn(&str) -> Option<Vec<String>>,
    ) -> bool {
        let news = self.merge(segments);
        let is_whole = news.len() <= MAX_READ;
        let again = self.some_foreign();
        for name in news.iter().take(MAX_READ).chain(&again) {
            self.look_into(name, segments, &read);
        }
        is_whole
    }

    /// Forgets what is not among `segments`, and returns those of them that
    /// have not been looked into.
    fn merge(&mut self, segments: &[String]) -> Vec<String> {
        // Both are sorted: a look-up for each would cost more than the rest of
        // a start where there are many.
        let mut known = std::mem::take(&mut self.states).into_iter().peekable();
        let mut states = Vec::with_capacity(segments.len());
        let mut news = Vec::new();
        for name in segments {
            while known.next_if(|(known, _)| known < name).is_some() {
                self.has_news = true;
            }
            let state = known.next_if(|(known, _)| known == name);
            if !matches!(state, Some((_, state)) if state != State::Claimed) {
                news.push(name.clone());
            }
            states.extend(state);
        }
        self.has_news |= known.next().is_some();
        self.states = states.into_iter().collect();
        news
    }

    fn look_into(
        &mut self,
        name: &str,
        segments: &[String],
        read: &impl Fn(&str) -> Option<Vec<String>>,
    ) {
        let Some(follows) = read(name) else {
            self.set(name, State::Foreign);
            return;
        };
        let state = match self.states.get(name) {
            Some(State::Claimed | State::Followed) => State::Followed,
            _ => State::Unfollowed,
        };
        self.set(name, state);
        for followed in follows {
            // Names of what is not here need no place in the index.
            if segments.binary_search(&followed).is_ok() {
                self.follow(&followed);
            }
        }
    }

    /// A few of the foreign files: one may have been in the middle of being
    /// copied. Where they begin is left to chance, so that each has its turn.
    fn some_foreign(&self) -> Vec<String> {
        let foreign: Vec<_> = self
            .states
            .iter()
            .filter(|(_, state)| **state == State::Foreign)
            .map(|(name, _)| name)
            .collect();
        let start = match getrandom::u64() {
            // Below the length of a list in memory.
            Ok(random) if !foreign.is_empty() => (random % foreign.len() as u64) as usize,
            _ => 0,
        };
        let turn = foreign.iter().cycle().skip(start);
        turn.take(foreign.len().min(MAX_READ_AGAIN))
            .map(|name| (*name).clone())
            .collect()
    }

    fn follow(&mut self, name: &str) {
        let state = match self.states.get(name) {
            Some(State::Followed | State::Unfollowed) => State::Followed,
            _ => State::Claimed,
        };
        self.set(name, state);
    }

    fn set(&mut self, name: &str, state: State) {
        if self.states.get(name) != Some(&state) {
            self.states.insert(name.to_owned(), state);
            self.has_news = true;
        }
    }

    /// Adds a new Segment, which follows `followed`.
    pub(super) fn add<'a>(&mut self, name: &str, followed: impl Iterator<Item = &'a str>) {
        for name in followed {
            self.follow(name);
        }
        self.set(name, State::Unfollowed);
    }

    /// Keeps Segments that cannot be followed from standing before others.
    pub(super) fn set_aside(&mut self, unusable: &[String]) {
        for name in unusable {
            self.set(name, State::Foreign);
        }
    }

    /// The Segments that nothing is known to follow, by name.
    pub(super) fn unfollowed(&self) -> impl Iterator<Item = &str> {
        self.states
            .iter()
            .filter(|(_, state)| **state == State::Unfollowed)
            .map(|(name, _)| name.as_str())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut body = String::new();
        for (name, state) in &self.states {
            body.push_str(state.word());
            body.push(' ');
            body.push_str(name);
            body.push('\n');
        }
        let digest = Digest::<Text>::of(body.as_bytes());
        format!("{HEADER}{digest}\n{body}").into_bytes()
    }

    /// The index that `bytes` are; empty when they are none.
    fn parse(bytes: Vec<u8>) -> Self {
        Self {
            states: Self::parse_states(&bytes).unwrap_or_default(),
            kept: bytes,
            has_news: false,
        }
    }

    fn parse_states(bytes: &[u8]) -> Option<BTreeMap<String, State>> {
        let text = str::from_utf8(bytes).ok()?;
        let (digest, body) = text.strip_prefix(HEADER)?.split_once('\n')?;
        if Digest::from_hex(digest).ok()? != Digest::<Text>::of(body.as_bytes()) {
            return None;
        }
        let states = body.lines().map(|line| {
            let (word, name) = line.split_once(' ')?;
            Some((name.to_owned(), State::of_word(word)?))
        });
        states.collect()
    }
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Followed => "followed",
            Self::Claimed => "claimed",
            Self::Unfollowed => "unfollowed",
            Self::Foreign => "foreign",
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        [
            Self::Followed,
            Self::Claimed,
            Self::Unfollowed,
            Self::Foreign,
        ]
        .into_iter()
        .find(|state| state.word() == word)
    }
}

/// Not `.aarl`, and recognised by `verify` as aegis's own.
pub(super) const INDEX_NAME: &str = ".aegis-index";

const HEADER: &str = "aegis index 1 ";

/// A larger one is none: as much as the names that are looked at can fill.
const MAX_INDEX_BYTES: u64 = 512 << 20;

/// How many new Segments one start looks into; it follows none when there are
/// more, and the next start goes on.
pub(super) const MAX_READ: usize = 1 << 14;

/// How many foreign files one start looks into again.
const MAX_READ_AGAIN: usize = 16;

#[cfg(test)]
mod tests;
