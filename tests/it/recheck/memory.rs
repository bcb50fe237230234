//! How much memory a recheck takes: it streams.
//!
//! Read off the running executable: while it waits for its second input, a
//! named pipe, its peak is that of the first.

use std::fs;
use std::io::{self, BufWriter, Read as _, Write};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::json;
use tempfile::TempDir;

use super::outcome;
use crate::memory::{peak_kib, wait_for_reader};

/// A recheck in which no Call waits, of a record of any length.
const STREAMED_KIB: u64 = 24 << 10;

/// What may be held for a rate limit, and half of that again: what a vector or
/// a map takes while it grows is not in the bound.
const HELD_KIB: u64 = STREAMED_KIB + (64 << 10) * 3 / 2;

/// Less, and nothing was held.
const MIN_HELD_KIB: u64 = 48 << 10;

/// SPEC [RECHECK-16].
#[test]
fn a_record_is_not_held() {
    const CALLS: u64 = 20_000;
    let tool = "t".repeat(1000);
    let limit = format!(
        "rules:\n  - {{id: l, action: rate_limit, tool: {tool}, rate: {{max: 5, per_seconds: 1}}}}\n"
    );
    for policy in ["default: deny\n", &limit] {
        let peak = recheck(policy, |out| {
            (0..CALLS).try_for_each(|call| {
                intent(out, call, &tool)?;
                ended(out, call, &tool)
            })
        });
        assert!(peak <= STREAMED_KIB, "{peak} KiB: {policy}");
    }
    // A Call that never ends holds up those behind it, up to the bound.
    let peak = recheck(&limit, |out| {
        intent(out, u64::MAX, &tool)?;
        (0..2 * CALLS).try_for_each(|call| {
            intent(out, call, &tool)?;
            ended(out, call, &tool)
        })
    });
    assert!((MIN_HELD_KIB..HELD_KIB).contains(&peak), "{peak} KiB");
}

fn intent(out: &mut dyn Write, call: u64, tool: &str) -> io::Result<()> {
    writeln!(
        out,
        r#"{{"call_id":"call-{call}","line_type":"intent","request_digest":"{call:064x}","schema_version":2,"seq":{call},"time":"2026-03-01T12:00:00.000Z","tool_id":"{tool}"}}"#
    )
}

fn ended(out: &mut dyn Write, call: u64, tool: &str) -> io::Result<()> {
    let mut line = outcome(tool, json!({"status": "allowed"}));
    line["call_id"] = json!(format!("call-{call}"));
    line["schema_version"] = json!(2);
    writeln!(out, "{line}")
}

/// The peak of a recheck of what `feed` writes, in KiB.
fn recheck(policy: &str, feed: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send) -> u64 {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("p.yaml"), policy).unwrap();
    let pipe = dir.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let mut child = Command::new(env!("CARGO_BIN_EXE_aegis"))
        .args(["recheck", "--policy"])
        .arg(dir.path().join("p.yaml"))
        .arg("-")
        .arg(&pipe)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut stdin = BufWriter::new(stdin);
            feed(&mut stdin).and_then(|()| stdin.flush()).unwrap();
        });
        scope.spawn(move || {
            let mut chunk = [0; 64 << 10];
            while stdout.read(&mut chunk).unwrap() > 0 {}
        });
        let second = wait_for_reader(&pipe, &mut child);
        let peak = peak_kib(&child);
        drop(second);
        child.wait().unwrap();
        peak
    })
}
