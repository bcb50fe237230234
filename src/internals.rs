//! What the benches reach of the rooms that are not public.
//!
//! Unstable: whatever a bench needs stands here, for as long as it needs it.

#[cfg(all(feature = "confine", target_os = "linux"))]
pub mod confine;
#[cfg(all(feature = "confine", target_os = "linux"))]
pub mod egress;

use std::hint::black_box;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::chain::ending::{Answered, Ending, Standing};
use crate::chain::file;
use crate::chain::sink::{MemorySink, Retention, Sink};
use crate::chain::writer::{SessionStart, Totals, Writer, system_clock};
use crate::policy::engine::Engine;
use crate::policy::recheck::{self, Told};
use crate::policy::set::Set;
use crate::policy::{self, parse};
use crate::rpc::scan::{Scan, Scanner};
use crate::sign::SigningKey;
use crate::stations::{self, Bounds, Gate, Judged};
use crate::wire::digest::{Digest, Request, Response};
use crate::wire::facts::Durability;
use crate::wire::line::OpenFacts;
use crate::wire::outcome::{Answer, AnswerKind};

/// A Session that is being written.
pub struct Recorder(Writer);

impl Recorder {
    /// A Session in the file at `path`.
    ///
    /// # Errors
    /// When the file cannot be appended to.
    pub fn in_file(path: &Path, key: SigningKey, durability: Durability) -> io::Result<Self> {
        let opened = file::open(path).map_err(io::Error::other)?;
        Self::open(opened.sink, key, durability)
    }

    /// A Session whose rows nobody keeps: what a Call costs without a disk.
    ///
    /// # Errors
    /// Never, as long as an `open` Line can be written.
    pub fn nowhere(key: SigningKey) -> io::Result<Self> {
        Self::open(Nowhere, key, Durability::Full)
    }

    fn open(
        sink: impl Sink + 'static,
        key: SigningKey,
        durability: Durability,
    ) -> io::Result<Self> {
        let start = SessionStart {
            facts: OpenFacts::default(),
            prev_session_tail: None,
            durability,
            clock: system_clock(),
        };
        let writer = Writer::open(sink, key, start).map_err(io::Error::other)?;
        Ok(Self(writer))
    }

    /// Records one Call, answered at once, with the waits that the durability
    /// asks for before its request goes on and before its answer does.
    ///
    /// # Errors
    /// When a Line was not written or not flushed.
    pub fn call(
        &self,
        tool: &str,
        request: Digest<Request>,
        response: Digest<Response>,
    ) -> io::Result<()> {
        let recorded = (|| {
            let mut call = self.0.begin(tool, request)?;
            call.stand(Standing::passed_through(call.id(), call.tool_id()))?;
            self.0.settle_intent(call.intent_mark())?;
            let mark = call.finish(Ending::Answered(Answered {
                answer: Answer::of(AnswerKind::Result),
                response_digest: response,
                wall_ms: Some(1),
                message_digest: None,
            }))?;
            self.0.settle_outcome(mark)
        })();
        recorded.map_err(io::Error::other)
    }

    /// Writes the `close` Line.
    ///
    /// # Errors
    /// When it was not written or not flushed.
    pub fn close(&self) -> io::Result<()> {
        self.0.close(Totals::default()).map_err(io::Error::other)
    }
}

/// The rows of one closed Session of Calls of `tool`, of at least `bytes`
/// bytes.
///
/// # Errors
/// When they exceed what a record in memory may have.
pub fn honest_rows(key: SigningKey, tool: &str, bytes: usize) -> io::Result<Vec<u8>> {
    let sink = MemorySink::new();
    let recorder = Recorder::open(sink.clone(), key, Durability::Process)?;
    let mut number = 0_u64;
    while sink.len() < bytes {
        number += 1;
        let of = number.to_le_bytes();
        recorder.call(tool, Digest::of(&of), Digest::of(&of))?;
    }
    recorder.close()?;
    Ok(sink.bytes())
}

/// Reads JSON-RPC frames as the relay does.
pub struct FrameScanner(Scanner);

impl FrameScanner {
    /// A scanner; it keeps its buffers from frame to frame.
    #[expect(clippy::new_without_default, reason = "nobody needs it")]
    pub fn new() -> Self {
        Self(Scanner::new())
    }

    /// Whether `frame`, without its newline, is one readable message.
    pub fn is_message(&mut self, frame: &[u8]) -> bool {
        self.0.feed(frame);
        matches!(self.0.finish(), Scan::Message(_))
    }
}

/// Judges Calls by a Policy Set.
pub struct Judge(Engine);

impl Judge {
    /// By the set of `document`.
    ///
    /// # Errors
    /// When it is no policy.
    pub fn by(document: &str) -> io::Result<Self> {
        let set = parse::parse(document.as_bytes()).map_err(io::Error::other)?;
        Ok(Self(Engine::new(set, [0; 16])))
    }

    /// Whether a Call of `tool`, at this time of a clock, may go on.
    pub fn allows(&self, tool: &str, now: Duration) -> bool {
        let request = policy::Request::tool(tool);
        self.0.judge(&[request], false, now).is_allowed()
    }
}

/// The POLICY station of the relay, and a frame that comes to it.
pub struct Station {
    gate: Option<Gate>,
    scan: Scan,
}

impl Station {
    /// That of the policy in the file at `policy`, or of none.
    ///
    /// # Errors
    /// When the policy cannot come into force.
    pub fn of(policy: Option<&Path>, frame: &[u8]) -> io::Result<Self> {
        let gate = policy.map(|path| Gate::load(path, Bounds::default()));
        let mut scanner = Scanner::new();
        scanner.feed(frame);
        Ok(Self {
            gate: gate.transpose().map_err(io::Error::other)?,
            scan: scanner.finish(),
        })
    }

    /// Judges the frame, a single message, and makes what the record says of
    /// it. Whether it may go on.
    pub fn pass(&self) -> bool {
        match stations::policy(self.gate.as_ref(), &self.scan) {
            Judged::Permitted(permitted) => {
                let (_, mut grounds) = permitted.forward();
                if let Scan::Message(message) = &self.scan
                    && grounds.has(message)
                    && let Some(tool) = message.params.name.as_whole()
                {
                    black_box(grounds.next_standing(CALL_ID, tool));
                }
                true
            }
            Judged::Refused(refused) => {
                for part in refused.parts() {
                    black_box(refused.standing(part));
                }
                false
            }
        }
    }
}

/// A Policy Set.
pub struct Policy(Set);

impl Policy {
    /// The set of `document`.
    ///
    /// # Errors
    /// When it is no policy.
    pub fn parse(document: &str) -> io::Result<Self> {
        let set = parse::parse(document.as_bytes()).map_err(io::Error::other)?;
        Ok(Self(set))
    }

    /// How many rules it has.
    pub fn count_rules(&self) -> usize {
        self.0.rules().len()
    }

    /// Rechecks a record. How many outcomes it decided about.
    ///
    /// # Errors
    /// Never, since the record is in memory.
    pub fn recheck(&self, record: &[u8]) -> io::Result<u64> {
        let mut rows = 0;
        recheck::recheck(record, &self.0, &recheck::Options::default(), &mut |told| {
            if let Told::Row(row) = told {
                rows += u64::from(black_box(row).now.is_some());
            }
        })?;
        Ok(rows)
    }
}

struct Nowhere;

impl Sink for Nowhere {
    fn retention(&self) -> Retention {
        Retention::Volatile
    }

    fn append(&self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

const CALL_ID: &str = "call-1000000";
