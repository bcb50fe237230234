//! The grammar between strings, numbers and literals, and what the end of
//! each value means to the message.

use std::mem;

use super::keys::{Members, Name, is_near_miss};
use super::number::Number;
use super::slot::{self, Role, Slot, Type, Want};
use super::string::{Step, Str, plain_run};
use super::{Keep, Level, MAX_BATCH, MAX_DEPTH, MAX_KEPT, Raw, Reason, Scanner, State, Word};
use crate::wire::digest::Hasher;

// Each function takes the piece and a position in it, and gives the position
// of the next byte to read.
impl Scanner {
    pub(super) fn structure(&mut self, text: &str, at: usize) -> Result<usize, Reason> {
        let byte = text.as_bytes()[at];
        match byte {
            b' ' | b'\t' | b'\n' if !matches!(self.state, State::EndCr) => Ok(at + 1),
            b'\r' => self.carriage_return().map(|()| at + 1),
            _ => self.token(text, at, byte),
        }
    }

    pub(super) fn string(&mut self, text: &str, at: usize, body: Str) -> Result<usize, Reason> {
        let bytes = text.as_bytes();
        if !matches!(body, Str::Plain) {
            let next = match body.step(bytes[at])? {
                Step::Next(next) => next,
                Step::Char(letter) => {
                    if !matches!(self.keep, Keep::Nothing) {
                        self.capture.push_char(letter);
                    }
                    Str::Plain
                }
            };
            self.state = State::String(next);
            return Ok(at + 1);
        }
        let end = at + plain_run(&bytes[at..]);
        if !matches!(self.keep, Keep::Nothing) {
            self.capture.push(&text[at..end]);
        }
        match bytes.get(end) {
            None => return Ok(end),
            Some(b'"') => self.text_ended(text, end + 1)?,
            Some(b'\\') => self.state = State::String(Str::Escape),
            Some(b'\r') => return Err(Reason::BareCr),
            Some(_) => return Err(Reason::Control),
        }
        Ok(end + 1)
    }

    pub(super) fn number(
        &mut self,
        text: &str,
        at: usize,
        mut number: Number,
    ) -> Result<usize, Reason> {
        let bytes = text.as_bytes();
        let mut end = at;
        while let Some(next) = bytes.get(end).and_then(|byte| number.step(*byte)) {
            number = next;
            end += 1;
        }
        if !matches!(self.keep, Keep::Nothing) {
            self.capture.push(&text[at..end]);
        }
        if end == bytes.len() {
            self.state = State::Number(number);
        } else if number.is_whole() {
            self.text_ended(text, end)?;
        } else {
            return Err(Reason::BadNumber);
        }
        Ok(end)
    }

    pub(super) fn literal(
        &mut self,
        text: &str,
        at: usize,
        word: Word,
        read: usize,
    ) -> Result<usize, Reason> {
        let rest = &word.bytes()[read..];
        let bytes = &text.as_bytes()[at..];
        let common = rest.len().min(bytes.len());
        if rest[..common] != bytes[..common] {
            return Err(Reason::BadLiteral);
        }
        self.state = State::Literal(word, read + common);
        if common == rest.len() {
            self.value_ended(text, at + common);
        }
        Ok(at + common)
    }

    fn carriage_return(&mut self) -> Result<(), Reason> {
        self.state = match self.state {
            State::Start | State::StartCr => State::StartCr,
            State::End => State::EndCr,
            _ => return Err(Reason::BareCr),
        };
        Ok(())
    }

