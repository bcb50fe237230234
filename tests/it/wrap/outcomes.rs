//! What the record says of each kind of call (SPEC §5.5), and which answer
//! belongs to which.

use serde_json::{Value, json};

use super::harness::{Setup, call, sha256};
use super::record::{Record, assert_answered, assert_passed_through, assert_unanswered};

/// SPEC [LINE-21].
#[test]
fn answered_calls_say_what_the_answer_was() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let cases = [
        ("echo", json!({"text": "a"}), json!({"kind": "result"})),
        (
            "fail",
            json!({"message": "m"}),
            json!({"kind": "tool_error"}),
        ),
        ("echo", json!({}), json!({"kind": "tool_error"})),
        (
            "protocol_error",
            json!({"code": -32603}),
            json!({"kind": "protocol_error", "code": "-32603"}),
        ),
        (
            "protocol_error",
            json!({"code": i64::MIN}),
            json!({"kind": "protocol_error", "code": i64::MIN.to_string()}),
        ),
        (
            "no_such_tool",
            json!({}),
            json!({"kind": "protocol_error", "code": "-32602"}),
        ),
        (
            "result_and_error",
            json!({}),
            json!({"kind": "protocol_error", "code": "-32603"}),
        ),
        (
            "",
            json!({}),
            json!({"kind": "protocol_error", "code": "-32602"}),
        ),
    ];
    let mut asked = Vec::new();
    for (id, (tool, arguments, kind)) in cases.into_iter().enumerate() {
        let (request, answer) = session.ask(id, tool, arguments);
        asked.push((tool, request, answer, kind));
    }
    let ended = session.finish();
    ended.assert_exit(0);
    assert_eq!(ended.stderr, "");
    let record = ended.record;
    record.assert_verified();
    for (tool, request, answer, kind) in &asked {
        let outcome = record.outcome(request);
        assert_passed_through(&record, outcome, tool);
        assert_answered(outcome, answer, kind.clone());
        // No outcome comes after the answer: this one's is before the next
        // one's intent.
        assert_eq!(
            record.intent_of(outcome)["seq"].as_u64().map(|seq| seq + 1),
            outcome["seq"].as_u64()
        );
    }
    assert_eq!(record.close()["calls"], asked.len());
    assert_eq!(record.close()["unreadable_frames"], 0);
}

#[test]
fn an_error_that_is_null_is_no_error() {
    let answers = [
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":null,"result":{"isError":true}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":null}"#,
    ];
    let kinds = ["result", "tool_error", "protocol_error"];
    for (answer, kind) in answers.iter().zip(kinds) {
        let outcome = scripted(answer);
        assert_answered(&outcome, answer.as_bytes(), json!({"kind": kind}));
    }
}

/// The outcome of a call with the id 1 that a server answers with this line.
fn scripted(answer: &str) -> Value {
    says(&format!("printf '%s\\n' '{answer}'"))
}

/// The outcome of one call to a server that answers by this shell command.
fn says(command: &str) -> Value {
    let script = format!("read -r line; {command}; cat >/dev/null");
    let setup = Setup::command(&["sh", "-c", &script]);
    let mut session = setup.start();
    session.call(1, "t", json!({}));
    session.frame();
    let record = session.finish().record;
    record.assert_verified();
    record.outcomes().next().unwrap().clone()
}

/// SPEC [LINE-14] [LINE-21].
#[test]
fn calls_that_nobody_answers_say_why() {
    let setup = Setup::server(&["--exit-after", "1"]);
    let mut session = setup.start();
    let request = session.call(1, "never", json!({}));
    session.call(2, "echo", json!({"text": "a"}));
    let ended = session.wait();
    let outcome = ended.record.outcome(&request);
    assert_passed_through(&ended.record, outcome, "never");
    assert_unanswered(outcome, "none", "child exited before responding");

    let setup = Setup::server(&["--no-answer-after-eof", "--ignore-eof"]);
    let mut session = setup.start();
    let request = session.call(1, "never", json!({}));
    session.ask(2, "echo", json!({"text": "a"}));
    let ended = session.finish();
    ended.record.assert_verified();
    let outcome = ended.record.outcome(&request);
    assert_passed_through(&ended.record, outcome, "never");
    let reason = "client closed stdin; child did not answer within the shutdown grace";
    assert_unanswered(outcome, "none", reason);
}

/// SPEC [LINE-20] [LINE-21].
#[test]
fn calls_without_an_id_say_that_no_answer_can_be_matched() {
    let setup = Setup::server(&[]).with_ledger();
    let mut session = setup.start();
    let mut absent = call(1, "echo", json!({"text": "a"}));
    absent.as_object_mut().unwrap().remove("id");
    let absent = session.send_json(&absent);
    let null = session.call(Value::Null, "null_id", json!({}));
    let (nameless, _) = {
        let message = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call"});
        (session.send_json(&message), session.answer(3))
    };
    let ended = session.finish();
    ended.assert_exit(0);
    ended.record.assert_verified();
    for (request, tool) in [(&absent, "echo"), (&null, "null_id")] {
        let outcome = ended.record.outcome(request);
        assert_passed_through(&ended.record, outcome, tool);
        let reason = "relayed without an id; no answer can be matched";
        assert_unanswered(outcome, "none", reason);
    }
    assert_eq!(ended.record.outcome(&nameless)["tool_id"], "<unknown>");
    let effects = ["effect echo -", "effect null_id null", "effect <unknown> 3"];
    assert_eq!(setup.effects(), effects);
}

