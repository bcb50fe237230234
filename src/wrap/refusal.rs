//! The one message that wrap authors: a Call that does not go on is answered
//! with an error, so that nobody waits for its id.

use std::io;

use super::Deny;
use super::loose::nobody_waits;
use crate::rpc::frame::Frame;
use crate::rpc::message::{Kind, Member, Message};
use crate::rpc::scan::Scan;
use crate::stations::{Code, Refused, RefusedPart, usable_id};
use crate::wire::line::MAX_TEXT_BYTES;

/// Answers what is refused, in the era of the frame.
#[derive(Debug)]
pub(super) struct Refusals {
    deny: Deny,
    /// A frame declared a modern version of MCP.
    met_modern: bool,
}

/// What one refused message is answered.
struct Answer<'a> {
    code: Code,
    part: Option<&'a RefusedPart>,
}

impl Refusals {
    pub(super) fn new(deny: Deny) -> Self {
        Self {
            deny,
            met_modern: false,
        }
    }

    /// Notes what a frame says of its era.
    pub(super) fn meet(&mut self, scan: &Scan) {
        self.met_modern = self.met_modern || is_modern(scan);
    }

    /// The line that answers a frame which is refused; `None` when nobody
    /// waits for one.
    ///
    /// # Errors
    /// When a spooled frame cannot be read back.
    pub(super) fn answer(
        &self,
        frame: &Frame,
        scan: &Scan,
        refused: &Refused,
    ) -> io::Result<Option<Vec<u8>>> {
        let mut line = Line {
            frame,
            error: self.code(scan, refused),
            detail: self.deny.detail,
            bytes: Vec::new(),
            echoed: 0,
        };
        let part = |element| refused.parts().iter().find(|part| part.element == element);
        match scan {
            Scan::Unreadable(_) if nobody_waits(frame) => return Ok(None),
            Scan::Blank | Scan::Unreadable(_) => line.object(None, &Answer::of(part(0)))?,
            Scan::Message(message) => line.object(Some(message), &Answer::of(part(0)))?,
            Scan::Batch(messages) if messages.is_empty() => {
                line.object(None, &Answer::of(part(0)))?;
            }
            Scan::Batch(messages) => line.batch(messages, refused)?,
        }
        line.bytes.push(b'\n');
        Ok(Some(line.bytes))
    }

    /// MCP 2026-07-28 forbids -32042, which meant something else before; -31042
    /// is outside of what JSON-RPC reserves.
    fn code(&self, scan: &Scan, refused: &Refused) -> i32 {
        // What cannot be read does not say its era either.
        let is_modern = is_modern(scan) || self.met_modern && refused.is_unreadable();
        match self.deny.code {
            Some(code) => code,
            None if is_modern => MODERN_CODE,
            None => LEGACY_CODE,
        }
    }
}

impl<'a> Answer<'a> {
    fn of(part: Option<&'a RefusedPart>) -> Self {
        Self {
            // A message that is stopped for its company only.
            code: part.map_or(Code::HostDenied, RefusedPart::code),
            part,
        }
    }
}

/// A line in the making.
struct Line<'a> {
    frame: &'a Frame,
    error: i32,
    detail: bool,
    bytes: Vec<u8>,
    /// Bytes of ids in it.
    echoed: u64,
}

impl Line<'_> {
    fn batch(&mut self, messages: &[Message], refused: &Refused) -> io::Result<()> {
        // They are in the order of the elements.
        let mut parts = refused.parts().iter().peekable();
        self.bytes.push(b'[');
        let mut is_first = true;
        for (element, message) in messages.iter().enumerate() {
            let part = parts.next_if(|part| part.element == element);
            if part.is_none() && message.kind() != Kind::Request {
                continue;
            }
            if !is_first {
                self.bytes.push(b',');
            }
            is_first = false;
            self.object(Some(message), &Answer::of(part))?;
        }
        self.bytes.push(b']');
        Ok(())
    }

    fn object(&mut self, message: Option<&Message>, answer: &Answer<'_>) -> io::Result<()> {
        let (error, code) = (self.error, answer.code.name());
        self.text(&format!(
            r#"{{"error":{{"code":{error},"data":{{"aegis":{{"code":"{code}","layer":"wrap""#
        ));
        if self.detail {
            self.detail(answer)?;
        }
        self.text(r#"}},"message":"aegis wrap refused this tools/call"},"id":"#);
        self.id(message, answer)?;
        self.text(r#","jsonrpc":"2.0"}"#);
        Ok(())
    }

    fn detail(&mut self, answer: &Answer<'_>) -> io::Result<()> {
        let reason = answer.part.map(RefusedPart::reason);
        self.text(r#","reason":"#);
        self.string(reason.as_deref().unwrap_or(COMPANY))?;
        self.text(r#","retryable":false"#);
        if let Some(rule) = answer.part.and_then(|part| part.rule.as_deref()) {
            self.text(r#","rule":"#);
            self.string(rule)?;
        }
        Ok(())
    }

    /// The id as it came, byte for byte.
    fn id(&mut self, message: Option<&Message>, answer: &Answer<'_>) -> io::Result<()> {
        let is_unreadable = answer.part.is_some_and(RefusedPart::is_unreadable);
        let span = message
            .filter(|_| !is_unreadable)
            .and_then(usable_id)
            .filter(|span| self.echoed + (span.end - span.start) <= MAX_ECHO_BYTES);
        let Some(span) = span else {
            self.text("null");
            return Ok(());
        };
        self.echoed += span.end - span.start;
        let id = self.frame.copy_span(span)?;
        self.bytes.extend_from_slice(&id);
        Ok(())
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// A string, cut as it is in the record.
    fn string(&mut self, text: &str) -> io::Result<()> {
        let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        Ok(serde_json::to_writer(&mut self.bytes, text)?)
    }
}

/// Whether a frame declares a version of MCP that has no `initialize`.
fn is_modern(scan: &Scan) -> bool {
    let declares = |message: &Message| match &message.params.meta_version {
        // Versions are dates, and a draft's name begins with a letter.
        Member::Text(version) => version.head() >= FIRST_MODERN,
        Member::Absent | Member::NotAString => false,
    };
    match scan {
        Scan::Message(message) => declares(message),
        Scan::Batch(messages) => messages.iter().any(declares),
        Scan::Blank | Scan::Unreadable(_) => false,
    }
}

/// Why a message that is no Call does not go on.
const COMPANY: &str = "not executed: a call in this batch was refused";

const LEGACY_CODE: i32 = -32042;

const MODERN_CODE: i32 = -31042;

const FIRST_MODERN: &str = "2026-07-28";

/// Bytes of ids that one line echoes; what comes after has a null id. No frame
/// that fits in memory has more.
const MAX_ECHO_BYTES: u64 = 8 << 20;
