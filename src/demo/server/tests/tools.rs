//! What each tool does, faults included.

use super::*;

/// Starts a server, calls one tool and returns all that it wrote.
fn output_of(tool: &str, arguments: Value) -> (ExitCode, String) {
    let mut client = Client::start(&[]);
    client.call(tool, arguments);
    client.finish()
}

fn lines_of(tool: &str, arguments: Value) -> Vec<Value> {
    let (code, output) = output_of(tool, arguments);
    assert_eq!(code, ExitCode::SUCCESS);
    let lines = output.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The proper answer to the first call.
const PROPER: &str = "{\"id\":1,\"jsonrpc\":\"2.0\",\"result\":{\"content\":[{\"text\":\"proper\",\
                      \"type\":\"text\"}],\"isError\":false}}";

#[test]
fn plain_tools_answer() {
    let mut client = Client::start(&[]);
    for (tool, arguments, text) in [
        ("echo", json!({"text": "a\nb"}), "a\nb"),
        ("add", json!({"a": 2, "b": -3}), "-1"),
        ("add", json!({"a": 0.5, "b": 1}), "1.5"),
        ("write_note", json!({"text": "x"}), "note 1"),
        ("write_note", json!({"text": "x"}), "note 2"),
        ("unlisted", json!({}), "unlisted"),
        ("sleep", json!({"ms": 0}), "slept 0 ms"),
        ("big", json!({"bytes": 3}), "xxx"),
    ] {
        let id = client.call(tool, arguments);
        assert_eq!(client.text_of(id), text);
    }
    assert_eq!(client.finish(), (ExitCode::SUCCESS, String::new()));
}

#[test]
fn a_big_answer_has_the_size_asked_for() {
    let bytes = 9 << 20;
    let mut client = Client::start(&[]);
    let id = client.call("big", json!({"bytes": bytes}));
    assert_eq!(client.text_of(id).len(), bytes);
}

#[test]
fn failures_are_results_and_errors_are_errors() {
    let mut client = Client::start(&[]);
    let id = client.call("fail", json!({"message": "no"}));
    let result = client.answer_to(id);
    assert_eq!(result["isError"], true);
    assert_eq!(result["content"][0]["text"], "no");
    let id = client.call("protocol_error", json!({"code": -32042}));
    assert_eq!(client.answer_to(id)["code"], -32042);
}

#[test]
fn bad_arguments_are_tool_errors_that_name_them() {
    let mut client = Client::start(&[]);
    for (tool, arguments, name) in [
        ("echo", json!({}), "text"),
        ("echo", json!({"text": 1}), "text"),
        ("add", json!({"a": 1, "b": "2"}), "b"),
        ("sleep", json!({"ms": 600_001}), "ms"),
        ("big", json!({"bytes": (1 << 30) + 1}), "bytes"),
        ("progress", json!({"steps": 10_001}), "steps"),
        ("die", json!({"code": 256}), "code"),
        ("stderr", json!({"hex": "0"}), "hex"),
        ("stderr", json!({"text": "", "times": 1_000_001}), "times"),
        ("kill_self", json!({"signal": 65}), "signal"),
    ] {
        let id = client.call(tool, arguments);
        let result = client.answer_to(id);
        assert_eq!(result["isError"], true);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(&format!("`{name}`")), "{text}");
    }
}

#[test]
fn unknown_tools_and_nameless_calls_are_invalid() {
    let mut client = Client::start(&[]);
    let id = client.call("added_0", json!({}));
    assert_eq!(client.answer_to(id)["code"], -32602);
    let error = client.ask("tools/call", json!({"name": 7}));
    assert_eq!(error["code"], -32602);
}

#[test]
fn answers_come_in_completion_order() {
    let mut client = Client::start(&[]);
    let slow = client.call("sleep", json!({"ms": 600_000, "answer_anyway": true}));
    let fast = client.call("echo", json!({"text": "first"}));
    assert_eq!(client.text_of(fast), "first");
    let method = "notifications/cancelled";
    let params = json!({"requestId": slow});
    client.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    client.text_of(slow);
}

#[test]
fn frames_of_concurrent_calls_do_not_mix() {
    let mut client = Client::start(&[]);
    let token = json!({"progressToken": "t"});
    let params = json!({"name": "progress", "arguments": {"steps": 500}, "_meta": token});
    for _ in 0..20 {
        client.request("tools/call", params.clone());
        client.call("big", json!({"bytes": 9000}));
    }
    let (_, rest) = client.finish();
    assert_eq!(rest.lines().count(), 20 * 502);
    for line in rest.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
}

#[test]
fn progress_needs_a_token() {
    let token = json!({"progressToken": 7});
    let mut client = Client::start(&[]);
    let params = json!({"name": "progress", "arguments": {"steps": 2}, "_meta": token});
    let id = client.request("tools/call", params);
    for step in 1..=2 {
        let notice = client.next();
        assert_eq!(notice["method"], "notifications/progress");
        let expected = json!({"progressToken": 7, "progress": step, "total": 2});
        assert_eq!(notice["params"], expected);
    }
    assert_eq!(client.text_of(id), "2 steps");
    assert_eq!(lines_of("progress", json!({"steps": 2})).len(), 1);
}

