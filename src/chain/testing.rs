//! What the tests of this room, and of those that record, share: a start, a check of whole files, sinks
//! that fail or wait when told to.

use std::io;
use std::sync::{Arc, Condvar, Mutex};

use serde_json::Value;

use super::ending::{Answered, Ending, Standing};
use super::sink::{MemorySink, Retention, Sink};
use super::writer::{ChainError, SessionStart, Totals, Writer};
use crate::sign::{PublicKey, Signature, SigningKey, verify_strict};
use crate::wire::decode::{Name, Row};
use crate::wire::digest::{self, Digest};
use crate::wire::facts::Durability;
use crate::wire::line::OpenFacts;
use crate::wire::outcome::{Answer, AnswerKind};
use crate::wire::time::Timestamp;

pub(super) fn key() -> SigningKey {
    SigningKey::from_seed(&[9; 32])
}

pub(super) fn start(durability: Durability) -> SessionStart {
    SessionStart {
        facts: OpenFacts::default(),
        prev_session_tail: None,
        durability,
        clock: Box::new(|| Timestamp::from_unix_ms(1_767_225_600_000)),
    }
}

pub(crate) fn open(
    sink: impl Sink + 'static,
    durability: Durability,
) -> Result<Writer, ChainError> {
    Writer::open(sink, key(), start(durability))
}

/// One whole Call that is passed through and answered.
pub(super) fn record_call(writer: &Writer, tool: &str) -> Result<(), ChainError> {
    let mut call = writer.begin(tool, Digest::of(b"request"))?;
    call.stand(Standing::passed_through(call.id(), tool))?;
    writer.settle_intent(call.intent_mark())?;
    let mark = call.finish(answered())?;
    writer.settle_outcome(mark)
}

pub(super) fn answered() -> Ending {
    Ending::Answered(Answered {
        answer: Answer::of(AnswerKind::Result),
        response_digest: Digest::of(b"response"),
        wall_ms: Some(7),
        message_digest: None,
    })
}

/// The rows of a file with one Session of `calls` Calls, closed.
pub(super) fn session(calls: usize, prev_session_tail: Option<Digest<digest::Line>>) -> Vec<u8> {
    let sink = MemorySink::new();
    let writer = Writer::open(
        sink.clone(),
        key(),
        SessionStart {
            prev_session_tail,
            ..start(Durability::Process)
        },
    )
    .unwrap();
    for _ in 0..calls {
        record_call(&writer, "echo").unwrap();
    }
    writer.close(Totals::default()).unwrap();
    sink.bytes()
}

/// `rows` without the last `n`.
pub(super) fn without_last(rows: &[u8], n: usize) -> &[u8] {
    let mut end = rows.len();
    for _ in 0..n {
        end = rows[..end - 1].iter().rposition(|&b| b == b'\n').unwrap() + 1;
    }
    &rows[..end]
}

/// Checks that `file` is whole canonical rows, that each links to the one
/// before it, and every signature. Returns the rows.
pub(crate) fn check(file: &[u8]) -> Vec<Value> {
    // SPEC [MODEL-1].
    assert!(file.is_empty() || file.ends_with(b"\n"), "torn");
    let mut key = None;
    let mut place: Option<(u64, Digest<digest::Line>)> = None;
    let mut rows = Vec::new();
    for bytes in file.split_inclusive(|&b| b == b'\n') {
        let bytes = &bytes[..bytes.len() - 1];
        // SPEC [MODEL-2] [LINE-1].
        let row = Row::read_canonical(bytes).expect("canonical");
        assert_eq!(row.integer(Name::SchemaVersion), Some(2));
        if row.string(Name::LineType).unwrap() == "open" {
            // SPEC [SESS-1] [SESS-2] [SESS-3] [WIRE-2].
            let tail = place.take().map(|(_, hash)| hash);
            assert_eq!(row.digest(Name::PrevSessionTail), tail);
            key = PublicKey::from_hex(&row.string(Name::PublicKey).unwrap()).ok();
        }
        let (seq, prev) = place.map_or((0, Digest::GENESIS), |(seq, hash)| (seq + 1, hash));
        assert_eq!(row.integer(Name::Seq), Some(seq));
        assert_eq!(row.digest(Name::PrevHash), Some(prev));
        // SPEC [LINE-3] [LINE-4].
        let is_signed = row.string(Name::LineType).unwrap() != "intent";
        assert_eq!(row.has(Name::Signature), is_signed);
        assert_eq!(row.has(Name::KeyId), is_signed);
        if let Some(signature) = row.string(Name::Signature) {
            let mut input = Vec::new();
            row.push_signing_input(&mut input);
            let signature = Signature::from_hex(&signature).unwrap();
            verify_strict(&key.unwrap(), &input, &signature).unwrap();
        }
        place = Some((seq, row.line_hash()));
        rows.push(serde_json::from_slice(bytes).unwrap());
    }
    rows
}

