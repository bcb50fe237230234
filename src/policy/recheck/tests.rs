//! Rechecks of records that are made here, Line by Line.

mod rates;
mod simulated;

use std::fmt::Write as _;
use std::io::{self, Read};

use serde_json::{Value, json};

use super::*;
use crate::policy::parse::parse;
use crate::wire::digest::{Digest, Text};
use crate::wire::time::Timestamp;

/// A record under construction. Only what a recheck reads is right.
#[derive(Default)]
struct Record {
    text: String,
    seq: u64,
}

impl Record {
    fn line(&mut self, mut members: Value) -> &mut Self {
        members["schema_version"] = json!(2);
        members["seq"] = json!(self.seq);
        self.seq += 1;
        self.row(&members.to_string())
    }

    fn row(&mut self, row: &str) -> &mut Self {
        writeln!(self.text, "{row}").unwrap();
        self
    }

    fn open(&mut self) -> &mut Self {
        self.seq = 0;
        self.line(json!({"line_type": "open"}))
    }

    fn intent(&mut self, call_id: &str, tool: &str, frame: u64, unix_ms: u64) -> &mut Self {
        self.line(json!({
            "line_type": "intent", "call_id": call_id, "tool_id": tool,
            "request_digest": digest(&frame.to_string()),
            "time": Timestamp::from_unix_ms(unix_ms),
        }))
    }

    fn outcome(&mut self, call_id: &str, tool: &str, policy: Value) -> &mut Self {
        self.outcome_with(call_id, tool, policy, json!({}))
    }

    fn outcome_with(&mut self, call_id: &str, tool: &str, policy: Value, more: Value) -> &mut Self {
        let mut members = json!({
            "line_type": "outcome", "call_id": call_id, "tool_id": tool,
            "request_digest": digest("any"), "policy_set_hash": digest("a set"),
            "policy": policy, "decision_axes": {},
            "capability": {"status": "denied", "reason": "policy blocked before capability"},
            "execution": {"status": "host_denied", "reason": "not executed"},
        });
        for (name, value) in more.as_object().unwrap() {
            members[name] = value.clone();
        }
        self.line(members)
    }

    fn allowed(&mut self, call_id: &str, tool: &str) -> &mut Self {
        self.outcome(call_id, tool, json!({"status": "allowed"}))
    }
}

fn digest(text: &str) -> String {
    Digest::<Text>::of(text.as_bytes()).to_string()
}

fn set(document: &str) -> Set {
    parse(document.as_bytes()).unwrap()
}

fn run(record: &str, set: &Set, options: &Options) -> (Vec<String>, Vec<String>) {
    let (mut rows, mut unread) = (Vec::new(), Vec::new());
    recheck(record.as_bytes(), set, options, &mut |told| match told {
        Told::Row(row) => rows.push(row.to_string()),
        Told::Unread(row) => unread.push(format!("line {} {}", row.line, row.why)),
    })
    .unwrap();
    (rows, unread)
}

fn rows(record: &Record, set: &Set) -> Vec<String> {
    run(&record.text, set, &Options::default()).0
}

/// The clauses alone.
fn clauses(record: &Record, set: &Set) -> Vec<String> {
    let rows = rows(record, set);
    rows.iter()
        .map(|row| row.split_once(": ").unwrap().1.to_owned())
        .collect()
}

fn recorded(status: &str) -> Value {
    match status {
        "allowed" => json!({"status": status}),
        "pending_approval" => json!({"status": status, "approval_id": "apr-1"}),
        _ => json!({"status": status, "reason": "because"}),
    }
}

const TWO_A_MINUTE: &str =
    "rules:\n  - {id: limit, action: rate_limit, tool: t, rate: {max: 2, per_seconds: 60}}\n";

