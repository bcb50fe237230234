//! The lane from the client to the child: every `tools/call` has its intent
//! before its first byte goes on, and goes on only if the policy lets it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::digest::FrameDigest;
use super::lane::{Due, Fate, Recorded, Station, Stop};
use super::pending::{Begun, Ticket, is_usable};
use super::refusal::Refusals;
use super::retry::Asked;
use super::{Deny, Notice, Shared};
use crate::chain::commit::Mark;
use crate::chain::ending::{Ending, Standing, Unanswered};
use crate::chain::writer::{ChainError, Tool};
use crate::rpc::frame::Frame;
use crate::rpc::message::{Member, Message, RpcId};
use crate::rpc::scan::{Scan, Scanner};
use crate::stations::{self, Grounds, Judged, Pass, Refused, RefusedPart};
use crate::wire::digest::{Digest, Request, ToolDefinition};
use crate::wire::spelled::{UNKNOWN_TOOL, UNREADABLE_TOOL};

/// Records what the client asks for, and refuses what the policy does not
/// allow.
pub(super) struct Requests {
    shared: Arc<Shared>,
    scanner: Scanner,
    refusals: Refusals,
    /// Calls that no answer can be matched to: concluded once they went on.
    unmatched: Vec<(Ticket, Unanswered)>,
    /// The frame at hand is among those that could not be read.
    is_counted: bool,
    /// The child reads no more.
    reader_gone: bool,
}

impl Requests {
    pub(super) fn new(shared: Arc<Shared>, deny: Deny) -> Self {
        Self {
            shared,
            scanner: Scanner::new(),
            refusals: Refusals::new(deny),
            unmatched: Vec::new(),
            is_counted: false,
            reader_gone: false,
        }
    }

    /// Records a frame that goes on.
    fn forward(
        &mut self,
        scan: &Scan,
        frame: &Frame,
        mut grounds: Grounds,
    ) -> Result<Option<Mark>, Stop> {
        let mut digest = FrameDigest::of(frame);
        let messages = match scan {
            Scan::Message(message) => std::slice::from_ref(&**message),
            Scan::Batch(messages) => messages,
            Scan::Blank | Scan::Unreadable(_) => &[],
        };
        let is_unreadable = grounds.has_whole(scan);
        if is_unreadable || messages.iter().any(|message| grounds.has(message)) {
            self.shared.pending.wait_for_room()?;
        }
        if is_unreadable {
            if let Scan::Unreadable(_) = scan {
                self.shared.listings.asked_unreadably();
            }
            let mark = self.unreadable(&mut grounds, digest.value()?)?;
            return Ok(Some(mark));
        }
        let mut last = None;
        for message in messages {
            self.shared.listings.asked(message);
            if message.method.as_whole() == Some("notifications/cancelled") {
                self.shared.pending.cancel(&message.params.request_id);
            }
            if grounds.has(message) {
                let digest = digest.value()?;
                last = Some(match message.is_tools_call() {
                    true => self.call(message, &mut grounds, digest)?,
                    false => self.unreadable(&mut grounds, digest)?,
                });
            }
        }
        Ok(last)
    }

    fn call(
        &mut self,
        message: &Message,
        grounds: &mut Grounds,
        digest: Digest<Request>,
    ) -> Result<Mark, Stop> {
        let (id, asked) = (message.id.clone(), Asked::of(message));
        let begun = self.begin(id, asked, tool(message), digest, grounds, || {})?;
        if !is_usable(&message.id) {
            self.unmatched.push((begun.ticket, Unanswered::NoId));
        }
        Ok(begun.mark)
    }

    fn unreadable(&mut self, grounds: &mut Grounds, digest: Digest<Request>) -> Result<Mark, Stop> {
        let (id, asked) = (RpcId::Absent, Asked::default());
        let tool = Tool::of(UNREADABLE_TOOL, None);
        let begun = self.begin(id, asked, tool, digest, grounds, || {
            // A batch may hold several such messages.
            if !self.is_counted {
                self.shared.unreadable.fetch_add(1, Ordering::Relaxed);
            }
        })?;
        self.is_counted = true;
        self.unmatched.push((begun.ticket, Unanswered::Unreadable));
        Ok(begun.mark)
    }

