//! The rules for member names: none twice in an object, and no near miss of
//! the names that decide what a message is.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::mem;

use super::Reason;
use crate::rpc::message::Cut;
use crate::wire::escape::is_printable;

/// The members of all open objects.
///
/// The names of small objects lie in one stack; an object that grows past
/// [`SMALL`] gets a set of its own.
pub(super) struct Members {
    recent: Vec<Print>,
    /// In the sets of all open objects.
    in_sets: usize,
    hashers: [RandomState; 2],
    spare: HashSet<Print>,
}

/// The members of one open object.
#[derive(Default)]
pub(super) struct Scope {
    start: usize,
    large: Option<HashSet<Print>>,
}

/// The name of a member, unescaped.
#[derive(Clone, Copy)]
pub(super) enum Name<'a> {
    Whole(&'a str),
    /// Longer than any name that means something here.
    Cut(&'a Cut),
}

/// A name of up to 16 bytes itself, or the 128-bit keyed hash of a longer one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Print {
    bytes: u64,
    bits: [u64; 2],
}

impl Members {
    pub(super) fn new() -> Self {
        Self {
            recent: Vec::new(),
            in_sets: 0,
            hashers: [RandomState::new(), RandomState::new()],
            spare: HashSet::new(),
        }
    }

    pub(super) fn open(&self) -> Scope {
        Scope {
            start: self.recent.len(),
            large: None,
        }
    }

    /// Adds `name` to `scope`, which must be the innermost one.
    pub(super) fn add(&mut self, scope: &mut Scope, name: Name<'_>) -> Result<(), Reason> {
        if self.count() >= MAX_MEMBERS {
            return Err(Reason::TooManyMembers);
        }
        let print = self.print(name);
        if let Some(large) = &mut scope.large {
            self.in_sets += 1;
            return match large.insert(print) {
                true => Ok(()),
                false => Err(Reason::DuplicateMember),
            };
        }
        let siblings = &self.recent[scope.start..];
        if siblings.contains(&print) {
            return Err(Reason::DuplicateMember);
        }
        self.recent.push(print);
        if self.recent.len() - scope.start > SMALL {
            let mut large = mem::take(&mut self.spare);
            large.extend(self.recent.drain(scope.start..));
            self.in_sets += large.len();
            scope.large = Some(large);
        }
        Ok(())
    }

    pub(super) fn close(&mut self, scope: Scope) {
        self.recent.truncate(scope.start);
        if let Some(mut large) = scope.large {
            self.in_sets -= large.len();
            if large.capacity() <= SPARE {
                large.clear();
                self.spare = large;
            }
        }
    }

    /// Forgets every open object.
    pub(super) fn reset(&mut self) {
        self.recent.clear();
        self.recent.shrink_to(SPARE);
        self.in_sets = 0;
    }

    /// Members of all open objects.
    pub(super) fn count(&self) -> usize {
        self.recent.len() + self.in_sets
    }

    fn print(&self, name: Name<'_>) -> Print {
        let (bytes, bits) = match name {
            Name::Whole(name) => {
                let name = name.as_bytes();
                let bits = exact(name).unwrap_or_else(|| self.hash(name));
                (name.len() as u64, bits)
            }
            Name::Cut(cut) => (cut.bytes, self.hash(cut.sum.as_bytes())),
        };
        Print { bytes, bits }
    }

    fn hash(&self, bytes: &[u8]) -> [u64; 2] {
        let [first, second] = &self.hashers;
        [
            first.hash_one((0_u8, bytes)),
            second.hash_one((1_u8, bytes)),
        ]
    }
}

/// Whether `key` is a name that a lenient peer may read for another one: Go's
/// encoding/json takes members case-insensitively, and folds U+017F to `s` and
/// U+212A to `k`; for a C string a NUL is the end; some trim; and JavaScript's
/// `Object.assign` takes what `__proto__` holds for members of the object.
pub(super) fn is_near_miss(key: &str) -> bool {
    if WATCHED.contains(&key) {
        return false;
    }
    key == "__proto__" || key.contains('\0') || WATCHED.iter().any(|name| is_alike(key, name))
}

/// Whether `text` is `word` but for case and what stands around it: blanks,
/// controls, and what does not show. Of the last, JavaScript's `trim` takes
/// U+FEFF away, and trims of other languages, or of older Unicode, more.
pub(super) fn is_alike(text: &str, word: &str) -> bool {
    let bare = text.trim_matches(is_trimmed);
    // A letter that folds to an ASCII one has at most three bytes.
    bare.len() <= 3 * word.len() && bare.chars().map(fold).eq(word.chars())
}

/// Whether some peer may trim it.
pub(super) fn is_trimmed(letter: char) -> bool {
    letter.is_whitespace() || !is_printable(letter)
}

/// Up to 16 bytes as two numbers, which with the length determine them: the
/// first and the last 8, or 4, overlapping.
fn exact(name: &[u8]) -> Option<[u64; 2]> {
    if name.len() > 16 {
        return None;
    }
    if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        return Some([u64::from_le_bytes(*first), u64::from_le_bytes(*last)]);
    }
    if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
        return Some([first, last]);
    }
    let few = |bits: u64, byte: &u8| bits << 8 | u64::from(*byte);
    Some([name.iter().fold(0, few), 0])
}

fn fold(letter: char) -> char {
    match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        _ => letter.to_ascii_lowercase(),
    }
}

/// The names of which no variant may stand in a message or in its `params`.
const WATCHED: [&str; 5] = ["jsonrpc", "id", "method", "params", "name"];

/// Members up to which an object is searched one by one.
pub(super) const SMALL: usize = 16;

/// Members that all open objects of a frame may have together.
pub(super) const MAX_MEMBERS: usize = 1 << 20;

/// Members for which room is kept from one frame to the next.
const SPARE: usize = 1024;
