use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use super::answers::Answers;
use super::lane::relay;
use super::pending::MAX_OPEN;
use super::requests::Requests;
use super::*;
use crate::chain::testing::{FaultSink, GateSink, open};
use crate::rpc::frame::{FrameLimits, FrameReader};

const ANSWER: &str = "{\"id\":1,\"result\":{}}\n";

fn request(bytes: usize) -> String {
    let text = "x".repeat(bytes);
    format!(
        "{{\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"t\",\"x\":\"{text}\"}}}}\n"
    )
}

fn shared(writer: Writer) -> (Arc<Shared>, Receiver<Notice>) {
    let (notices, heard) = mpsc::channel();
    let shared = Shared {
        writer,
        pending: Pending::new(MAX_OPEN, None),
        listings: Listings::default(),
        gate: None,
        unreadable: AtomicU64::new(0),
        notices,
        begun: Instant::now(),
        over: AtomicBool::new(false),
        spoke_ms: AtomicU64::new(0),
    };
    (Arc::new(shared), heard)
}

/// Frames of which those past a few KiB are spooled.
fn frames(input: &str) -> FrameReader<&[u8]> {
    let mut limits = FrameLimits::new(std::env::temp_dir());
    limits.in_memory = 4 << 10;
    FrameReader::new(input.as_bytes(), limits)
}

/// What a lane hands on, and the Lines that were written by then.
#[derive(Clone)]
struct Out {
    bytes: Arc<Mutex<Vec<u8>>>,
    lines: Arc<Mutex<Vec<String>>>,
    sink: GateSink,
}

impl Out {
    fn beside(sink: &GateSink) -> Self {
        Self {
            bytes: Arc::default(),
            lines: Arc::default(),
            sink: sink.clone(),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().unwrap().clone()
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.bytes.lock().unwrap();
        if all.is_empty() {
            *self.lines.lock().unwrap() = types(&self.sink);
        }
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn types(sink: &GateSink) -> Vec<String> {
    let rows = String::from_utf8(sink.rows.bytes()).unwrap();
    let types = rows.lines().map(|row| {
        let row: Value = serde_json::from_str(row).unwrap();
        row["line_type"].as_str().unwrap().to_owned()
    });
    types.collect()
}

/// Lets as many flushes return as the end of a session can ask for.
fn let_all_go(sink: &GateSink) {
    for _ in 0..16 {
        sink.let_go();
    }
}

/// SPEC [DUR-1] [DUR-3].
#[test]
fn no_byte_of_a_call_goes_on_before_the_flush_of_its_intent_has_returned() {
    for durability in [Durability::Full, Durability::Intent] {
        // Held in memory, and spooled.
        for bytes in [1, 100 << 10] {
            let sink = GateSink::default();
            let (shared, _heard) = shared(open(sink.clone(), durability).unwrap());
            let out = Out::beside(&sink);
            let request = request(bytes);
            sink.shut();
            thread::scope(|scope| {
                let lane = scope.spawn(|| {
                    let mut station = Requests::new(Arc::clone(&shared), Deny::default());
                    relay(&mut frames(&request), out.clone(), io::sink(), &mut station)
                });
                sink.wait_started(1);
                let seen = (types(&sink), out.bytes());
                // Judged once the lane cannot wait any more.
                let_all_go(&sink);
                assert!(matches!(lane.join().unwrap(), Stop::Eof));
                assert_eq!(seen.0, ["open", "intent"]);
                assert_eq!(seen.1, b"");
            });
            assert_eq!(out.bytes(), request.as_bytes());
        }
    }
}

#[test]
fn in_mode_process_a_call_waits_for_no_flush() {
    let sink = GateSink::default();
    let (shared, _heard) = shared(open(sink.clone(), Durability::Process).unwrap());
    let mut out = Out::beside(&sink);
    sink.shut();
    let mut station = Requests::new(Arc::clone(&shared), Deny::default());
    relay(&mut frames(&request(1)), &mut out, io::sink(), &mut station);
    assert_eq!(*out.lines.lock().unwrap(), ["open", "intent"]);
    assert_eq!(sink.started(), 0);
    let_all_go(&sink);
}

/// SPEC [DUR-1] [CHAIN-9]: what a failed flush was to cover stays here.
#[test]
fn a_call_whose_intent_is_not_flushed_does_not_go_on() {
    for durability in [Durability::Full, Durability::Intent] {
        // open, flush, intent, flush.
        let sink = FaultSink::new(3);
        let (shared, _heard) = shared(open(sink.clone(), durability).unwrap());
        let mut out = Vec::new();
        let mut station = Requests::new(Arc::clone(&shared), Deny::default());
        let twice = request(1).repeat(2);
        let stop = relay(&mut frames(&twice), &mut out, io::sink(), &mut station);
        assert!(matches!(stop, Stop::Chain(ChainError::Broken(_))));
        assert_eq!(out, b"");
    }
}

/// SPEC [DUR-4].
#[test]
fn no_byte_of_an_answer_goes_on_before_its_outcome_is_written() {
    for durability in [Durability::Full, Durability::Intent, Durability::Process] {
        let sink = GateSink::default();
        let (shared, _heard) = shared(open(sink.clone(), durability).unwrap());
        let mut station = Requests::new(Arc::clone(&shared), Deny::default());
        relay(
            &mut frames(&request(1)),
            io::sink(),
            io::sink(),
            &mut station,
        );
        let mut out = Out::beside(&sink);
        let mut station = Answers::new(Arc::clone(&shared), false);
        relay(&mut frames(ANSWER), &mut out, io::sink(), &mut station);
        assert_eq!(out.bytes(), ANSWER.as_bytes());
        assert_eq!(*out.lines.lock().unwrap(), ["open", "intent", "outcome"]);
    }
}

/// SPEC [DUR-5].
#[test]
fn in_mode_full_no_byte_of_an_answer_goes_on_before_the_flush_of_its_outcome() {
    let sink = GateSink::default();
    let (shared, _heard) = shared(open(sink.clone(), Durability::Full).unwrap());
    let mut station = Requests::new(Arc::clone(&shared), Deny::default());
    relay(
        &mut frames(&request(1)),
        io::sink(),
        io::sink(),
        &mut station,
    );
    let out = Out::beside(&sink);
    sink.shut();
    thread::scope(|scope| {
        let lane = scope.spawn(|| {
            let mut station = Answers::new(Arc::clone(&shared), false);
            relay(&mut frames(ANSWER), out.clone(), io::sink(), &mut station)
        });
        sink.wait_started(1);
        let seen = (types(&sink), out.bytes());
        let_all_go(&sink);
        lane.join().unwrap();
        assert_eq!(seen.0, ["open", "intent", "outcome"]);
        assert_eq!(seen.1, b"");
    });
    assert_eq!(out.bytes(), ANSWER.as_bytes());
}

mod bypass;
mod gate;