    /// Begins a Call. `count` is called with it, so that the end of the session
    /// finds both or neither.
    fn begin(
        &self,
        id: RpcId,
        asked: Asked,
        tool: Tool,
        digest: Digest<Request>,
        grounds: &mut Grounds,
        count: impl FnOnce(),
    ) -> Result<Begun, Stop> {
        let writer = &self.shared.writer;
        let tool_digest = self.shown(&asked);
        let begun = self.shared.pending.begin(id, asked, |resumes| {
            let mut call = writer.begin(tool, digest)?;
            let standing = Standing {
                resumes,
                tool_digest,
                ..grounds.next_standing(call.id(), call.tool_id())
            };
            call.stand(standing)?;
            count();
            Ok(call)
        })?;
        begun.ok_or(Stop::Ended)
    }

    /// Records a frame that does not go on, and says what the client is told.
    fn refuse(
        &self,
        scan: &Scan,
        frame: &Frame,
        refused: &Refused,
    ) -> Result<Recorded<Pass>, Stop> {
        let digest = FrameDigest::of(frame).value()?;
        let mut mark = None;
        let mut is_counted = false;
        for part in refused.parts() {
            let counts = part.is_unreadable() && !is_counted;
            let message = refused_message(scan, part);
            mark = Some(self.refuse_part(refused, part, message, digest, counts)?);
            is_counted |= counts;
        }
        let answer = self.refusals.answer(frame, scan, refused);
        Ok(Recorded {
            mark,
            fate: match answer.map_err(Stop::Spool)? {
                Some(line) => Fate::Refuse(line),
                None => Fate::Drop,
            },
        })
    }

    fn refuse_part(
        &self,
        refused: &Refused,
        part: &RefusedPart,
        message: Option<&Message>,
        digest: Digest<Request>,
        counts: bool,
    ) -> Result<Mark, Stop> {
        let tool = message.map_or_else(|| Tool::of(UNREADABLE_TOOL, None), tool);
        let tool_digest = message.and_then(|message| self.shown(&Asked::of(message)));
        let recorded = self.shared.pending.refuse(|| {
            let mut call = self.shared.writer.begin(tool, digest)?;
            call.stand(Standing {
                tool_digest,
                ..refused.standing(part)
            })?;
            if counts {
                self.shared.unreadable.fetch_add(1, Ordering::Relaxed);
            }
            call.finish(Ending::NotExecuted(part.not_executed()))
        })?;
        recorded.ok_or(Stop::Ended)
    }

    /// The definition of the tool as the client was last shown it.
    fn shown(&self, asked: &Asked) -> Option<Digest<ToolDefinition>> {
        self.shared.listings.digest_of(&asked.tool()?)
    }
}

/// The tool of a `tools/call`.
fn tool(message: &Message) -> Tool {
    match &message.params.name {
        Member::Text(name) => Tool::of(name.head(), name.cut().map(|cut| (cut.bytes, cut.sum))),
        Member::Absent | Member::NotAString => Tool::of(UNKNOWN_TOOL, None),
    }
}

/// The message that a part was read as, if it could be read.
fn refused_message<'a>(scan: &'a Scan, part: &RefusedPart) -> Option<&'a Message> {
    let message = match scan {
        Scan::Message(message) => Some(&**message),
        Scan::Batch(messages) => messages.get(part.element),
        Scan::Blank | Scan::Unreadable(_) => None,
    };
    message.filter(|_| !part.is_unreadable())
}

impl Station for Requests {
    type Pass = Pass;

    fn has_room(&self) -> bool {
        self.shared.pending.has_room()
    }

    fn record(&mut self, frame: &Frame) -> Result<Recorded<Pass>, Stop> {
        let scan = self.scanner.scan(frame).map_err(Stop::Spool)?;
        self.refusals.meet(&scan);
        self.is_counted = false;
        let judged = stations::policy(self.shared.gate.as_ref(), &scan);
        match judged {
            Judged::Permitted(permitted) => {
                let (pass, grounds) = permitted.forward();
                Ok(Recorded {
                    mark: self.forward(&scan, frame, grounds)?,
                    fate: Fate::Relay(pass),
                })
            }
            Judged::Refused(refused) => self.refuse(&scan, frame, &refused),
        }
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
