use std::sync::mpsc;
use std::thread;

use super::super::sink::MemorySink;
use super::super::testing::{
    FaultSink, GateSink, answered, check, key, of_type, open, record_call, start,
};
use super::*;
use crate::wire::facts::Follows;

/// SPEC [CHAIN-1] [CHAIN-4].
#[test]
fn eight_threads_write_one_chain() {
    let sink = MemorySink::new();
    let writer = open(sink.clone(), Durability::Full).unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            let writer = writer.clone();
            scope.spawn(move || {
                for _ in 0..200 {
                    record_call(&writer, "echo").unwrap();
                }
            });
        }
    });
    writer.close(Totals::default()).unwrap();
    let rows = check(&sink.bytes());
    assert_eq!(rows.len(), 1 + 2 * 1_600 + 1);
    let ids = |line_type| {
        let mut ids: Vec<_> = of_type(&rows, line_type)
            .iter()
            .map(|row| row["call_id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids
    };
    let mut expected: Vec<_> = (1..=1_600).map(|n| format!("call-{n}")).collect();
    expected.sort();
    assert_eq!(ids("intent"), expected);
    assert_eq!(ids("outcome"), expected);
    assert_eq!(rows.last().unwrap()["calls"], 1_600);
}

/// Records until something fails, then checks that nothing works any more.
fn record_until_failure(sink: &FaultSink, durability: Durability) -> Option<String> {
    let writer = match open(sink.clone(), durability) {
        Ok(writer) => writer,
        Err(error) => return Some(error.to_string()),
    };
    let (sender, heard) = mpsc::channel();
    writer.on_break(move |broken| sender.send(broken.to_string()).unwrap());
    let spare = writer.begin("spare", Digest::of(b"spare"));
    let recorded = spare
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|_| record_call(&writer, "echo"));
    let failed = match recorded {
        Ok(()) => {
            drop(spare);
            writer.close(Totals::default()).err()?
        }
        Err(error) => error,
    };
    let count = sink.ops().len();
    let text = failed.to_string();
    let mark = writer.session.commit.mark();
    let again = [
        writer.begin("again", Digest::of(b"again")).map(drop),
        writer.settle_intent(mark),
        writer.settle_outcome(mark),
        writer.close(Totals::default()),
    ];
    for error in again {
        assert_eq!(error.unwrap_err().to_string(), text);
    }
    assert_eq!(
        heard.try_iter().collect::<Vec<_>>(),
        std::slice::from_ref(&text)
    );
    drop(writer);
    assert_eq!(sink.ops().len(), count, "something was tried again");
    Some(text)
}

/// SPEC [CHAIN-7] [CHAIN-8] [CHAIN-9]: it does not go on at all.
#[test]
fn a_fault_at_any_operation_ends_all_recording() {
    for durability in [Durability::Full, Durability::Process] {
        let whole = FaultSink::new(usize::MAX);
        assert_eq!(record_until_failure(&whole, durability), None);
        check(&whole.rows.bytes());
        let ops = whole.ops();
        assert!(ops.len() >= 8, "{ops:?}");
        for (at, op) in ops.iter().enumerate() {
            let sink = FaultSink::new(at);
            let step = if *op == "append" { "write" } else { "flush" };
            assert_eq!(
                record_until_failure(&sink, durability),
                Some(format!(
                    "audit {step} failed: {op} fault; nothing more will be recorded"
                ))
            );
            assert_eq!(sink.ops(), ops[..=at]);
            let appended = ops[..at].iter().filter(|op| **op == "append").count();
            assert_eq!(check(&sink.rows.bytes()).len(), appended);
        }
    }
}

/// SPEC [DUR-6].
#[test]
fn an_outcome_is_flushed_though_nobody_waits() {
    assert!(MAX_UNFLUSHED <= Duration::from_millis(50));
    let sink = GateSink::default();
    let writer = open(sink.clone(), Durability::Intent).unwrap();
    let call = writer.begin("echo", Digest::of(b"")).unwrap();
    writer.settle_intent(call.intent_mark()).unwrap();
    sink.shut();
    let mark = call.finish(answered()).unwrap();
    writer.settle_outcome(mark).unwrap();
    sink.wait_started(1);
    sink.let_go();
    // A second outcome is due anew.
    let call = writer.begin("echo", Digest::of(b"")).unwrap();
    call.finish(answered()).unwrap();
    sink.wait_started(2);
    sink.let_go();
    sink.let_go();
    writer.close(Totals::default()).unwrap();
}

/// SPEC [CHAIN-9] [DUR-6].
#[test]
fn a_flush_that_nobody_waits_for_breaks_the_writer_too() {
    // open, flush, intent, outcome, and the timer's flush.
    let sink = FaultSink::new(4);
    let writer = open(sink, Durability::Intent).unwrap();
    let (sender, heard) = mpsc::channel();
    writer.on_break(move |broken| sender.send(broken.clone()).unwrap());
    let call = writer.begin("echo", Digest::of(b"")).unwrap();
    let mark = call.finish(answered()).unwrap();
    let broken = heard.recv().unwrap();
    assert_eq!(
        writer.settle_outcome(mark),
        Err(ChainError::Broken(broken.clone()))
    );
    assert_eq!(
        writer.begin("echo", Digest::of(b"")).map(drop),
        Err(ChainError::Broken(broken))
    );
}

