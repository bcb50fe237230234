use std::collections::HashMap;
use std::io::Read;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::mpsc;

use serde_json::Value;

use super::super::Deny;
use super::super::lane::{Stop, relay};
use super::super::listings::Listings;
use super::super::pending::{MAX_OPEN, Pending};
use super::super::requests::Requests;
use super::*;
use crate::chain::ending::{Ending, Unanswered};
use crate::chain::sink::MemorySink;
use crate::chain::testing::{check, open};
use crate::chain::writer::Totals;
use crate::rpc::frame::{FrameLimits, FrameReader};
use crate::stations::Bounds;
use crate::wire::digest::{Digest, Request};
use crate::wire::facts::Durability;

/// Denies this tool, and no other.
fn deny(tool: &str) -> Vec<u8> {
    format!("rules: [{{id: r, action: deny, tool: {tool}}}]").into_bytes()
}

fn gate(document: &[u8]) -> Gate {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("policy");
    std::fs::write(&path, document).unwrap();
    Gate::load(&path, Bounds::default()).unwrap()
}

fn shared(sink: &MemorySink, gate: Gate) -> Arc<Shared> {
    let (notices, _) = mpsc::channel();
    Arc::new(Shared {
        writer: open(sink.clone(), Durability::Process).unwrap(),
        pending: Pending::new(MAX_OPEN, None),
        gate: Some(gate),
        listings: Listings::default(),
        unreadable: AtomicU64::new(0),
        notices,
        begun: Instant::now(),
        over: AtomicBool::new(false),
        spoke_ms: AtomicU64::new(0),
    })
}

fn call(id: usize, tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#)
}

/// The frame with this number: a Call of either tool, a batch with both, or
/// what no policy is asked about. An odd number of kinds, so that each meets
/// both sets even when they take turns.
fn frame(n: usize) -> String {
    match n % 5 {
        0 | 4 => call(n, "a"),
        1 => call(n, "b"),
        2 => format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"ping"}}"#),
        _ => format!("[{},{}]", call(n, "a"), call(n + FRAMES, "b")),
    }
}

/// Gives a frame at a time, and each only after one more reload.
struct Paced<'a> {
    frames: std::vec::IntoIter<Vec<u8>>,
    reloads: &'a AtomicUsize,
    seen: usize,
}

impl Read for Paced<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.reloads.load(Ordering::SeqCst) == self.seen {
            thread::yield_now();
        }
        self.seen = self.reloads.load(Ordering::SeqCst);
        let frame = self.frames.next().unwrap_or_default();
        buffer[..frame.len()].copy_from_slice(&frame);
        Ok(frame.len())
    }
}

/// What the requests lane handed on and answered, and the record, when `FRAMES`
/// frames came while the policy changed all the time.
struct Stressed {
    relayed: Vec<u8>,
    refusals: Vec<u8>,
    rows: Vec<Value>,
    reloads: usize,
}

fn stress(documents: &[Vec<u8>; 2]) -> Stressed {
    let sink = MemorySink::new();
    let shared = shared(&sink, gate(&documents[0]));
    let reloads = AtomicUsize::new(0);
    let is_done = AtomicBool::new(false);
    let (mut relayed, mut refusals) = (Vec::new(), Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let gate = shared.gate.as_ref().unwrap();
            while !is_done.load(Ordering::SeqCst) {
                let next = (reloads.load(Ordering::SeqCst) + 1) % 2;
                let change = gate.take_over(&documents[next]).unwrap();
                assert!(matches!(change, Change::Replaced { .. }));
                reloads.fetch_add(1, Ordering::SeqCst);
            }
        });
        let frames: Vec<_> = (0..FRAMES)
            .map(|n| format!("{}\n", frame(n)).into())
            .collect();
        let input = Paced {
            frames: frames.into_iter(),
            reloads: &reloads,
            seen: 0,
        };
        let mut frames = FrameReader::new(input, FrameLimits::new(std::env::temp_dir()));
        let mut station = Requests::new(Arc::clone(&shared), Deny::default());
        let stop = relay(&mut frames, &mut relayed, &mut refusals, &mut station);
        is_done.store(true, Ordering::SeqCst);
        assert!(matches!(stop, Stop::Eof), "{stop:?}");
    });
    let unanswered = || Ending::Unanswered(Unanswered::ChildExited);
    shared.pending.end(unanswered).unwrap();
    shared.writer.close(Totals::default()).unwrap();
    Stressed {
        relayed,
        refusals,
        rows: check(&sink.bytes()),
        reloads: reloads.into_inner(),
    }
}