/// SPEC [LINE-21].
#[test]
fn calls_without_a_usable_name_are_unknown() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let paramses = [
        None,
        Some(json!({})),
        Some(json!({"name": 7})),
        Some(json!({"name": null})),
        Some(json!({"name": ["echo"]})),
        Some(json!(["echo"])),
        Some(Value::Null),
    ];
    let mut asked = Vec::new();
    for (id, params) in paramses.into_iter().enumerate() {
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call"});
        if let Some(params) = params {
            message["params"] = params;
        }
        let request = session.send_json(&message);
        asked.push((request, session.answer(id)));
    }
    let record = session.finish().record;
    record.assert_verified();
    for (request, answer) in &asked {
        let outcome = record.outcome(request);
        assert_passed_through(&record, outcome, "<unknown>");
        let answer_is = json!({"kind": "protocol_error", "code": "-32602"});
        assert_answered(outcome, answer, answer_is);
    }
}

#[test]
fn ids_are_told_apart_by_type_and_value() {
    let ids = [
        json!(0),
        json!("0"),
        json!(1.5),
        json!("1.5"),
        json!(-1),
        json!(""),
        json!({"a": 1}),
        json!([1]),
        json!(true),
        json!("\u{e9}\n\"\\"),
        json!(18446744073709551615u64),
        json!("x".repeat(5000)),
        json!(format!("{}y", "x".repeat(4999))),
    ];
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    // All are in flight at once: the last one to ask is answered first.
    let mut requests = Vec::new();
    for (i, id) in ids.iter().enumerate() {
        let ms = 40 * (ids.len() - i);
        requests.push(session.call(id.clone(), "sleep", json!({"ms": ms})));
    }
    let mut answers: Vec<_> = ids.iter().map(|_| session.frame()).collect();
    let record = session.finish().record;
    record.assert_verified();
    for (id, request) in ids.iter().zip(&requests) {
        let is_it = |frame: &Vec<u8>| {
            let read: Value = serde_json::from_slice(frame).unwrap();
            read["id"] == *id
        };
        let at = answers.iter().position(is_it).unwrap();
        let answer = answers.remove(at);
        let outcome = record.outcome(request);
        assert_answered(outcome, &answer, json!({"kind": "result"}));
    }
}

#[test]
fn one_number_written_in_two_ways_is_two_ids() {
    let script = concat!(
        r#"read -r a; read -r b; printf '{"id":1.0,"result":{}}\n{"id":1,"error":{"code":3}}\n';"#,
        "cat >/dev/null"
    );
    let setup = Setup::command(&["sh", "-c", script]);
    let mut session = setup.start();
    let frame =
        |id: &str| format!(r#"{{"id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#);
    for id in ["1", "1.0"] {
        session.send(format!("{}\n", frame(id)).as_bytes());
    }
    session.frame();
    session.frame();
    let record = session.finish().record;
    record.assert_verified();
    let kind = |id| record.outcome(frame(id).as_bytes())["answer"].clone();
    assert_eq!(kind("1"), json!({"kind": "protocol_error", "code": "3"}));
    assert_eq!(kind("1.0"), json!({"kind": "result"}));
}

#[test]
fn both_sides_may_use_an_id_at_the_same_time() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let request = session.call(5, "same_id", json!({}));
    let ping: Value = serde_json::from_slice(&session.frame()).unwrap();
    assert_eq!((&ping["id"], &ping["method"]), (&json!(5), &json!("ping")));
    // The client's answer under that id ends no call of the client's own.
    session.send_json(&json!({"jsonrpc": "2.0", "id": 5, "result": {}}));
    let answer = session.answer(5);
    let record = session.finish().record;
    record.assert_verified();
    assert_answered(record.outcome(&request), &answer, json!({"kind": "result"}));
}

/// SPEC [LINE-21].
#[test]
fn of_one_id_in_flight_twice_the_oldest_call_takes_the_answer() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let first = session.call(1, "never", json!({}));
    let second = session.call(1, "echo", json!({"text": "a"}));
    let early = session.answer(1);
    let third = session.call(1, "echo", json!({"text": "b"}));
    let late = session.answer(1);
    let after = session.call(2, "echo", json!({"text": "c"}));
    let other = session.answer(2);
    let record = session.finish().record;
    record.assert_verified();
    let ambiguous = json!({"kind": "result", "ambiguous": true});
    assert_answered(record.outcome(&first), &early, ambiguous.clone());
    assert_answered(record.outcome(&second), &late, ambiguous);
    let outcome = record.outcome(&third);
    assert_eq!(
        outcome["answer"],
        json!({"kind": "none", "ambiguous": true})
    );
    assert_answered(record.outcome(&after), &other, json!({"kind": "result"}));
}

