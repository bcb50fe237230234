//! The lane from the client to the child: every `tools/call` has its intent
//! before its first byte goes on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::digest::FrameDigest;
use super::lane::{Station, Stop};
use super::pending::{Begun, Ticket, is_usable};
use super::retry::Asked;
use super::{Notice, Shared};
use crate::chain::commit::Mark;
use crate::chain::ending::{Ending, Standing, Unanswered};
use crate::chain::writer::{ChainError, Tool};
use crate::rpc::frame::Frame;
use crate::rpc::message::{Member, Message, RpcId};
use crate::rpc::scan::{Scan, Scanner};
use crate::wire::digest::{Digest, Request};

/// Records what the client asks for.
pub(super) struct Requests {
    shared: Arc<Shared>,
    scanner: Scanner,
    /// Calls that no answer can be matched to: concluded once they went on.
    unmatched: Vec<(Ticket, Unanswered)>,
    /// The child reads no more.
    reader_gone: bool,
}

impl Requests {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            scanner: Scanner::new(),
            unmatched: Vec::new(),
            reader_gone: false,
        }
    }

    fn message(
        &mut self,
        message: &Message,
        digest: &mut FrameDigest<'_, Request>,
    ) -> Result<Option<Mark>, Stop> {
        if message.method.as_whole() == Some("notifications/cancelled") {
            self.shared.pending.cancel(&message.params.request_id);
        }
        if !message.is_tools_call() {
            return Ok(None);
        }
        let tool = match &message.params.name {
            Member::Text(name) => Tool::of(name.head(), name.cut().map(|cut| (cut.bytes, cut.sum))),
            Member::Absent | Member::NotAString => Tool::of(UNKNOWN, None),
        };
        let (id, asked) = (message.id.clone(), Asked::of(message));
        let begun = self.begin(id, asked, tool, digest.value()?, || {})?;
        if !is_usable(&message.id) {
            self.unmatched.push((begun.ticket, Unanswered::NoId));
        }
        Ok(Some(begun.mark))
    }

    fn unreadable(&mut self, digest: Digest<Request>) -> Result<Option<Mark>, Stop> {
        self.shared.pending.wait_for_room()?;
        let tool = Tool::of(UNREADABLE, None);
        let begun = self.begin(RpcId::Absent, Asked::default(), tool, digest, || {
            self.shared.unreadable.fetch_add(1, Ordering::Relaxed);
        })?;
        self.unmatched.push((begun.ticket, Unanswered::Unreadable));
        Ok(Some(begun.mark))
    }

    /// Begins a Call. `count` is called with it, so that the end of the session
    /// finds both or neither.
    fn begin(
        &self,
        id: RpcId,
        asked: Asked,
        tool: Tool,
        digest: Digest<Request>,
        count: impl FnOnce(),
    ) -> Result<Begun, Stop> {
        let writer = &self.shared.writer;
        let begun = self.shared.pending.begin(id, asked, |resumes| {
            let mut call = writer.begin(tool, digest)?;
            let standing = Standing {
                resumes,
                ..Standing::passed_through(call.id(), call.tool_id())
            };
            call.stand(standing)?;
            count();
            Ok(call)
        })?;
        begun.ok_or(Stop::Ended)
    }
}

impl Station for Requests {
    fn has_room(&self) -> bool {
        self.shared.pending.has_room()
    }

    fn record(&mut self, frame: &Frame) -> Result<Option<Mark>, Stop> {
        let scan = self.scanner.scan(frame).map_err(Stop::Spool)?;
        let mut digest = FrameDigest::of(frame);
        match scan {
            Scan::Blank => Ok(None),
            Scan::Message(message) => {
                if message.is_tools_call() {
                    self.shared.pending.wait_for_room()?;
                }
                self.message(&message, &mut digest)
            }
            Scan::Batch(messages) => {
                if messages.iter().any(Message::is_tools_call) {
                    self.shared.pending.wait_for_room()?;
                }
                let mut last = None;
                for message in &messages {
                    last = self.message(message, &mut digest)?.or(last);
                }
                Ok(last)
            }
            Scan::Unreadable(_) => self.unreadable(digest.value()?),
        }
    }

    fn settle(&mut self, mark: Option<Mark>) -> Result<(), ChainError> {
        if let Some(mark) = mark {
            self.shared.writer.settle_intent(mark)?;
        }
        self.shared.may_go_on()
    }

    fn went_on(&mut self) -> Result<(), Stop> {
        if self.reader_gone {
            // They did not, so they stay open to the end.
            self.unmatched.clear();
        }
        for (ticket, why) in self.unmatched.drain(..) {
            let ending = Ending::Unanswered(why);
            self.shared.pending.conclude(ticket, ending)?;
        }
        Ok(())
    }

    fn reader_gone(&mut self) {
        self.reader_gone = true;
        // The child may answer what it has read; its own end will tell.
        self.shared.notify(Notice::ChildInputGone);
    }
}

/// The tool of a call whose `params.name` is missing or not a string.
const UNKNOWN: &str = "<unknown>";

/// The tool of a frame that could not be read.
const UNREADABLE: &str = "<unreadable>";
