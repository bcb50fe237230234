//! The lane from the child to the client: every answer to a Call has its
//! outcome before it goes on.

use std::io::{BufReader, Read as _};
use std::slice;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::answer::answer_of;
use super::digest::FrameDigest;
use super::lane::{Due, Fate, Recorded, Station, Stop};
use super::pending::is_usable;
use super::{Notice, Shared};
use crate::chain::commit::Mark;
use crate::chain::ending::Answered;
use crate::chain::writer::ChainError;
use crate::rpc::frame::Frame;
use crate::rpc::message::{Kind, Message, RpcId};
use crate::rpc::scan::{Scan, Scanner};
use crate::stations::Gate;
use crate::wire::digest::{Digest, Response};
use crate::wire::outcome::{Answer, AnswerKind};

/// Records what the child answers.
pub(super) struct Answers {
    shared: Arc<Shared>,
    scanner: Scanner,
    /// Whether the client is not shown tools that the policy denies.
    hides_denied: bool,
}

impl Answers {
    pub(super) fn new(shared: Arc<Shared>, hides_denied: bool) -> Self {
        Self {
            shared,
            hides_denied,
            scanner: Scanner::new(),
        }
    }

    fn message(
        &self,
        message: &Message,
        digest: &mut FrameDigest<'_, Response>,
    ) -> Result<Option<Mark>, Stop> {
        if message.kind() != Kind::Response || !is_usable(&message.id) {
            return Ok(None);
        }
        let answer = answer_of(message);
        if answer.kind == AnswerKind::InputRequired {
            let state = message.answer.request_state;
            self.shared.pending.input_required(&message.id, state);
        }
        self.answer(&message.id, answer, digest.value()?)
    }

    fn answer(
        &self,
        id: &RpcId,
        answer: Answer,
        response_digest: Digest<Response>,
    ) -> Result<Option<Mark>, Stop> {
        let mark = self.shared.pending.answer(id, |wall_ms| Answered {
            answer,
            response_digest,
            wall_ms: Some(wall_ms),
            message_digest: None,
        })?;
        Ok(mark)
    }

    /// Takes note of the tools that a frame shows to the client. Returns the
    /// line that is to go on in its stead, if one of them is not to be shown.
    fn show(&self, frame: &Frame, messages: &[Message]) -> Option<Vec<u8>> {
        let Shared { listings, gate, .. } = &*self.shared;
        let gate = gate.as_ref().filter(|_| self.hides_denied);
        let denied = gate.map(Gate::denials);
        let mut line = listings.answered(messages, frame.in_memory(), |tool| {
            denied.as_ref().is_some_and(|denies| denies(tool))
        })?;
        line.push(b'\n');
        Some(line)
    }

    /// An answer that cannot be read strictly still is one: for instance one
    /// nested very deep. Of it, only the id and the kind are read.
    fn loose(
        &mut self,
        frame: &Frame,
        digest: &mut FrameDigest<'_, Response>,
    ) -> Result<Option<Mark>, Stop> {
        let is_awaited = self.shared.listings.lose();
        if self.shared.pending.is_empty() && !is_awaited {
            return Ok(None);
        }
        let bytes = || BufReader::new(frame.reader());
        let first = bytes().bytes().find(|byte| {
            byte.as_ref()
                .map_or(true, |byte| !byte.is_ascii_whitespace())
        });
        let answers = match first {
            Some(Ok(b'[')) => serde_json::from_reader(bytes()),
            _ => serde_json::from_reader(bytes()).map(|answer| vec![answer]),
        };
        let Ok(answers): Result<Vec<Loose>, _> = answers else {
            return Ok(None);
        };
        let mut last = None;
        for answer in answers {
            last = self.loose_answer(answer, digest)?.or(last);
        }
        Ok(last)
    }

    fn loose_answer(
        &mut self,
        read: Loose,
        digest: &mut FrameDigest<'_, Response>,
    ) -> Result<Option<Mark>, Stop> {
        let (Some(id), None) = (read.id, read.method) else {
            return Ok(None);
        };
        let kind = match (read.result, read.error) {
            (_, Some(_)) => AnswerKind::ProtocolError,
            (Some(_), None) => AnswerKind::Result,
            (None, None) => return Ok(None),
        };
        self.scanner.feed(b"{\"id\":");
        self.scanner.feed(id.get().as_bytes());
        self.scanner.feed(b"}");
        match self.scanner.finish() {
            Scan::Message(message) if is_usable(&message.id) => {
                self.shared.listings.close(&message.id);
                let answer = Answer {
                    unreadable: true,
                    ..Answer::of(kind)
                };
                self.answer(&message.id, answer, digest.value()?)
            }
            _ => Ok(None),
        }
    }
}

/// The members that make an object an answer, whatever stands in the others.
#[derive(Deserialize)]
struct Loose {
    id: Option<Box<RawValue>>,
    method: Option<IgnoredAny>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

impl Station for Answers {
    type Pass = ();

    fn has_room(&self) -> bool {
        true
    }

    fn record(&mut self, frame: &Frame) -> Result<Recorded<()>, Stop> {
        self.shared.child_spoke();
        let scan = self.scanner.scan(frame).map_err(Stop::Spool)?;
        let mut digest = FrameDigest::of(frame);
        let messages = match &scan {
            Scan::Message(message) => slice::from_ref(&**message),
            Scan::Batch(messages) => messages,
            Scan::Blank | Scan::Unreadable(_) => &[],
        };
        let mut mark = None;
        for message in messages {
            mark = self.message(message, &mut digest)?.or(mark);
        }
        if let Scan::Unreadable(_) = scan {
            mark = self.loose(frame, &mut digest)?;
        }
        let fate = match self.show(frame, messages) {
            Some(line) => Fate::Replace((), line),
            None => Fate::Relay(()),
        };
        Ok(Recorded { mark, fate })
    }

    fn settle(&mut self, due: Due) -> Result<(), ChainError> {
        if let Some(mark) = due.relayed {
            self.shared.writer.settle_outcome(mark)?;
        }
        self.shared.may_go_on()
    }

    fn went_on(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    fn reader_gone(&mut self) {
        self.shared.notify(Notice::ClientGone);
    }

    /// The child is never answered.
    fn sender_gone(&mut self) {}
}
