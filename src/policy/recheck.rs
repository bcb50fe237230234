//! A record under another Policy Set: what each Call would have been told
//! (SPEC §14.9). Nothing is executed, and no signature is looked at.
//!
//! One pass, in file order. A row is handed out as soon as it is decided; only
//! what a rate limit decides can wait, in bounded memory: see [`rates`].

mod call;
mod line;
mod rates;
mod rows;
/// What is wrong with a row, by the column: the line is another than that of
/// the file.
fn in_the_row(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line 1 column ") {
        Some((what, column)) => format!("{what}, column {column}"),
        None => text,
    }
}

#[cfg(test)]
mod tests;
mod told;

use std::collections::VecDeque;
use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use told::{By, Clause, Counts, Now, Reason, Row, Status, Told, Unread, Why};

use super::set::Set;
use crate::wire::escape::Shortened;
use crate::wire::spelled::stand_in_hash;
use call::{Asked, Standing};
use line::{Head, Kind, Line, Outcome, Version};
use rates::{Made, Rates, Verdict};
use rows::{RawRow, Rows, is_blank};

/// How a record is rechecked.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Bytes read at a time.
    pub(crate) chunk_bytes: usize,
    /// Counts the bytes read so far.
    pub(crate) progress: Arc<AtomicU64>,
    /// Bytes that may be held of what a rate limit decides.
    pub(crate) held_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            chunk_bytes: CHUNK_BYTES,
            progress: Arc::default(),
            held_bytes: MAX_HELD_BYTES,
        }
    }
}

/// Asks `set` about every outcome of the record `input`, and hands out what it
/// says as soon as that is known.
///
/// # Errors
/// When the input cannot be read. What was decided before was told.
pub(crate) fn recheck<'s>(
    input: impl Read,
    set: &'s Set,
    options: &Options,
    tell: &mut dyn FnMut(Told<'s>),
) -> io::Result<()> {
    let counted = Counted {
        input,
        read: &options.progress,
    };
    let mut rows = Rows::new(BufReader::with_capacity(
        options.chunk_bytes.max(1),
        counted,
    ));
    let mut walk = Walk {
        set,
        sessions: 0,
        rates: Rates::of(set),
        told: Vec::new(),
        held: VecDeque::new(),
        first_held: 0,
        held_bytes: 0,
        max_held_bytes: options.held_bytes,
        tell,
    };
    while let Some((number, row)) = rows.next()? {
        match row {
            RawRow::Whole(row) if is_blank(row) => {}
            RawRow::Whole(row) => walk.row(number, row),
            RawRow::TooLong => {
                walk.unread(number, Why::TooLong);
                break;
            }
        }
    }
    walk.end_session();
    Ok(())
}

/// A pass under way.
struct Walk<'s, 't> {
    set: &'s Set,
    /// `open` Lines met.
    sessions: u64,
    rates: Option<Rates<'s>>,
    /// What `rates` said and no row was told yet.
    told: Vec<Verdict<'s>>,
    /// Rows from the first that waits for a verdict.
    held: VecDeque<Held<'s>>,
    /// The number of the first of them.
    first_held: u64,
    held_bytes: usize,
    max_held_bytes: usize,
    tell: &'t mut dyn FnMut(Told<'s>),
}

struct Held<'s> {
    row: Row<'s>,
    waits: bool,
}

