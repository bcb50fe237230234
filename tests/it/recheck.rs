//! What `aegis recheck` prints, and how it ends.

#[cfg(target_os = "linux")]
mod memory;
#[cfg(feature = "record")]
mod wrapped;

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::assemble::Chain;
use crate::exe::Aegis;
use crate::kit::fixtures;

macro_rules! snapshot {
    ($name:expr, $aegis:expr) => {
        insta::assert_snapshot!($name, $aegis.run().shown());
    };
}

fn recheck() -> Aegis {
    Aegis::new().arg("recheck")
}

/// Of the published records, by a published policy.
fn published(policy: &str, records: &[&str]) -> Aegis {
    recheck()
        .dir(&fixtures().join("recheck"))
        .args(["--policy", policy])
        .args(records)
}

/// SPEC [RECHECK-3] [RECHECK-4] [RECHECK-5] [RECHECK-6] [RECHECK-18]: what the
/// published records give, to the byte.
#[test]
fn the_published_records_have_their_rows() {
    let clean = |reader: &str| {
        format!(
            "call call-1 session 0 seq 2: {reader}\n\
             call call-2 session 0 seq 3: unchanged denied\n\
             call call-3 session 0 seq 4: unchanged pending_approval\n"
        )
    };
    let whole = |reader: &str| {
        clean(reader)
            + "call call-4 session 0 seq 0: indeterminate unknown_policy_set_hash\n\
               call call-5 session 0 seq 6: indeterminate no_binding\n"
    };
    for (policy, reader, exit) in [
        ("unchanged.yaml", "unchanged allowed", 0),
        ("new_park_same.yaml", "unchanged allowed", 0),
        ("new_deny.yaml", "newly_blocked was=allowed now=denied", 1),
        ("new_park.yaml", "newly_parked was=allowed", 1),
        ("new_rate.yaml", "indeterminate rate_limit_unevaluable", 3),
    ] {
        let ran = published(policy, &["session_clean.jsonl"]).run();
        assert_eq!(ran.stdout, clean(reader), "{policy}");
        assert_eq!((ran.stderr.as_str(), ran.code()), ("", exit), "{policy}");

        let ran = published(policy, &["session.jsonl"]).run();
        assert_eq!(ran.stdout, whole(reader), "{policy}");
        assert_eq!(ran.code(), 3, "{policy}");
        assert!(
            ran.stderr
                .starts_with("warning: line 7 is not a readable outcome record: "),
            "{}",
            ran.stderr
        );
    }
    let ran = published("malformed.yaml", &["session.jsonl"]).run();
    assert_eq!((ran.stdout.as_str(), ran.code()), ("", 2));
    assert!(
        ran.stderr
            .contains("malformed.yaml:8:5: policy parse error: ")
    );
}

/// SPEC [RECHECK-17] [RECHECK-18].
#[test]
fn usage_errors_come_before_anything_is_read() {
    for (name, args) in [
        ("usage_no_policy", &["a"][..]),
        ("usage_no_path", &["--policy", "a"]),
        ("usage_policy_from_stdin", &["--policy", "-", "a"]),
        (
            "usage_policy_twice",
            &["--policy", "a", "--policy", "b", "c"],
        ),
        ("usage_stdin_twice", &["--policy", "a", "-", "-"]),
        ("usage_format", &["--policy", "a", "--format", "xml", "b"]),
        ("usage_help_and_more", &["--help", "a"]),
    ] {
        let ran = recheck().args(args).run();
        let first = ran.stderr.lines().next().unwrap_or_default();
        insta::assert_snapshot!(name, first);
        assert_eq!((ran.stdout.as_str(), ran.code()), ("", 1), "{name}");
    }
    snapshot!("help", recheck().arg("--help"));
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("a.aarl"), "").unwrap();
    for (name, policy) in [("policy_missing", "none.yaml"), ("policy_directory", ".")] {
        snapshot!(
            name,
            recheck()
                .dir(dir.path())
                .args(["--policy", policy, "--format", "json", "a.aarl"])
        );
    }
}