/// SPEC [RECHECK-5]: all of was × now.
#[test]
fn each_pair_of_verdicts_has_its_clause() {
    let statuses = ["allowed", "denied", "rate_limited", "pending_approval"];
    let mut table = String::new();
    for action in ["allow", "deny", "pending_approval"] {
        let set = set(&format!(
            "rules:\n  - {{id: r, action: {action}, tool: t}}\n"
        ));
        for was in statuses {
            let mut record = Record::default();
            record.open().outcome("c", "t", recorded(was));
            writeln!(table, "{action}: {}", clauses(&record, &set)[0]).unwrap();
        }
    }
    // The third Call of a minute is one too many.
    for was in statuses {
        let mut record = Record::default();
        record.open();
        for call in ["a", "b", "c"] {
            record.intent(call, "t", u64::from(call.as_bytes()[0]), 0);
            record.outcome(call, "t", recorded(was));
        }
        let clauses = clauses(&record, &set(TWO_A_MINUTE));
        writeln!(table, "admitted: {}", clauses[1]).unwrap();
        writeln!(table, "refused: {}", clauses[2]).unwrap();
    }
    assert_eq!(
        table,
        "allow: unchanged allowed
allow: newly_allowed was=denied now=allowed
allow: newly_allowed was=rate_limited now=allowed
allow: newly_allowed was=pending_approval now=allowed
deny: newly_blocked was=allowed now=denied
deny: unchanged denied
deny: unchanged rate_limited
deny: newly_blocked was=pending_approval now=denied
pending_approval: newly_parked was=allowed
pending_approval: newly_parked was=denied
pending_approval: newly_parked was=rate_limited
pending_approval: unchanged pending_approval
admitted: unchanged allowed
refused: newly_blocked was=allowed now=rate_limited
admitted: newly_allowed was=denied now=allowed
refused: unchanged denied
admitted: newly_allowed was=rate_limited now=allowed
refused: unchanged rate_limited
admitted: newly_allowed was=pending_approval now=allowed
refused: newly_blocked was=pending_approval now=rate_limited
"
    );
}

/// SPEC [RECHECK-7] [RECHECK-8].
#[test]
fn what_no_set_judged_is_not_judged_anew() {
    let stand_in = json!({"policy_set_hash": digest("aegis-wrap-passthrough-v0")});
    let denied = |reason: &str| json!({"status": "denied", "reason": reason});
    let by_rule = json!({"decision_axes": {"matched_rule": "r"}});
    let begun = json!({
        "capability": {"status": "denied", "reason": "not evaluated"},
        "decision_axes": {"matched_rule": "r"},
    });
    let mut without_id = stand_in.clone();
    without_id["execution"] = json!({
        "status": "host_denied", "reason": "relayed without an id; no answer can be matched",
    });
    let mut unreadable = stand_in.clone();
    unreadable["execution"] =
        json!({"status": "host_denied", "reason": "frame could not be read; relayed"});
    let named = |bytes: u64| json!({"cut": {"tool_id": {"bytes": bytes, "sha256": digest("")}}});
    let mut too_long = named(65_537);
    too_long["policy_set_hash"] = stand_in["policy_set_hash"].clone();
    let mut longest = named(65_536);
    longest["policy_set_hash"] = stand_in["policy_set_hash"].clone();
    let mut judged = without_id.clone();
    judged["policy_set_hash"] = json!(digest("a set"));
    let allowed = || json!({"status": "allowed"});
    let mut record = Record::default();
    record.open();
    for (tool, policy, more) in [
        ("t", denied("not evaluated"), json!({})),
        ("t", denied("not evaluated"), begun),
        // A rule may say so.
        ("t", denied("not evaluated"), by_rule.clone()),
        (
            "<unreadable>",
            denied("frame could not be read strictly"),
            json!({}),
        ),
        ("t", denied("tools/call without an id"), json!({})),
        (
            "<unknown>",
            denied("tools/call without a string params.name"),
            json!({}),
        ),
        (
            "n",
            denied("tools/call with a params.name longer than 64 KiB"),
            named(65_537),
        ),
        ("t", denied("tools/call without an id"), by_rule),
        ("t", denied("no matching rule (default deny)"), json!({})),
        ("<unreadable>", allowed(), unreadable),
        // A client may call a tool so.
        ("<unreadable>", allowed(), stand_in.clone()),
        ("<unknown>", allowed(), stand_in.clone()),
        ("t", allowed(), without_id),
        ("t", allowed(), stand_in),
        ("<unknown>", allowed(), json!({})),
        ("t", allowed(), judged),
        ("n", allowed(), too_long),
        ("n", allowed(), longest),
        ("n", allowed(), named(65_537)),
    ] {
        record.outcome_with("c", tool, policy, more);
    }
    let clauses = clauses(&record, &set("default: allow\n"));
    assert_eq!(
        clauses,
        [
            "indeterminate not_evaluated",
            "indeterminate not_evaluated",
            "newly_allowed was=denied now=allowed",
            "unchanged denied",
            "unchanged denied",
            "unchanged denied",
            "unchanged denied",
            "newly_allowed was=denied now=allowed",
            "newly_allowed was=denied now=allowed",
            "newly_blocked was=allowed now=denied",
            "unchanged allowed",
            "newly_blocked was=allowed now=denied",
            "newly_blocked was=allowed now=denied",
            "unchanged allowed",
            "unchanged allowed",
            "unchanged allowed",
            "newly_blocked was=allowed now=denied",
            "unchanged allowed",
            "unchanged allowed",
        ]
    );
}

