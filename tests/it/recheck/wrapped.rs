//! A record of `aegis wrap`, rechecked.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::recheck;
use crate::exe::{Aegis, Ran, write_key};

/// SPEC [RECHECK-23] [POLICY-5].
///
/// What wrap recorded, under the policy that refuses what it relayed.
#[test]
fn a_record_of_wrap_is_asked_about_its_calls() {
    let dir = TempDir::new().unwrap();
    let ran = wrapped(
        dir.path(),
        &[
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"}}}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"b"}}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"time","arguments":{}}}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{"text":"c"}}}"#,
            r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":4,"#,
        ],
    );
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    let by = |policy: &str| {
        fs::write(dir.path().join("p.yaml"), policy).unwrap();
        let run = recheck().dir(dir.path());
        run.args(["--policy", "p.yaml", "a.aarl"]).run()
    };
    let clauses = |ran: &Ran| {
        let mut clauses: Vec<_> = ran
            .stdout
            .lines()
            .map(|row| {
                let (call, rest) = row.split_once(" session 0 seq ").unwrap();
                format!("{call}: {}", rest.split_once(": ").unwrap().1)
            })
            .collect();
        // Answers come in any order.
        clauses.sort();
        clauses
    };
    let refused = "newly_blocked was=allowed now=denied";
    let never_understood = [4, 5, 6].map(|n| format!("call call-{n}: {refused}"));
    let under = |clauses: [&str; 3]| {
        let mut rows: Vec<_> = clauses
            .iter()
            .zip(1..)
            .map(|(clause, n)| format!("call call-{n}: {clause}"))
            .collect();
        rows.extend(never_understood.iter().cloned());
        rows
    };
    let free = "unchanged allowed";
    let ran = by("default: allow\n");
    let note = "note: 6 calls were recorded without a policy: \
                what was allowed there was relayed, not judged\n";
    assert_eq!(ran.stderr, note);
    assert_eq!(clauses(&ran), under([free, free, free]));
    assert_eq!(ran.code(), 1);
    // What it recorded says when its Calls came.
    let limit =
        "rules:\n  - {id: l, action: rate_limit, tool: echo, rate: {max: 1, per_seconds: 86400}}\n";
    let ran = by(limit);
    let one_too_many = "newly_blocked was=allowed now=rate_limited";
    assert_eq!(clauses(&ran), under([free, one_too_many, free]));
    assert_eq!(ran.code(), 1);
}

fn wrapped(dir: &Path, frames: &[&str]) -> Ran {
    write_key(&dir.join("key"));
    let mut input = frames.join("\n");
    input.push('\n');
    Aegis::new()
        .dir(dir)
        .args(["wrap", "--audit", "a.aarl", "--signing-key", "key", "--"])
        .args([env!("CARGO_BIN_EXE_aegis"), "__demo-server"])
        .stdin(input.as_bytes())
        .run()
}
