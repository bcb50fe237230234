//! What passes through does not enter the record: names of tools do, up to
//! their bound, and nothing else that the client or the server chose.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::harness::{Setup, call, sha256};
use super::record::Record;

/// Stands in every text that must not be kept.
const MARK: &str = "s3cr3t-m4rk";

/// A text that holds the mark and is unlike the others.
fn text(what: &str) -> String {
    format!("{what} {MARK} {what}")
}

/// Asserts that the record of `setup` is whole, has so many Calls, and holds
/// no mark.
#[track_caller]
fn assert_unmarked(setup: &Setup, calls: usize) -> Record {
    let record = setup.record();
    record.assert_verified();
    assert_eq!(record.outcomes().count(), calls);
    let bytes = std::fs::read(setup.audit()).unwrap();
    let bytes = String::from_utf8(bytes).unwrap();
    let line = bytes.lines().find(|line| line.contains(MARK));
    assert_eq!(line, None);
    record
}

/// SPEC [LINE-17].
#[test]
fn no_argument_result_or_error_is_kept() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let (request, answer) = session.ask(text("id"), "echo", json!({"text": text("argument")}));
    let contains = |frame: &[u8]| String::from_utf8_lossy(frame).matches(MARK).count();
    assert_eq!((contains(&request), contains(&answer)), (2, 2));
    session.ask(1, "fail", json!({"message": text("tool error")}));
    session.ask(2, "stderr", json!({"text": text("stderr")}));
    session.ask(3, "echo", json!({"text": {"nested": [text("argument")]}}));
    let mut member = call(4, "echo", json!({"text": "a"}));
    member["params"]["_meta"] = json!({text("name"): text("value")});
    member[text("member")] = json!(1);
    session.send_json(&member);
    session.answer(4);
    let batch = json!([
        call(text("b1"), "echo", json!({"text": text("batch")})),
        call(text("b2"), "fail", json!({"message": text("batch")})),
    ]);
    session.send_json(&batch);
    session.frame();
    let silent = session.call(text("open"), "never", json!({"text": text("never")}));
    let cancel = json!({"requestId": text("open"), "reason": text("reason")});
    session.send_json(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}),
    );
    let ended = session.finish();
    assert!(ended.stderr.contains(MARK));
    let record = assert_unmarked(&setup, 8);
    assert_eq!(record.outcome(&silent)["answer"]["kind"], "cancelled");
}

/// SPEC [LINE-17], for what a server may say that the test double does not.
#[test]
fn no_message_of_a_server_is_kept() {
    let error = json!({
        "code": -32000, "message": text("message"), "data": {text("name"): text("data")},
    });
    let answers = [
        json!({"jsonrpc": "2.0", "id": 1, "error": error}),
        json!({"jsonrpc": "2.0", "id": 1, "error": text("error")}),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": text("code")}}),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1}, text("member"): 1}),
        json!([{"jsonrpc": "2.0", "id": 1, "error": error}]),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": text("type"), "isError": text("is")}}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {
            "resultType": "input_required", "requestState": text("state"), "inputRequests": {text("key"): {}},
        }}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {
            "resultType": "task", "task": {"taskId": text("task")}, "taskId": text("task"),
        }}),
    ];
    let mut lines: Vec<_> = answers.iter().map(Value::to_string).collect();
    // Such as cannot be read strictly.
    lines.push(format!(
        r#"{{"id":1,"id":1,"error":{{"code":1,"message":"{MARK}"}}}}"#
    ));
    lines.push(format!(r#"{{"id":1,"result":{{"x":"\ud800{MARK}"}}}}"#));
    lines.push(format!("{MARK} is no JSON"));
    for line in lines {
        let setup = Setup::server(&[]);
        let file = setup.dir.path().join("answer");
        std::fs::write(&file, format!("{line}\n")).unwrap();
        let script = format!(
            "read -r line; cat '{}'; echo {MARK} >&2; cat >/dev/null",
            file.display()
        );
        let setup = Setup::command(&["sh", "-c", &script, MARK]);
        let mut session = setup.start();
        session.call(1, "t", json!({"text": text("argument")}));
        assert_eq!(session.frame(), format!("{line}\n").as_bytes());
        session.finish();
        // The script is an argument, of which the digest is kept.
        let record = assert_unmarked(&setup, 1);
        let argv = format!("sh\0-c\0{script}\0{MARK}\0");
        assert_eq!(
            record.open()["child"]["argv_digest"],
            sha256(argv.as_bytes())
        );
    }
}

#[test]
fn of_a_frame_that_cannot_be_read_nothing_is_kept() {
    let frames = [
        MARK.to_owned(),
        format!(r#"{{"method":"tools/call","params":{{"name":"{MARK}","name":"x"}},"id":1}}"#),
        format!(r#"{{"method":"tools/call","params":{{"name":"\udc00{MARK}"}},"id":"{MARK}"}}"#),
        format!(r#"{{"Method":"tools/call","params":{{"name":"{MARK}"}},"id":1}}"#),
        format!(r#"[{{"method":"tools/call","params":{{"name":"{MARK}"}},"id":1}},"#),
        format!("\u{feff}{}", call(1, MARK, json!({}))),
    ];
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    for frame in &frames {
        session.send(format!("{frame}\n").as_bytes());
    }
    session.finish();
    let record = assert_unmarked(&setup, frames.len());
    assert_eq!(record.close()["unreadable_frames"], frames.len());
}

#[test]
fn of_a_name_the_first_kibibyte_is_kept_and_no_more() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let long = format!("{}{MARK}", "n".repeat(1024));
    session.ask(1, &long, json!({}));
    session.ask(2, &format!("{}{MARK}", "\u{e9}".repeat(512)), json!({}));
    session.finish();
    assert_unmarked(&setup, 2);

    // Names are the exception: who reads a record wants to see them.
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let (request, _) = session.ask(1, MARK, json!({}));
    let record = session.finish().record;
    let outcome = record.outcome(&request);
    assert_eq!(outcome["tool_id"], MARK);
    let rest = outcome
        .to_string()
        .replace(&format!("\"tool_id\":\"{MARK}\""), "");
    assert!(!rest.contains(MARK), "{rest}");
}

#[test]
fn no_environment_is_kept() {
    let setup = Setup::server(&[]);
    let argv = setup.argv();
    let mut child = Command::new(&argv[0])
        .args(&argv[1..])
        .env("AEGIS_TEST_TEXT", MARK)
        .env(MARK, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let frame = call(1, "echo", json!({"text": "a"}));
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{frame}").unwrap();
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_unmarked(&setup, 1);
}
