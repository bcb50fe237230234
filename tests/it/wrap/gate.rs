//! `--policy`: what the policy does not allow never reaches the server, the
//! client is told, and the record says so.

use std::process::Command;

use serde_json::{Value, json};

use super::harness::{AEGIS, Setup, call, until};
use super::record::{assert_answered, assert_unanswered};

/// The document of SPEC §6.1's third row.
pub(super) const DENY_ECHO: &str = "\
version: 1
default: allow
rules:
  - id: deny-echo
    action: deny
    tool: echo
    reason: \"quickstart\"
";

const DENY_ECHO_HASH: &str = "1a949e9677a4529dd662eb1a1ecc0a001fe097800a3a41578ba801062893fd41";

/// The test double with its effects on file, behind a policy.
pub(super) fn gated(policy: &str, flags: &[&str]) -> Setup {
    behind(Setup::server(&[]), policy, flags).with_ledger()
}

pub(super) fn behind(setup: Setup, policy: &str, flags: &[&str]) -> Setup {
    let path = setup.dir.path().join("policy.yaml");
    std::fs::write(&path, policy).unwrap();
    setup
        .with(&["--policy", path.to_str().unwrap()])
        .with(flags)
}

fn refusal(code: &str, id: &str) -> String {
    format!(
        r#"{{"error":{{"code":-32042,"data":{{"aegis":{{"code":"{code}","layer":"wrap"}}}},"message":"aegis wrap refused this tools/call"}},"id":{id},"jsonrpc":"2.0"}}"#
    ) + "\n"
}

/// SPEC [WRAP-1] [WRAP-5] [LINE-19] [LINE-27].
#[test]
fn one_call_is_refused() {
    let request = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}"#;
    let line = [&request[..], b"\n"].concat();
    let setup = gated(DENY_ECHO, &[]);
    let output = setup.pipe(&line);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stderr, b"");
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, refusal("POLICY_DENIED", "1"));
    assert_eq!(setup.effects(), [""; 0]);

    let record = setup.record();
    record.assert_verified();
    let types: Vec<_> = record.lines.iter().map(|l| &l["line_type"]).collect();
    assert_eq!(types, ["open", "intent", "outcome", "close"]);
    let in_force = json!({"status": "enforced", "policy_set_hash": DENY_ECHO_HASH});
    assert_eq!(record.open()["policy"], in_force);
    let outcome = record.outcome(request);
    assert_eq!(outcome["tool_id"], "echo");
    let denied = json!({"status": "denied", "reason": "quickstart"});
    assert_eq!(outcome["policy"], denied);
    let blocked = json!({"status": "denied", "reason": "policy blocked before capability"});
    assert_eq!(outcome["capability"], blocked);
    let not_executed = json!({"status": "host_denied", "reason": "not executed"});
    assert_eq!(outcome["execution"], not_executed);
    assert_eq!(outcome["policy_set_hash"], DENY_ECHO_HASH);
    assert_eq!(
        outcome["decision_axes"],
        json!({"matched_rule": "deny-echo"})
    );
    for absent in ["answer", "response_digest", "wall_ms", "grant_id", "shadow"] {
        assert_eq!(outcome.get(absent), None, "{absent}");
    }

    // As an auditor with the public key has it.
    let key = aegis::sign::SigningKey::from_seed(&super::harness::KEY_SEED).public_key();
    let verdict = Command::new(AEGIS)
        .args(["verify", "--key", &key.to_string()])
        .arg(setup.audit())
        .output()
        .unwrap();
    assert_eq!(verdict.status.code(), Some(0));
    assert!(verdict.stdout.starts_with(b"Verified (pinned to "));

    // The same without the policy.
    let setup = Setup::server(&[]).with_ledger();
    let output = setup.pipe(&line);
    assert!(
        output
            .stdout
            .starts_with(br#"{"id":1,"jsonrpc":"2.0","result":"#)
    );
    assert_eq!(setup.effects(), ["effect echo 1"]);
    assert_eq!(setup.record().open().get("policy"), None);
}