/// SPEC [RELOAD-5] [LINE-19].
#[test]
fn thousands_of_reloads_under_load_lose_and_reorder_nothing() {
    let documents = [deny("a"), deny("b")];
    let denied_by: HashMap<_, _> = ["a", "b"]
        .into_iter()
        .zip(&documents)
        .map(|(tool, document)| (gate(document).policy_set_hash().to_string(), tool))
        .collect();
    let Stressed {
        relayed,
        refusals,
        rows,
        reloads,
    } = stress(&documents);
    assert!(reloads >= FRAMES, "{reloads}");

    let of_type = |name| rows.iter().filter(move |row| row["line_type"] == name);
    let mut outcomes: HashMap<&str, Vec<&Value>> = HashMap::new();
    for outcome in of_type("outcome") {
        let digest = outcome["request_digest"].as_str().unwrap();
        outcomes.entry(digest).or_default().push(outcome);
        let tool = denied_by[outcome["policy_set_hash"].as_str().unwrap()];
        let verdict = if outcome["tool_id"] == tool {
            "denied"
        } else {
            "allowed"
        };
        assert_eq!(outcome["policy"]["status"], verdict, "{outcome}");
    }

    let (mut expected, mut intents, mut refused) = (String::new(), Vec::new(), 0);
    for n in 0..FRAMES {
        let frame = frame(n);
        let digest = Digest::<Request>::of(frame.as_bytes()).to_string();
        let outcomes = outcomes.remove(digest.as_str()).unwrap_or_default();
        assert_eq!(outcomes.len(), [1, 1, 0, 2, 1][n % 5], "frame {n}");
        // One set for all of a frame.
        assert!(
            outcomes
                .windows(2)
                .all(|two| two[0]["policy_set_hash"] == two[1]["policy_set_hash"])
        );
        intents.extend(outcomes.iter().map(|_| digest.clone()));
        if outcomes
            .iter()
            .any(|outcome| outcome["policy"]["status"] == "denied")
        {
            refused += 1;
        } else {
            expected += &format!("{frame}\n");
        }
    }
    assert!(outcomes.is_empty());
    // Both sets judged some of each.
    assert!(
        refused > FRAMES / 5 && refused < FRAMES / 5 * 4,
        "{refused}"
    );
    assert_eq!(String::from_utf8(relayed).unwrap(), expected);
    assert_eq!(
        refusals.iter().filter(|byte| **byte == b'\n').count(),
        refused
    );
    let found: Vec<_> = of_type("intent")
        .map(|row| row["request_digest"].clone())
        .collect();
    assert_eq!(found, intents);
}

/// SPEC [RELOAD-6].
#[test]
fn what_is_taken_over_is_counted_and_nothing_is_after_the_end() {
    let gate = gate(&deny("a"));
    let policy = Enforcement {
        file: "policy".into(),
        mode: Default::default(),
        pinned: None,
        reload: true,
        allow_inert: false,
        hide_denied: false,
        deny: Deny::default(),
    };
    let reload = Reload::new(Some(&policy), Some(&gate));
    let take_over = |document: &[u8]| reload.0.take_over(&gate, document);
    assert!(matches!(
        take_over(&deny("b")),
        Some(Ok(Change::Replaced { .. }))
    ));
    assert!(matches!(take_over(&deny("b")), Some(Ok(Change::Same))));
    assert!(matches!(take_over(b"rules: 1"), Some(Err(_))));
    assert_eq!(reload.end(), Some(1));
    let in_force = gate.policy_set_hash();
    assert!(take_over(&deny("a")).is_none());
    assert_eq!(gate.policy_set_hash(), in_force);

    // One that takes too long is not waited for.
    reload.0.count().is_judging = true;
    assert_eq!(reload.end(), Some(1));

    let kept = Enforcement {
        reload: false,
        ..policy
    };
    assert_eq!(Reload::new(Some(&kept), Some(&gate)).end(), Some(0));
    assert_eq!(Reload::new(None, None).end(), None);
}

const FRAMES: usize = 2500;
