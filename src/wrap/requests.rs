//! The lane from the client to the child: every `tools/call` has its intent
//! before its first byte goes on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::digest::FrameDigest;
use super::lane::{Due, Fate, Recorded, Station, Stop};
use super::pending::{Begun, Ticket, is_usable};
use super::retry::Asked;
use super::{Deny, Enforcement, Mode, Notice, Shared};
use crate::chain::commit::Mark;
use crate::chain::ending::{Ending, Standing, Unanswered};
use crate::chain::writer::{ChainError, Tool};
use crate::rpc::frame::Frame;
use crate::rpc::message::{Member, Message, RpcId};
use crate::rpc::scan::{Scan, Scanner};
use crate::stations::Pass;
use crate::wire::digest::{Digest, Request};

/// What is done with what the policy does not allow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    mode: Mode,
    deny: Deny,
}

/// Records what the client asks for, and refuses what the policy does not
/// allow.
pub(super) struct Requests {
    shared: Arc<Shared>,
    manner: Manner,
    scanner: Scanner,
    /// Calls that no answer can be matched to: concluded once they went on.
    unmatched: Vec<(Ticket, Unanswered)>,
    /// The child reads no more.
    reader_gone: bool,
}

impl Manner {
    pub(super) fn of(enforcement: &Enforcement) -> Self {
        Self {
            mode: enforcement.mode,
            deny: enforcement.deny,
        }
    }
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            mode: Mode::Enforce,
            deny: Deny::default(),
        }
    }
}

impl Requests {
    pub(super) fn new(shared: Arc<Shared>, manner: Manner) -> Self {
        Self {
            shared,
            manner,
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

impl Requests {
    fn pass_through(&mut self, frame: &Frame) -> Result<Option<Mark>, Stop> {
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
}

impl Station for Requests {
    type Pass = Pass;

    fn has_room(&self) -> bool {
        self.shared.pending.has_room()
    }

    fn record(&mut self, frame: &Frame) -> Result<Recorded<Pass>, Stop> {
        let mark = self.pass_through(frame)?;
        Ok(Recorded {
            mark,
            fate: Fate::Relay(Pass::ungated()),
        })
    }

    fn settle(&mut self, due: Due) -> Result<(), ChainError> {
        if let Some(mark) = due.relayed {
            self.shared.writer.settle_intent(mark)?;
        }
        if let Some(mark) = due.refused {
            self.shared.writer.settle_outcome(mark)?;
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

    fn sender_gone(&mut self) {
        self.shared.notify(Notice::ClientGone);
    }
}

/// The tool of a call whose `params.name` is missing or not a string.
const UNKNOWN: &str = "<unknown>";

/// The tool of a frame that could not be read.
const UNREADABLE: &str = "<unreadable>";