/// SPEC [RECHECK-20] [RECHECK-21] [RECHECK-22].
#[test]
fn several_inputs_have_headings() {
    let dir = TempDir::new().unwrap();
    let copy = |from: &str, to: &str| {
        let to = dir.path().join(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(fixtures().join("recheck").join(from), to).unwrap();
    };
    copy("new_deny.yaml", "new.yaml");
    copy("session.jsonl", "audit/b.aarl");
    copy("session_clean.jsonl", "audit/a.aarl");
    copy("session_clean.jsonl", "audit/not-a-record");
    copy("session_clean.jsonl", "z.jsonl");
    fs::create_dir(dir.path().join("empty")).unwrap();
    fs::write(dir.path().join("blank.aarl"), "\n \t\n").unwrap();
    let run = |args: &[&str]| {
        recheck()
            .dir(dir.path())
            .args(["--policy", "new.yaml"])
            .args(args)
            .stdin(Chain::session("one").bytes().as_slice())
    };
    for (name, args) in [
        ("directory", &["audit"][..]),
        ("directory_empty", &["empty"]),
        ("directory_empty_json", &["--format", "json", "empty"]),
        ("nothing_recorded", &["blank.aarl"]),
        ("stdin", &["-"]),
        ("missing", &["missing"]),
        ("several", &["z.jsonl", "missing", "audit/", "-"]),
        (
            "several_json",
            &["--format=json", "z.jsonl", "missing", "audit", "-"],
        ),
        ("summary", &["--summary", "audit", "z.jsonl"]),
        ("summary_of_one", &["--summary", "z.jsonl"]),
        (
            "summary_json",
            &["--summary", "--format", "json", "audit/b.aarl"],
        ),
    ] {
        snapshot!(name, run(args));
    }
}

/// SPEC [RECHECK-19]: of each pair of ends the one that counts.
#[test]
fn over_several_inputs_the_worst_end_counts() {
    let dir = TempDir::new().unwrap();
    let policy = dir.path().join("p.yaml");
    fs::write(&policy, "rules:\n  - {id: r, action: deny, tool: bad}\n").unwrap();
    let good = Chain::session("one");
    let mut changed = Chain::opened();
    changed.raw_signed(outcome("bad", json!({"status": "allowed"})));
    let mut torn = good.clone();
    torn.row(b"{\"torn");
    let ends: [(i32, Option<Vec<u8>>); 4] = [
        (0, Some(good.bytes())),
        (1, Some(changed.bytes())),
        (3, Some(torn.bytes())),
        (2, None),
    ];
    for (end, bytes) in &ends {
        if let Some(bytes) = bytes {
            fs::write(dir.path().join(end.to_string()), bytes).unwrap();
        }
    }
    let run = |paths: &[String]| {
        let run = recheck().dir(dir.path()).args(["--policy", "p.yaml"]);
        run.args(paths).run().code()
    };
    for (i, (one, _)) in ends.iter().enumerate() {
        assert_eq!(run(&[one.to_string()]), *one);
        for (other, _) in &ends[i..] {
            let mut paths = [one.to_string(), other.to_string()];
            assert_eq!(run(&paths), *other, "{paths:?}");
            paths.reverse();
            assert_eq!(run(&paths), *other, "{paths:?}");
        }
    }
}

fn outcome(tool: &str, policy: Value) -> Value {
    json!({
        "line_type": "outcome", "call_id": "call-1", "tool_id": tool,
        "request_digest": "00".repeat(32), "policy_set_hash": "00".repeat(32),
        "policy": policy, "decision_axes": {"matched_rule": "r"},
        "capability": {"status": "denied", "reason": "policy blocked before capability"},
        "execution": {"status": "host_denied", "reason": "not executed"},
    })
}

/// SPEC [RECHECK-4] [RECHECK-20] [CLI-8].
#[test]
fn text_of_a_record_cannot_forge_a_row() {
    let dir = TempDir::new().unwrap();
    fs::write(
        dir.path().join("p.yaml"),
        "rules:\n  - {id: \"a\\nsummary \\e[2K\", action: deny, tool: \"t\\n\"}\n",
    )
    .unwrap();
    let mut chain = Chain::opened();
    let mut forged = outcome("t\n", json!({"status": "allowed"}));
    forged["call_id"] = json!("x\ncall y session 0 seq 0: unchanged allowed\u{1b}[2K");
    chain.raw_signed(forged.clone());
    forged["call_id"] = json!("c".repeat(600));
    forged["policy"] = json!({"status": "\u{1b}[2K\n"});
    chain.raw_signed(forged);
    chain.row(b"{\"\\u001b[2K\\n\":1,\"\\u001b[2K\\n\":2}");
    fs::write(dir.path().join("a.aarl"), chain.bytes()).unwrap();
    for (name, args) in [
        ("forged", &["a.aarl"][..]),
        ("forged_summary", &["--summary", "a.aarl"]),
        ("forged_json", &["--format", "json", "a.aarl"]),
    ] {
        let run = recheck()
            .dir(dir.path())
            .args(["--policy", "p.yaml"])
            .args(args);
        let ran = run.run();
        let printed = [&ran.stdout, &ran.stderr];
        assert!(
            printed.iter().all(|text| !text.contains('\u{1b}')),
            "{name}"
        );
        insta::assert_snapshot!(name, ran.shown());
    }
}

/// SPEC [RECHECK-4]: a flood of rows that are not read is told once it is long.
#[test]
fn a_thousand_rows_that_are_not_read_are_named() {
    for (rows, told) in [(1000, 1000), (1001, 1001), (3000, 1001)] {
        let run = published("unchanged.yaml", &["-"]).stdin(&b"x\n".repeat(rows));
        let ran = run.run();
        assert_eq!(ran.stderr.lines().count(), told);
        let last = ran.stderr.lines().last().unwrap();
        match rows {
            1000 => assert_eq!(last, "warning: line 1000 is not JSON, skipped"),
            1001 => assert_eq!(last, "warning: 1 more line was not read"),
            _ => assert_eq!(last, "warning: 2000 more lines were not read"),
        }
        assert_eq!((ran.stdout.as_str(), ran.code()), ("", 3));
    }
}

/// A file that `verify` calls Tampered is rechecked like any other.
#[test]
fn no_signature_is_looked_at() {
    let mut chain = Chain::session("one");
    chain.edit(2, |outcome| {
        outcome["tool_id"] = json!("forged");
        outcome["signature"] = json!("00".repeat(64));
    });
    let bytes = chain.bytes();
    assert_eq!(Aegis::verify().arg("-").stdin(&bytes).run().code(), 1);
    let ran = published("unchanged.yaml", &["-"]).stdin(&bytes).run();
    assert_eq!(ran.stdout, "call one session 0 seq 2: unchanged allowed\n");
    assert_eq!((ran.stderr.as_str(), ran.code()), ("", 0));
}