/// SPEC [WRAP-9] [LINE-14] [LINE-19]: an allowed call is answered as without
/// a policy, and keeps its verdict when nobody answers it.
#[test]
fn allowed_calls_carry_the_set_and_the_rule() {
    let policy = "rules: [{id: adds, action: allow, tool: add}]";
    let setup = gated(policy, &[]);
    let mut session = setup.start();
    let (request, answer) = session.ask(1, "add", json!({"a": 1, "b": 2}));
    let open = session.call(2, "never", json!({}));
    until("the call", || setup.effects().len() == 2);
    let ended = session.finish_by_signal();
    ended.record.assert_verified();
    let hash = &ended.record.open()["policy"]["policy_set_hash"];

    let outcome = ended.record.outcome(&request);
    assert_answered(outcome, &answer, json!({"kind": "result"}));
    assert_eq!(outcome["decision_axes"], json!({"matched_rule": "adds"}));
    let unanswered = ended.record.outcome(&open);
    assert_unanswered(unanswered, "none", "child exited before responding");
    assert_eq!(unanswered["decision_axes"], json!({}));
    for outcome in [outcome, unanswered] {
        assert_eq!(outcome["policy"], json!({"status": "allowed"}));
        assert_eq!(outcome["capability"]["status"], "granted");
        assert_eq!(&outcome["policy_set_hash"], hash);
    }
}

/// SPEC [WRAP-3] [WRAP-9]: the server's own -32042 is among them.
#[test]
fn what_is_allowed_reaches_either_side_byte_for_byte() {
    let frames = [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":"l","method":"tools/list"}"#,
        "",
        r#"{ "jsonrpc":"2.0" ,"id":1.50,"method":"tools\/call","params":{"name":"protocol_error","arguments":{"code":-32042}}}"#,
        r#"{"jsonrpc":"2.0","id":"é😀","method":"tools/call","params":{"arguments":{"text":"a"},"name":"echo"}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"no/such"}"#,
        r#"{"jsonrpc":"2.0","id":6,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
    ];
    let setup = gated("rules: [{id: never, action: deny, tool: rm}]", &[]);
    let input = format!("{}\r\n", frames.join("\n"));
    let (through, direct) = (
        setup.pipe(input.as_bytes()),
        setup.pipe_direct(input.as_bytes()),
    );
    let said = String::from_utf8(through.stdout).unwrap();
    assert_eq!(said, String::from_utf8(direct.stdout).unwrap());
    assert!(said.contains(r#""code":-32042"#) && !said.contains("aegis wrap"));
    setup.record().assert_verified();
}

/// SPEC [WRAP-2]: what two peers could read differently.
#[test]
fn what_cannot_be_read_strictly_reaches_nobody() {
    let deep = "[".repeat(64) + &"]".repeat(64);
    let frames: Vec<Vec<u8>> = vec![
        b"\xef\xbb\xbf{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}}".to_vec(),
        b"{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\xff\"}}".to_vec(),
        b"{\"id\":1,\"method\":\"ping\"}\r{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}}".to_vec(),
        br#"{"id":1,"method":"ping","method":"tools/call","params":{"name":"a"}}"#.to_vec(),
        br#"{"id":1,"method":"tools/call","m\u0065thod":"ping","params":{"name":"a"}}"#.to_vec(),
        br#"{"id":1,"Method":"tools/call","params":{"name":"a"}}"#.to_vec(),
        br#"{"id":1,"method":"TOOLS/CALL","params":{"name":"a"}}"#.to_vec(),
        br#"{"id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}"#.to_vec(),
        br#"{"id":1,"method":"tools/call","params":{"name":"a","x":NaN}}"#.to_vec(),
        br#"{"id":1,"method":"tools/call","params":{"name":"\ud800"}}"#.to_vec(),
        format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"a","x":{deep}}}}}"#).into_bytes(),
        br#"[[{"id":1,"method":"tools/call","params":{"name":"a"}}]]"#.to_vec(),
        br#"[{"id":1,"method":"tools/call","params":{"name":"a"}},7]"#.to_vec(),
        br#"{"id":1,"method":"tools/call","params":{"name":"a"}} x"#.to_vec(),
        br#"{"id":1,"method":"tools/call","params":{"name":"a"}"#.to_vec(),
        br#"{"id":1,"params":{"name":"a"}}"#.to_vec(),
        b"[]".to_vec(),
        b"\"tools/call\"".to_vec(),
    ];
    let setup = gated("default: allow", &[]);
    let mut session = setup.start();
    for frame in &frames {
        session.send(frame);
        session.send(b"\n");
        let said = String::from_utf8(session.frame()).unwrap();
        assert_eq!(
            said,
            refusal("HOST_DENIED", "null"),
            "{}",
            frame.escape_ascii()
        );
    }
    session.ask("last", "echo", json!({"text": "a"}));
    let ended = session.finish();
    ended.assert_exit(0);
    assert_eq!(setup.effects(), ["effect echo \"last\""]);
    ended.record.assert_verified();
    assert_eq!(ended.record.close()["unreadable_frames"], frames.len());
    for frame in &frames {
        let outcome = ended.record.outcome(frame);
        assert_eq!(outcome["tool_id"], "<unreadable>");
        let reason = "frame could not be read strictly";
        assert_eq!(
            outcome["policy"],
            json!({"status": "denied", "reason": reason})
        );
    }
}