/// The rows of `line_type`.
pub(super) fn of_type<'a>(rows: &'a [Value], line_type: &str) -> Vec<&'a Value> {
    rows.iter()
        .filter(|r| r["line_type"] == line_type)
        .collect()
}

/// A Durable sink in memory whose `fail_at`th operation (from 0) fails.
#[derive(Clone)]
pub(crate) struct FaultSink {
    pub(crate) rows: MemorySink,
    pub(crate) ops: Arc<Mutex<Vec<&'static str>>>,
    fail_at: usize,
}

impl FaultSink {
    pub(crate) fn new(fail_at: usize) -> Self {
        Self {
            rows: MemorySink::new(),
            ops: Arc::default(),
            fail_at,
        }
    }

    pub(super) fn ops(&self) -> Vec<&'static str> {
        self.ops.lock().unwrap().clone()
    }

    fn op(&self, name: &'static str) -> io::Result<()> {
        let mut ops = self.ops.lock().unwrap();
        ops.push(name);
        if ops.len() - 1 == self.fail_at {
            return Err(io::Error::other(format!("{name} fault")));
        }
        Ok(())
    }
}

impl Sink for FaultSink {
    fn retention(&self) -> Retention {
        Retention::Durable
    }

    fn append(&self, row: &[u8]) -> io::Result<()> {
        self.op("append")?;
        self.rows.append(row)
    }

    fn flush(&self) -> io::Result<()> {
        self.op("flush")
    }
}

/// A Durable sink in memory whose flushes wait until they are let go.
#[derive(Clone, Default)]
pub(crate) struct GateSink {
    pub(crate) rows: MemorySink,
    gate: Arc<(Mutex<Gate>, Condvar)>,
}

#[derive(Default)]
struct Gate {
    closed: bool,
    started: usize,
    let_go: usize,
}

impl GateSink {
    /// From here on flushes wait; counts them from 0 again.
    pub(crate) fn shut(&self) {
        *self.gate.0.lock().unwrap() = Gate {
            closed: true,
            ..Gate::default()
        };
    }

    /// Waits until `n` flushes have started since the gate was shut.
    pub(crate) fn wait_started(&self, n: usize) {
        let gate = self.gate.0.lock().unwrap();
        drop(self.gate.1.wait_while(gate, |g| g.started < n).unwrap());
    }

    pub(crate) fn started(&self) -> usize {
        self.gate.0.lock().unwrap().started
    }

    /// Lets one flush more return.
    pub(crate) fn let_go(&self) {
        self.gate.0.lock().unwrap().let_go += 1;
        self.gate.1.notify_all();
    }
}

impl Sink for GateSink {
    fn retention(&self) -> Retention {
        Retention::Durable
    }

    fn append(&self, row: &[u8]) -> io::Result<()> {
        self.rows.append(row)
    }

    fn flush(&self) -> io::Result<()> {
        let mut gate = self.gate.0.lock().unwrap();
        gate.started += 1;
        let mine = gate.started;
        self.gate.1.notify_all();
        while gate.closed && gate.let_go < mine {
            gate = self.gate.1.wait(gate).unwrap();
        }
        Ok(())
    }
}