/// SPEC [RECHECK-6].
#[test]
fn the_axes_of_a_call_are_those_that_were_recorded() {
    let set = set(
        "rules:\n  - {id: a, action: deny, capability: net}\n  - {id: b, action: deny, role: ops, tool: u}\n",
    );
    let mut record = Record::default();
    record.open();
    for (tool, axes) in [
        ("t", json!({})),
        ("t", json!({"capability": "net"})),
        ("t", json!({"role": "ops"})),
        ("u", json!({"role": "ops"})),
        ("u", json!({"session": "ops", "matched_rule": "b"})),
    ] {
        record.outcome_with(
            "c",
            tool,
            recorded("allowed"),
            json!({"decision_axes": axes}),
        );
    }
    assert_eq!(
        clauses(&record, &set),
        [
            "unchanged allowed",
            "newly_blocked was=allowed now=denied",
            "unchanged allowed",
            "newly_blocked was=allowed now=denied",
            "unchanged allowed",
        ]
    );
}

/// SPEC [RECHECK-9]: a name that was cut is the one whose digest is recorded.
#[test]
fn a_tool_whose_name_was_cut_is_known_by_its_digest() {
    let long = "n".repeat(1500);
    let head = &long[..1024];
    let set = set(&format!(
        "rules:\n  - {{id: long, action: deny, tool: {long}}}\n  - {{id: head, action: pending_approval, tool: {head}}}\n"
    ));
    let cut =
        |whole: &str| json!({"cut": {"tool_id": {"bytes": whole.len(), "sha256": digest(whole)}}});
    let mut record = Record::default();
    record.open();
    for more in [cut(&long), cut(&format!("{long}n")), json!({})] {
        record.outcome_with("c", head, recorded("allowed"), more);
    }
    assert_eq!(
        clauses(&record, &set),
        [
            "newly_blocked was=allowed now=denied",
            "unchanged allowed",
            "newly_parked was=allowed",
        ]
    );
}