    fn token(&mut self, text: &str, at: usize, byte: u8) -> Result<usize, Reason> {
        match (self.state, byte) {
            (State::FirstKey | State::Key, b'"') => return self.key(text, at + 1),
            (State::Colon, b':') => self.state = State::Value,
            (State::AfterValue, b',') => self.comma(),
            (State::FirstKey | State::AfterValue, b'}') => self.close(true, text, at)?,
            (State::FirstElement | State::AfterValue, b']') => self.close(false, text, at)?,
            (State::Value | State::FirstElement, _) => return self.value(text, at, byte),
            (State::Start, _) if self.base == 0 && at == 0 && text.starts_with('\u{feff}') => {
                return Err(Reason::ByteOrderMark);
            }
            (State::Start, _) => return self.value(text, at, byte),
            (State::StartCr | State::EndCr, _) => return Err(Reason::BareCr),
            (State::End, _) => return Err(Reason::Trailing),
            _ => return Err(Reason::Unexpected),
        }
        Ok(at + 1)
    }

    /// Reads a member name, whose first character is at `at`. The usual one,
    /// without escapes and all in this piece, is not copied.
    fn key(&mut self, text: &str, at: usize) -> Result<usize, Reason> {
        let bytes = text.as_bytes();
        let end = at + plain_run(&bytes[at..]);
        if end - at <= MAX_KEY && bytes.get(end) == Some(&b'"') {
            let level = self.levels.last_mut().ok_or(Reason::Unexpected)?;
            self.slot = level.member(&mut self.members, Name::Whole(&text[at..end]))?;
            self.state = State::Colon;
            return Ok(end + 1);
        }
        self.keep = Keep::Key;
        self.capture.start(MAX_KEY);
        self.state = State::String(Str::Plain);
        Ok(at)
    }

    /// Reads a value, or the part of it in this piece, from its first byte.
    fn value(&mut self, text: &str, at: usize, byte: u8) -> Result<usize, Reason> {
        let (value, state) = match byte {
            b'{' => (Type::Object, State::FirstKey),
            b'[' => (Type::Array, State::FirstElement),
            b'"' => (Type::String, State::String(Str::Plain)),
            b't' => (Type::True, State::Literal(Word::True, 0)),
            b'f' => (Type::False, State::Literal(Word::False, 0)),
            b'n' => (Type::Null, State::Literal(Word::Null, 0)),
            _ => {
                let number = Number::start(byte).ok_or(Reason::Unexpected)?;
                (Type::Number, State::Number(number))
            }
        };
        self.state = state;
        let slot = mem::replace(&mut self.slot, Slot::Skip);
        if !matches!(slot, Slot::Skip) {
            self.place(slot, value)?;
            self.want(slot, value, text, at);
        }
        match state {
            State::FirstKey => self.open(true, slot.object_role())?,
            State::FirstElement if slot == Slot::Top => self.open(false, Role::Batch)?,
            State::FirstElement => self.open(false, Role::Other)?,
            State::String(body) if at + 1 < text.len() => return self.string(text, at + 1, body),
            State::Number(number) => return self.number(text, at + 1, number),
            State::Literal(word, read) => return self.literal(text, at, word, read),
            _ => {}
        }
        Ok(at + 1)
    }

    /// Refuses a value that cannot be a message where one must be.
    fn place(&mut self, slot: Slot, value: Type) -> Result<(), Reason> {
        match (slot, value) {
            (Slot::Top, Type::Object) => {}
            (Slot::Top, Type::Array) => self.batch = Some(Vec::new()),
            (Slot::Top, _) => return Err(Reason::NotAMessage),
            (Slot::Element, Type::Object) => {
                self.elements += 1;
                if self.elements > MAX_BATCH {
                    return Err(Reason::BatchTooLong);
                }
            }
            (Slot::Element, _) => return Err(Reason::NotAnObject),
            _ => {}
        }
        Ok(())
    }

    fn want(&mut self, slot: Slot, value: Type, text: &str, at: usize) {
        let want = slot::begin(&mut self.message, slot, value);
        if let Want::Text(bound) = want {
            self.keep = Keep::Value(slot, value);
            self.capture.start(bound);
            if value == Type::Number {
                self.capture.push(&text[at..=at]);
            }
        }
        if want == Want::Sum || slot == Slot::Id {
            self.raw = Some(Raw {
                slot,
                depth: self.levels.len(),
                start: self.base + at as u64,
                unhashed: at,
                hasher: (want == Want::Sum).then(Hasher::new),
            });
        }
    }