/// SPEC [WRAP-1].
#[test]
fn a_rate_limit_lets_so_many_through() {
    let policy = "rules: [{id: few, action: rate_limit, tool: echo, rate: {max: 3, per_seconds: 86400}, limits: {max_wall_ms: 1}}]";
    let setup = gated(policy, &[]);
    let mut session = setup.start();
    for id in 0..5 {
        let (request, answer) = session.ask(id, "echo", json!({"text": "a"}));
        let is_refused = answer == refusal("RATE_LIMITED", &id.to_string()).into_bytes();
        assert_eq!(is_refused, id >= 3, "{id}");
        assert!(!request.is_empty());
    }
    // Another tool has a window of its own.
    session.ask(5, "add", json!({"a": 1, "b": 2}));
    let ended = session.finish();
    ended.record.assert_verified();
    assert_eq!(setup.effects().len(), 4);
    let statuses: Vec<_> = ended
        .record
        .outcomes()
        .map(|line| line["policy"]["status"].as_str().unwrap())
        .collect();
    let expected = [
        "allowed",
        "allowed",
        "allowed",
        "rate_limited",
        "rate_limited",
        "allowed",
    ];
    assert_eq!(statuses, expected);
}

/// SPEC [WRAP-4].
#[test]
fn a_refused_batch_reaches_nobody_and_spends_nothing() {
    let policy = "rules:\n\
        - {id: few, action: rate_limit, tool: echo, rate: {max: 1, per_seconds: 86400}}\n\
        - {id: never, action: deny, tool: rm}\n";
    let setup = gated(policy, &[]);
    let mut session = setup.start();
    let echo = call(1, "echo", json!({"text": "a"}));
    let batch =
        json!([echo, call(2, "rm", json!({})), {"jsonrpc": "2.0", "id": 3, "method": "ping"}]);
    let request = session.send_json(&batch);
    let answers: Vec<Value> = serde_json::from_slice(&session.frame()).unwrap();
    let said: Vec<_> = answers
        .iter()
        .map(|answer| (&answer["id"], &answer["error"]["data"]["aegis"]["code"]))
        .collect();
    let (one, two, three) = (json!(1), json!(2), json!(3));
    let (host, policy) = (json!("HOST_DENIED"), json!("POLICY_DENIED"));
    assert_eq!(said, [(&one, &host), (&two, &policy), (&three, &host)]);
    assert_eq!(setup.effects(), [""; 0]);

    // The window of the call that did not run is still open.
    session.ask(1, "echo", json!({"text": "a"}));
    let ended = session.finish();
    ended.record.assert_verified();
    assert_eq!(setup.effects(), ["effect echo 1"]);
    let outcomes = ended.record.outcomes_of(&request);
    let sibling = "not executed: sibling call in this batch was refused";
    assert_eq!(outcomes.len(), 2);
    assert_eq!(outcomes[0]["policy"], json!({"status": "allowed"}));
    assert_eq!(outcomes[0]["execution"]["reason"], sibling);
    assert_eq!(outcomes[0]["capability"]["reason"], "not evaluated");
    assert_eq!(outcomes[1]["policy"]["status"], "denied");
}

/// Calls that wait for the server do not keep others from being refused.
#[test]
fn a_call_is_refused_while_the_server_hangs() {
    for server in [&["--read-nothing"][..], &[]] {
        let setup = behind(Setup::server(server), DENY_ECHO, &[]);
        let mut session = setup.start();
        let open = session.call(1, "never", json!({}));
        session.call(2, "echo", json!({"text": "a"}));
        assert_eq!(session.frame(), refusal("POLICY_DENIED", "2").into_bytes());
        let ended = session.finish_by_signal();
        ended.record.assert_verified();
        assert_eq!(ended.record.outcome(&open)["policy"]["status"], "allowed");
    }
}

