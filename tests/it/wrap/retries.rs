//! Calls that go on in another: input that is asked for, tasks, and those that
//! the client gives up.

use serde_json::{Value, json};

use super::harness::{Session, Setup, call, sha256};
use super::record::{assert_answered, assert_passed_through, assert_unanswered};

fn modern(id: u64, tool: &str, arguments: Value) -> Value {
    let mut message = call(id, tool, arguments);
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    message
}

/// Sends a message and returns its frame and the answer.
fn exchange(session: &mut Session<'_>, message: &Value) -> (Vec<u8>, Vec<u8>) {
    let request = session.send_json(message);
    (request, session.answer(message["id"].clone()))
}

fn retry(id: u64, arguments: Value, state: Option<Value>) -> Value {
    let mut message = modern(id, "ask", arguments);
    message["params"]["inputResponses"] = json!({"answer": {"action": "accept"}});
    if let Some(state) = state {
        message["params"]["requestState"] = state;
    }
    message
}

#[test]
fn a_retry_names_the_call_that_asked() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let question = json!({"question": "q"});
    let (first, asked) = exchange(&mut session, &modern(1, "ask", question.clone()));
    let (other, _) = exchange(&mut session, &modern(2, "ask", question.clone()));
    let state = |answer: &[u8]| {
        let read: Value = serde_json::from_slice(answer).unwrap();
        read["result"]["requestState"].clone()
    };
    let (second, answer) = exchange(
        &mut session,
        &retry(3, question.clone(), Some(state(&asked))),
    );
    // The same once more continues nothing: the question is answered.
    let (third, _) = exchange(&mut session, &retry(4, question, Some(state(&asked))));
    let record = session.finish().record;
    record.assert_verified();
    let outcome = record.outcome(&first);
    assert_answered(outcome, &asked, json!({"kind": "input_required"}));
    assert_eq!(record.outcome(&other).get("resumes"), None);
    let resumed = record.outcome(&second);
    assert_passed_through(&record, resumed, "ask");
    assert_answered(resumed, &answer, json!({"kind": "result"}));
    assert_eq!(resumed["resumes"], outcome["call_id"]);
    assert_eq!(record.outcome(&third).get("resumes"), None);
}

/// SPEC [LINE-16].
#[test]
fn without_a_state_a_retry_names_its_call_only_if_it_is_one() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let question = |q: &str| json!({"question": q, "stateless": true});
    let (first, _) = exchange(&mut session, &modern(1, "ask", question("a")));
    exchange(&mut session, &modern(2, "ask", question("b")));
    exchange(&mut session, &modern(3, "ask", question("b")));
    let (clear, _) = exchange(&mut session, &retry(4, question("a"), None));
    let (doubtful, _) = exchange(&mut session, &retry(5, question("b"), None));
    let record = session.finish().record;
    record.assert_verified();
    let first = record.outcome(&first);
    assert_eq!(first["answer"], json!({"kind": "input_required"}));
    assert_eq!(record.outcome(&clear)["resumes"], first["call_id"]);
    assert_eq!(record.outcome(&doubtful).get("resumes"), None);
}

#[test]
fn a_task_is_kept_as_the_digest_of_its_id_in_both_eras() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let mut legacy = call(1, "task", json!({}));
    legacy["params"]["task"] = json!({"ttl": 60000});
    let legacy = exchange(&mut session, &legacy);
    let modern = exchange(&mut session, &modern(2, "task", json!({})));
    let plain = exchange(&mut session, &call(3, "task", json!({})));
    let get =
        json!({"jsonrpc": "2.0", "id": 4, "method": "tasks/get", "params": {"taskId": "task-0"}});
    exchange(&mut session, &get);
    let record = session.finish().record;
    record.assert_verified();
    for ((request, answer), id) in [(&legacy, "task-0"), (&modern, "task-1")] {
        let digest = sha256(id.as_bytes());
        let expected = json!({"kind": "task_created", "task_digest": digest});
        assert_answered(record.outcome(request), answer, expected);
    }
    assert_answered(
        record.outcome(&plain.0),
        &plain.1,
        json!({"kind": "result"}),
    );
    assert_eq!(record.outcomes().count(), 3);
}

/// SPEC [LINE-21].
#[test]
fn a_cancelled_call_says_so_unless_it_is_answered() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let silent = session.call(1, "sleep", json!({"ms": 600_000}));
    let late = session.call(2, "sleep", json!({"ms": 600_000, "answer_anyway": true}));
    let text = session.call("1", "never", json!({}));
    let cancel = |id: Value| {
        let params = json!({"requestId": id});
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    };
    session.send_json(&cancel(json!(1)));
    session.send_json(&cancel(json!(2)));
    // What is not there cannot be cancelled, and that is no fault.
    session.send_json(&cancel(json!(77)));
    session.send_json(&cancel(Value::Null));
    session.send_json(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}));
    let answer = session.answer(2);
    let record = session.finish().record;
    record.assert_verified();
    let outcome = record.outcome(&silent);
    assert_passed_through(&record, outcome, "sleep");
    assert_unanswered(outcome, "cancelled", "cancelled by the client; no answer");
    assert_answered(record.outcome(&late), &answer, json!({"kind": "result"}));
    let reason = "child exited before responding";
    assert_unanswered(record.outcome(&text), "none", reason);
}

#[test]
fn a_server_cannot_cancel_a_call_of_the_client() {
    let script = concat!(
        "read -r line;",
        r#"printf '{"method":"notifications/cancelled","params":{"requestId":1}}\n';"#,
        "cat >/dev/null"
    );
    let setup = Setup::command(&["sh", "-c", script]);
    let mut session = setup.start();
    let request = session.call(1, "t", json!({}));
    session.frame();
    let record = session.finish().record;
    record.assert_verified();
    let reason = "child exited before responding";
    assert_unanswered(record.outcome(&request), "none", reason);
}