#[test]
fn never_is_never_answered() {
    assert_eq!(output_of("never", json!({})).1, "");
}

#[test]
fn a_call_without_an_id_is_executed_and_not_answered() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("effects");
    let mut client = Client::start(&["--ledger", path.to_str().unwrap()]);
    for tool in ["write_note", "crlf", "double_answer", "never"] {
        let params = json!({"name": tool, "arguments": {"text": "x"}});
        client.send(&json!({"jsonrpc": "2.0", "method": "tools/call", "params": params}));
    }
    let id = client.call("write_note", json!({"text": "y"}));
    assert_eq!(client.text_of(id), "note 2");
    let expected = "effect write_note -\neffect crlf -\neffect double_answer -\n\
                    effect never -\neffect write_note 1\n";
    assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    assert_eq!(client.finish(), (ExitCode::SUCCESS, String::new()));
}

#[test]
fn die_exits_at_once_with_its_code() {
    for (arguments, code) in [(json!({}), 0), (json!({"code": 7}), 7)] {
        let mut client = Client::start(&[]);
        client.call("never", json!({}));
        let late = json!({"jsonrpc": "2.0", "id": 9, "method": "ping"});
        let params = json!({"name": "die", "arguments": arguments});
        let die = json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": params});
        // In one write: the server may be gone before a second one.
        client.write(format!("{die}\n{late}\n").as_bytes());
        assert_eq!(client.line(), b"");
        assert_eq!(client.server.join().unwrap(), ExitCode::from(code));
    }
}

#[test]
fn die_after_answer_has_answered() {
    let (code, output) = output_of("die_after_answer", json!({"code": 3}));
    assert_eq!(code, ExitCode::from(3));
    assert_eq!(output, format!("{PROPER}\n"));
}

#[test]
fn no_newline_die_leaves_the_line_open() {
    let (code, output) = output_of("no_newline_die", json!({}));
    assert_eq!(code, ExitCode::SUCCESS);
    assert_eq!(output, PROPER);
}

#[test]
fn a_signal_that_is_ignored_is_survived() {
    let window_change = 28;
    let lines = lines_of("kill_self", json!({"signal": window_change}));
    let text = &lines[0]["result"]["content"][0]["text"];
    assert_eq!(text, "survived signal 28");
}

#[test]
fn faults_of_one_frame_are_as_named() {
    for (tool, expected) in [
        ("noise", format!("this line is not JSON\n{PROPER}\n")),
        ("crlf", format!("{PROPER}\r\n")),
        ("blank_lines", format!("\n  \n\r\n{PROPER}\n\n\t\n")),
        ("in_pieces", format!("{PROPER}\n")),
        ("batch_answer", format!("[{PROPER}]\n")),
        ("no_result", "{\"id\":1,\"jsonrpc\":\"2.0\"}\n".to_owned()),
    ] {
        let (code, output) = output_of(tool, json!({}));
        assert_eq!(code, ExitCode::SUCCESS);
        assert_eq!(output, expected);
    }
}

#[test]
fn bad_utf8_is_bad() {
    let mut client = Client::start(&[]);
    client.call("bad_utf8", json!({}));
    let line = client.line();
    assert!(std::str::from_utf8(&line).is_err());
    assert_eq!(line.len(), PROPER.len() + 1);
}

#[test]
fn faults_of_the_id_are_followed_by_the_proper_answer() {
    for (tool, id) in [
        ("wrong_id", json!("never-asked")),
        ("null_id", json!(null)),
        ("retyped_id", json!("1")),
    ] {
        let lines = lines_of(tool, json!({}));
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["id"], id);
        assert_eq!(lines[1].to_string(), PROPER);
        let lines = lines_of(tool, json!({"only": true}));
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["id"], id);
    }
}

#[test]
fn double_answer_and_result_and_error_say_two_things() {
    let lines = lines_of("double_answer", json!({}));
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0].to_string(), PROPER);
    assert_eq!(lines[1]["id"], 1);
    assert_ne!(lines[0], lines[1]);
    let lines = lines_of("result_and_error", json!({}));
    assert!(lines[0]["result"].is_object() && lines[0]["error"].is_object());
}

#[test]
fn stderr_gets_the_bytes_as_they_are() {
    let mut client = Client::start(&[]);
    let id = client.call("stderr", json!({"text": "\u{1b}[1m", "times": 2}));
    client.text_of(id);
    let id = client.call("stderr", json!({"hex": "ff0A"}));
    client.text_of(id);
    assert_eq!(*locked(&client.errors.0), b"\x1b[1m\x1b[1m\xFF\n");
}
