//! What the client was shown of a tool stands on the outcome of its Calls.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::harness::{Session, Setup, call, sha256};

/// The definition of `echo`, as the test double has it, in its canonical form.
pub(super) const ECHO: &str = concat!(
    r#"{"description":"Answers with the text.","inputSchema":{"properties":"#,
    r#"{"text":{"type":"string"}},"required":["text"],"type":"object"},"name":"echo"}"#,
);

/// SHA-256 of [`ECHO`], by another program.
const ECHO_DIGEST: &str = "14f6c80faf41def4043bc022bdd0b37c4105cb6b6a02b77488c9cd6519aae2cc";

pub(super) fn list(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"})
}

/// The same message in the 2026-07-28 era.
pub(super) fn modern(mut message: Value) -> Value {
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    message
}

/// A server that answers each line with the next of these texts, then with
/// silence.
pub(super) fn scripted(answers: &[&str]) -> (Setup, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    for (i, answer) in answers.iter().enumerate() {
        std::fs::write(dir.path().join(i.to_string()), format!("{answer}\n")).unwrap();
    }
    let script = r#"n=0; while read -r line; do
        test -e "$0/$n" && cat "$0/$n"; n=$((n+1)); done"#;
    let setup = Setup::command(&["sh", "-c", script, dir.path().to_str().unwrap()]);
    (setup, dir)
}

pub(super) fn answer(id: u64, tools: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":{tools}}}}}"#)
}

fn exchange(session: &mut Session<'_>, message: &Value) -> Vec<u8> {
    session.send_json(message);
    session.answer(message["id"].clone())
}

/// The digests of the outcomes of `tool`, in the order of the record.
fn digests(setup: &Setup, tool: &str) -> Vec<Option<String>> {
    let record = setup.record();
    record.assert_verified();
    let outcomes = record.outcomes().filter(|line| line["tool_id"] == tool);
    let digest = |line: &Value| {
        line.get("tool_digest")
            .map(|d| d.as_str().unwrap().to_owned())
    };
    outcomes.map(digest).collect()
}

/// SPEC [LISTING-1] [LISTING-4] [CANON-14].
#[test]
fn a_call_names_the_definition_last_shown_in_either_era() {
    assert_eq!(sha256(ECHO.as_bytes()), ECHO_DIGEST);
    let changed = ECHO.replace("the text.", "the text. Changed while the server ran.");
    for era in [|message| message, modern] {
        let setup = Setup::server(&[]);
        let mut session = setup.start();
        let mut id = 0;
        let mut send = |session: &mut Session<'_>, tool: &str, arguments: Value| {
            id += 1;
            let message = match tool {
                "list" => list(id),
                tool => call(id, tool, arguments),
            };
            exchange(session, &era(message));
        };
        let text = || json!({"text": "a"});
        send(&mut session, "echo", text());
        send(&mut session, "list", json!({}));
        send(&mut session, "echo", text());
        send(&mut session, "unlisted", json!({}));
        send(&mut session, "list_changed", json!({"redefine": "echo"}));
        send(&mut session, "echo", text());
        send(&mut session, "list", json!({}));
        send(&mut session, "echo", text());
        session.call("x", "echo", json!({}));
        session.answer("x");
        session.finish().assert_exit(0);
        let first = Some(ECHO_DIGEST.to_owned());
        let second = Some(sha256(changed.as_bytes()));
        assert_eq!(
            digests(&setup, "echo"),
            [None, first.clone(), first, second.clone(), second]
        );
        assert_eq!(digests(&setup, "unlisted"), [None]);
    }
}

/// SPEC [LISTING-1].
#[test]
fn pages_add_up() {
    let setup = Setup::server(&["--page-size", "1"]);
    let mut session = setup.start();
    let mut cursor = None;
    for (id, tool) in ["echo", "add"].into_iter().enumerate() {
        // Neither is known before its page, and the first one stays so.
        for (tool, arguments) in [
            ("echo", json!({"text": "a"})),
            ("add", json!({"a": 1, "b": 1})),
        ] {
            exchange(&mut session, &call(9, tool, arguments));
        }
        let mut message = list(id as u64);
        if let Some(cursor) = cursor.take() {
            message["params"] = json!({"cursor": cursor});
        }
        let page: Value = serde_json::from_slice(&exchange(&mut session, &message)).unwrap();
        assert_eq!(page["result"]["tools"][0]["name"], tool);
        cursor = Some(page["result"]["nextCursor"].clone());
    }
    session.call(9, "echo", json!({"text": "a"}));
    session.call(10, "add", json!({"a": 1, "b": 1}));
    session.answer(10);
    session.finish().assert_exit(0);
    let echo = Some(ECHO_DIGEST.to_owned());
    assert_eq!(digests(&setup, "echo"), [None, echo.clone(), echo]);
    let add = digests(&setup, "add");
    assert_eq!(add[..2], [None, None]);
    assert!(add[2].is_some());
}