/// SPEC [RECHECK-4]: an array is no object, whatever stands in it.
#[test]
fn an_array_of_members_is_no_object() {
    let by_rule = json!({"decision_axes": {"matched_rule": "r"}});
    let mut record = Record::default();
    record.open();
    record.outcome_with("whole", "t", recorded("allowed"), by_rule);
    for more in [
        json!({"decision_axes": []}),
        json!({"decision_axes": ["net", null, null, null, null, null, null]}),
        json!({"policy": ["allowed"]}),
        json!({"policy": ["denied", "because"]}),
        json!({"capability": ["denied", "because"]}),
        json!({"execution": ["success"]}),
        json!({"cut": {"tool_id": [5, digest("tools")]}}),
        json!({"cut": []}),
    ] {
        record.outcome_with("array", "t", recorded("allowed"), more);
    }
    let (rows, unread) = run(&record.text, &set("default: allow\n"), &Options::default());
    assert!(rows[0].ends_with(": unchanged allowed"), "{}", rows[0]);
    assert_eq!(unread.len(), 8);
    for row in &rows[1..] {
        assert!(row.ends_with(": indeterminate no_binding"), "{row}");
    }
}

/// SPEC [RECHECK-3] [RECHECK-4].
#[test]
fn a_row_that_is_not_read_is_told() {
    let mut record = Record::default();
    record
        .open()
        .row(" \t\r")
        .row("[1]")
        .row("{\"a\":1,\"\\u0061\":2}");
    record.row("not JSON").row(&"[".repeat(65));
    record.row("{\"line_type\":\"outcome\",\"call_id\":\"x\",\"seq\":7,\"seq\":8}");
    record.row("{\"line_type\":\"outcome\",\"schema_version\":2}");
    record.row("{\"line_type\":\"outcome\",\"schema_version\":3,\"call_id\":\"v3\"}");
    record.row("{\"phase\":\"outcome\",\"schema_version\":1,\"call_id\":null}");
    record.row("{\"phase\":\"intent\",\"schema_version\":1}");
    record.row("{\"line_type\":\"attestation\"}");
    record.outcome_with(
        "c",
        "t",
        recorded("allowed"),
        json!({"schema": 1.5, "n": null}),
    );
    record.text.push_str("{\"torn");
    let mut bytes = record.text.into_bytes();
    bytes.splice(0..0, *b"\xff\n");
    let (mut rows, mut unread) = (Vec::new(), Vec::new());
    let set = set("default: allow\n");
    recheck(
        &bytes[..],
        &set,
        &Options::default(),
        &mut |told| match told {
            Told::Row(row) => rows.push(row.to_string()),
            Told::Unread(row) => {
                unread.push(format!("{} {} {}", row.line, row.why.code(), row.why));
            }
        },
    )
    .unwrap();
    assert_eq!(
        rows,
        [
            "call x session 0 seq 8: indeterminate no_binding",
            "call - session 0 seq 0: indeterminate no_binding",
            "call v3 session 0 seq 0: indeterminate unknown_policy_set_hash",
            "call - session 0 seq 0: indeterminate unknown_policy_set_hash",
            "call c session 0 seq 1: unchanged allowed",
        ]
    );
    assert_eq!(
        unread,
        [
            "1 not_json is not JSON, skipped",
            "4 not_an_object is not a JSON object, skipped",
            "5 duplicate_member has two members `a`, skipped",
            "6 not_json is not JSON, skipped",
            "7 too_deep is nested deeper than 64 levels, skipped",
            "8 not_an_outcome is not a readable outcome record: duplicate member `seq`",
            "9 not_an_outcome is not a readable outcome record: missing field `call_id`, column 42",
            "15 not_json is not JSON, skipped",
        ]
    );
}

#[test]
fn nothing_is_told_behind_a_failure() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let mut record = Record::default();
    record
        .open()
        .allowed("a", "t")
        .intent("b", "t", 1, 0)
        .allowed("b", "t");
    let mut told = 0;
    let error = recheck(
        record.text.as_bytes().chain(Failing),
        &set("default: allow\n"),
        &Options::default(),
        &mut |_| told += 1,
    )
    .unwrap_err();
    assert_eq!((error.to_string().as_str(), told), ("the disk is gone", 2));
}
