//! The one strict reader of JSON-RPC frames.
//!
//! A push scanner: bytes are fed in pieces of any size, read once, and only
//! what a [`Message`] holds is kept. It accepts the grammar of RFC 8259 and,
//! so that no peer can read another message out of a frame than aegis did,
//! refuses invalid UTF-8, a byte order mark, lone surrogate escapes, a bare CR,
//! nesting beyond 64 levels, a member that stands twice in an object, and, in
//! a message and in its `params`, a near miss of a deciding name or method.

mod capture;
mod keys;
mod number;
mod slot;
mod string;
mod structure;

use std::{io, mem, str};

use thiserror::Error;

use super::frame::Frame;
use super::message::Message;
use crate::wire::digest::{self, Hasher};
use capture::Capture;
use keys::{Members, Scope};
use number::Number;
use slot::{Role, Slot, Type};
use string::Str;

/// What a frame is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scan {
    /// Only spaces, tabs and CR, or nothing.
    Blank,
    /// One message.
    Message(Box<Message>),
    /// An array of messages, possibly empty.
    Batch(Vec<Message>),
    /// Not to be trusted to mean to a peer what it means here.
    Unreadable(Reason),
}

/// Why a frame is unreadable: the first thing that was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Reason {
    /// RFC 8259, §8.1.
    #[error("invalid UTF-8")]
    InvalidUtf8,
    /// RFC 8259, §8.1.
    #[error("a byte order mark before the message")]
    ByteOrderMark,
    /// Some peers end a line there, and would see two messages.
    #[error("a carriage return inside the frame")]
    BareCr,
    /// A byte that cannot stand where it does.
    #[error("not JSON: a character that cannot stand there")]
    Unexpected,
    /// The frame ends inside a value.
    #[error("not JSON: the frame ends too early")]
    UnexpectedEnd,
    /// Something follows the message.
    #[error("more than one JSON text in a frame")]
    Trailing,
    /// RFC 8259, §6.
    #[error("not JSON: a malformed number")]
    BadNumber,
    /// Only `true`, `false` and `null` exist.
    #[error("not JSON: a malformed literal")]
    BadLiteral,
    /// RFC 8259, §7.
    #[error("not JSON: a malformed escape")]
    BadEscape,
    /// RFC 8259, §7.
    #[error("not JSON: a raw control character in a string")]
    Control,
    /// No Unicode text can hold it, so peers disagree on what it is.
    #[error("a lone surrogate escape")]
    LoneSurrogate,
    /// More than [`MAX_DEPTH`] levels.
    #[error("nested deeper than 64 levels")]
    TooDeep,
    /// Peers disagree on which of the two counts.
    #[error("a member stands twice in one object")]
    DuplicateMember,
    /// More than about a million members in the open objects.
    #[error("more members than can be compared with each other")]
    TooManyMembers,
    /// Some peers do not tell case, trim, or stop at a NUL.
    #[error("a member name that some peers read as another one, which decides")]
    NearMiss,
    /// Some peers would take it for `tools/call`.
    #[error("a method that is no string, or that some peers read as tools/call")]
    OddMethod,
    /// A string, a number or a literal.
    #[error("neither an object nor an array")]
    NotAMessage,
    /// A batch holds messages only.
    #[error("an element of the batch is not an object")]
    NotAnObject,
    /// More than [`MAX_BATCH`] elements.
    #[error("a batch of more than 4096 elements")]
    BatchTooLong,
    /// More than [`MAX_KEPT`] bytes of names and ids.
    #[error("a batch with more than 8 MiB of names and ids")]
    TooMuchText,
}

/// Scans one frame after the other, keeping its buffers.
pub(crate) struct Scanner {
    state: State,
    levels: Vec<Level>,
    members: Members,
    /// What the next value is to the message.
    slot: Slot,
    capture: Capture,
    keep: Keep,
    /// A value of which the raw bytes matter. No such value holds another.
    raw: Option<Raw>,
    message: Message,
    batch: Option<Vec<Message>>,
    elements: usize,
    /// Bytes of text in `batch`.
    kept: usize,
    /// The start of a character that the last piece ended in.
    held: ([u8; 4], usize),
    /// Offset of the current piece in the frame.
    base: u64,
    failed: Option<Reason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but blanks so far.
    Start,
    /// The same, with a CR among them: nothing else may follow.
    StartCr,
    Value,
    /// After `[`.
    FirstElement,
    /// After `{`.
    FirstKey,
    Key,
    Colon,
    AfterValue,
    String(Str),
    Number(Number),
    /// After so many bytes of a literal.
    Literal(Word, usize),
    End,
    /// After the CR that may end a frame.
    EndCr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    True,
    False,
    Null,
}

/// Where the text being read goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    Nothing,
    Key,
    Value(Slot, Type),
}

/// An open object or array.
struct Level {
    is_object: bool,
    role: Role,
    scope: Scope,
}

struct Raw {
    slot: Slot,
    /// Levels open around the value.
    depth: usize,
    /// Offset of the value in the frame.
    start: u64,
    /// Where in the current piece the bytes begin that are not hashed yet.
    unhashed: usize,
    hasher: Option<Hasher<digest::Text>>,
}