/// Elements of a list that a server may send, the name that is called then,
/// and the canonical form that is named.
/// SPEC [LISTING-1] [LISTING-2] [LISTING-3] [CANON-14].
#[test]
fn a_hostile_list_never_names_what_was_not_shown() {
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    let too_deep = format!("{}{}", "[".repeat(70), "]".repeat(70));
    let nested = format!(r#"[{{"name":"t","x":{deep}}}]"#);
    let nested_form = format!(r#"{{"name":"t","x":{deep}}}"#);
    let too_nested = format!(r#"[{{"name":"t","x":{too_deep}}}]"#);
    for (tools, name, form) in [
        (r#"[{"name":"t"}]"#, "t", Some(r#"{"name":"t"}"#)),
        (
            r#"[ { "x":1e2 , "\u006eame" : "\u0074" , "n":null } ]"#,
            "t",
            Some(r#"{"n":null,"name":"t","x":100}"#),
        ),
        (
            r#"[{"name":"t","x":[-0,-1.5,9007199254740993,123456789012345678901234567890]}]"#,
            "t",
            Some(r#"{"name":"t","x":[0,-1.5,9007199254740992,1.2345678901234568e+29]}"#),
        ),
        (
            "[{\"name\":\"t\",\"\u{fb33}\":1,\"\u{1f600}\":2}]",
            "t",
            Some("{\"name\":\"t\",\"\u{1f600}\":2,\"\u{fb33}\":1}"),
        ),
        (
            r#"[1,null,"t",[{"name":"t"}],{"name":["t"]},{},{"name":"t"}]"#,
            "t",
            Some(r#"{"name":"t"}"#),
        ),
        (&nested, "t", Some(&nested_form)),
        (r#"[{"name":""}]"#, "", Some(r#"{"name":""}"#)),
        (
            r#"[{"name":"T"},{"name":" t"},{"name":"t\u0000"}]"#,
            "t",
            None,
        ),
        (
            r#"[{"name":1},{"title":"t"},{"x":{"name":"t"}}]"#,
            "t",
            None,
        ),
        (r#"[{"name":"t","v":1},{"name":"t","v":2}]"#, "t", None),
        (r#"[{"name":"t","v":1e400}]"#, "t", None),
        (r#"[{"name":"t","v":"\ud800"}]"#, "t", None),
        (r#"[{"name":"t","v":1,"v":2}]"#, "t", None),
        (r#"[{"name":"t","v":NaN}]"#, "t", None),
        (&too_nested, "t", None),
        (r#"{"name":"t"}"#, "t", None),
        (r#""t""#, "t", None),
        ("null", "t", None),
        ("[]", "t", None),
    ] {
        let (list_answer, call_answer) = (answer(1, tools), answer(2, "[]"));
        let (setup, _answers) = scripted(&[&list_answer, &call_answer]);
        let mut session = setup.start();
        session.send_json(&list(1));
        assert_eq!(session.frame(), format!("{list_answer}\n").as_bytes());
        session.call(2, name, json!({}));
        session.frame();
        session.finish();
        let expected = form.map(|form| sha256(form.as_bytes()));
        assert_eq!(digests(&setup, name), [expected], "{tools}");
    }
}

/// SPEC [LISTING-2]: a definition that was shown before is forgotten when what
/// comes then cannot be understood.
#[test]
fn no_stale_definition_is_named() {
    let other = r#"[{"name":"t","v":2}]"#;
    let spelled = answer(2, other).replace("\"id\":2", "\"id\":2.0");
    let twice = answer(2, other).replace("\"id\":2", "\"id\":2,\"id\":2");
    let long = format!(r#"[{{"name":"t","d":"{}"}}]"#, "x".repeat(8 << 20));
    for second in [
        spelled,
        twice,
        answer(2, &long),
        answer(2, r#"{"0":{"name":"t"}}"#),
        answer(2, r#"[{"name":"t","v":"\ud800"}]"#),
        answer(2, r#"[{"name":"t","v":2},{"name":"t","v":3}]"#),
        answer(2, other).replace('}', "},"),
    ] {
        let (first, third) = (answer(1, r#"[{"name":"t"}]"#), answer(3, "[]"));
        let (setup, _answers) = scripted(&[&first, &third, &second, &third]);
        let mut session = setup.start();
        for message in [list(1), call(3, "t", json!({}))] {
            session.send_json(&message);
            session.frame();
        }
        for message in [list(2), call(3, "t", json!({}))] {
            session.send_json(&message);
            session.frame();
        }
        session.finish();
        let shown = Some(sha256(br#"{"name":"t"}"#));
        let start = &second[..second.len().min(80)];
        assert_eq!(digests(&setup, "t"), [shown, None], "{start}");
    }
}

/// SPEC [LISTING-2]: a request that could not be read may have asked for it.
#[test]
fn a_list_asked_for_by_an_unreadable_frame_leaves_nothing_stale() {
    let (first, third) = (answer(1, r#"[{"name":"t"}]"#), answer(3, "[]"));
    let second = answer(9, r#"[{"name":"t","v":2}]"#);
    let (setup, _answers) = scripted(&[&first, &third, &second, &third]);
    let mut session = setup.start();
    session.send_json(&list(1));
    session.frame();
    session.call(3, "t", json!({}));
    session.frame();
    session.send(b"{\"id\":8,\"id\":9,\"method\":\"tools/list\"}\n");
    session.frame();
    session.call(3, "t", json!({}));
    session.frame();
    session.finish();
    let shown = Some(sha256(br#"{"name":"t"}"#));
    assert_eq!(digests(&setup, "t"), [shown, None]);
}

#[test]
fn a_list_in_a_batch_counts() {
    let batch = format!(
        "[{},{}]",
        r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
        answer(1, r#"[{"name":"t"}]"#)
    );
    let (setup, _answers) = scripted(&[&batch, &answer(2, "[]")]);
    let mut session = setup.start();
    session.send_json(&json!([list(1), {"jsonrpc": "2.0", "id": 7, "method": "ping"}]));
    assert_eq!(session.frame(), format!("{batch}\n").as_bytes());
    session.call(2, "t", json!({}));
    session.frame();
    session.finish();
    assert_eq!(digests(&setup, "t"), [Some(sha256(br#"{"name":"t"}"#))]);
}

#[test]
fn ten_thousand_tools_are_known() {
    let mut tools = String::from("[");
    for i in 0..10_000 {
        let comma = if i == 0 { "" } else { "," };
        write!(
            tools,
            r#"{comma}{{"name":"t{i}","inputSchema":{{"type":"object"}}}}"#
        )
        .unwrap();
    }
    tools.push(']');
    let (first, second) = (answer(1, &tools), answer(2, "[]"));
    let (setup, _answers) = scripted(&[&first, &second, &second]);
    let mut session = setup.start();
    session.send_json(&list(1));
    assert_eq!(session.frame(), format!("{first}\n").as_bytes());
    for tool in ["t9999", "t10000"] {
        session.call(2, tool, json!({}));
        session.frame();
    }
    session.finish();
    let form = r#"{"inputSchema":{"type":"object"},"name":"t9999"}"#;
    assert_eq!(digests(&setup, "t9999"), [Some(sha256(form.as_bytes()))]);
    assert_eq!(digests(&setup, "t10000"), [None]);
}

#[test]
fn a_cancelled_list_is_not_waited_for() {
    let (setup, _answers) = scripted(&["", "", &answer(3, r#"[{"name":"t"}]"#), &answer(4, "[]")]);
    let mut session = setup.start();
    session.send_json(&list(1));
    let cancel = json!({"requestId": 1});
    session.send_json(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}),
    );
    session.send_json(&list(3));
    session.answer(3);
    session.call(4, "t", json!({}));
    session.answer(4);
    session.finish().assert_exit(0);
    assert_eq!(digests(&setup, "t"), [Some(sha256(br#"{"name":"t"}"#))]);
}
