//! What comes out of wrap is, byte for byte, what would have come out without
//! it, in both directions.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;

use serde_json::{Value, json};

use super::harness::{Setup, call, sha256, until};

/// Asserts that the server behind wrap answers `input` as it does alone.
/// SPEC [CLI-15].
#[track_caller]
fn assert_transparent(input: &[u8]) -> (Setup, Vec<u8>) {
    let setup = Setup::server(&[]);
    let direct = setup.pipe_direct(input);
    let wrapped = setup.pipe(input);
    assert_eq!(
        String::from_utf8_lossy(&wrapped.stdout),
        String::from_utf8_lossy(&direct.stdout)
    );
    assert_eq!(wrapped.stdout, direct.stdout);
    assert_eq!(wrapped.stderr, direct.stderr);
    assert_eq!(wrapped.status, direct.status);
    setup.record().assert_verified();
    (setup, wrapped.stdout)
}

fn frames(messages: &[Value]) -> Vec<u8> {
    let lines = messages.iter().map(|message| format!("{message}\n"));
    lines.collect::<String>().into_bytes()
}

#[test]
fn a_session_of_either_era_passes_unchanged() {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let input = frames(&[
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        call(2, "echo", json!({"text": "caf\u{e9} \u{1f600}"})),
        call(3, "add", json!({"a": 1.5, "b": -2})),
        call(4, "fail", json!({"message": "no"})),
        call(5, "protocol_error", json!({"code": -32603})),
        json!({"jsonrpc": "2.0", "id": 6, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 7, "method": "server/discover", "params": {"_meta": meta}}),
        json!({"jsonrpc": "2.0", "id": 8, "method": "no/such/method"}),
    ]);
    let (setup, _) = assert_transparent(&input);
    assert_eq!(setup.record().outcomes().count(), 4);
}

#[test]
fn line_ends_blank_lines_and_noise_pass_unchanged() {
    let mut input = Vec::new();
    input.extend_from_slice(b"\n\r\n  \t\n");
    for (id, tool) in ["crlf", "blank_lines", "noise", "in_pieces"]
        .iter()
        .enumerate()
    {
        input.extend_from_slice(call(id, tool, json!({})).to_string().as_bytes());
        input.extend_from_slice(if id % 2 == 0 { b"\r\n" } else { b"\n\n" });
    }
    let (setup, output) = assert_transparent(&input);
    assert!(output.windows(3).any(|bytes| bytes == b"}\r\n"));
    let record = setup.record();
    assert_eq!(record.outcomes().count(), 4);
    for outcome in record.outcomes() {
        assert_eq!(outcome["answer"], json!({"kind": "result"}));
    }
    // SPEC [ENV-1].
    // The digest is over the frame as it came: with CR, without LF.
    let mut first = call(0, "crlf", json!({})).to_string().into_bytes();
    first.push(b'\r');
    record.outcome(&first);
}

#[test]
fn bytes_that_are_no_utf8_pass_unchanged_in_both_directions() {
    let mut input = b"\xff\xfe\x00garbage\n{\"a\":\"\xc3\"}\n\x00\n".to_vec();
    input.extend(frames(&[call(1, "bad_utf8", json!({}))]));
    let (setup, output) = assert_transparent(&input);
    assert!(output.contains(&0xff));
    let record = setup.record();
    let kinds: Vec<_> = record.outcomes().map(|o| o["answer"].clone()).collect();
    assert!(kinds.contains(&json!({"kind": "result", "unreadable": true})));
    assert_eq!(record.close()["unreadable_frames"], 3);
}

#[test]
fn a_last_frame_without_a_line_end_passes_unchanged() {
    let mut input = frames(&[call(1, "echo", json!({"text": "a"}))]);
    input.extend_from_slice(call(2, "echo", json!({"text": "b"})).to_string().as_bytes());
    let (setup, _) = assert_transparent(&input);
    assert_eq!(setup.record().outcomes().count(), 2);

    // Whether it exited early is a race that both ways may end in.
    let input = frames(&[call(1, "no_newline_die", json!({}))]);
    let setup = Setup::server(&[]);
    let output = setup.pipe(&input).stdout;
    assert_eq!(output, setup.pipe_direct(&input).stdout);
    assert!(!output.ends_with(b"\n"));
    let record = setup.record();
    let outcome = record.outcomes().next().unwrap();
    assert_eq!(outcome["response_digest"], sha256(&output));
}