#[test]
fn an_id_is_free_again_once_answered() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let asked: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|text| session.ask(1, "echo", json!({ "text": text })))
        .collect();
    let record = session.finish().record;
    record.assert_verified();
    for (request, answer) in &asked {
        assert_answered(record.outcome(request), answer, json!({"kind": "result"}));
    }
}

#[test]
fn answers_that_nobody_asked_for_end_no_call() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let mut asked = Vec::new();
    for (id, tool) in ["wrong_id", "null_id", "retyped_id"].iter().enumerate() {
        let request = session.call(id, tool, json!({}));
        let stray: Value = serde_json::from_slice(&session.frame()).unwrap();
        assert_ne!(stray["id"], id);
        asked.push((request, session.answer(id)));
    }
    // The second answer of two finds no call, nor does it later.
    let twice = session.call(7, "double_answer", json!({}));
    let first = session.answer(7);
    session.answer(7);
    asked.push((twice, first));
    let silent = session.call(8, "no_result", json!({}));
    session.answer(8);
    let only = session.call(9, "retyped_id", json!({"only": true}));
    session.answer("9");
    let record = session.finish().record;
    record.assert_verified();
    for (request, answer) in &asked {
        assert_answered(record.outcome(request), answer, json!({"kind": "result"}));
    }
    for request in [&silent, &only] {
        let reason = "child exited before responding";
        assert_unanswered(record.outcome(request), "none", reason);
    }
}

#[test]
fn an_answer_that_cannot_be_read_strictly_still_is_one() {
    let deep = format!("{}1{}", "[".repeat(70), "]".repeat(70));
    let answers = [
        (r#"{"id":1,"result":{"x":"\ud800"}}"#.to_owned(), "result"),
        (format!(r#"{{"id":1,"result":{deep}}}"#), "result"),
        (
            r#"{"id":1,"error":{"code":1,"code":2}}"#.to_owned(),
            "protocol_error",
        ),
    ];
    for (answer, kind) in answers {
        let outcome = scripted(&answer.replace('\\', "\\\\").replace("\\\\u", "\\u"));
        let expected = json!({"kind": kind, "unreadable": true});
        assert_answered(&outcome, answer.as_bytes(), expected);
    }
}

#[test]
fn a_batch_of_answers_that_cannot_be_read_strictly_still_is_one() {
    let notice = r#"{"method":"a"}"#;
    let answer = format!(r#"[{notice},{{"id":1,"result":{{"x":1,"x":2}}}}]"#);
    let outcome = scripted(&answer);
    let expected = json!({"kind": "result", "unreadable": true});
    assert_answered(&outcome, answer.as_bytes(), expected);
}

#[test]
fn a_spooled_answer_that_cannot_be_read_strictly_still_is_one() {
    let (before, after) = (r#"{"id":1,"result":{"x":1,"x":""#, r#""}}"#);
    let padding = (8 << 20) + 1;
    let outcome = says(&format!(
        "printf '{before}'; head -c {padding} /dev/zero | tr '\\0' a; printf '{after}\\n'"
    ));
    let answer = format!("{before}{}{after}", "a".repeat(padding));
    let expected = json!({"kind": "result", "unreadable": true});
    assert_answered(&outcome, answer.as_bytes(), expected);
}

/// SPEC [DUR-7].
#[test]
fn the_open_line_says_who_what_and_how() {
    for (flag, durability) in [
        (None, "intent"),
        (Some("full"), "full"),
        (Some("intent"), "intent"),
        (Some("process"), "process"),
    ] {
        let mut setup = Setup::server(&[]);
        if let Some(flag) = flag {
            setup = setup.with(&["--durability", flag]);
        }
        let mut session = setup.start();
        session.ask(1, "echo", json!({"text": "a"}));
        let ended = session.finish();
        ended.assert_exit(0);
        assert_eq!(ended.stderr.contains("power cut"), durability == "process");
        let record = ended.record;
        record.assert_verified();
        let open = record.open();
        assert_eq!(open["durability"], durability);
        assert_eq!(open["emitter"]["name"], "aegis");
        assert_eq!(open["emitter"]["verb"], "wrap");
        assert_eq!(open["confinement"], json!({"status": "none"}));
        assert_eq!(open["child"]["program"], super::harness::AEGIS);
        let argv = format!("{}\0__demo-server\0", super::harness::AEGIS);
        assert_eq!(open["child"]["argv_digest"], sha256(argv.as_bytes()));
        assert_eq!(open["session_id"].as_str().map(str::len), Some(32));
    }
    let id = |record: Record| record.open()["session_id"].clone();
    let ids: Vec<_> = (0..2)
        .map(|_| {
            let setup = Setup::server(&[]);
            id(setup.start().finish().record)
        })
        .collect();
    assert_ne!(ids[0], ids[1]);
}