    fn open(&mut self, is_object: bool, role: Role) -> Result<(), Reason> {
        if self.levels.len() == MAX_DEPTH {
            return Err(Reason::TooDeep);
        }
        self.slot = first_slot(role);
        self.levels.push(Level {
            is_object,
            role,
            scope: self.members.open(),
        });
        Ok(())
    }

    fn comma(&mut self) {
        let Some(level) = self.levels.last() else {
            return;
        };
        self.slot = first_slot(level.role);
        self.state = match level.is_object {
            true => State::Key,
            false => State::Value,
        };
    }

    fn close(&mut self, is_object: bool, text: &str, at: usize) -> Result<(), Reason> {
        let level = self.levels.pop_if(|level| level.is_object == is_object);
        let level = level.ok_or(Reason::Unexpected)?;
        self.slot = Slot::Skip;
        self.members.close(level.scope);
        if level.role == Role::Message {
            slot::settle(&mut self.message)?;
            if let Some(batch) = &mut self.batch {
                batch.push(mem::take(&mut self.message));
            }
        }
        self.value_ended(text, at + 1);
        Ok(())
    }

    /// Takes the end of a string or a number, at `end`.
    fn text_ended(&mut self, text: &str, end: usize) -> Result<(), Reason> {
        match mem::replace(&mut self.keep, Keep::Nothing) {
            Keep::Nothing => {}
            Keep::Key => return self.key_ended(),
            Keep::Value(slot, value) => {
                slot::text(&mut self.message, slot, value, &self.capture);
                self.kept += self.capture.head().len();
                if self.kept > MAX_KEPT {
                    return Err(Reason::TooMuchText);
                }
            }
        }
        self.value_ended(text, end);
        Ok(())
    }

    fn key_ended(&mut self) -> Result<(), Reason> {
        let level = self.levels.last_mut().ok_or(Reason::Unexpected)?;
        let cut = self.capture.cut();
        let name = match &cut {
            None => Name::Whole(self.capture.head()),
            Some(cut) => Name::Cut(cut),
        };
        self.slot = level.member(&mut self.members, name)?;
        self.state = State::Colon;
        Ok(())
    }

    /// Takes the end of any value, at `end`.
    fn value_ended(&mut self, text: &str, end: usize) {
        self.state = match self.levels.is_empty() {
            true => State::End,
            false => State::AfterValue,
        };
        let depth = self.levels.len();
        let Some(raw) = self.raw.take_if(|raw| raw.depth == depth) else {
            return;
        };
        if raw.slot == Slot::Id {
            self.message.id_span = Some(raw.start..self.base + end as u64);
        }
        if let Some(mut hasher) = raw.hasher {
            hasher.update(&text.as_bytes()[raw.unhashed..end]);
            slot::sum(&mut self.message, raw.slot, hasher.finish());
        }
    }
}

impl Level {
    /// Takes the name of a member and says what its value is to the message.
    fn member(&mut self, members: &mut Members, name: Name<'_>) -> Result<Slot, Reason> {
        members.add(&mut self.scope, name)?;
        match name {
            Name::Whole(name) if self.role.is_watched() && is_near_miss(name) => {
                Err(Reason::NearMiss)
            }
            Name::Whole(name) => Ok(self.role.slot(name)),
            // What it begins with may be all that a peer reads of it.
            Name::Cut(_) if self.role.is_watched() => Err(Reason::NearMiss),
            Name::Cut(_) => Ok(Slot::Skip),
        }
    }
}

impl Word {
    fn bytes(self) -> &'static [u8] {
        match self {
            Self::True => b"true",
            Self::False => b"false",
            Self::Null => b"null",
        }
    }
}

fn first_slot(role: Role) -> Slot {
    match role {
        Role::Batch => Slot::Element,
        _ => Slot::Skip,
    }
}

/// Bytes of a member name that are kept, which is more than any wanted name.
const MAX_KEY: usize = 1024;