#[test]
fn batches_pass_unchanged_and_have_a_call_for_each_element() {
    let batch = json!([
        call(1, "echo", json!({"text": "a"})),
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
        call("1", "echo", json!({"text": "b"})),
    ]);
    let input = frames(&[batch.clone(), json!([]), call(9, "batch_answer", json!({}))]);
    let (setup, output) = assert_transparent(&input);
    let record = setup.record();
    let outcomes = record.outcomes_of(batch.to_string().as_bytes());
    assert_eq!(outcomes.len(), 2);
    let answer = output.split(|byte| *byte == b'\n').next().unwrap();
    for outcome in outcomes {
        assert_eq!(outcome["response_digest"], sha256(answer));
        assert_eq!(outcome["answer"], json!({"kind": "result"}));
    }
    assert_eq!(record.close()["calls"], 3);
}

#[test]
fn faulty_answers_pass_unchanged() {
    let faults = [
        "double_answer",
        "wrong_id",
        "null_id",
        "retyped_id",
        "result_and_error",
        "no_result",
        "unlisted",
        "no_such_tool",
    ];
    let calls: Vec<_> = faults
        .iter()
        .enumerate()
        .map(|(id, tool)| call(id, tool, json!({})))
        .collect();
    assert_transparent(&frames(&calls));
}

#[test]
fn frames_that_a_call_may_hide_in_pass_unchanged() {
    let deep = |levels: usize| {
        let inner = format!("{}{}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"x\":{inner}}}\n")
    };
    let mut input = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n".to_owned();
    input.push_str("{\"id\":NaN}\n{\"id\":1,\"id\":2,\"method\":\"ping\"}\n");
    input.push_str("{\"jsonrpc\":\"2.0\",\"id\":\"\\ud800\",\"method\":\"ping\"}\n");
    input.push_str("{\"Method\":\"tools/call\",\"method\":\"ping\",\"id\":3}\n[1]\n");
    input.push_str(&deep(64));
    input.push_str(&deep(65));
    let (setup, _) = assert_transparent(input.as_bytes());
    assert_eq!(setup.record().close()["unreadable_frames"], 7);
}

#[test]
fn many_frames_in_one_write_pass_unchanged() {
    let calls: Vec<_> = (0..2000)
        .map(|id| call(id, "echo", json!({"text": format!("{id}")})))
        .collect();
    let (setup, _) = assert_transparent(&frames(&calls));
    assert_eq!(setup.record().close()["calls"], 2000);
}

#[test]
fn one_byte_at_a_time_passes_unchanged() {
    let setup = Setup::server(&[]);
    let input = frames(&[
        call(1, "echo", json!({"text": "\u{1f600}"})),
        call(2, "in_pieces", json!({})),
    ]);
    let direct = setup.pipe_direct(&input).stdout;
    let mut session = setup.start();
    for byte in &input {
        session.send(&[*byte]);
    }
    let ended = session.finish();
    assert_eq!(ended.frames.concat(), direct);
    ended.assert_exit(0);
    ended.record.assert_verified();
}

/// SPEC [CLI-15].
#[test]
fn any_bytes_reach_the_server_and_come_back() {
    // The server is an echo, so what comes back has passed in both directions.
    let mut state = 1u64;
    let mut input: Vec<u8> = (0..50_000)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            // Line ends are frequent, so that there are frames of every kind.
            match state >> 56 {
                byte if byte % 37 == 0 => b'\n',
                byte => byte as u8,
            }
        })
        .collect();
    input.extend_from_slice(b"\n\n\r\n[]\n{}\n  {}  \r\nlast");
    let setup = Setup::command(&["cat"]).with(&["--durability", "process"]);
    let output = setup.pipe(&input);
    assert!(output.stdout == input);
    assert_eq!(output.status.code(), Some(0));
    let record = setup.record();
    record.assert_verified();
    assert_eq!(record.close()["unreadable_frames"], record.close()["calls"]);
}

#[test]
fn a_socket_that_does_not_block_is_waited_for() {
    let setup = Setup::server(&[]);
    let argv = setup.argv();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let mut child = Command::new(&argv[0])
        .args(&argv[1..])
        .stdin(OwnedFd::from(theirs.try_clone().unwrap()))
        .stdout(OwnedFd::from(theirs))
        .spawn()
        .unwrap();
    // Before anything is sent there is nothing to read, and of the answer only
    // a part fits in until it is read.
    until("the open line", || {
        std::fs::metadata(setup.audit()).is_ok_and(|file| file.len() > 0)
    });
    let frame = format!("{}\n", call(1, "big", json!({"bytes": 4 << 20})));
    ours.write_all(frame.as_bytes()).unwrap();
    until("the outcome", || setup.record().outcomes().count() == 1);
    ours.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    ours.read_to_end(&mut answer).unwrap();
    assert!(answer.len() > 4 << 20);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    setup.record().assert_verified();
}