#[test]
fn a_listener_may_drop_the_last_clone() {
    let sink = FaultSink::new(4);
    let writer = open(sink, Durability::Intent).unwrap();
    let (sender, heard) = mpsc::channel();
    let (give, take) = mpsc::channel::<Writer>();
    writer.on_break(move |_| {
        drop(take.recv().unwrap());
        sender.send(()).unwrap();
    });
    let call = writer.begin("echo", Digest::of(b"")).unwrap();
    call.finish(answered()).unwrap();
    give.send(writer).unwrap();
    heard.recv().unwrap();
}

/// SPEC [DUR-7] [DUR-9].
#[test]
fn the_mode_decides_what_is_flushed() {
    for (durability, flushes) in [
        (Durability::Full, 4),
        // The third by the timer or by `close`.
        (Durability::Intent, 4),
        (Durability::Process, 3),
    ] {
        let sink = FaultSink::new(usize::MAX);
        let writer = open(sink.clone(), durability).unwrap();
        record_call(&writer, "echo").unwrap();
        writer.close(Totals::default()).unwrap();
        let flushed = sink.ops().iter().filter(|op| **op == "flush").count();
        assert_eq!(flushed, flushes, "{durability}");
        assert!(sink.ops().ends_with(&["flush", "append", "flush"]));
        let rows = check(&sink.rows.bytes());
        assert_eq!(rows[0]["durability"], durability.to_string());
    }
}

/// SPEC [KEY-14].
#[test]
fn the_dev_key_signs_nothing_that_is_kept() {
    let sink = FaultSink::new(usize::MAX);
    let refused = Writer::open(
        sink.clone(),
        SigningKey::insecure_dev(),
        start(Durability::Full),
    );
    assert_eq!(
        refused.map(drop).unwrap_err().to_string(),
        "a durable audit sink needs a provisioned signing key; the insecure dev key may only \
         sign a volatile sink (generate one with `aegis keygen --out <PATH>`)"
    );
    assert_eq!(sink.ops(), [""; 0]);
    let sink = MemorySink::new();
    let dev = SigningKey::insecure_dev();
    drop(Writer::open(sink.clone(), dev, start(Durability::Full)).unwrap());
    assert_eq!(check(&sink.bytes()).len(), 2);
}

/// SPEC [LINE-2] [SESS-4].
#[test]
fn a_session_closes_once_and_only_without_open_calls() {
    let sink = MemorySink::new();
    let writer = open(sink.clone(), Durability::Full).unwrap();
    let call = writer.begin("echo", Digest::of(b"")).unwrap();
    assert_eq!(
        writer.close(Totals::default()),
        Err(ChainError::OpenCalls(1))
    );
    call.finish(answered()).unwrap();
    let totals = Totals {
        unreadable_frames: Some(3),
        reloads: Some(0),
        egress: None,
    };
    writer.close(totals).unwrap();
    assert_eq!(writer.close(Totals::default()), Err(ChainError::Closed));
    assert!(writer.begin("echo", Digest::of(b"")).is_err());
    drop(writer);
    let rows = check(&sink.bytes());
    let close = rows.last().unwrap();
    assert_eq!(rows.len(), 4);
    assert_eq!(close["calls"], 1);
    assert_eq!(close["unreadable_frames"], 3);
    assert_eq!(close["reloads"], 0);
    assert_eq!(close["time"], "2026-01-01T00:00:00.000Z");
}

fn follows(count: usize) -> SessionStart {
    let mut start = start(Durability::Full);
    start.facts.follows = vec![
        Follows {
            segment: "s".to_owned(),
            tail: Digest::GENESIS,
        };
        count
    ];
    start
}

/// SPEC [LINE-24].
#[test]
fn an_open_line_has_its_own_bound() {
    let size = |count| {
        let sink = MemorySink::new();
        Writer::open(sink.clone(), key(), follows(count)).map(|writer| {
            drop(writer);
            sink.bytes().iter().position(|&b| b == b'\n').unwrap()
        })
    };
    let each = size(2).unwrap() - size(1).unwrap();
    let most = 1 + (MAX_OPEN_BYTES - size(1).unwrap()) / each;
    assert!(size(most).unwrap() > MAX_LINE_BYTES);
    assert_eq!((MAX_LINE_BYTES, MAX_OPEN_BYTES), (65_536, 1_048_576));
    let sink = MemorySink::new();
    let refused = Writer::open(sink.clone(), key(), follows(most + 1)).map(drop);
    assert!(matches!(refused, Err(ChainError::TooLong { .. })));
    assert_eq!(sink.bytes(), b"");
}

#[test]
fn a_panic_while_a_line_is_made_breaks_the_writer() {
    let sink = MemorySink::new();
    let mut start = start(Durability::Full);
    let ticks = std::sync::atomic::AtomicU64::new(0);
    start.clock = Box::new(move || {
        let tick = ticks.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        assert!(tick != 1, "expected by this test");
        Timestamp::from_unix_ms(tick)
    });
    let writer = Writer::open(sink.clone(), key(), start).unwrap();
    let (sender, heard) = mpsc::channel();
    writer.on_break(move |broken| sender.send(broken.to_string()).unwrap());
    let begun = thread::scope(|scope| {
        scope
            .spawn(|| writer.begin("echo", Digest::of(b"")).map(drop))
            .join()
    });
    assert!(begun.is_err());
    let text = "audit write failed: a thread panicked in the middle of it; nothing more will be \
                recorded";
    let error = writer.begin("echo", Digest::of(b"")).map(drop).unwrap_err();
    assert_eq!(error.to_string(), text);
    drop(writer);
    assert_eq!(heard.iter().collect::<Vec<_>>(), [text]);
    assert_eq!(check(&sink.bytes()).len(), 1);
}