/// Refusals and answers share the client's end without tearing each other.
#[test]
fn refusals_stand_between_answers_whole() {
    let setup = gated(DENY_ECHO, &[]);
    let mut session = setup.start();
    let mut input = session.take_input();
    let writer = std::thread::spawn(move || {
        for id in 0..ROUNDS {
            for (offset, tool, arguments) in [
                (0, "big", json!({"bytes": 100_000})),
                (ROUNDS, "echo", json!({"text": "a"})),
            ] {
                let frame = format!("{}\n", call(id + offset, tool, arguments));
                std::io::Write::write_all(&mut input, frame.as_bytes()).unwrap();
            }
        }
        input
    });
    let mut answers = Vec::new();
    for _ in 0..2 * ROUNDS {
        let answer: Value = serde_json::from_slice(&session.frame()).unwrap();
        answers.push(answer["id"].as_u64().unwrap());
        assert_eq!(
            answer.get("error").is_some(),
            answer["id"].as_u64() >= Some(ROUNDS)
        );
    }
    session.give_input(writer.join().unwrap());
    answers.sort_unstable();
    assert_eq!(answers, (0..2 * ROUNDS).collect::<Vec<_>>());
    session.finish().record.assert_verified();
}

/// SPEC [WRAP-8] [LINE-18] [LINE-26] [LINE-27].
#[test]
fn on_trial_every_byte_passes_and_the_record_says_what_would_have_been() {
    let policy = "rules:\n\
        - {id: never, action: deny, tool: echo}\n\
        - {id: few, action: rate_limit, tool: add, rate: {max: 1, per_seconds: 86400}}\n\
        - {id: ask, action: pending_approval, tool: fail}\n";
    let setup = gated(policy, &["--shadow"]);
    let frames = [
        (
            call(1, "echo", json!({"text": "a"})).to_string(),
            "denied",
            Some("never"),
        ),
        (
            call(2, "add", json!({"a": 1, "b": 2})).to_string(),
            "allowed",
            Some("few"),
        ),
        (
            call(3, "add", json!({"a": 1, "b": 2})).to_string(),
            "rate_limited",
            Some("few"),
        ),
        (
            call(4, "fail", json!({"message": "m"})).to_string(),
            "pending_approval",
            Some("ask"),
        ),
        (call(5, "never", json!({})).to_string(), "allowed", None),
        (
            r#"{"method":"tools/call","params":{"name":"t"}}"#.to_owned(),
            "denied",
            None,
        ),
        (
            r#"{"id":6,"method":"tools/call"}"#.to_owned(),
            "denied",
            None,
        ),
        ("x".to_owned(), "denied", None),
        ("{}".to_owned(), "denied", None),
        ("[]".to_owned(), "denied", None),
        (r#"[{"id":1}]"#.to_owned(), "denied", None),
    ];
    let input: String = frames
        .iter()
        .map(|(frame, ..)| format!("{frame}\n"))
        .collect();
    let through = setup.pipe(input.as_bytes());
    let direct = setup.pipe_direct(input.as_bytes());
    assert_eq!(through.stdout, direct.stdout);

    let record = setup.record();
    record.assert_verified();
    let in_force = record.open()["policy"].clone();
    assert_eq!(in_force["status"], "shadow");
    for (frame, status, rule) in &frames {
        let outcome = record.outcome(frame.as_bytes());
        let mut shadow = json!({"status": status, "policy_set_hash": in_force["policy_set_hash"]});
        if let Some(rule) = rule {
            shadow["matched_rule"] = json!(rule);
        }
        assert_eq!(outcome["shadow"], shadow, "{frame}");
        assert_eq!(outcome["policy"], json!({"status": "allowed"}));
        let stand_in = "7b30695c7a4df1b6a226bdd591c6d75b9917bb3af078af2d01be295e4df96974";
        assert_eq!(outcome["policy_set_hash"], stand_in);
        assert_eq!(outcome["decision_axes"], json!({}));
    }
    assert_eq!(record.outcomes().count(), frames.len());
    assert_eq!(record.close()["unreadable_frames"], 4);
}

const ROUNDS: u64 = 40;