impl<'s> Walk<'s, '_> {
    fn row(&mut self, number: u64, row: &[u8]) {
        match Line::read(row) {
            Ok(line) => self.line(number, &line),
            Err((fault, head)) if head.kind == Kind::Outcome => {
                self.unread(number, Why::Outcome(fault.to_string()));
                self.hand_out(self.indeterminate(number, &head, Reason::NoBinding));
            }
            Err((fault, _)) => self.unread(number, Why::Row(fault)),
        }
    }

    fn line(&mut self, number: u64, line: &Line<'_>) {
        match line.head.kind {
            Kind::Open => {
                self.end_session();
                self.sessions += 1;
            }
            Kind::Intent => {
                if let Some(rates) = &mut self.rates {
                    rates.intent(line.typed().ok(), &mut self.told);
                    self.settle();
                }
            }
            Kind::Outcome if line.head.version == Version::Another => {
                let reason = Reason::UnknownPolicySetHash;
                self.hand_out(self.indeterminate(number, &line.head, reason));
                self.lose_sight();
            }
            Kind::Outcome => match line.typed() {
                Ok(outcome) if line.head.version == Version::Ours => {
                    self.outcome(number, line.head.seq, &outcome);
                }
                unreadable => {
                    let why = match unreadable {
                        Ok(_) => "no schema_version".to_owned(),
                        Err(error) => in_the_row(&error),
                    };
                    self.unread(number, Why::Outcome(why));
                    self.hand_out(self.indeterminate(number, &line.head, Reason::NoBinding));
                }
            },
            Kind::Other => {}
        }
    }

    fn outcome(&mut self, number: u64, seq: u64, outcome: &Outcome) {
        let asked = Asked::of(outcome, self.set);
        let standing = Standing::of(outcome);
        let was = Status::from(&outcome.policy);
        let asks = call::ask(self.set, &asked);
        let now = if standing.is_refused() {
            Ok(Now {
                status: Status::Denied,
                by: By::Wrap,
            })
        } else {
            asks
        };
        let mut row = Row {
            line: number,
            session: self.session(),
            seq,
            call_id: Some(Shortened::of(&outcome.call_id)),
            tool_id: Some(Shortened::of(&outcome.tool_id)),
            was: Some(was),
            was_rule: outcome
                .decision_axes
                .matched_rule
                .as_deref()
                .map(Shortened::of),
            had_no_policy: outcome.policy_set_hash == stand_in_hash(),
            now: now.ok(),
            clause: match now {
                Err(reason) => Clause::Indeterminate(reason),
                Ok(now) => Clause::between(was, now.status),
            },
        };
        if standing == Standing::NotEvaluated {
            row.was = None;
            row.clause = Clause::Indeterminate(Reason::NotEvaluated);
        }
        let waits = now.is_err();
        let number = self.first_held + self.held.len() as u64;
        let is_placed = self.rates.as_mut().is_some_and(|rates| {
            let made = Made {
                asked,
                is_refused: standing.is_refused(),
                is_limited: waits,
                row: waits.then_some(number),
            };
            rates.outcome(&outcome.call_id, made, &mut self.told)
        });
        self.hold(row, waits && is_placed);
        self.settle();
    }

    fn unread(&mut self, line: u64, why: Why) {
        (self.tell)(Told::Unread(Unread { line, why }));
        self.lose_sight();
    }

    /// What was met may have been a Call, and nobody knows which.
    fn lose_sight(&mut self) {
        if let Some(rates) = &mut self.rates {
            rates.lose_sight(&mut self.told);
            self.settle();
        }
    }

    fn end_session(&mut self) {
        if let Some(rates) = &mut self.rates {
            rates.end(&mut self.told);
            self.settle();
        }
    }

    fn indeterminate(&self, line: u64, head: &Head, reason: Reason) -> Row<'s> {
        Row {
            line,
            session: self.session(),
            seq: head.seq,
            call_id: head.call_id.as_deref().map(Shortened::of),
            tool_id: None,
            was: None,
            was_rule: None,
            had_no_policy: false,
            now: None,
            clause: Clause::Indeterminate(reason),
        }
    }

    fn hand_out(&mut self, row: Row<'s>) {
        self.hold(row, false);
    }

    /// Hands out a row, unless it or one before it waits for a verdict.
    fn hold(&mut self, row: Row<'s>, waits: bool) {
        if self.held.is_empty() && !waits {
            self.first_held += 1;
            return (self.tell)(Told::Row(row));
        }
        self.held_bytes += row.bytes();
        self.held.push_back(Held { row, waits });
    }

    /// Gives rows the verdicts that came in, and hands out what does not wait
    /// any longer.
    fn settle(&mut self) {
        if let Some(rates) = &mut self.rates
            && self.held_bytes + rates.bytes() > self.max_held_bytes
        {
            rates.give_up(&mut self.told);
        }
        for (number, ruling) in self.told.drain(..) {
            let place = number.checked_sub(self.first_held);
            let place = place.and_then(|place| usize::try_from(place).ok());
            let Some(held) = place.and_then(|place| self.held.get_mut(place)) else {
                continue;
            };
            held.waits = false;
            held.row.now = ruling.map(Now::from);
            if let (Some(was), Some(now)) = (held.row.was, held.row.now) {
                held.row.clause = Clause::between(was, now.status);
            }
        }
        while let Some(Held { row, .. }) = self.held.pop_front_if(|held| !held.waits) {
            self.held_bytes -= row.bytes();
            self.first_held += 1;
            (self.tell)(Told::Row(row));
        }
    }

    fn session(&self) -> u64 {
        self.sessions.saturating_sub(1)
    }
}

impl Row<'_> {
    /// Bytes that it takes when it is held.
    fn bytes(&self) -> usize {
        let texts = [&self.call_id, &self.tool_id, &self.was_rule];
        let texts = texts.into_iter().flatten().map(|text| text.head.len());
        size_of::<Held<'_>>() + texts.sum::<usize>()
    }
}

/// A reader that says how far it is.
struct Counted<'a, R> {
    input: R,
    read: &'a AtomicU64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// A row longer than this ends the reading (SPEC §8.6).
pub(crate) const MAX_ROW_BYTES: usize = 16 << 20;

/// Held of what a rate limit decides: some hundred thousand Calls of a usual
/// size. A Call that stays open all the while holds up those behind it.
pub(crate) const MAX_HELD_BYTES: usize = 64 << 20;

const CHUNK_BYTES: usize = 256 << 10;
