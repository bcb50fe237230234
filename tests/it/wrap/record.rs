//! A finished record, read through the library.

use std::path::Path;

use aegis::sign::SigningKey;
use aegis::verify::{Options, Report, Trust, Verdict, verify};
use serde_json::{Value, json};

use super::harness::{KEY_SEED, sha256};

/// What stands in an audit file.
pub(crate) struct Record {
    pub(crate) lines: Vec<Value>,
    pub(crate) report: Report,
}

impl Record {
    pub(crate) fn load(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let rows = bytes.split_inclusive(|byte| *byte == b'\n');
        // A killed writer may leave a torn last row.
        let lines = rows
            .filter(|row| row.ends_with(b"\n"))
            .map(|row| serde_json::from_slice(row).unwrap())
            .collect();
        let key = SigningKey::from_seed(&KEY_SEED).public_key();
        let options = Options {
            trust: Trust::pinned(vec![key]),
            ..Options::default()
        };
        let report = verify(Box::new(std::io::Cursor::new(bytes)), &options).unwrap();
        Self { lines, report }
    }

    /// Asserts that the file is Verified under the test's key, without a note.
    /// SPEC [LINE-4] [LINE-5] [LINE-6] [LINE-25]: a signed intent and a call without outcome are notes, a `checkpoint` is not Verified.
    #[track_caller]
    pub(crate) fn assert_verified(&self) {
        assert!(
            matches!(self.report.verdict, Verdict::Verified(_)),
            "{}",
            self.report.verdict
        );
        assert_eq!(self.report.notes, aegis::verify::Notes::default());
        assert_eq!(self.intents().count(), self.outcomes().count());
    }

    pub(crate) fn of_type<'a>(&'a self, line_type: &'a str) -> impl Iterator<Item = &'a Value> {
        self.lines
            .iter()
            .filter(move |line| line["line_type"] == line_type)
    }

    pub(crate) fn open(&self) -> &Value {
        self.of_type("open").next().unwrap()
    }

    #[track_caller]
    pub(crate) fn close(&self) -> &Value {
        self.of_type("close").next().expect("a close line")
    }

    pub(crate) fn intents(&self) -> impl Iterator<Item = &Value> {
        self.of_type("intent")
    }

    pub(crate) fn outcomes(&self) -> impl Iterator<Item = &Value> {
        self.of_type("outcome")
    }

    /// The only outcome of the only Call with this request.
    #[track_caller]
    pub(crate) fn outcome(&self, request: &[u8]) -> &Value {
        let found = self.outcomes_of(request);
        assert_eq!(
            found.len(),
            1,
            "outcomes of {}",
            String::from_utf8_lossy(request)
        );
        found[0]
    }

    /// The outcomes of all Calls in this request, in file order.
    pub(crate) fn outcomes_of(&self, request: &[u8]) -> Vec<&Value> {
        let digest = sha256(request);
        self.outcomes()
            .filter(|line| line["request_digest"] == digest)
            .collect()
    }

    /// The intent of the Call that `outcome` ends.
    #[track_caller]
    pub(crate) fn intent_of(&self, outcome: &Value) -> &Value {
        let mut found = self
            .intents()
            .filter(|line| line["call_id"] == outcome["call_id"]);
        let intent = found.next().expect("an intent");
        assert!(found.next().is_none());
        intent
    }
}

/// Asserts what every outcome of wrap says as long as no policy is asked, and
/// that it is consistent with its intent.
/// SPEC [LINE-8] [LINE-18] [LINE-21].
#[track_caller]
pub(crate) fn assert_passed_through(record: &Record, outcome: &Value, tool: &str) {
    let intent = record.intent_of(outcome);
    let call_id = outcome["call_id"].as_str().unwrap();
    let grant_id = format!("wrap-passthrough-{call_id}");
    assert_eq!(outcome["tool_id"], tool);
    for member in ["tool_id", "request_digest", "cut"] {
        assert_eq!(intent[member], outcome[member], "{member}");
    }
    assert!(intent["seq"].as_u64() < outcome["seq"].as_u64());
    assert_eq!(outcome["policy"], json!({"status": "allowed"}));
    assert_eq!(outcome["policy_set_hash"], STAND_IN_HASH);
    assert_eq!(outcome["decision_axes"], json!({}));
    assert_eq!(outcome["grant_id"], grant_id);
    assert_eq!(outcome["capability"]["status"], "granted");
    let grant = &outcome["capability"]["grant"];
    assert_eq!(grant["grant_id"], grant_id);
    assert_eq!(grant["tool_id"], tool);
}

/// Asserts that a Call was relayed and had no answer.
/// SPEC [LINE-13] [LINE-21].
#[track_caller]
pub(crate) fn assert_unanswered(outcome: &Value, kind: &str, reason: &str) {
    let expected = json!({"status": "host_denied", "reason": reason});
    assert_eq!(outcome["execution"], expected);
    assert_eq!(outcome["answer"], json!({"kind": kind}));
    assert_eq!(outcome.get("response_digest"), None);
    assert_eq!(outcome.get("wall_ms"), None);
}

/// Asserts that a Call had the answer `frame`, and what it was.
/// SPEC [ENV-1] [LINE-21].
#[track_caller]
pub(crate) fn assert_answered(outcome: &Value, frame: &[u8], answer: Value) {
    let frame = frame.strip_suffix(b"\n").unwrap_or(frame);
    assert_eq!(outcome["execution"], json!({"status": "success"}));
    assert_eq!(outcome["answer"], answer);
    assert_eq!(outcome["response_digest"], sha256(frame));
    assert!(outcome["wall_ms"].is_u64());
}

/// SHA-256 of `aegis-wrap-passthrough-v0`: no Policy Set was evaluated.
const STAND_IN_HASH: &str = "7b30695c7a4df1b6a226bdd591c6d75b9917bb3af078af2d01be295e4df96974";
