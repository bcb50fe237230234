//! `--policy`: refusals while something else goes wrong.

use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::json;

use super::gate::{DENY_ECHO, gated};
use super::harness::{call, until};

/// A client that takes nothing holds itself up, and not the end.
#[test]
fn a_client_that_reads_nothing_does_not_keep_the_session_from_ending() {
    let setup = gated(DENY_ECHO, &[]);
    let mut session = setup.start_unread();
    let mut input = session.take_input();
    let output = session.take_output();
    let writer = std::thread::spawn(move || {
        let frame = format!("{}\n", call(1, "echo", json!({"text": "a"})));
        // Until both pipes are full, and wrap is gone.
        while std::io::Write::write_all(&mut input, frame.as_bytes()).is_ok() {}
    });
    let mut calls = 0;
    until("a full pipe", || {
        let before = calls;
        calls = std::fs::metadata(setup.audit()).map_or(0, |file| file.len());
        std::thread::sleep(std::time::Duration::from_millis(20));
        calls == before && calls > 100_000
    });
    session.signal(Signal::TERM);
    let status = session.wait_status();
    assert_eq!(status.code(), Some(128 + 15));
    writer.join().unwrap();
    drop(output);
    setup.record().assert_verified();
    assert_eq!(setup.effects(), [""; 0]);
}

/// SPEC [WRAP-10].
#[test]
fn every_refusal_that_a_client_saw_is_recorded_when_wrap_is_killed() {
    for mode in ["intent", "full", "process"] {
        let setup = gated(DENY_ECHO, &["--durability", mode]);
        let mut session = setup.start();
        let mut input = session.take_input();
        let writer = std::thread::spawn(move || {
            for id in 0.. {
                let frame = format!("{}\n", call(id, "echo", json!({"text": "a"})));
                if std::io::Write::write_all(&mut input, frame.as_bytes()).is_err() {
                    return;
                }
            }
        });
        let mut seen = 0;
        while seen < 50 {
            session.frame();
            seen += 1;
        }
        session.signal(Signal::KILL);
        session.wait_status();
        writer.join().unwrap();
        while session.has_frame().is_some() {
            seen += 1;
        }
        assert!(setup.record().outcomes().count() >= seen, "{mode}");
        assert_eq!(setup.effects(), [""; 0]);
    }
}

/// SPEC [WRAP-10] [CHAIN-8].
#[test]
fn on_a_full_disk_no_refusal_goes_out_that_is_not_recorded() {
    let setup = gated(DENY_ECHO, &[]);
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
    let mut wrap = Command::new("sh")
        .args(["-c", script, "sh"])
        .args(setup.argv())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = wrap.stdin.take().unwrap();
    let frame = format!("{}\n", call(1, "echo", json!({"text": "a"})));
    std::io::Write::write_all(&mut input, frame.as_bytes()).unwrap();
    let mut first = [0];
    std::io::Read::read_exact(wrap.stdout.as_mut().unwrap(), &mut first).unwrap();
    let writer = std::thread::spawn(move || {
        while std::io::Write::write_all(&mut input, frame.as_bytes()).is_ok() {}
    });
    let output = wrap.wait_with_output().unwrap();
    writer.join().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("wrap audit failed: audit write failed: "));
    let refusals = output.stdout.iter().filter(|byte| **byte == b'\n').count();
    let record = setup.record();
    assert!(refusals > 0);
    assert!(record.outcomes().count() >= refusals);
    assert_eq!(record.of_type("close").count(), 0);
    assert_eq!(setup.effects(), [""; 0]);
}

/// Nobody hears the refusal, and it is recorded all the same.
#[test]
fn a_client_that_left_is_refused_for_the_record() {
    let setup = gated(DENY_ECHO, &[]);
    let mut session = setup.start_unread();
    session.close_output();
    let first = session.call(1, "echo", json!({"text": "a"}));
    let second = session.call(2, "echo", json!({"text": "a"}));
    let ended = session.finish();
    ended.assert_exit(0);
    ended.record.assert_verified();
    for request in [first, second] {
        assert_eq!(ended.record.outcome(&request)["policy"]["status"], "denied");
    }
    assert_eq!(setup.effects(), [""; 0]);
}