impl Scanner {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Start,
            levels: Vec::with_capacity(MAX_DEPTH),
            members: Members::new(),
            slot: Slot::Top,
            capture: Capture::default(),
            keep: Keep::Nothing,
            raw: None,
            message: Message::default(),
            batch: None,
            elements: 0,
            kept: 0,
            held: ([0; 4], 0),
            base: 0,
            failed: None,
        }
    }

    /// Scans a whole frame.
    ///
    /// # Errors
    /// If its spool file cannot be read.
    pub(crate) fn scan(&mut self, frame: &Frame) -> io::Result<Scan> {
        let fed = frame.hash_into(&mut |piece| self.feed(piece));
        let scan = self.finish();
        fed.map(|()| scan)
    }

    /// Takes the next bytes of a frame.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && self.failed.is_none() {
            let (block, behind) = rest.split_at(block_len(rest));
            self.failed = self.decode(block).err();
            rest = behind;
        }
    }

    /// Says what the bytes fed so far are, and starts the next frame.
    pub(crate) fn finish(&mut self) -> Scan {
        let scan = self.end().unwrap_or_else(Scan::Unreadable);
        self.reset();
        scan
    }

    fn end(&mut self) -> Result<Scan, Reason> {
        if let Some(reason) = self.failed {
            return Err(reason);
        }
        if self.held.1 > 0 {
            return Err(Reason::InvalidUtf8);
        }
        match (self.state, self.batch.take()) {
            (State::Start | State::StartCr, _) => Ok(Scan::Blank),
            (State::End | State::EndCr, Some(batch)) => Ok(Scan::Batch(batch)),
            (State::End | State::EndCr, None) => {
                Ok(Scan::Message(Box::new(mem::take(&mut self.message))))
            }
            _ => Err(Reason::UnexpectedEnd),
        }
    }

    fn reset(&mut self) {
        self.state = State::Start;
        self.levels.clear();
        self.members.reset();
        self.slot = Slot::Top;
        self.keep = Keep::Nothing;
        self.raw = None;
        self.message = Message::default();
        self.batch = None;
        self.elements = 0;
        self.kept = 0;
        self.held.1 = 0;
        self.base = 0;
        self.failed = None;
    }

    /// Scans the whole characters of `bytes` and holds back the start of one
    /// that is cut off. What stands before invalid UTF-8 is scanned first, so
    /// that the reason does not depend on where pieces end.
    fn decode(&mut self, bytes: &[u8]) -> Result<(), Reason> {
        let bytes = match self.held.1 {
            0 => bytes,
            _ => self.complete(bytes)?,
        };
        let error = match str::from_utf8(bytes) {
            Ok(text) => return self.text(text),
            Err(error) => error,
        };
        let (valid, rest) = bytes.split_at(error.valid_up_to());
        self.text(str::from_utf8(valid).map_err(|_| Reason::InvalidUtf8)?)?;
        if error.error_len().is_some() {
            return Err(Reason::InvalidUtf8);
        }
        self.held.0[..rest.len()].copy_from_slice(rest);
        self.held.1 = rest.len();
        Ok(())
    }

    /// Completes the character held back and gives the bytes behind it.
    fn complete<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Reason> {
        for (index, byte) in bytes.iter().enumerate() {
            let (held, len) = &mut self.held;
            let slot = held.get_mut(*len).ok_or(Reason::InvalidUtf8)?;
            *slot = *byte;
            *len += 1;
            let (held, len) = self.held;
            match str::from_utf8(&held[..len]) {
                Ok(text) => {
                    self.held.1 = 0;
                    self.text(text)?;
                    return Ok(&bytes[index + 1..]);
                }
                Err(error) if error.error_len().is_some() => return Err(Reason::InvalidUtf8),
                Err(_) => {}
            }
        }
        Ok(&[])
    }

    fn text(&mut self, text: &str) -> Result<(), Reason> {
        let mut at = 0;
        while at < text.len() {
            at = match self.state {
                State::String(body) => self.string(text, at, body)?,
                State::Number(number) => self.number(text, at, number)?,
                State::Literal(word, read) => self.literal(text, at, word, read)?,
                _ => self.structure(text, at)?,
            };
        }
        if let Some(raw) = &mut self.raw {
            if let Some(hasher) = &mut raw.hasher {
                hasher.update(&text.as_bytes()[raw.unhashed..]);
            }
            raw.unhashed = 0;
        }
        self.base += text.len() as u64;
        Ok(())
    }
}

/// The length of the next block, which ends between characters if it can.
fn block_len(bytes: &[u8]) -> usize {
    let continues = |at: &usize| bytes.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let most = bytes.len().min(BLOCK);
    (most.saturating_sub(3).max(1)..=most)
        .rev()
        .find(|at| !continues(at))
        .unwrap_or(most)
}

/// Levels of objects and arrays, a batch's array included.
pub(crate) const MAX_DEPTH: usize = 64;

/// Elements of a batch.
pub(crate) const MAX_BATCH: usize = 4096;

/// Bytes of text that are kept of one frame. No frame that fits in memory has
/// more.
pub(crate) const MAX_KEPT: usize = 8 * 1024 * 1024;

/// Bytes that are checked for UTF-8 and then scanned while still in cache.
const BLOCK: usize = 16 * 1024;

#[cfg(test)]
mod tests;
